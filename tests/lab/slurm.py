"""A Slurm over the hosts of a lab: slurmctld on n0, slurmd and munged on each, every file of them the lab's own."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.patience import holds_within, wait_until

from .host import Host
from .lab import Lab
from .network import PER_LEAF

_SOCKET = "/run/munge/munge.socket.2"  # where Debian's Slurm looks for it
_CONTROL_PORT, _NODE_PORT = 6817, 6818
_CONFIGURATION = """\
ClusterName=lab
SlurmctldHost=n0({control})
SlurmUser=root
SlurmdUser=root
SlurmctldPort={control_port}
SlurmdPort={node_port}
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation={state}
SlurmdSpoolDir=/run/slurmd
MailProg=/bin/true
# A requeued job waits until its credential has expired.
AuthInfo=cred_expire=8
# No cgroups and no systemd are needed.
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/tree
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=2
UnkillableStepTimeout=20
SlurmdTimeout=10
MessageTimeout=5
ReturnToService=2
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP PriorityTier=1 GraceTime=2
PartitionName=urgent Nodes=ALL MaxTime=10 State=UP PriorityTier=2
"""
# PMIx keeps sockets there: each host needs its own.
_PMIX = "PMIxCliTmpDirBase=/run/pmix\n"
# Named so that slurmd does not look for one: none is used, and a host has none.
_CGROUP = "CgroupPlugin=cgroup/v1\n"


class Cluster:
    """The cluster and its commands, which run on a host of it and need no variable: all is in /etc/slurm there."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._write_files()
        for host in lab.hosts:
            lab.serve(host, "munged", self._munged(), ready=lambda up: up.path(_SOCKET).exists())
        lab.serve(lab.hosts[0], "slurmctld", ("/usr/sbin/slurmctld", "-D"), ready=_listens(_CONTROL_PORT))
        for host in lab.hosts:
            lab.serve(host, "slurmd", ("/usr/sbin/slurmd", "-D"), ready=_listens(_NODE_PORT))
        self.wait_ready()

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        host: str = "n0",
        env: Mapping[str, str] | None = None,
        cwd: str | Path = "/",
        timeout_s: float = 60.0,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command such as srun on a host to its end, as `Lab.run` does."""
        return self.lab.run(host, argv, env=env, cwd=cwd, timeout_s=timeout_s)

    def states(self) -> dict[str, str]:
        """Return the state of each node, as sinfo has it: idle, mix, alloc, drain, down, with a * for no answer."""
        done = self.run(["sinfo", "--noheader", "--Node", "--partition=all", "--format=%N %t"])
        return dict(line.split() for line in done.stdout.splitlines())

    def jobs(self) -> dict[str, str]:
        """Return the state of each job that has not ended, as squeue has it: RUNNING, PENDING, COMPLETING."""
        done = self.run(["squeue", "--noheader", "--array", "--format=%i %T"])
        return dict(line.split() for line in done.stdout.splitlines())

    def job(self, number: str) -> dict[str, str]:
        """Return the fields of `scontrol show job`, also of a job that ended a while ago."""
        words = self.run(["scontrol", "--oneliner", "show", "job", number]).stdout.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        """Wait until every node is idle, or fail with what the daemons have logged."""
        ready = dict.fromkeys(self.lab.hosts, "idle")
        wait_until(lambda: self.states() == ready, timeout_s, lambda: f"the nodes: {self.states()}\n{self.log()}")

    def drain(self, host: str, reason: str = "test") -> None:
        """Let no new job start on a node."""
        self._update(host, "state=drain", f"reason={reason}")

    def resume(self, host: str) -> None:
        """Let jobs start on a node again."""
        self._update(host, "state=resume")

    def heal(self) -> dict[str, str]:
        """Cancel what is left of jobs and return what was; make every node idle."""
        holds_within(3.0, lambda: not self.jobs())
        left = self.jobs()
        if left:
            self.run(["scancel", "--signal=KILL", "--full", *left])
            self.run(["scancel", *left])
            wait_until(lambda: not self.jobs(), 30.0, self.log)
        ready = dict.fromkeys(self.lab.hosts, "idle")
        if self.states() != ready:
            for host, state in self.states().items():
                if state.startswith(("drain", "drng", "down")):
                    self.resume(host)
            self.wait_ready()
        return left

    def log(self) -> str:
        """Return what the daemons have logged."""
        return f"{self.lab.log('slurmctld')}\n{self.lab.log('slurmd')}"

    def _update(self, host: str, *words: str) -> None:
        done = self.run(["scontrol", "update", f"nodename={host}", *words])
        assert done.returncode == 0, done

    def _munged(self) -> tuple[str, ...]:
        key = self.lab.folder / "munge.key"
        own = ("--pid-file=/run/munge/munged.pid", "--seed-file=/run/munge/seed", "--num-threads=2")
        # Forced, for it takes no key below a folder that everybody may write to; this one's own folder is root's.
        return "/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}", f"--socket={_SOCKET}", *own

    def _write_files(self) -> None:
        lab, folder = self.lab, self.lab.folder / "slurm"
        key, state = lab.folder / "munge.key", lab.folder / "slurm-state"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        state.mkdir()
        # What slurmd finds on this machine, so that Slurm's numbers of cores are the machine's.
        hardware = lab.run("n0", ["slurmd", "-C"]).stdout.split()[1:-1]
        nodes = [
            f"NodeName={host} NodeAddr={lab.addresses[host]} {' '.join(hardware)} State=UNKNOWN" for host in lab.hosts
        ]
        text = _CONFIGURATION.format(
            control=lab.addresses["n0"], control_port=_CONTROL_PORT, node_port=_NODE_PORT, state=state
        )
        (folder / "slurm.conf").write_text("\n".join([text, *nodes, ""]), encoding="ascii")
        leaves = [lab.hosts[first : first + PER_LEAF] for first in range(0, len(lab.hosts), PER_LEAF)]
        switches = [f"SwitchName=leaf{number} Nodes={','.join(leaf)}" for number, leaf in enumerate(leaves)]
        spine = f"SwitchName=spine Switches={','.join(f'leaf{number}' for number in range(len(leaves)))}"
        (folder / "topology.conf").write_text("\n".join([*switches, spine, ""]), encoding="ascii")
        (folder / "mpi.conf").write_text(_PMIX, encoding="ascii")
        (folder / "cgroup.conf").write_text(_CGROUP, encoding="ascii")


def _listens(port: int) -> Callable[[Host], bool]:
    return lambda host: host.listens(port)

"""LSF: the hosts of a job from its variables."""

from busbw.base.errors import InputError
from busbw.machine.read.allocation_files import node_file, paired, repeated
from busbw.machine.read.allocation_seen import Seen
from busbw.model.launch import Allocation, HostSlots

# Set by IBM's Cluster System Management, under which the batch script runs on a launch node that is no part of the job.
_LAUNCH_NODE_SIGN = "CSM_ALLOCATION_ID"


def allocation(seen: Seen) -> Allocation:
    """Return the hosts of the job, without its launch node. Raises InputError."""
    hosts, found = _hosts(seen)
    job_id = seen.environment.get("LSB_JOBID") or None
    passed_over: tuple[str, ...] = ()
    first, others = hosts[0], hosts[1:]
    if others and first.slots == 1 and min(host.slots or 0 for host in others) > 1:
        if seen.environment.get(_LAUNCH_NODE_SIGN):
            hosts = others
            passed_over = (
                f"{first.name}: the first host, with one slot, is the launch node ({_LAUNCH_NODE_SIGN} is set)",
            )
        else:
            passed_over = (f"possibly {first.name} is a launch node: it has one slot and the others more; it is used",)
    of_job = f" of job {job_id}" if job_id else ""
    return Allocation(kind="lsf", hosts=hosts, job_id=job_id, how=f"{found}{of_job}", passed_over=passed_over)


def _hosts(seen: Seen) -> tuple[tuple[HostSlots, ...], str]:
    """Return the hosts and the variable that they are from, the one that is never cut short first."""
    environment = seen.environment
    if "LSB_DJOB_HOSTFILE" in seen.files:
        path = environment["LSB_DJOB_HOSTFILE"]
        return node_file(seen.files["LSB_DJOB_HOSTFILE"], path), f"LSB_DJOB_HOSTFILE={path}"
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    if words:
        if len(words) % 2:
            raise InputError("not pairs of a host and its slots", where="LSB_MCPU_HOSTS")
        pairs = [(name, slots, "LSB_MCPU_HOSTS") for name, slots in zip(words[::2], words[1::2], strict=True)]
        return paired(pairs, "LSB_MCPU_HOSTS"), "LSB_MCPU_HOSTS"
    words = environment.get("LSB_HOSTS", "").split()
    if words:
        return repeated([(name, "LSB_HOSTS") for name in words], "LSB_HOSTS"), "LSB_HOSTS"
    # What is wrong with the file is the reason that there is nothing.
    return node_file(seen.file("LSB_DJOB_HOSTFILE"), environment["LSB_DJOB_HOSTFILE"]), "LSB_DJOB_HOSTFILE"

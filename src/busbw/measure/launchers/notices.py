"""What launchers and batch systems print when a rank, a host or a whole job ends too early."""

import re
import signal
from dataclasses import dataclass

_NOTICES = (
    # Open MPI 4 (mpirun), 5 (prterun), and its wrapping at 75 columns.
    re.compile(
        r"process\s+rank\s+(?P<rank>\d+)\s+with\s+PID\s+(?P<pid>\d+)\s+on\s+node\s+(?P<host>\S+)\s+exited\s+on\s+signal\s+(?P<signal>\d+)"
    ),
    # Open MPI 4 puts the job into brackets of its own: `[[11172,1],2]`, and 5 does not: `[prterun-n0-155@1,2]`.
    re.compile(r"Process name:\s+\[(?:\[[^\]]*\]|[^\],]*),\s*(?P<rank>\d+)\]\s+Exit code:\s+(?P<code>\d+)"),
    re.compile(
        r"due\s+to\s+process\s+rank\s+(?P<rank>\d+)\s+with\s+PID\s+(?P<pid>\d+)\s+on\s+node\s+(?P<host>\S+)\s+exiting\s+improperly"
    ),
    # MPICH, Intel MPI, MVAPICH (Hydra).
    re.compile(
        r"=\s+RANK\s+(?P<rank>\d+)\s+PID\s+(?P<pid>\d+)\s+RUNNING\s+AT\s+(?P<host>\S+)\s+="
        r"\s+KILLED BY SIGNAL:\s+(?P<signal>\d+)"
    ),
    re.compile(r"=\s+PID\s+(?P<pid>\d+)\s+RUNNING\s+AT\s+(?P<host>\S+)\s+=\s+EXIT CODE:\s+(?P<status>\d+)"),
    # srun; of several tasks of a host the first. Terminated tasks followed another one.
    re.compile(r"srun: error: (?P<host>[^\s:]+): tasks? (?P<rank>\d+)[\d,-]*: Exited with exit code (?P<code>\d+)"),
    re.compile(
        r"srun: error: (?P<host>[^\s:]+): tasks? (?P<rank>\d+)[\d,-]*: "
        r"(?P<name>Killed|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception|"
        r"Out Of Memory)"
    ),
    # flux run, with exit-on-error and without (flux-core, issues 7328 and 7037); of a rank it tells no more than that.
    re.compile(
        r"(?<!shell )\brank (?P<rank>\d+) on host (?P<host>\S+) "
        r"(?:failed and exit-on-error is set|exited and exit-timeout=)"
    ),
    # aprun, `[NID 02765] [c6-1c1s3n1] [Mon Sep  1 17:08:02 2014] PE RANK 0 exit signal Aborted`.
    re.compile(
        r"\[NID \d+\] [^\n]{0,100}?PE RANK (?P<rank>\d+) exit signal (?P<name>Killed|Aborted|Segmentation fault|"
        r"Bus error|Illegal instruction|Floating point exception)"
    ),
)
# The C library's words for signals, which srun prints.
_SIGNALS_BY_WORD = {
    "Killed": signal.SIGKILL,
    "Aborted": signal.SIGABRT,
    "Segmentation fault": signal.SIGSEGV,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating point exception": signal.SIGFPE,
}
_SIGNALS = {number.value: number.name for number in signal.Signals}
_LOST_HOSTS = (
    # Open MPI 4: `... lost communication with a remote daemon. HNP daemon : [[1,0],0] on node n0 / Remote daemon: ...`.
    # Open MPI 5 has names such as `[prterun-n0-12@0,2] on node n2`.
    re.compile(r"[Rr]emote daemon\s*:?\s*\[[^\n]*?\]\s+on\s+node\s+(?P<host>\S+)"),
    re.compile(r"srun: error: Node failure on (?P<host>\S+)"),
    re.compile(r"srun: error: (?:Nodes? )?(?P<host>[A-Za-z0-9_.-]+)(?:: | )[Uu]nable to contact slurmd"),
    # Flux: the shell of a job on a host is gone.
    re.compile(r"\bshell rank \d+ on host (?P<host>\S+) (?:failed and exit-on-error is set|exited and exit-timeout=)"),
    # Hydra, when a proxy's connection is closed.
    re.compile(r"HYD\w* \(.*\): .*(?:lost connection|connection closed)[^\n]*?\bhost:? (?P<host>[A-Za-z0-9_.-]+)"),
    # Intel MPI's mpiexec.
    re.compile(r"mpiexec\S*\] [^\n]*(?:Unable to run|launch) [^\n]*?on (?P<host>[A-Za-z0-9_.-]+) \("),
    # ssh, before a daemon was there at all.
    re.compile(r"ssh: connect to host (?P<host>\S+) port \d+: "),
)
# Open MPI's TCP transport (help-mpi-btl-tcp.txt, "peer hung up").
_LOST_PEER = re.compile(r"unexpectedly disconnected.{0,1500}?Peer host:\s+(?P<host>\S+)", re.DOTALL)
# Open MPI's error handler, in a rank that it ends because of another one.
_GAVE_UP = re.compile(r"\*\*\* reported by process \[\d+,(\d{1,9})\]")
_BATCH = re.compile(r"\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+(?: DUE TO (?P<why>[A-Z ]+?))?(?:,[^*]*)? \*\*\*")
_BATCH_WORDS = {
    "TIME LIMIT": "time limit",
    "PREEMPTION": "preempted",
    "NODE FAILURE": "node failure",
    "JOB REQUEUE": "requeued",
    None: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """The first rank that ended too early, as its launcher tells it; what it does not tell is None."""

    rank: int | None
    process_id: int | None
    what: str
    host: str | None = None


def first_death(text: str) -> Notice | None:
    """Return the rank that a launcher blames in what it printed; None when it blames nobody."""
    found = [match for pattern in _NOTICES if (match := pattern.search(text)) is not None]
    if not found:
        return None
    fields = min(found, key=lambda match: match.start()).groupdict()
    return Notice(
        rank=_number(fields, "rank"), process_id=_number(fields, "pid"), what=_what(fields), host=fields.get("host")
    )


def lost_host(text: str) -> str | None:
    """Return the first host that a launcher says it cannot reach any more; None when it says nothing of the kind."""
    found = [match for pattern in _LOST_HOSTS if (match := pattern.search(text)) is not None]
    return min(found, key=lambda match: match.start())["host"] if found else None


def peer_lost(text: str) -> str | None:
    """Return the host of the first rank that MPI in another rank lost its connection to; None when none says so."""
    match = _LOST_PEER.search(text)
    return match["host"] if match is not None else None


def gave_up(text: str) -> frozenset[int]:
    """Return the ranks that MPI ended by itself over an error that it met in them."""
    return frozenset(map(int, _GAVE_UP.findall(text)))


def batch_end(text: str) -> str | None:
    """Return why Slurm ended a step or a job: `time limit`, `preempted`, `node failure`, `requeued`, `cancelled`."""
    match = _BATCH.search(text)
    if match is None:
        return None
    why = match["why"]
    return _BATCH_WORDS.get(why.strip() if why is not None else None, (why or "cancelled").strip().lower())


def _number(fields: dict[str, str], name: str) -> int | None:
    value = fields.get(name)
    return int(value) if value is not None and len(value) < 10 else None


def _what(fields: dict[str, str]) -> str:
    code = _number(fields, "code")
    # Hydra prints the raw wait status of a process that a signal ended.
    number = _number(fields, "signal") or _number(fields, "status") or _SIGNALS_BY_WORD.get(fields.get("name", ""))
    if number is not None:
        return f"killed by signal {int(number)} ({_SIGNALS.get(number, 'unknown')})"
    if fields.get("name") == "Out Of Memory":
        return "killed because its host or its limit had no memory left"
    return f"exited with code {code}" if code is not None else "exited without finishing MPI"

"""Launchers of this host that need no MPI: ranks that find each other by variables, or one process for every GPU."""

from busbw.measure.launchers.hosts import JOINING_GRACE_S, MPI_GRACE_S
from busbw.measure.launchers.launcher import RankLauncher
from busbw.model.launch import Start
from busbw.model.plan import Job


def _processes(start: Start) -> Job:
    """Return a program of ours that starts the ranks and stays with them."""
    return _job(
        start, (start.python, "-P", "-m", "busbw.rank.start", str(_count(start)), *start.program.argv), JOINING_GRACE_S
    )


def _torchrun(start: Start) -> Job:
    argv = ("torchrun", "--standalone", f"--nproc-per-node={_count(start)}", "--no-python", *start.program.argv)
    return _job(start, argv, JOINING_GRACE_S)


def _direct(start: Start) -> Job:
    """Return the program itself: one process for all ranks."""
    return _job(start, start.program.argv, MPI_GRACE_S)


def _count(start: Start) -> int:
    return start.placement.ranks // start.per_process


def _job(start: Start, argv: tuple[str, ...], grace_s: float) -> Job:
    return Job(argv=argv, env=start.program.env, timeout_s=start.measuring_s + grace_s, stall_s=start.stall_s)


PROCESSES = RankLauncher(name="processes", job=_processes, joining="variables", on_hosts=False, here=True, binds=False)
TORCHRUN = RankLauncher(name="torchrun", job=_torchrun, joining="variables", on_hosts=False, here=True, binds=False)
DIRECT = RankLauncher(name="direct", job=_direct, joining="one process", on_hosts=False, here=True, binds=False)

"""Processes of this host without MPI, and torchrun: launchers for ranks that find each other by themselves."""

from busbw.base.errors import InputError
from busbw.model.plan import Job, Placement, Program

# Start-up, joining, verification and ending of a run, beside its measuring time.
GRACE_S = 120.0
NAMES = ("processes", "torchrun")


def job(
    name: str, program: Program, placement: Placement, *, per_process: int, python: str, limits: tuple[float, float]
) -> Job:
    """Return the command that starts the ranks here. `limits`: seconds of measuring, seconds without progress.

    Raises InputError for a launcher of another name.
    """
    count = placement.ranks // per_process
    if name == "processes":
        argv = (python, "-P", "-m", "busbw.rank.start", str(count), *program.argv)
    elif name == "torchrun":
        argv = ("torchrun", "--standalone", f"--nproc-per-node={count}", "--no-python", *program.argv)
    else:
        raise InputError(f"{name!r} starts no ranks without MPI", hint="one of: " + ", ".join(NAMES))
    measuring_s, stall_s = limits
    return Job(argv=argv, env=program.env, timeout_s=measuring_s + GRACE_S, stall_s=stall_s)

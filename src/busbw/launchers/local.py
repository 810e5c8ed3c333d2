"""mpirun on this machine, in the words of each MPI family."""

from pathlib import PurePosixPath

from busbw.errors import InputError
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Placement, Program

name = "local"

# Where a run directory keeps links to libraries.
_LINKS = "lib"
# Start-up, machine rates, verification and ending of a run, beside its measuring time.
GRACE_S = 60.0


def job(
    program: Program,
    placement: Placement,
    mpi: MpiLibrary,
    *,
    directory: str,
    as_root: bool,
    limits: tuple[float, float],
) -> Job:
    """Return the command that starts the ranks here. `limits`: seconds of measuring, seconds without progress.

    Raises InputError for an MPI family whose mpirun is not known.
    """
    arguments = _ARGUMENTS.get(mpi.family)
    if arguments is None:
        raise InputError(
            f"do not know how to start ranks with this mpirun ({mpi.version or 'no version'})",
            where=mpi.mpirun,
            hint="put Open MPI, MPICH, Intel MPI or MVAPICH first on PATH, or name one with --mpirun",
        )
    measuring_s, stall_s = limits
    links = _links(mpi)
    return Job(
        argv=(mpi.mpirun, *(_AS_ROOT.get(mpi.family, ()) if as_root else ()), *arguments(placement), *program.argv),
        # mpi4py loads the library that belongs to this mpirun, not the first one it finds.
        env=(("MPI4PY_LIBMPI", mpi.library), *_environment(placement, mpi), *program.env),
        prepend=(*_prepended(mpi), *(("LD_LIBRARY_PATH", f"{directory}/{_LINKS}") for _ in links)),
        links=links,
        timeout_s=measuring_s + GRACE_S,
        stall_s=stall_s,
    )


def _links(mpi: MpiLibrary) -> tuple[tuple[str, str], ...]:
    if PurePosixPath(mpi.library).name.startswith("libmpich."):
        # Debian's name for MPICH's library; mpi4py's extension asks the loader for the name of the MPICH ABI.
        return ((f"{_LINKS}/libmpi.so.12", mpi.library),)
    return ()


def _prepended(mpi: MpiLibrary) -> tuple[tuple[str, str], ...]:
    if mpi.family != "Intel MPI":
        return ()
    # Its mpirun is a script that looks for mpiexec.hydra on PATH; its library looks for libfabric beside itself.
    return ("PATH", str(PurePosixPath(mpi.mpirun).parent)), ("LD_LIBRARY_PATH", str(PurePosixPath(mpi.library).parent))


def _environment(placement: Placement, mpi: MpiLibrary) -> tuple[tuple[str, str], ...]:
    if placement.oversubscribed and mpi.family in ("MPICH", "MVAPICH"):
        # MPICH 5's shared-memory collectives spin without ever yielding: 8000 us a barrier instead of 30.
        return (("MPIR_CVAR_DEVICE_COLLECTIVES", "none"), ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"))
    return ()


def _open_mpi(placement: Placement) -> tuple[str, ...]:
    count = ("-n", str(placement.ranks))
    if placement.oversubscribed:
        # Without yielding, a waiting rank keeps the core its partner needs: milliseconds instead of microseconds.
        return (*count, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
    return (*count, "--map-by", "core", "--bind-to", "core")


# Left to itself, Hydra kills the other ranks within a millisecond of an early end and may say nothing, so that nobody
# could tell which rank was first. busbw sees it and ends them itself.
_NO_CLEANUP = "-disable-auto-cleanup"


def _hydra(placement: Placement) -> tuple[str, ...]:
    place = () if placement.oversubscribed else ("-bind-to", "core")
    return (_NO_CLEANUP, "-n", str(placement.ranks), *place)


def _intel(placement: Placement) -> tuple[str, ...]:
    # Pins each rank to a core of its own by default, and gives up pinning when there are more ranks than cores.
    return (_NO_CLEANUP, "-n", str(placement.ranks))


# Open MPI refuses to start as root unless told to.
_AS_ROOT = {"Open MPI": ("--allow-run-as-root",)}
_ARGUMENTS = {"Open MPI": _open_mpi, "MPICH": _hydra, "MVAPICH": _hydra, "Intel MPI": _intel}

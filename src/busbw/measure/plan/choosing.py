"""Who starts the ranks on several hosts, and why."""

from collections.abc import Collection
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.measure.launchers import aprun, flux, jsrun, mpirun, srun
from busbw.measure.launchers.slurm_mpi import is_cray, mpi_type
from busbw.measure.plan.request import Request
from busbw.model.launch import Allocation, AllocationKind, Slurm
from busbw.model.machine import MpiLibrary


class System(NamedTuple):
    """The batch system that a launcher is part of."""

    kind: AllocationKind
    title: str
    # How somebody comes into an allocation of it.
    hint: str


class Chosen(NamedTuple):
    """A launcher, and in sentences what a reader should know of the choice."""

    name: str
    notes: tuple[str, ...] = ()


SYSTEMS = {
    srun.name: System("slurm", "Slurm", "salloc first, or submit with --launcher sbatch, or take --launcher mpirun"),
    flux.name: System("flux", "Flux", "flux alloc first, or take --launcher mpirun"),
    jsrun.name: System("lsf", "LSF", "start busbw inside of a job of LSF, or take --launcher mpirun"),
    aprun.name: System("pbs", "PBS", "start busbw inside of a job of PBS, or take --launcher mpirun"),
}
_UNTRIED = (flux.name, jsrun.name, aprun.name)


def untried(launcher: str) -> tuple[str, ...]:
    """Return in a sentence that nobody has seen a launcher's words at work; nothing for one that is tested."""
    if launcher not in _UNTRIED:
        return ()
    return (f"the words for {launcher} are from its manual: nobody has started them on such a machine yet",)


class Launchers(NamedTuple):
    """What there is to choose from."""

    # None: no srun on PATH.
    slurm: Slurm | None
    # Other launchers of batch systems that are on PATH.
    on_path: Collection[str]
    # Names of the variables that ranks will have.
    settings: Collection[str] = ()

    def has(self, launcher: str) -> bool:
        """Whether a launcher of a batch system is there."""
        return self.slurm is not None if launcher == srun.name else launcher in self.on_path


def launcher_of(request: Request, allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> Chosen:
    """Return who starts the ranks of a request on the hosts of an allocation.

    Raises InputError for a launcher that there is not, and for one that cannot be told these hosts.
    """
    if request.launcher is None:
        chosen = _fitting(request, allocation, mpi, there)
    elif request.launcher == mpirun.name or request.launcher in SYSTEMS:
        chosen = Chosen(request.launcher)
    else:
        raise InputError(
            f"there is no launcher {request.launcher!r} for several hosts",
            hint="one of: " + ", ".join((mpirun.name, *SYSTEMS)),
        )
    if chosen.name in SYSTEMS and not there.has(chosen.name):
        raise InputError(
            f"there is no {chosen.name} on PATH", where=f"--launcher {chosen.name}", hint="--launcher mpirun"
        )
    if chosen.name == jsrun.name and request.binding != "masks" and (allocation.kind != "lsf" or allocation.is_part):
        raise InputError(
            "jsrun chooses the hosts itself where it is not told the CPUs of each rank",
            where=allocation.how,
            hint="--bind-to masks, or take all hosts of the job",
        )
    return Chosen(chosen.name, (*chosen.notes, *untried(chosen.name)))


def _fitting(request: Request, allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> Chosen:
    """Return the launcher of the batch system where it is there and this MPI understands it, else mpirun."""
    name = next((name for name, system in SYSTEMS.items() if system.kind == allocation.kind), None)
    if name is None or not there.has(name):
        return Chosen(mpirun.name)
    why_not = _why_not(name, request, allocation, mpi, there)
    if why_not is not None:
        return Chosen(mpirun.name, (f"not by {name}: {why_not}",))
    # With Slurm that is what everybody expects.
    title = SYSTEMS[name].title
    return Chosen(name, () if name == srun.name else (f"by {name}: the hosts are those of {title}, and it is on PATH",))


def _why_not(name: str, request: Request, allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> str | None:
    if name == srun.name and there.slurm is not None:
        return _without_pmi(request, mpi, there, there.slurm)
    if name == flux.name and mpi.family == "Open MPI":
        return (
            "Open MPI needs its plug-in flux-pmix, and busbw cannot tell whether that is there; if so, --launcher flux"
        )
    if name == jsrun.name and not jsrun.introduces(mpi):
        return f"it introduces ranks by PMIx, which {mpi.family} does not understand"
    if name == aprun.name and not is_cray(mpi):
        return f"it introduces ranks to each other for Cray MPICH, and this is {mpi.family}"
    if name == aprun.name and not all(map(aprun.is_node, (host.name for host in allocation.hosts))):
        return "it takes nodes by number, and these names do not tell them; --launcher aprun --hosts nid000[12-15] does"
    return None


def _without_pmi(request: Request, mpi: MpiLibrary, there: Launchers, slurm: Slurm) -> str | None:
    try:
        mpi_type(mpi, slurm, request.launcher_options, there.settings)
    except InputError as error:
        return error.cause
    return None

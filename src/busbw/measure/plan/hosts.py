"""On which hosts a run takes place, and how many ranks each of them has."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.machine.capture import allocation as capture
from busbw.measure.launchers import aprun, flux, jsrun, mpirun, srun
from busbw.measure.launchers.hosts import visit_each, visit_here
from busbw.measure.launchers.slurm_mpi import is_cray, mpi_type
from busbw.model.launch import Allocation, AllocationKind, HostSlots, Slurm, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Program
from busbw.model.request import Request


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

    Raises InputError for an unknown launcher, and for one that cannot be told these hosts.
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


# Where a user has written the hosts down.
_NAMED = ("host file", "host list")
_WITHOUT_MPI = ("processes", "torchrun", "direct")


def check_started_once() -> None:
    """Raise InputError where a launcher started this process several times: each copy would start all ranks."""
    reason = capture.started_several_times()
    if reason is not None:
        raise InputError(
            reason,
            hint="start busbw once, without that launcher; unset the variable where another step has left it behind",
        )


def hosts_of(request: Request) -> Allocation | None:
    """Return the hosts that a request names or counts, with who says so; None: this host alone.

    Raises InputError where there are none, or fewer than asked for.
    """
    asked = request.hosts is not None or request.nodes is not None
    if asked and request.launcher in _WITHOUT_MPI:
        raise InputError(
            f"{request.launcher} starts ranks on this host alone", hint="leave --launcher out, or --hosts and --nodes"
        )
    # Asked for by name these start on hosts of an allocation, even where it has only one.
    system = SYSTEMS.get(request.launcher or "")
    if system is not None:
        found = capture.allocation()
        if found is None or found.kind != system.kind:
            raise InputError(
                f"{request.launcher} starts ranks inside of an allocation, and this is none of {system.title}'s",
                where=f"--launcher {request.launcher}",
                hint=system.hint,
            )
    if request.hosts is not None:
        return _first(capture.hosts(request.hosts), request.nodes)
    if request.nodes is None and system is None:
        return None
    found = capture.allocation()
    if found is None:
        raise InputError(
            "no allocation was found here: no batch system has set its variables",
            where="--nodes" if request.nodes is not None else f"--launcher {request.launcher}",
            hint="name hosts with --hosts, submit with --launcher sbatch, or start busbw inside a job",
        )
    return _first(found, request.nodes)


def ranks_of_hosts(request: Request, allocation: Allocation, usual: int) -> tuple[int, ...]:
    """Return how many ranks each host has: what was asked for, else its slots, else `usual`, its CPUs at most.

    Raises InputError.
    """
    count, each = len(allocation.hosts), request.ranks_per_node
    if each is not None:
        if each < 1:
            raise InputError("at least one rank on each node", where=f"--ranks-per-node {each}")
        if request.ranks not in (None, count * each):
            raise InputError(f"{request.ranks} ranks are not {each} on each of {count} nodes", hint="leave one out")
        return (each,) * count
    if request.ranks is not None:
        if request.ranks % count:
            raise InputError(
                f"{request.ranks} ranks are not alike on {count} nodes",
                where=f"--ranks {request.ranks}",
                hint=f"--ranks-per-node {max(request.ranks // count, 1)}",
            )
        return (request.ranks // count,) * count
    return tuple(host.slots or min(usual, host.cpus or usual) for host in allocation.hosts)


def gpus_of_hosts(request: Request, allocation: Allocation, usual: int) -> tuple[int, ...]:
    """Return how many GPUs of each host are used: what was asked for, else slots that a user wrote, else `usual`.

    The slots of a batch system are tasks or CPUs. Raises InputError.
    """
    if allocation.kind not in _NAMED:
        hosts = tuple(HostSlots(name=host.name) for host in allocation.hosts)
        allocation = msgspec.structs.replace(allocation, hosts=hosts)
    return ranks_of_hosts(request, allocation, usual)


def said(allocation: Allocation, launcher: Chosen) -> tuple[str, ...]:
    """Return in sentences which hosts and which launcher were chosen, why, and what was passed over."""
    names = compressed([host.name for host in allocation.hosts])
    number = len(allocation.hosts)
    return (
        f"{number} host{'s' if number != 1 else ''}, {names}, by {launcher.name}: {allocation.how}",
        *launcher.notes,
        *allocation.passed_over,
    )


def _first(found: Allocation, nodes: int | None) -> Allocation:
    if nodes is None:
        return found
    if not 1 <= nodes <= len(found.hosts):
        raise InputError(
            f"{nodes} nodes asked for, {len(found.hosts)} there ({found.how})",
            where=f"--nodes {nodes}",
            hint=f"--nodes {len(found.hosts)}",
        )
    kept: tuple[HostSlots, ...] = found.hosts[:nodes]
    return Allocation(
        kind=found.kind,
        hosts=kept,
        job_id=found.job_id,
        ends_unix_s=found.ends_unix_s,
        how=found.how if len(kept) == len(found.hosts) else f"{found.how}, its first {nodes}",
        passed_over=found.passed_over,
        is_part=found.is_part or len(kept) < len(found.hosts),
    )


# By name: what starts ranks on several hosts, and what looks after them there, on all at once and on each alone. An
# application of ALPS has its nodes to itself until ALPS has ended it.
_JOBS = {each.name: each.job for each in (mpirun, srun, flux, jsrun, aprun)}
_VISITS = {each.name: each.visit for each in (mpirun, srun, flux)}
_VISITS_OF_ONE = {**_VISITS, jsrun.name: jsrun.visit}
LAUNCHERS = tuple(_JOBS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The commands of one run; without other hosts there is nobody to visit."""

    job: Job
    visit: Job | None = None
    visit_each: tuple[Job, ...] = ()


def jobs_here(job: Job, visitor: Program) -> Jobs:
    """Return the commands of a run on this host alone: a look at it needs no launcher."""
    return Jobs(job=job, visit=visit_here(visitor))


def jobs(launcher: str, start: Start, visiting: Start, visitor: Program) -> Jobs:
    """Return the commands of a run on the hosts of its placement.

    `visiting`: the start outside of any container; `visitor`: what is started once on each host.

    Raises InputError for what the launcher cannot do.
    """
    visiting = msgspec.structs.replace(visiting, program=visitor, options=())
    all_at_once, one = _VISITS.get(launcher), _VISITS_OF_ONE.get(launcher)
    return Jobs(
        job=_JOBS[launcher](start),
        visit=all_at_once(visiting) if all_at_once is not None else None,
        visit_each=visit_each(one, visiting) if one is not None else (),
    )

"""On which hosts a run takes place, and how many ranks each of them has."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.machine.capture import allocation as capture
from busbw.measure.launchers import registry
from busbw.measure.launchers.hosts import visit_each, visit_here
from busbw.measure.launchers.launcher import Launchers, RankLauncher
from busbw.model.launch import Allocation, HostSlots, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Program
from busbw.model.request import Request


class Chosen(NamedTuple):
    """A launcher, and in sentences what a reader should know of the choice."""

    launcher: RankLauncher
    notes: tuple[str, ...] = ()

    def name(self, allocation: Allocation | None) -> str:
        """Return what a plan calls the launcher; None: on this host alone."""
        return self.launcher.name_here or self.launcher.name if allocation is None else self.launcher.name


def untried(launcher: RankLauncher | None) -> tuple[str, ...]:
    """Return in a sentence that nobody has seen a launcher's words at work; nothing for one that is tested."""
    if launcher is None or launcher.is_tried:
        return ()
    return (f"the words for {launcher.name} are from its manual and have not been tried on such a machine",)


def of_hosts(request: Request, allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> Chosen:
    """Return who starts the ranks of a request on the hosts of an allocation.

    Raises InputError for an unknown launcher, and for one that cannot be told these hosts.
    """
    if request.launcher is None:
        chosen = _fitting(request, allocation, mpi, there)
    else:
        chosen = Chosen(registry.find(request.launcher))
    launcher = chosen.launcher
    if not launcher.on_hosts:
        raise _on_this_host(launcher)
    if not launcher.is_among(there):
        raise InputError(
            f"there is no {launcher.name} on PATH", where=f"--launcher {launcher.name}", hint="--launcher mpirun"
        )
    launcher.check(request, allocation)
    return Chosen(launcher, (*chosen.notes, *untried(launcher)))


def _fitting(request: Request, allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> Chosen:
    """Return the launcher of the batch system where it is there and this MPI understands it, else mpirun."""
    usual = registry.usual()
    # Hosts that a user wrote down belong to no system.
    found = registry.of_system(allocation.kind) if allocation.kind not in _NAMED else None
    if found is None or found.system is None or not found.is_among(there):
        return Chosen(usual)
    why_not = found.why_not(request, allocation, mpi, there)
    if why_not is not None:
        return Chosen(usual, (f"not by {found.name}: {why_not}",))
    said = f"by {found.name}: the hosts are those of {found.system.title}, and it is on PATH"
    return Chosen(found, () if found.is_expected else (said,))


# Where a user has written the hosts down.
_NAMED = ("host file", "host list", "this host")


def _on_this_host(launcher: RankLauncher) -> InputError:
    return InputError(
        f"{launcher.name} starts ranks on this host alone", hint="leave --launcher out, or --hosts and --nodes"
    )


def check_started_once() -> None:
    """Raise InputError where a launcher started this process several times: each copy would start all ranks."""
    reason = capture.started_several_times()
    if reason is not None:
        raise InputError(
            reason,
            hint="start busbw once, without that launcher; unset the variable where another step has left it behind",
        )


def hosts_of(request: Request, here: str) -> Allocation | None:
    """Return the hosts that a request names or counts, with who says so; None: this host alone, `here`.

    Raises InputError where there are none, or fewer than asked for.
    """
    asked = request.hosts is not None or request.nodes is not None
    launcher = registry.find(request.launcher) if request.launcher is not None else None
    if asked and launcher is not None and not launcher.on_hosts:
        raise _on_this_host(launcher)
    # Asked for by name these start on hosts of an allocation, even where it has only one.
    system = launcher.system if launcher is not None else None
    if system is not None:
        found = capture.allocation()
        if found is None or found.kind != system.kind:
            raise InputError(
                f"{request.launcher} starts ranks inside an allocation of {system.title}, and this is not one",
                where=f"--launcher {request.launcher}",
                hint=system.hint,
            )
    if request.hosts is not None:
        return _first(capture.hosts(request.hosts), request.nodes)
    if request.nodes is None and system is None:
        if launcher is None or launcher.here:
            return None
        return Allocation(kind="this host", hosts=(HostSlots(name=here),), how="this host, as no other was named")
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


def said(allocation: Allocation, chosen: Chosen) -> tuple[str, ...]:
    """Return in sentences which hosts and which launcher were chosen, why, and what was passed over."""
    names = compressed([host.name for host in allocation.hosts])
    number = len(allocation.hosts)
    return (
        f"{number} host{'s' if number != 1 else ''}, {names}, by {chosen.launcher.name}: {allocation.how}",
        *chosen.notes,
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The commands of one run; without other hosts there is nobody to visit."""

    job: Job
    visit: Job | None = None
    visit_each: tuple[Job, ...] = ()


def visitor(directory: str, python: str) -> Program:
    """Return what is started once on each host to look after a run; the launching side appends what it is to do."""
    return Program(argv=(python, "-P", "-m", "busbw.rank.visit", directory), env=())


def jobs_here(job: Job, visitor: Program | None) -> Jobs:
    """Return the commands of a run on this host alone: a look at it needs no launcher. None: nobody looks."""
    return Jobs(job=job, visit=visit_here(visitor) if visitor is not None else None)


def jobs(launcher: RankLauncher, start: Start, visiting: Start, visitor: Program) -> Jobs:
    """Return the commands of a run on the hosts of its placement.

    `visiting`: the start outside of any container; `visitor`: what is started once on each host.

    Raises InputError for what the launcher cannot do.
    """
    visiting = msgspec.structs.replace(visiting, program=visitor, options=())
    all_at_once, one = launcher.visit, launcher.visit_one or launcher.visit
    return Jobs(
        job=launcher.job(start),
        visit=all_at_once(visiting) if all_at_once is not None else None,
        visit_each=visit_each(one, visiting) if one is not None else (),
    )

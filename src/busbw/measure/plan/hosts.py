"""On which hosts a run takes place, and how many ranks each of them has."""

import msgspec

from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.machine.capture import allocation as capture
from busbw.measure.plan.choosing import SYSTEMS, Chosen
from busbw.measure.plan.request import Request
from busbw.model.launch import Allocation, HostSlots

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

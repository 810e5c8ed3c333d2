"""How many ranks run on which host, and what they need of it."""

import msgspec

from busbw.base.errors import InputError
from busbw.measure.plan.gpus import check_gpus_fit, gpu_need_of, gpu_ranks
from busbw.measure.plan.hosts import gpus_of_hosts, ranks_of_hosts
from busbw.measure.plan.memory import check_fits, need_of
from busbw.measure.plan.request import Request
from busbw.measure.plan.surroundings import Surroundings
from busbw.model.gpu import GpuSetup
from busbw.model.launch import Allocation
from busbw.model.machine import Host
from busbw.model.plan import MemoryNeed, Placement, Reach
from busbw.model.sweep import Sweep

# On a larger machine more ranks are asked for by name: a first look should be over in a minute.
_MOST_DEFAULT_RANKS = 8


def counts_of(request: Request, around: Surroundings) -> tuple[int, ...]:
    """Return the ranks of each host. Raises InputError."""
    if around.gpus is None:
        return mpi_counts(around.host, request, around.allocation)
    if around.allocation is None:
        return (gpu_ranks(request, around.gpus),)
    # Their GPUs are taken to be as many as this host has; each rank looks before anything is measured.
    counts = gpus_of_hosts(request, around.allocation, len(around.gpus.devices))
    for count in set(counts):
        gpu_ranks(msgspec.structs.replace(request, ranks=count), around.gpus, alone=sum(counts) == count)
    return counts


def memory_of(
    sweeps: tuple[Sweep, ...], around: Surroundings, setup: GpuSetup | None, counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    """Return what the busiest host needs, its buffers as large as all ranks together make them, and a note."""
    ranks, here = sum(counts), max(counts)
    if around.gpus is not None and setup is not None:
        need = _of_host(gpu_need_of(sweeps, ranks, setup, around.gpus), here, ranks)
        return need, check_gpus_fit(need, here, around.gpus)
    need = _of_host(need_of(sweeps, ranks), here, ranks)
    return need, check_fits(need, around.host, here)


def _of_host(need: MemoryNeed, here: int, ranks: int) -> MemoryNeed:
    return MemoryNeed(
        buffers_bytes=need.buffers_bytes * here // ranks,
        overhead_bytes=need.overhead_bytes * here // ranks,
        scratch_bytes=need.scratch_bytes * here // ranks,
    )


def placement_of(request: Request, around: Surroundings, counts: tuple[int, ...], setup: GpuSetup | None) -> Placement:
    """Return where the ranks run. Raises InputError for a binding that cannot be."""
    processes = max(counts) // (setup.per_process if setup is not None else 1)
    oversubscribed = processes > around.host.cores
    allocation = around.allocation
    binding = request.binding
    if binding is None:
        # NCCL moves its threads to the cores beside their GPU, unless somebody bound them elsewhere.
        binding = "none" if oversubscribed or setup is not None else "core"
    elif oversubscribed and binding != "none":
        raise InputError(
            f"{processes} ranks cannot be bound to {around.host.cores} cores", where=f"--bind-to {binding}"
        )
    return Placement(
        ranks=sum(counts),
        hosts=tuple(host.name for host in allocation.hosts) if allocation is not None else (around.host.name,),
        ranks_of_hosts=counts if allocation is not None else (),
        binding=binding,
        masks=around.masks,
        oversubscribed=oversubscribed,
    )


def reach_of(request: Request, allocation: Allocation | None) -> Reach | None:
    """Return how the launcher comes to other hosts; None where there are none."""
    if allocation is None:
        return None
    return Reach(interface=request.interface, remote_shell=request.remote_shell, options=request.launcher_options)


def mpi_counts(host: Host, request: Request, allocation: Allocation | None) -> tuple[int, ...]:
    """Return the ranks of each host where MPI is measured. Raises InputError."""
    if allocation is not None:
        return ranks_of_hosts(request, allocation, 1 if request.suite == "p2p" else usual_ranks(host))
    check_one_node(request)
    if request.ranks is not None:
        return (request.ranks,)
    return (2 if request.suite == "p2p" else usual_ranks(host),)


def check_one_node(request: Request) -> None:
    """Raise InputError for ranks that are counted by node where this host is the only one."""
    if request.ranks_per_node is not None:
        raise InputError("there is one node: this host", where="--ranks-per-node", hint="--ranks, or --hosts")


def usual_ranks(host: Host) -> int:
    """Return how many ranks a host has where nobody says: an even number, its cores at most."""
    ranks = min(max(host.cores, 2), _MOST_DEFAULT_RANKS)
    return ranks - ranks % 2

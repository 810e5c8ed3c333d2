"""How many ranks run on which host, and what they need of it."""

import msgspec

from busbw.base.collectives import COLLECTIVES, LARGEST_COPY_BYTES, LEAST_BUFFER_BYTES
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.measure.plan.hosts import gpus_of_hosts, ranks_of_hosts
from busbw.measure.plan.surroundings import Surroundings
from busbw.model.launch import Allocation
from busbw.model.machine import GpuHost, GpuSetup, Host
from busbw.model.plan import MemoryNeed, Placement, Reach, Sweep
from busbw.model.request import Request

_LARGEST_VALUE = 2**31 - 1
# What NCCL, CUDA and the kernels take of each GPU beside the buffers: 0.6 to 1.4 GiB seen on H200 with NCCL 2.28.
_OVERHEAD_BYTES = 2 * 2**30
# Of each buffer: room to begin at any element, a guard, and rounding up to pages.
_ROOM_BYTES = 3 * 4096
# Calls move through this many times the L2 cache (busbw.rank.nccl.buffers).
_TIMES_L2 = 4
_VERSION_OF_MEMORY = (2, 19)
_VERSION_OF_PROFILER = (2, 23)
_VERSION_OF = {"plain": (2, 18), "registered": (2, 19), "symmetric": (2, 27)}


def gpu_ranks(request: Request, host: GpuHost, *, alone: bool = True) -> int:
    """Return how many GPUs of a host are used: those asked for, else all. `alone`: there is no other host.

    Raises InputError.
    """
    found = len(host.devices)
    per_process = request.gpus_per_process
    ranks = request.ranks if request.ranks is not None else found
    if not 1 <= ranks <= found:
        raise InputError(
            f"{ranks} GPUs asked for{'' if alone else ' on each host'}, {found} here",
            hint=f"{'--ranks' if alone else '--ranks-per-node'} {found}, or look at CUDA_VISIBLE_DEVICES",
        )
    if per_process < 1 or ranks % per_process:
        raise InputError(f"{ranks} GPUs are not equal parts of {per_process}", where=f"-g {per_process}")
    if ranks == 1 and alone:
        raise InputError("one GPU has nobody to exchange with", hint="NCCL needs two; a machine with more GPUs")
    return ranks


def setup_of(request: Request, host: GpuHost, plugin: str | None) -> GpuSetup:
    """Return how the GPUs are used. Raises InputError for what this NCCL cannot do."""
    version = _version(host)
    needed = _VERSION_OF[request.buffers]
    if version < needed:
        raise InputError(
            f"{request.buffers} buffers came with NCCL {needed[0]}.{needed[1]}, and this is {host.nccl.version}",
            where=host.nccl.path,
            hint="name a newer library with --nccl",
        )
    if request.mode == "loaded" and host.nvrtc is None:
        raise InputError(
            "the products that load a GPU are compiled by NVRTC, and there is none",
            where="--mode loaded",
            hint="name a libnvrtc.so with --nvrtc, or: pip install nvidia-cuda-nvrtc",
        )
    if request.load_side < 4 or request.load_side % 4 or request.load_side > 65_536:
        raise InputError("the side of the matrices is a multiple of 4, at most 65536", where="--load-side")
    return GpuSetup(
        per_process=request.gpus_per_process,
        buffers=request.buffers,
        nccl_memory=_takes_nccl_memory(request, version),
        cache=request.cache,
        config=tuple(_field(text, host) for text in request.config),
        multicast_off=request.multicast_off,
        profiler=plugin is not None and version >= _VERSION_OF_PROFILER,
        load_side=request.load_side,
    )


def _takes_nccl_memory(request: Request, version: tuple[int, int]) -> bool:
    """Return whether buffers come from ncclMemAlloc. Raises InputError where what was asked for cannot be."""
    if request.memory == "nccl" and version < _VERSION_OF_MEMORY:
        raise InputError("ncclMemAlloc came with NCCL 2.19", where="--memory nccl", hint="--memory cuda")
    if request.memory == "cuda" and request.buffers == "symmetric":
        raise InputError("symmetric windows need memory of ncclMemAlloc", where="--memory cuda", hint="--memory nccl")
    return version >= _VERSION_OF_MEMORY and request.memory != "cuda"


def _version(host: GpuHost) -> tuple[int, int]:
    major, minor, *_rest = host.nccl.version.split(".")
    return int(major), int(minor)


def _field(text: str, host: GpuHost) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if name not in host.config_fields:
        raise InputError(
            f"ncclConfig_t of NCCL {host.nccl.version} has no field {name!r}",
            where=f"--config {text}",
            hint="one of: " + ", ".join(host.config_fields),
        )
    digits = value.removeprefix("-")
    if not equals or not digits.isdecimal() or len(digits) > 10 or int(digits) > _LARGEST_VALUE:
        raise InputError(f"{value!r} is not a number", where=f"--config {text}", hint=f"--config {name}=1")
    return name, int(value)


def gpu_need_of(sweeps: tuple[Sweep, ...], ranks: int, setup: GpuSetup, host: GpuHost) -> MemoryNeed:
    """Return what all GPUs together hold for these sweeps, at most."""
    cold_bytes = _TIMES_L2 * max(device.l2_bytes for device in host.devices) if setup.cache == "cold" else 0
    # All sweeps share three buffers, each as large as any of them needs it; small messages move through all of it.
    buffers = zip(*(_buffers_of(sweep, ranks) for sweep in sweeps), strict=True)
    each_bytes = sum(max(needed) + cold_bytes + _ROOM_BYTES for needed in buffers)
    load_bytes = 3 * 4 * setup.load_side**2
    return MemoryNeed(
        buffers_bytes=ranks * (each_bytes + load_bytes),
        overhead_bytes=ranks * _OVERHEAD_BYTES,
        scratch_bytes=0,
    )


def _buffers_of(sweep: Sweep, ranks: int) -> tuple[int, int, int]:
    """Return the bytes of the send, receive and scratch buffers that the largest size needs on any GPU."""
    collective, size_bytes = COLLECTIVES[sweep.collective], max(sweep.sizes_bytes)
    send, receive = collective.send_bytes(size_bytes, ranks), collective.receive_bytes(size_bytes, ranks)
    if sweep.collective == "broadcast":
        # MPI's root sends from where the others receive; NCCL's has two buffers.
        send = size_bytes
    scratch = size_bytes if sweep.collective == "alltoall_2dh" else 0
    if sweep.in_place:
        # Of a gather only the root's part is in place.
        return (send if sweep.collective == "gather" else 0), max(send, receive), scratch
    return send, receive, scratch


def check_gpus_fit(need: MemoryNeed, ranks: int, host: GpuHost) -> str | None:
    """Return a note when little room is left on a GPU. Raises InputError when the buffers do not fit."""
    tightest = min(host.devices[:ranks], key=lambda device: device.free_bytes)
    each_bytes = need.buffers_bytes // ranks
    if each_bytes > tightest.free_bytes:
        raise InputError(
            f"each GPU needs {format_size(each_bytes)} for buffers, and GPU {tightest.ordinal} has "
            f"{format_size(tightest.free_bytes)} free of {format_size(tightest.memory_bytes)}",
            where=f"{tightest.model}, {tightest.bus_id}",
            hint="a smaller -e, or end what else uses this GPU: nvidia-smi",
        )
    if need.needed_bytes // ranks > tightest.free_bytes:
        return (
            f"GPU {tightest.ordinal} has {format_size(tightest.free_bytes)} free; buffers take "
            f"{format_size(each_bytes)} and NCCL may need {format_size(_OVERHEAD_BYTES)} more"
        )
    return None


# Interpreter, mpi4py and MPI: 40 to 60 MiB resident in Open MPI 5 and MPICH 5, with their shared segments.
_OVERHEAD_PER_RANK_BYTES = 96 * 2**20


def need_of(sweeps: tuple[Sweep, ...], ranks: int) -> MemoryNeed:
    """Return what `ranks` on one host allocate for these sweeps.

    Every rank is counted with the buffers of the rank that needs most, and keeps one set of them for the whole run.
    """
    send_bytes = receive_bytes = copy_bytes = scratch_bytes = 0
    for sweep in sweeps:
        collective = COLLECTIVES[sweep.collective]
        size_bytes = max(sweep.sizes_bytes)
        sent, received = collective.send_bytes(size_bytes, ranks), collective.receive_bytes(size_bytes, ranks)
        if sweep.in_place:
            sent, received = 0, max(sent, received)
        send_bytes, receive_bytes = max(send_bytes, sent), max(receive_bytes, received)
        # A two-level alltoall copies its input.
        copy_bytes = max(copy_bytes, sent if sweep.group is not None else 0)
        # A reduction may hold one more message to combine with.
        scratch_bytes = max(scratch_bytes, size_bytes if collective.reduces else 0)
    buffers_bytes = max(send_bytes, LEAST_BUFFER_BYTES) + max(receive_bytes, LEAST_BUFFER_BYTES) + copy_bytes
    # Memory copies are measured before these buffers are made, in two of their own.
    largest_bytes = max(size_bytes for sweep in sweeps for size_bytes in sweep.sizes_bytes)
    buffers_bytes = max(buffers_bytes, 2 * min(largest_bytes, LARGEST_COPY_BYTES))
    return MemoryNeed(
        buffers_bytes=ranks * buffers_bytes,
        overhead_bytes=ranks * _OVERHEAD_PER_RANK_BYTES,
        scratch_bytes=ranks * scratch_bytes,
    )


def check_fits(need: MemoryNeed, host: Host, ranks: int) -> str | None:
    """Return a note when MPI's own scratch memory may not fit. Raises InputError when the buffers do not."""
    available = host.memory_available_bytes
    if need.needed_bytes > available:
        raise InputError(
            f"{ranks} ranks need {format_size(need.needed_bytes)} of memory, {format_size(available)} are free",
            where=host.name,
            hint="a smaller -e, or fewer ranks with -n",
        )
    if need.needed_bytes + need.scratch_bytes > available:
        return (
            f"buffers take {format_size(need.needed_bytes)} of {format_size(available)} free; reductions may need "
            f"up to {format_size(need.scratch_bytes)} more inside MPI, which is not there"
        )
    return None


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

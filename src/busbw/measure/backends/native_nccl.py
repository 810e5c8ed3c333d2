"""Our own measuring loops over NCCL, on whatever NCCL and driver the user has."""

import dataclasses

from busbw.base.collectives import COLLECTIVES, NCCL_COLLECTIVES, NCCL_IN_PLACE, OPERATIONS, SUITES
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.measure.backends import native_mpi
from busbw.measure.backends.backend import (
    MULTICAST_OFF,
    Capabilities,
    Carrier,
    Door,
    ProgramStart,
    Settled,
    Surroundings,
)
from busbw.measure.backends.native_mpi import of_busiest, program
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import Joining
from busbw.model.machine import GpuHost, GpuSetup
from busbw.model.plan import SMALL_NCCL_BYTES, MemoryNeed, Program, Sweep
from busbw.model.request import Mode, Request

name = "native-nccl"
over: Carrier = "nccl"
is_ours = True
takes = frozenset(
    {
        *("pairs", "matrix_file", "unaligned", "runtime", "masks", "config", "cache", "buffers", "memory", "load_side"),
        *("max_samples", "multicast_off", "nccl", "driver", "nvrtc", "gpus_per_process", "graphs"),
    }
)
modes: tuple[Mode, ...] = ("stream", "isolated", "graph", "loaded")
joining: tuple[Joining, ...] = ("mpi", "variables")
usual_launcher = "processes"
usual_suite = "six"
# Records are the same.
parse = native_mpi.parse

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


_MOST_LAUNCHES = 1000


def capabilities(surroundings: Surroundings | None) -> Capabilities:
    """Return what an NCCL offers; which types it has shows when it is loaded."""
    return capabilities_of(
        surroundings.gpus.dtypes if surroundings is not None and surroundings.gpus is not None else ()
    )


def capabilities_of(dtypes: tuple[str, ...]) -> Capabilities:
    """Return what an NCCL with these data types offers."""
    return Capabilities(
        interface="NCCL",
        collectives=NCCL_COLLECTIVES,
        in_place=NCCL_IN_PLACE,
        dtypes=dtypes,
        operations=OPERATIONS,
        most_elements=None,
        largest_bytes=2**30,
        suite_largest_bytes=2**30,
    )


def look(request: Request, surroundings: Surroundings, door: Door, _names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with GPUs and their libraries, and with the MPI that starts the ranks where one does."""
    gpus = door.gpus(request)
    asked = registry.known(request.launcher)
    mpi = None
    if surroundings.allocation is not None or asked is None or asked.joining == "mpi":
        try:
            mpi = door.mpi(request.mpirun)
        except InputError:
            # NCCL does not need it; asked for by name it must be there.
            if surroundings.allocation is not None or asked is not None or request.mpirun is not None:
                raise
    return dataclasses.replace(surroundings, gpus=gpus, mpi=mpi, plugin=door.plugin())


def usual_ranks(_request: Request, surroundings: Surroundings, _names: tuple[str, ...]) -> int:
    """Return all GPUs; those of other hosts are taken to be as many, and each rank looks before it measures."""
    return len(_gpus(surroundings).devices)


def check_ranks(request: Request, surroundings: Surroundings, _names: tuple[str, ...], counts: tuple[int, ...]) -> None:
    """Raise InputError for more ranks than GPUs, for parts that are not equal, and for one rank alone."""
    found, per_process = len(_gpus(surroundings).devices), request.gpus_per_process
    for ranks in dict.fromkeys(counts):
        # There is no other host.
        alone = surroundings.allocation is None or sum(counts) == ranks
        if not 1 <= ranks <= found:
            raise InputError(
                f"{ranks} GPUs asked for{'' if alone else ' on each host'}, {found} here",
                hint=f"{'--ranks' if alone else '--ranks-per-node'} {found}, or look at CUDA_VISIBLE_DEVICES",
            )
        if per_process < 1 or ranks % per_process:
            raise InputError(f"{ranks} GPUs are not equal parts of {per_process}", where=f"-g {per_process}")
        if ranks == 1 and alone:
            raise InputError("one GPU has no peer to exchange with", hint="NCCL needs two; a machine with more GPUs")


def _gpus(surroundings: Surroundings) -> GpuHost:
    assert surroundings.gpus is not None, "looked at"
    return surroundings.gpus


def moved(sweep: Sweep, _surroundings: Surroundings) -> Sweep:
    """Return a sweep as it is: it was checked against the types of this NCCL."""
    return sweep


def setup(request: Request, surroundings: Surroundings) -> GpuSetup | None:
    """Return how the GPUs are used. Raises InputError for what this NCCL cannot do."""
    host = _gpus(surroundings)
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
            "the products that load a GPU are compiled by NVRTC, which was not found",
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
        profiler=surroundings.plugin is not None and version >= _VERSION_OF_PROFILER,
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
    collective, size_bytes, ranks = COLLECTIVES[sweep.collective], max(sweep.sizes_bytes), sweep.partners(ranks)
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


def launches(request: Request, sweeps: tuple[Sweep, ...]) -> int:
    """Return how often the ranks are started. Raises InputError where further starts would have nothing to measure."""
    asked = 1 if request.launches is None else request.launches
    if not 1 <= asked <= _MOST_LAUNCHES:
        raise InputError(f"ranks are started once to {_MOST_LAUNCHES} times", where=f"--launches {asked}")
    if asked > 1 and all(size_bytes >= SMALL_NCCL_BYTES for sweep in sweeps for size_bytes in sweep.sizes_bytes):
        raise InputError(
            f"further starts measure sizes below {format_size(SMALL_NCCL_BYTES)} again, and no such size was asked for",
            where=f"--launches {asked}",
            hint="-b 1K",
        )
    return asked


def memory(
    _request: Request, surroundings: Surroundings, settled: Settled, counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    """Return what the GPUs of the busiest host need, and a note where that is tight on one of them."""
    assert settled.setup is not None
    host, ranks, here = _gpus(surroundings), sum(counts), max(counts)
    need = of_busiest(gpu_need_of(settled.sweeps, ranks, settled.setup, host), here, ranks)
    return need, check_gpus_fit(need, here, host)


def starts(_request: Request, surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
    """Return the start of the ranks, with the plug-in that tells what NCCL chose."""
    assert settled.setup is not None
    watched = (("NCCL_PROFILER_PLUGIN", surroundings.plugin or ""),) if settled.setup.profiler else ()
    env = (*(MULTICAST_OFF if settled.setup.multicast_off else ()), *watched)
    return (ProgramStart(program=Program(argv=program(settled.directory, settled.python).argv, env=env)),)


def notes(request: Request, _surroundings: Surroundings, _starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
    """Return what was seen to hang: registered buffers where sendrecv is one of several collectives."""
    named = SUITES.get(request.suite or "", ()) or request.collectives
    if request.buffers != "registered" or "sendrecv" not in named or len(named) < 2:
        return ()
    seen = "sendrecv with registered buffers among other collectives hung on two H100 with NCCL 2.28.9"
    return (f"{seen} (docs/measurements/2026-11-24-two-h100.md): measure it in a run of its own",)

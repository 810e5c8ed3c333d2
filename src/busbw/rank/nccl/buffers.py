"""Send, receive and scratch memory of this process's GPUs, large enough for every point, and how calls move through."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, matrix_counts, part_count
from busbw.model.machine import GpuHost, GpuSetup
from busbw.model.plan import Plan, Sweep
from busbw.model.record import GpuHello
from busbw.rank.world import World

# What must hold before NCCL is opened where NVLink multicast is to stay off: NCCL builds multicast groups at start-up
# even where it would not use them.
MULTICAST_OFF = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
_ID_BYTES = 128
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries of the plan, open in this process."""

    cuda: _core.Cuda
    nccl: _core.Nccl
    nvrtc: _core.Nvrtc | None


def open_libraries(host: GpuHost, setup: GpuSetup) -> Libraries:
    """Open what the plan names. Raises RuntimeError when multicast is to be off and is not."""
    if setup.multicast_off:
        wrong = [
            f"{name} is {os.environ.get(name, 'not set')}, not {value}"
            for name, value in MULTICAST_OFF.items()
            if os.environ.get(name) != value
        ]
        if wrong:
            raise RuntimeError(f"NVLink multicast must be off in every rank, and here it is not: {', '.join(wrong)}")
    nvrtc = _core.Nvrtc(host.nvrtc.path) if host.nvrtc is not None else None
    return Libraries(cuda=_core.Cuda(host.driver.path), nccl=_core.Nccl(host.nccl.path), nvrtc=nvrtc)


def open_gpus(libraries: Libraries, world: World, setup: GpuSetup) -> tuple[_core.Gpu, ...]:
    """Return this process's GPUs, its kernels loaded. Raises RuntimeError when there are not enough."""
    kernels: dict[int, bytes] = {}
    gpus = []
    for ordinal in _ordinals(libraries.cuda.devices, world.local_rank, setup.per_process):
        capability = libraries.cuda.facts(ordinal).capability
        if libraries.nvrtc is not None and capability not in kernels:
            kernels[capability] = libraries.nvrtc.compile_kernels(capability)
        gpus.append(_core.Gpu(libraries.cuda, ordinal, code=kernels.get(capability, b"")))
    return tuple(gpus)


def _ordinals(devices: int, local_rank: int, per_process: int) -> range:
    first = local_rank * per_process
    if first + per_process <= devices:
        return range(first, first + per_process)
    if devices == per_process:
        # The launcher shows each process its own GPUs only.
        return range(per_process)
    raise RuntimeError(
        f"process {local_rank} of this host needs GPU {first + per_process - 1} and sees {devices} "
        f"({_VISIBLE}={os.environ.get(_VISIBLE, '(not set)')})"
    )


def join(
    libraries: Libraries, gpus: Sequence[_core.Gpu], world: World, config: Sequence[tuple[str, int]]
) -> _core.Communicators:
    """Return the communicators of all ranks. Blocks until every rank has come."""
    mine = libraries.nccl.unique_id() if world.rank == 0 else bytes(_ID_BYTES)
    return _core.Communicators(
        libraries.nccl,
        list(gpus),
        unique_id=world.bytes_from_first(mine),
        ranks=world.ranks * len(gpus),
        first=world.rank * len(gpus),
        config=list(config),
    )


def describe(libraries: Libraries, gpu: _core.Gpu) -> GpuHello:
    """Say what drives one GPU."""
    facts = gpu.facts
    version = libraries.nccl.version
    shown = sorted(
        (name, value) for name, value in os.environ.items() if name.startswith("NCCL_") or name in MULTICAST_OFF
    )
    return GpuHello(
        ordinal=facts.ordinal,
        model=facts.name,
        bus_id=facts.bus_id,
        free_bytes=facts.free_bytes,
        nccl=f"{version // 10000}.{version // 100 % 100}.{version % 100}",
        nccl_path=libraries.nccl.path,
        driver=libraries.cuda.driver_version,
        driver_path=libraries.cuda.path,
        nvrtc_path=libraries.nvrtc.path if libraries.nvrtc is not None else None,
        environment=tuple(shown),
        visible=libraries.cuda.devices,
        numa=numa_of_device(facts.bus_id),
    )


_DEVICES = Path("/sys/bus/pci/devices")


def numa_of_device(bus_id: str, devices: Path = _DEVICES) -> int | None:
    """Return the NUMA node that the kernel puts a PCI device beside; None where it does not say.

    CUDA writes the domain with four or eight digits, the kernel with four.
    """
    domain, _colon, rest = bus_id.lower().partition(":")
    try:
        node = int((devices / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def host_of_plan(plan: Plan) -> tuple[GpuHost, GpuSetup]:
    """Return what the plan says of GPUs; a plan for this backend has both."""
    assert plan.gpus is not None
    assert plan.gpu_setup is not None
    return plan.gpus, plan.gpu_setup


# Slots begin at multiples of this, as memory from an allocator does; windows need it.
_ALIGNMENT_BYTES = 4096
# Cold calls move through this many times the L2 cache before they come back to a place.
_TIMES_L2 = 4
_MOST_SLOTS = 1024


def shape_of(sweep: Sweep, size_bytes: int, ranks: int) -> _core.NcclShape:
    """Return the exchange of one point for the core; of this rank's group where it is within groups."""
    ranks = sweep.partners(ranks)
    varies = sweep.collective == "alltoallv"
    count = 0 if varies else part_count(COLLECTIVES[sweep.collective], size_bytes, ranks, sweep.dtype)
    kind = "sendrecv_pair" if sweep.pair is not None else sweep.collective
    return _core.nccl_shape(
        kind=kind,
        dtype=sweep.dtype,
        op=sweep.op,
        ranks=ranks,
        root=sweep.root,
        count=count,
        in_place=sweep.in_place,
        pair=sweep.pair or (0, 0),
        group=sweep.group or 1,
        matrix=list(matrix_counts(sweep.matrix, _scale_bytes(sweep, size_bytes), sweep.dtype)) if varies else [],
    )


def _scale_bytes(sweep: Sweep, size_bytes: int) -> int:
    return sweep.scales_bytes[sweep.sizes_bytes.index(size_bytes)]


class NcclBuffers:
    """Three buffers on each GPU of this process; every rank of the run has equal ones."""

    def __init__(
        self,
        libraries: Libraries,
        gpus: Sequence[_core.Gpu],
        setup: GpuSetup,
        sweeps: Sequence[Sweep],
        ranks: int,
    ) -> None:
        self._cold_bytes = _TIMES_L2 * max(gpu.facts.l2_bytes for gpu in gpus) if setup.cache == "cold" else 0
        sizes = [0, 0, 0]
        for sweep in sweeps:
            for size_bytes in sweep.sizes_bytes:
                rotation = self.rotation(sweep, size_bytes, ranks)
                for which, (stride, slots) in enumerate(rotation):
                    sizes[which] = max(sizes[which], stride * slots)
        nccl = libraries.nccl if setup.nccl_memory else None
        self.send, self.receive, self.scratch = (
            [_core.GpuMemory(gpu, size + _ALIGNMENT_BYTES, nccl) for gpu in gpus] for size in sizes
        )

    def rotation(self, sweep: Sweep, size_bytes: int, ranks: int) -> tuple[tuple[int, int], ...]:
        """Return (stride, slots) of the send, receive and scratch buffers, the same on every rank."""
        shape = shape_of(sweep, size_bytes, ranks)
        element_bytes = DTYPE_BYTES[sweep.dtype]
        needs = [0, 0, 0]
        for rank in range(sweep.partners(ranks)):
            for which, count in enumerate(_core.nccl_footprint(shape, rank=rank)):
                needs[which] = max(needs[which], count * element_bytes)
        # One element of room to try what is not aligned, and the guard behind every output.
        strides = [_aligned(need + element_bytes + _core.GUARD_BYTES) for need in needs]
        touched = sum(stride for stride, need in zip(strides, needs, strict=True) if need)
        slots = min(max(-(-self._cold_bytes // max(touched, 1)), 1), _MOST_SLOTS)
        return tuple((stride, slots) for stride in strides)


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES

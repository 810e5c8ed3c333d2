"""The libraries, GPUs and communicators of this process."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from busbw import _core
from busbw.model.gpu import GpuHost, GpuSetup
from busbw.model.plan import Plan
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
    )


def host_of_plan(plan: Plan) -> tuple[GpuHost, GpuSetup]:
    """Return what the plan says of GPUs; a plan for this backend has both."""
    assert plan.gpus is not None
    assert plan.gpu_setup is not None
    return plan.gpus, plan.gpu_setup

"""Our own measuring loops over NCCL, on whatever NCCL and driver the user has."""

from busbw.measure.backends.native_mpi import parse
from busbw.model.machine import GpuSetup
from busbw.model.plan import Program

__all__ = ["name", "parse", "program"]

name = "native-nccl"

MULTICAST_OFF = (
    ("NCCL_NVLS_ENABLE", "0"),
    ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"),
    ("NVSHMEM_DISABLE_NVLS", "1"),
)


def program(directory: str, python: str) -> Program:
    """Return what one process runs; the launching side appends the attempt and the points already measured."""
    return Program(argv=(python, "-P", "-m", "busbw.rank", directory), env=())


def environment(setup: GpuSetup, plugin: str) -> tuple[tuple[str, str], ...]:
    """Return what the ranks need in their environment: the plug-in that tells what NCCL chose, multicast off."""
    watched = (("NCCL_PROFILER_PLUGIN", plugin),) if setup.profiler else ()
    return (*(MULTICAST_OFF if setup.multicast_off else ()), *watched)

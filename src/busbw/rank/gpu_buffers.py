"""Buffers of MPI in GPU memory: whether this MPI takes them, the GPU of a rank, and its send and receive memory.

Run as a program it asks a driver how many GPUs it has: the answer to `busbw.machine.capture.host`, in a process of its
own because a driver may take it down. Argument: the driver.
"""

import ctypes
import sys
from collections.abc import Sequence

from busbw import _core
from busbw.model.plan import Sweep
from busbw.rank.attribution import footprint_of
from busbw.rank.mpi_world import MpiWorld

_CUDA = 0  # MPIX_GPU_SUPPORT_CUDA of MPICH 4 and later
_SWITCHES = "MPICH_GPU_SUPPORT_ENABLED=1 switches it on in Cray MPICH, MV2_USE_CUDA=1 in MVAPICH2-GDR"


def refusal(library: str) -> str | None:
    """Return why the MPI of this process takes no memory of NVIDIA GPUs, in words; None where it says that it does.

    Open MPI and MVAPICH2-GDR have MPIX_Query_cuda_support, MPICH and its family MPIX_GPU_query_support. MPI runs.
    """
    asked = _function("MPIX_GPU_query_support", library)
    if asked is not None:
        supported = ctypes.c_int(0)
        if asked(_CUDA, ctypes.byref(supported)) == 0 and supported.value:
            return None
        return f"{library} says that it takes no CUDA memory (MPIX_GPU_query_support); {_SWITCHES}"
    asked = _function("MPIX_Query_cuda_support", library)
    if asked is not None:
        if asked() == 1:
            return None
        return f"{library} says that it takes no CUDA memory (MPIX_Query_cuda_support); {_SWITCHES}"
    return f"{library} does not say whether it takes CUDA memory: it has no MPIX_Query_cuda_support"


def _function(name: str, library: str) -> "ctypes._NamedFuncPointer | None":
    """Return a function of the MPI that is loaded; None where it has none of this name."""
    for opened in (None, library):
        try:
            return ctypes.CDLL(opened)[name]
        except (OSError, AttributeError):
            continue
    return None


class GpuBuffers:
    """One send and one receive buffer on this rank's GPU, large enough for every point of the run."""

    def __init__(self, world: MpiWorld, sweeps: tuple[Sweep, ...], driver: str) -> None:
        """Open the GPU. Raises RuntimeError where MPI takes no such memory, and for what the driver refuses."""
        because = refusal(world.library)
        if because is not None:
            raise RuntimeError(because)
        small = sorted({sweep.dtype for sweep in sweeps if world.reducer(sweep.dtype, sweep.op).by == "busbw"})
        if small:
            raise RuntimeError(f"this MPI cannot add {', '.join(small)}, and busbw's own addition is the host's")
        self._cuda = _core.Cuda(driver)
        self.gpu = _core.Gpu(self._cuda, world.local_rank % self._cuda.devices, code=b"")
        send_bytes, receive_bytes = footprint_of(world, sweeps)
        self.send = _core.GpuMemory(self.gpu, send_bytes, None)
        self.receive = _core.GpuMemory(self.gpu, receive_bytes, None)


def main(arguments: Sequence[str]) -> int:
    """Print the version and the number of GPUs of a driver; 1 with the cause where it cannot be used."""
    try:
        cuda = _core.Cuda(arguments[0])
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{cuda.driver_version} {cuda.devices}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The GPUs of a host, the libraries that drive them, and how a measurement over NCCL is set up."""

from typing import Literal

from busbw.base.value import Integer, Value

# "named": by path on the command line; "LD_LIBRARY_PATH"; "wheel": in the Python environment; "system": where the
# dynamic loader looks by itself.
Origin = Literal["named", "LD_LIBRARY_PATH", "wheel", "system"]


class Library(Value, kw_only=True, frozen=True):
    """A shared library: the file, its own word on its version, and how it was found."""

    path: str
    version: str
    origin: Origin


class GpuDevice(Value, kw_only=True, frozen=True):
    """One GPU as its driver describes it, under the number CUDA gives it here."""

    ordinal: Integer
    model: str
    bus_id: str
    memory_bytes: Integer
    free_bytes: Integer
    l2_bytes: Integer
    multiprocessors: Integer
    # 90 for compute capability 9.0.
    capability: Integer


class GpuHost(Value, kw_only=True, frozen=True):
    """What a host offers for NCCL. Without NVRTC results are checked by the host."""

    devices: tuple[GpuDevice, ...]
    driver: Library
    nccl: Library
    nvrtc: Library | None
    # Fields of ncclConfig_t and data types that this NCCL has.
    config_fields: tuple[str, ...]
    dtypes: tuple[str, ...]


Buffers = Literal["plain", "registered", "symmetric"]


class GpuSetup(Value, kw_only=True, frozen=True):
    """How the ranks use their GPUs."""

    # GPUs, and so ranks of NCCL, that each process drives.
    per_process: Integer
    buffers: Buffers
    # ncclMemAlloc (2.19 and later), else cuMemAlloc.
    nccl_memory: bool
    # "cold": calls move through more memory than the L2 cache holds, as far as the size allows; "warm": one place.
    cache: Literal["cold", "warm"]
    # Members of ncclConfig_t by NCCL's own names.
    config: tuple[tuple[str, Integer], ...]
    # Whether each rank makes sure, before it opens NCCL, that NVLink multicast is off.
    multicast_off: bool
    # Whether NCCL's profiler interface is asked which algorithm it uses; not where the user's own plug-in is loaded.
    profiler: bool
    # Side of the matrices whose products run beside the exchange in loaded mode.
    load_side: Integer

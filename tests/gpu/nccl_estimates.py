"""What NCCL estimates for calls that it does not run, by ncclGroupSimulateEnd (2.22 and later), as JSON.

Started with libnccl.so.2 and, after it, `-` for what NCCL takes itself, or an algorithm and a protocol as `Ring,LL`.
One process drives two GPUs. No call is run.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator

GPUS = 2
FLOAT, FLOAT_BYTES, SUM, ROOT = 7, 4, 0, 0
LARGEST_BYTES = 2**30
# The whole steps of the correction of trees, and sizes between them.
SIZES = (8, 64, 1000, 4096, 40_000, 2**17, 600_000, 2**22, 10_000_000, 2**26, 300_000_000, LARGEST_BYTES)
MAGIC = 0x74685283


class SimInfo(ctypes.Structure):
    """ncclSimInfo_t."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("estimated_us", ctypes.c_float),
    )


def done(code: int, what: str) -> None:
    """End with the name of what failed."""
    if code:
        sys.exit(f"{what}: error {code}")


def buffers() -> list[ctypes.c_void_p]:
    """Return one buffer on each GPU, large enough for all that a call sends or receives."""
    driver = ctypes.CDLL("libcuda.so.1")
    done(driver.cuInit(0), "cuInit")
    found = []
    for number in range(GPUS):
        device, context, buffer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        done(driver.cuDeviceGet(ctypes.byref(device), number), "cuDeviceGet")
        done(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        done(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        done(driver.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(LARGEST_BYTES)), "cuMemAlloc")
        found.append(buffer)
    return found


def called(nccl: ctypes.CDLL, collective: str, buffer: ctypes.c_void_p, size: int, comm: ctypes.c_void_p) -> int:
    """Start one rank's part of a call of `size` bytes in all."""
    count, ranks_part = ctypes.c_size_t(size // FLOAT_BYTES), ctypes.c_size_t(size // FLOAT_BYTES // GPUS)
    stream = ctypes.c_void_p(None)
    if collective == "all_reduce":
        return nccl.ncclAllReduce(buffer, buffer, count, FLOAT, SUM, comm, stream)
    if collective == "all_gather":
        return nccl.ncclAllGather(buffer, buffer, ranks_part, FLOAT, comm, stream)
    if collective == "reduce_scatter":
        return nccl.ncclReduceScatter(buffer, buffer, ranks_part, FLOAT, SUM, comm, stream)
    if collective == "broadcast":
        return nccl.ncclBroadcast(buffer, buffer, count, FLOAT, ROOT, comm, stream)
    return nccl.ncclReduce(buffer, buffer, count, FLOAT, SUM, ROOT, comm, stream)


def estimates(nccl: ctypes.CDLL, at: list[ctypes.c_void_p], way: str) -> Iterator[tuple[str, str, int, float]]:
    """Return way, collective, bytes and microseconds of each call that NCCL estimates."""
    for name, value in zip(("NCCL_ALGO", "NCCL_PROTO"), way.split(","), strict=False):
        os.environ.pop(name, None)
        if way != "-":
            os.environ[name] = value
    comms, devices = (ctypes.c_void_p * GPUS)(), (ctypes.c_int * GPUS)(*range(GPUS))
    done(nccl.ncclCommInitAll(comms, GPUS, devices), "ncclCommInitAll")
    version = ctypes.c_int()
    done(nccl.ncclGetVersion(ctypes.byref(version)), "ncclGetVersion")
    names = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
    for collective in names[:1] if way.startswith("Tree") else names:
        for size in SIZES:
            info = SimInfo(ctypes.sizeof(SimInfo), MAGIC, version.value, -1.0)
            done(nccl.ncclGroupStart(), "ncclGroupStart")
            for buffer, comm in zip(at, comms, strict=True):
                done(called(nccl, collective, buffer, size, ctypes.c_void_p(comm)), collective)
            done(nccl.ncclGroupSimulateEnd(ctypes.byref(info)), "ncclGroupSimulateEnd")
            yield way, collective, size, info.estimated_us
    for comm in comms:
        done(nccl.ncclCommDestroy(ctypes.c_void_p(comm)), "ncclCommDestroy")


if __name__ == "__main__":
    assert (os.environ["NCCL_NVLS_ENABLE"], os.environ["NVSHMEM_DISABLE_NVLS"]) == ("0", "1")
    assert os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] == "1"
    library = ctypes.CDLL(sys.argv[1])
    there = buffers()
    print(json.dumps([row for way in sys.argv[2:] for row in estimates(library, there, way)]))

"""Asks the driver, NCCL and NVRTC who they are, and prints it: the answer to `busbw.machine.capture.host`.

Arguments: path and origin of NCCL, of the driver, and of each NVRTC there is, the best first.
"""

import sys
from collections.abc import Sequence
from typing import cast

from busbw import _core
from busbw.model import codec
from busbw.model.machine import GpuDevice, GpuHost, Library, Origin


def survey(arguments: Sequence[str]) -> GpuHost:
    """Return what the libraries say. Raises RuntimeError with the loader's or the driver's words."""
    # itertools.batched came with Python 3.12.
    (nccl_path, nccl_origin), (driver_path, driver_origin), *rest = zip(arguments[::2], arguments[1::2], strict=True)
    nccl = _core.Nccl(nccl_path)
    cuda = _core.Cuda(driver_path)
    version = nccl.version
    return GpuHost(
        devices=tuple(_device(cuda, ordinal) for ordinal in range(cuda.devices)),
        driver=_library(cuda.path, f"{cuda.driver_version // 1000}.{cuda.driver_version % 1000 // 10}", driver_origin),
        nccl=_library(nccl.path, f"{version // 10000}.{version // 100 % 100}.{version % 100}", nccl_origin),
        nvrtc=_compiler(rest, cuda.driver_version // 1000),
        config_fields=tuple(nccl.config_fields),
        dtypes=tuple(nccl.dtypes),
    )


def _compiler(found: Sequence[tuple[str, str]], driver_major: int) -> Library | None:
    """Return the first NVRTC that can be used: a driver does not load code of a newer major version.

    One that the user named is used as it is.
    """
    for path, origin in found:
        try:
            nvrtc = _core.Nvrtc(path)
        except RuntimeError:
            if origin == "named":
                raise
            continue
        if origin == "named" or nvrtc.major <= driver_major:
            return _library(nvrtc.path, f"{nvrtc.major}.{nvrtc.minor}", origin)
    return None


def _library(path: str, version: str, origin: str) -> Library:
    return Library(path=path, version=version, origin=cast("Origin", origin))


def _device(cuda: _core.Cuda, ordinal: int) -> GpuDevice:
    facts = cuda.facts(ordinal)
    return GpuDevice(
        ordinal=ordinal,
        model=facts.name,
        bus_id=facts.bus_id,
        memory_bytes=facts.memory_bytes,
        free_bytes=_core.Gpu(cuda, ordinal, code=b"").facts.free_bytes,
        l2_bytes=facts.l2_bytes,
        multiprocessors=facts.multiprocessors,
        capability=facts.capability,
    )


def _main() -> int:
    try:
        found = survey(sys.argv[1:])
    except RuntimeError as error:
        print("; ".join(str(error).splitlines()), file=sys.stderr)
        return 1
    sys.stdout.write(codec.encode(found).decode())
    return 0


if __name__ == "__main__":
    sys.exit(_main())

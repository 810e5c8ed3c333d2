"""Measures copies between the host and each GPU: `python -P -m busbw.rank.screening.host_links DRIVER SECONDS MOST`.

One GPU after the other, each direction alone, from page-locked memory beside the GPU. It prints a line of JSON for each
GPU: `copies` in bytes per second, and the PCIe links between the GPU and the processor. A program of its own because a
driver may take its process down.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from busbw import _core
from busbw.base.cpus import parse_cpu_list

SIZE_BYTES = 64 * 2**20
# Samples of a direction, each of as many copies as fill its part of the time.
_SAMPLES = 5
_MOST_COPIES = 1000
_DEVICES = Path("/sys/bus/pci/devices")
# A link of sysfs that leads through more bridges than this is none.
_MOST_BRIDGES = 32


def measured(cuda: _core.Cuda, ordinal: int, seconds: float) -> dict[str, object]:
    """Return what copies to one GPU and from it reach, each direction for so long. Raises RuntimeError."""
    address = cuda.facts(ordinal).bus_id.lower()
    with _beside(address):
        gpu = _core.Gpu(cuda, ordinal, code=b"")
        host, device = _core.PinnedMemory(gpu, SIZE_BYTES), _core.GpuMemory(gpu, SIZE_BYTES, None)
        intact = _core.comes_back(gpu, host, device)
        to_gpu = _samples(lambda copies: _core.rate_to_gpu(gpu, host, device, copies), seconds)
        # The link has just worked: it is not at the speed of an idle one.
        links = pci_links(address)
        from_gpu = _samples(lambda copies: _core.rate_from_gpu(gpu, host, device, copies), seconds)
    return {
        "gpu": ordinal, "bus_id": address, "intact": intact, "to_gpu": to_gpu, "from_gpu": from_gpu, "links": links
    }  # fmt: skip


def _samples(rate: Callable[[int], float], seconds: float) -> list[float]:
    first = rate(1)
    copies = round(seconds / _SAMPLES * first / SIZE_BYTES)
    return [rate(min(max(copies, 1), _MOST_COPIES)) for _sample in range(_SAMPLES)]


@contextmanager
def _beside(address: str) -> Iterator[None]:
    """Run on the CPUs beside a PCI function, so that memory is taken there; where none are told, where it runs."""
    before = os.sched_getaffinity(0)
    beside = before.intersection(parse_cpu_list(_text(_DEVICES / address / "local_cpulist")) or ())
    if beside:
        os.sched_setaffinity(0, beside)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def pci_links(address: str, devices: Path = _DEVICES) -> list[dict[str, str | None]]:
    """Return the links from a PCI function up to the processor, as the kernel prints them."""
    try:
        folder = (devices / address).resolve(strict=True)
    except OSError:
        return []
    found: list[dict[str, str | None]] = []
    while len(found) < _MOST_BRIDGES and folder.name.count(":") == 2:
        said = {
            name: _text(folder / path) or None
            for name, path in (
                ("speed", "current_link_speed"), ("width", "current_link_width"),
                ("most_speed", "max_link_speed"), ("most_width", "max_link_width"),
            )
        }  # fmt: skip
        found.append({"bus_id": folder.name, **said})
        folder = folder.parent
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()[:100]
    except OSError:
        return ""


def main(arguments: Sequence[str]) -> int:
    """Print a line for each GPU, as far as the time allows; 1 with the cause where a GPU cannot be measured."""
    driver, seconds, ends_s = arguments[0], float(arguments[1]), time.monotonic() + float(arguments[2])
    try:
        cuda = _core.Cuda(driver)
        for ordinal in range(cuda.devices):
            if time.monotonic() > ends_s:
                sys.stderr.write(f"cannot measure: the time was over after {ordinal} of {cuda.devices} GPUs\n")
                return 1
            sys.stdout.write(json.dumps(measured(cuda, ordinal, seconds)) + "\n")
            sys.stdout.flush()
    except RuntimeError as error:
        sys.stderr.write(f"cannot measure: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Which PCI functions are GPUs, known without a driver."""

from busbw.model.host import HostGpu, PciFunction

_NVIDIA = "0x10de"
_AMD = "0x1002"
# PCI class codes: display controllers (VGA, 3D) and processing accelerators, which AMD's larger GPUs are.
_DISPLAY = ("0x0300", "0x0302", "0x0380")
_ACCELERATOR = "0x1200"


def is_gpu(function: PciFunction) -> bool:
    """Whether a PCI function is a GPU of a maker whose GPUs compute; a server's own screen is none."""
    if function.vendor == _AMD:
        return function.device_class.startswith((*_DISPLAY, _ACCELERATOR))
    return function.vendor == _NVIDIA and function.device_class.startswith(_DISPLAY)


def gpus_on_bus(pci: tuple[PciFunction, ...]) -> tuple[HostGpu, ...]:
    """Return the GPUs that the bus shows, in the order of their addresses: all there is to know without a driver."""
    found = sorted(function.bus_id for function in pci if is_gpu(function))
    return tuple(HostGpu(index=index, bus_id=bus_id) for index, bus_id in enumerate(found))

"""PCI devices: which are GPUs, and what each can do at best."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.host import HostGpu, PciFunction


class DeviceKind(Value, frozen=True, kw_only=True):
    """One kind of PCI device."""

    name: str
    # Vendor and device, as 10de:20b0.
    ids: tuple[str, ...]
    # Of PCI Express.
    generation: Integer
    source: str


class Capability(Value, frozen=True, kw_only=True):
    """What GPUs of one compute capability, times ten, can do."""

    sm: Integer
    name: str
    generation: Integer
    nvlinks: Integer


class _Devices(Value, frozen=True, kw_only=True):
    device: tuple[DeviceKind, ...]
    capability: tuple[Capability, ...]


@cache
def _devices() -> _Devices:
    raw = files("busbw").joinpath("data", "devices.toml").read_bytes()
    # Only the codec floor may decode for users; this file is part of the package, so an error in it is a bug.
    return msgspec.toml.decode(raw, type=_Devices)


class LaneRate(Value, frozen=True, kw_only=True):
    """What one lane of a generation of PCI Express carries in one direction."""

    number: Integer
    rate_GTps: float
    # So much data in so much that is sent.
    data: Integer
    sent: Integer
    source: str


class _Lanes(Value, frozen=True, kw_only=True):
    generation: tuple[LaneRate, ...]


@cache
def lane_rates() -> dict[int, LaneRate]:
    """Return what a lane carries, by the generation of PCI Express."""
    raw = files("busbw").joinpath("data", "pcie.toml").read_bytes()
    return {each.number: each for each in msgspec.toml.decode(raw, type=_Lanes).generation}


def device_kind(vendor: str | None, device: str | None) -> DeviceKind | None:
    """Return what a device is by its ids, as `0x10de` and `0x20b0`; None where it is not known."""
    if vendor is None or device is None:
        return None
    wanted = f"{vendor.lower().removeprefix('0x')}:{device.lower().removeprefix('0x')}"
    return next((kind for kind in _devices().device if wanted in kind.ids), None)


def capability(sm: int | None) -> Capability | None:
    """Return what GPUs of a compute capability can do; None where it is not known."""
    return next((known for known in _devices().capability if known.sm == sm), None)


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

"""What PCI devices can do at best, from data/devices.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Integer, Value


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


def device_kind(vendor: str | None, device: str | None) -> DeviceKind | None:
    """Return what a device is by its ids, as `0x10de` and `0x20b0`; None where it is not known."""
    if vendor is None or device is None:
        return None
    wanted = f"{vendor.lower().removeprefix('0x')}:{device.lower().removeprefix('0x')}"
    return next((kind for kind in _devices().device if wanted in kind.ids), None)


def capability(sm: int | None) -> Capability | None:
    """Return what GPUs of a compute capability can do; None where it is not known."""
    return next((known for known in _devices().capability if known.sm == sm), None)

"""PCI functions, as /sys/bus/pci/devices and the targets of its links show them."""

from itertools import islice
from typing import Final

from busbw.machine.read.index import SnapshotIndex, bus_id, bus_ids, cpu_list
from busbw.model.host import PciFunction

_DEVICES = "/sys/bus/pci/devices"
# What the kernel says where no link is trained, or where a virtual machine hides it.
_NO_WIDTH = {0, 255}
# Eight GPUs with their switches, NICs and disks are some hundreds.
_MOST_FUNCTIONS = 4096


def pci_functions(index: SnapshotIndex) -> tuple[PciFunction, ...]:
    """Return the PCI functions by address. One without class, vendor or device is left out."""
    known = [(bus_id(name), name) for name in index.names(_DEVICES)[:_MOST_FUNCTIONS]]
    read = (_function(index, name, address) for address, name in known if address is not None)
    return tuple(sorted((one for one in read if one is not None), key=lambda one: natural_bus_id(one.bus_id)))


def natural_bus_id(address: str) -> tuple[int, str]:
    """Return what sorts PCI addresses as numbers: domains may have four digits or eight."""
    domain, _colon, rest = address.partition(":")
    return int(domain, 16), rest


def _function(index: SnapshotIndex, name: str, address: str) -> PciFunction | None:
    folder = f"{_DEVICES}/{name}"
    device_class, vendor, device = (index.text(f"{folder}/{each}") for each in ("class", "vendor", "device"))
    if device_class is None or vendor is None or device is None:
        return None
    # The device's own address ends the path, the bridge above stands before it.
    above = list(islice(bus_ids(index.link(folder)), 2))
    driver = index.link(f"{folder}/driver")
    numa = index.number(f"{folder}/numa_node")
    return PciFunction(
        bus_id=address,
        parent=above[1] if len(above) == 2 else None,
        device_class=device_class,
        vendor=vendor,
        device=device,
        subsystem_vendor=index.text(f"{folder}/subsystem_vendor"),
        subsystem_device=index.text(f"{folder}/subsystem_device"),
        numa=numa if numa is not None else -1,
        local_cpus=cpu_list(index.text(f"{folder}/local_cpulist")),
        driver=driver.rpartition("/")[2] if driver is not None else None,
        link_speed=_speed(index.text(f"{folder}/current_link_speed")),
        link_width=_width(index.number(f"{folder}/current_link_width")),
        max_link_speed=_speed(index.text(f"{folder}/max_link_speed")),
        max_link_width=_width(index.number(f"{folder}/max_link_width")),
    )


def _speed(text: str | None) -> str | None:
    return None if text is None or text.lower().startswith("unknown") else text


def _width(lanes: int | None) -> int | None:
    return None if lanes is None or lanes in _NO_WIDTH else lanes


_EXTENDED: Final = 0x100
_SPACE_BYTES: Final = 4096
_ACS_ID: Final = 0x000D
# As many four-byte capabilities as fit behind the first 256 bytes: a list that is longer goes in circles.
_MOST_CAPABILITIES: Final = 960
UNREAD: Final = "unread"
NONE: Final = "none"


def acs_of(config: bytes) -> str:
    """Return the ACS control word as four hexadecimal digits, `none` for a function without, else `unread`.

    Only root is shown more than the first 64 bytes, and only a PCIe machine has more than 256.
    """
    if len(config) < _SPACE_BYTES:
        return UNREAD
    at = _EXTENDED
    for _place in range(_MOST_CAPABILITIES):
        header = int.from_bytes(config[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return NONE
        if header & 0xFFFF == _ACS_ID:
            return f"{int.from_bytes(config[at + 6 : at + 8], 'little'):04x}"
        at = header >> 20
        if at < _EXTENDED or at > _SPACE_BYTES - 8:
            return NONE
    return NONE


def acs_word(text: str | None) -> int | None:
    """Return the control word that `acs_of` wrote; None for none and for what is no such word."""
    is_word = text is not None and len(text) == 4 and all(digit in "0123456789abcdef" for digit in text)
    return int(text, 16) if is_word and text is not None else None

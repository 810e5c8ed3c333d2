"""PCI addresses as people and programs write them, in one form."""

import re

_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-9a-f])")


def normal_bus_id(text: str) -> str:
    """Return a bus id as 0000:0f:00.0, in lower case; what is none, such as `fffffff:ffff:ff`, in lower case only.

    NCCL compares bus ids of a file with its own letter by letter, and they are as these here.
    """
    lower = text.strip().lower()
    match = _BUS_ID.fullmatch(lower)
    if match is None:
        return lower
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


_CANONICAL = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_BUSES = 256
# Domains and buses of switches that exist in a file only, as vendors write them.
_WRITTEN = "ffff:"
# What NCCL, or a virtual machine, writes for a switch that it cannot see.
_HIDDEN = re.compile(r"f{4,}:f+:f+(?:\.[0-9a-f])?")


def canonical(text: str) -> str | None:
    """Return a bus id as NCCL and the kernel spell it, `0000:0f:00.0`; None when it is none in any spelling."""
    bus_id = normal_bus_id(text)
    return bus_id if _CANONICAL.fullmatch(bus_id) is not None else None


def is_hidden(target: str) -> bool:
    """Return whether this target of an NVLink stands for a switch that the machine does not show."""
    return _HIDDEN.fullmatch(target.lower()) is not None


def is_written(bus_id: str) -> bool:
    """Return whether this address is one that only a file knows, so that there is no machine to ask about it."""
    return bus_id.startswith(_WRITTEN)


def card(bus_id: str) -> str:
    """Return an address without its function: NCCL takes the ports of one card for one device."""
    return bus_id.rpartition(".")[0]


def bus_key(bus_id: str) -> str:
    """Return domain and bus."""
    return bus_id[: bus_id.rindex(":")]


def moved(bus_id: str, buses: int) -> str:
    """Return a canonical address with `buses` added to its bus number, within 0 to ff."""
    head, device = bus_id.rsplit(":", 1)
    domain, bus = head.rsplit(":", 1)
    return f"{domain}:{(int(bus, 16) + buses) % _BUSES:02x}:{device}"

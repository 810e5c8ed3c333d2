"""PCIe: the addresses of devices, and the speeds and widths of links."""

import re
from functools import lru_cache

# What one lane carries, in units of 100 Mbit/s, overheads off. The first spelling that the text begins with counts.
_LANE_UNITS = (
    ("2.5 GT/s", 15),
    ("5 GT/s", 30),
    ("8 GT/s", 60),
    ("16 GT/s", 120),
    ("32 GT/s", 240),
    ("5.0 GT/s PCIe", 30),
    ("8.0 GT/s PCIe", 60),
    ("16.0 GT/s PCIe", 120),
    ("32.0 GT/s PCIe", 240),
    ("64.0 GT/s PCIe", 480),
)
_UNKNOWN_UNITS = 60
_UNITS_PER_GBps = 80
# A width of 0 is what a virtual machine shows for a device without a link of its own.
_HIDDEN_WIDTH = 16
_SPEED = re.compile(r"(\d{1,3}(?:\.\d{1,3})?) ?GT/s(?: PCIe)?")
GENERATION_GTps = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
# PCI Express counts lanes in these widths; 12 and 32 exist on paper only.
WIDTHS = (1, 2, 4, 8, 16)


def is_known_speed(text: str) -> bool:
    """Return whether NCCL knows this spelling of a link speed."""
    return any(text.startswith(spelling) for spelling, _units in _LANE_UNITS)


def lane_units(text: str | None) -> int:
    """Return what NCCL counts for one lane, in units of 100 Mbit/s: 60 where it does not know the text."""
    if text is None:
        return _UNKNOWN_UNITS
    return next((units for spelling, units in _LANE_UNITS if text.startswith(spelling)), _UNKNOWN_UNITS)


def link_Bps(speed: str | None, width: int | None) -> float:
    """Return what NCCL counts for one direction of a PCIe link: 12, 24, 48 GB/s for Gen3, Gen4, Gen5 x16.

    A width of 0, or none, counts as 16 lanes.
    """
    return (width or _HIDDEN_WIDTH) * lane_units(speed) / _UNITS_PER_GBps * 1e9


def transfer_GTps(text: str) -> float | None:
    """Return the rate that a link speed names, in whichever spelling; None when it names none, as `Unknown` does."""
    match = _SPEED.fullmatch(text.strip())
    return float(match[1]) if match is not None else None


def generation(rate_GTps: float) -> int | None:
    """Return the PCIe generation with this rate; None where there is none."""
    return next((number for number, known_GTps in GENERATION_GTps.items() if known_GTps == rate_GTps), None)


def speed_text(rate_GTps: float) -> str:
    """Return a rate as the kernel writes it since 5.7, which every NCCL since 2.18 reads: `16.0 GT/s PCIe`."""
    return f"{rate_GTps:.1f} GT/s PCIe"


_AMD = "AuthenticAMD"
# AMD's extended family is added to this one.
_AMD_BASE = 15


def real_family(vendor: str | None, family: int | None) -> int | None:
    """Return a processor's true family: NCCL up to 2.30 writes AMD's 23 and 25 as 143 and 175.

    It adds the extended family, times 16.
    """
    if vendor == _AMD and family is not None and family > _AMD_BASE and family % 16 == _AMD_BASE:
        return _AMD_BASE + family // 16
    return family


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
# Buses of a domain.
DOMAIN = 256
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


@lru_cache(maxsize=4096)
def moved(bus_id: str, buses: int) -> str:
    """Return a canonical address with `buses` added to its bus number, within 0 to ff; DOMAIN of them are a domain."""
    head, device = bus_id.rsplit(":", 1)
    domain, bus = head.rsplit(":", 1)
    domains = round(buses / DOMAIN)
    moved_domain = (int(domain, 16) + domains) % 16 ** len(domain)
    return f"{moved_domain:0{len(domain)}x}:{(int(bus, 16) + buses) % DOMAIN:02x}:{device}"

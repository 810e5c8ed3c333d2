"""PCIe links: what NCCL makes of the text and width in a topology file, and what the text says to anybody else.

NCCL compares the beginning of `link_speed` with a list of spellings: the kernel's since 5.7 (`16.0 GT/s PCIe`) and
before (`16 GT/s`). Any other text, `16.0 GT/s` without `PCIe` among them, counts as Gen3, and NCCL says so in an INFO
line only. Source: src/graph/topo.cc of NCCL 2.18 to 2.30.
"""

import re

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

"""The health of GPUs, from what nvidia-smi says of them."""

import re

from busbw.base.errors import InputError
from busbw.machine.read.index import Index, bus_id, first_number
from busbw.machine.read.nvidia_smi import Fields, gpu_fields
from busbw.model.host_state import GpuState

# Reasons for low clocks that something is wrong with; a power cap under load and an idle GPU are none.
_FAULTS = {
    "hw_slowdown": "hardware slowdown",
    "hw_thermal_slowdown": "heat (hardware)",
    "hw_power_brake_slowdown": "power brake",
    "sw_thermal_slowdown": "heat (driver)",
}
# Drivers before 535 have the second names.
_REASONS = (("clocks_event_reasons", "clocks_event_reason_"), ("clocks_throttle_reasons", "clocks_throttle_reason_"))
_UNCORRECTED = (
    "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable",
)  # fmt: skip
_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,8}m")
_DENIED = {"CNS", "GNS", "TNS", "NS", "DR"}
_MOST_GPUS = 128


def gpu_states(index: Index) -> tuple[GpuState, ...]:
    """Return the GPUs in the order of nvidia-smi; () where it says nothing that can be read."""
    text = index.said("nvidia-smi-xml")
    if not text.strip():
        return ()
    try:
        _head, listed = gpu_fields(text)
    except InputError:
        # Hardware.missing says so.
        return ()
    return tuple(
        _state(place, address, fields)
        for place, (name, fields) in enumerate(listed)
        if (address := bus_id(fields.get(("pci", "pci_bus_id"), name))) is not None
    )


def _state(place: int, address: str, said: Fields) -> GpuState:
    return GpuState(
        index=place,
        bus_id=address,
        persistence={"Enabled": True, "Disabled": False}.get(said.get(("persistence_mode",), "")),
        slowed_by=_slowed_by(said),
        uncorrected_errors=_uncorrected(said),
        repair_pending=_yes(
            said,
            ("remapped_rows", "remapped_row_pending"),
            ("retired_pages", "pending_retirement"),
            ("retired_pages", "pending_blacklist"),
        ),
        repair_failed=_yes(said, ("remapped_rows", "remapped_row_failure")),
        fabric_state=said.get(("fabric", "state")),
        fabric_status=said.get(("fabric", "status")),
        application_MHz=first_number(said.get(("applications_clocks", "graphics_clock"))),
        default_application_MHz=first_number(said.get(("default_applications_clocks", "graphics_clock"))),
    )


def _slowed_by(said: Fields) -> tuple[str, ...] | None:
    """Return the faults that are active, the general one only where no other says more; None where none is told."""
    found: dict[str, str] = {}
    for group, prefix in _REASONS:
        found |= {
            words: value for name, words in _FAULTS.items() if (value := said.get((group, prefix + name))) is not None
        }
    if not found:
        return None
    active = tuple(words for words, value in found.items() if value == "Active")
    return tuple(words for words in active if words != _FAULTS["hw_slowdown"]) or active


def _uncorrected(said: Fields) -> int | None:
    """Return the memory errors since the driver was loaded, which no correction helped against."""
    counts = [first_number(said.get(("ecc_errors", "volatile", name))) for name in _UNCORRECTED]
    counts.append(first_number(said.get(("ecc_errors", "volatile", "double_bit", "total"))))
    known = [count for count in counts if count is not None]
    return min(sum(known), 2**62) if known else None


def _yes(said: Fields, *places: tuple[str, ...]) -> bool | None:
    values = [said[place] for place in places if place in said]
    return any(value == "Yes" for value in values) if values else None


def peers_denied(matrix: str) -> tuple[tuple[str, str, str], ...] | None:
    """Return the pairs of GPUs that `nvidia-smi topo -p2p r` denies each other, lower number first; None without it."""
    rows = [line.split() for line in _ESCAPE.sub("", matrix).splitlines()]
    heading = next(
        (row for row in rows if row and row[0] == "GPU0" and all(each.startswith("GPU") for each in row)), None
    )
    if heading is None or len(heading) > _MOST_GPUS:
        return None
    cells = {row[0]: row[1:] for row in rows if row and row is not heading and row[0] in heading}
    return tuple(
        (first, second, cell)
        for place, first in enumerate(heading)
        for second, cell in list(zip(heading, cells.get(first, ()), strict=False))[place + 1 :]
        if cell in _DENIED
    )

"""A few measured cells of the machine itself, and what they change: predictions are shifted to go through them.

Between two cells the shift goes from one to the other with the logarithm of the size; beyond them it stays. It holds
for ways that the same part limits. On as many nodes as were measured the interval is that of documents that were
calibrated in the same manner; on others it stays as wide as without.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.units import format_rate, format_size
from busbw.model.predict.prediction import HeldOut, PredictedCall
from busbw.predict.closed import predicted, scope_of
from busbw.predict.intervals import band_of, bands_words, reach_of
from busbw.predict.machines import CannotTellError, MachineClass
from busbw.predict.sweeps import CellGroup

MOST_CELLS = 8


@dataclass(frozen=True, kw_only=True)
class CalibrationPoint:
    """A measured cell, and what was predicted for it without it."""

    machine: MachineClass
    measured_Bps: float
    call: PredictedCall

    @property
    def shift(self) -> float:
        """Return ln(measured / predicted)."""
        return math.log(self.measured_Bps / self.call.busbw_Bps)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The cells that count, and in words those that do not."""

    points: tuple[CalibrationPoint, ...]
    words: tuple[str, ...]


def calibration_of(groups: Sequence[CellGroup], machine: MachineClass, collective: str, where: str) -> Calibration:
    """Return what 1 to 8 cells say of a machine. Raises InputError for another machine, and where no cell counts."""
    others = {group.machine.name for group in groups if group.machine.name != machine.name}
    if others:
        raise InputError(
            f"{where} was measured on {', '.join(sorted(others))}, not on {machine.name}",
            where=where,
            hint="cells of one machine say nothing of another",
        )
    points, words = [], []
    for group in groups:
        if (group.machine.rates.gpus, group.collective) != (machine.rates.gpus, collective):
            words.append(f"not used: {group.collective} with {group.machine.rates.gpus} GPUs a node")
            continue
        for size_bytes, measured_Bps in group.cells:
            point, why = _point(group, size_bytes, measured_Bps)
            points += [point] if point is not None else []
            words.append(why)
    if not points:
        reasons = "; ".join(dict.fromkeys(words)) or "it has no row that can be"
        raise InputError(f"no cell of {where} calibrates {collective}: {reasons}", where=where)
    if len(points) > MOST_CELLS:
        raise InputError(
            f"{len(points)} calibrating cells", where=where, hint=f"at most {MOST_CELLS}: a few sizes tell"
        )
    return Calibration(points=tuple(points), words=tuple(words))


def _point(group: CellGroup, size_bytes: int, measured_Bps: float) -> tuple[CalibrationPoint | None, str]:
    what = f"{format_size(size_bytes)} on {group.nodes} nodes"
    try:
        asked = predicted(
            group.machine,
            nodes=group.nodes,
            collective=group.collective,
            size_bytes=size_bytes,
            algorithm=group.stated,
        )
    except CannotTellError as error:
        return None, f"not used: {what}: {error}"
    call = asked[0]
    if measured_Bps > call.bound_Bps:
        return None, f"not used: {what}: {format_rate(measured_Bps)} is above {format_rate(call.bound_Bps)}, the bound"
    point = CalibrationPoint(machine=group.machine, measured_Bps=measured_Bps, call=call)
    return point, f"{what}: measured {format_rate(measured_Bps)}, predicted {format_rate(call.busbw_Bps)}"


def calibrated(call: PredictedCall, points: Sequence[CalibrationPoint], left_out: Sequence[HeldOut]) -> PredictedCall:
    """Return a prediction shifted through the cells that say something of it; as it is where none does."""
    alike = [
        point for point in points if (point.call.algorithm, point.call.limited_by) == (call.algorithm, call.limited_by)
    ]
    own = [point for point in alike if point.call.nodes == call.nodes]
    if not alike:
        return call
    shift = _shift_at([(point.call.size_bytes, point.shift) for point in own or alike], call.size_bytes)
    times = max(math.exp(-shift), call.busbw_Bps / call.bound_Bps)
    busbw_Bps = call.busbw_Bps / times
    reach = math.log(call.busbw_Bps / call.low_Bps)
    words = f"{call.interval_words}; shifted by cells of another number of nodes, which does not make it narrower"
    if own:
        band = band_of(call.size_bytes)
        reach, from_words = reach_of(left_out, band, "calibrated", scope_of(own[0].machine, call.nodes))
        words = f"{bands_words(band)}: {from_words}"
    return structs.replace(
        call,
        time_s=call.time_s * times,
        latency_s=call.latency_s * times,
        filling_s=call.filling_s * times,
        flags_s=call.flags_s * times,
        wire_s=call.wire_s * times,
        busbw_Bps=busbw_Bps,
        algbw_Bps=call.algbw_Bps / times,
        low_Bps=busbw_Bps * math.exp(-reach),
        high_Bps=min(busbw_Bps * math.exp(reach), call.bound_Bps),
        kinship="calibrated" if own else call.kinship,
        interval_words=words,
        widest="what was left of documents that were calibrated so" if own else call.widest,
        basis=(
            *call.basis,
            f"shifted by {100 * (math.exp(shift) - 1):+.1f} % through {len(own or alike)} measured cells",
        ),
    )


def _shift_at(shifts: Sequence[tuple[int, float]], size_bytes: int) -> float:
    """Return the shift at a size; several at one size count as their mean."""
    known_shifts: dict[int, list[float]] = {}
    for size, shift in shifts:
        known_shifts.setdefault(size, []).append(shift)
    known = sorted((math.log(size), math.fsum(values) / len(values)) for size, values in known_shifts.items())
    at = math.log(size_bytes)
    below = [each for each in known if each[0] <= at]
    above = [each for each in known if each[0] >= at]
    if not below or not above:
        return (above or below)[0 if above else -1][1]
    (left, low), (right, high) = below[-1], above[0]
    return low if right == left else low + (high - low) * (at - left) / (right - left)

"""A few measured cells of the machine itself, and what they change: predictions are shifted by what cells say of them.

`shifting` tells how far. On as many nodes as were measured the interval is that of documents that were calibrated by
one cell, if that is narrower; on others, of which only ways that the same part limits are shifted, it stays as wide.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.base.units import format_rate, format_size
from busbw.facts.predictor import predictor_constants
from busbw.model.predict.nccl_choice import Protocol
from busbw.model.predict.prediction import HeldOut, PredictedCall
from busbw.predict.closed import exchange_of, predicted, scope_of
from busbw.predict.intervals import band_of, bands_words, reach_of, stretch_of
from busbw.predict.machines import CannotTellError, MachineClass
from busbw.predict.shares import with_presumed
from busbw.predict.shifting import shift_with_rest
from busbw.predict.sweeps import CellGroup

MOST_CELLS = 8
_MOST_REASONS = 3
# Of a normal deviation, 90 % lie within so many times its standard deviation.
_NINETY = 1.645
# Of a machine that no document tells, cells on other numbers of nodes leave so many times as much open.
_OTHER_NODES_TIMES = 2.0


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


@dataclass(frozen=True, kw_only=True)
class AskedCells:
    """What is predicted, by which cells are chosen where there are many."""

    collective: str
    nodes: tuple[int, ...]
    sizes_bytes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Cell:
    group: CellGroup
    size_bytes: int
    measured_Bps: float


def calibration_of(groups: Sequence[CellGroup], machine: MachineClass, asked: AskedCells, where: str) -> Calibration:
    """Return what at most 8 cells say of a machine. Raises InputError for another machine, and where no cell counts."""
    others = {group.machine.name for group in groups if group.machine.name != machine.name}
    if others:
        raise InputError(
            f"{where} was measured on {', '.join(sorted(others))}, not on {machine.name}",
            where=where,
            hint="cells of one machine say nothing of another",
        )
    words = []
    cells: dict[tuple[int, int], _Cell] = {}
    for group in groups:
        if (group.machine.rates.gpus, group.collective) != (machine.rates.gpus, asked.collective):
            words.append(f"not used: {group.collective} with {counted(group.machine.rates.gpus, 'GPU')} a node")
            continue
        for size_bytes, measured_Bps in group.cells:
            key = group.nodes, size_bytes
            cells.setdefault(key, _Cell(group=group, size_bytes=size_bytes, measured_Bps=measured_Bps))
    points, whys = _points(cells, asked)
    if 0 < len(points) < len(cells):
        how = "on the nodes asked or the nearest, of sizes around those asked, evenly in their logarithm"
        words.append(f"{len(points)} of {counted(len(cells), 'measured cell')} are used: {how}")
    words = list(dict.fromkeys((*words, *whys)))
    if not points:
        reasons = "; ".join(words[:_MOST_REASONS]) or f"it has no row of {asked.collective} that can be used"
        raise InputError(f"no cell of {where} calibrates {asked.collective}: {reasons}", where=where)
    return Calibration(points=tuple(points), words=tuple(words))


def _points(cells: Mapping[tuple[int, int], _Cell], asked: AskedCells) -> tuple[list[CalibrationPoint], list[str]]:
    """Return what the chosen cells say, in words too; where none of them can be used, others are chosen."""
    left, unused = dict(cells), []
    while True:
        points, words = [], []
        for cell in _chosen(left, asked):
            point, why = _point(cell.group, cell.size_bytes, cell.measured_Bps)
            if point is None:
                unused.append(why)
                del left[cell.group.nodes, cell.size_bytes]
            else:
                points.append(point)
                words.append(why)
        if points or not left:
            return points, [*unused[:_MOST_REASONS], *words]


def _chosen(cells: Mapping[tuple[int, int], _Cell], asked: AskedCells) -> list[_Cell]:
    """Return at most 8 cells: on the nodes that are asked about, else the nearest, spread over the sizes asked."""
    measured = {nodes for nodes, _ in cells}
    wanted = {min(measured, key=lambda each: abs(math.log(each / nodes))) for nodes in asked.nodes if measured}
    kept = sorted(wanted)[:MOST_CELLS]
    low, high = min(asked.sizes_bytes), max(asked.sizes_bytes)
    found = []
    for nodes in kept:
        sizes = sorted(size for on, size in cells if on == nodes)
        first = max((size for size in sizes if size <= low), default=sizes[0])
        last = min((size for size in sizes if size >= high), default=sizes[-1])
        around = [size for size in sizes if first <= size <= last]
        found += [cells[nodes, size] for size in _evenly(around, MOST_CELLS // len(kept))]
    return found


def _evenly(sizes_bytes: list[int], most: int) -> list[int]:
    """Return at most so many of ascending sizes, evenly in their logarithm, with both ends; of one the largest."""
    if len(sizes_bytes) <= most:
        return sizes_bytes
    if most == 1:
        return sizes_bytes[-1:]
    first, last = math.log(sizes_bytes[0]), math.log(sizes_bytes[-1])
    targets = (first + (last - first) * place / (most - 1) for place in range(most))
    return sorted({min(sizes_bytes, key=lambda size: abs(math.log(size) - target)) for target in targets})


def _point(group: CellGroup, size_bytes: int, measured_Bps: float) -> tuple[CalibrationPoint | None, str]:
    what = f"{format_size(size_bytes)} on {counted(group.nodes, 'node')}"
    try:
        asked = calls_of(
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
    before = f"predicted {format_rate(call.busbw_Bps)}" if not call.presumed else "no document tells it"
    return point, f"{what}: measured {format_rate(measured_Bps)}, {before}"


def calls_of(
    machine: MachineClass,
    *,
    nodes: int,
    collective: str,
    size_bytes: int,
    algorithm: str | None,
    protocol: Protocol | None = None,
) -> tuple[PredictedCall, ...]:
    """Return what is predicted, for cells to shift: where no document tells it, from what is presumed of links.

    Raises InputError and CannotTellError as `predicted`.
    """
    try:
        return predicted(
            machine, nodes=nodes, collective=collective, size_bytes=size_bytes, algorithm=algorithm, protocol=protocol
        )
    except CannotTellError:
        return predicted(
            machine,
            nodes=nodes,
            collective=collective,
            size_bytes=size_bytes,
            algorithm=algorithm,
            protocol=protocol,
            constants=with_presumed(predictor_constants()),
        )


def calibrated(
    call: PredictedCall, points: Sequence[CalibrationPoint], left_out: Sequence[HeldOut], collective: str
) -> PredictedCall:
    """Return a prediction shifted through the cells that say something of it; as it is where none does."""
    alike = [
        point for point in points if (point.call.algorithm, point.call.limited_by) == (call.algorithm, call.limited_by)
    ]
    own = [point for point in points if point.call.nodes == call.nodes]
    if not own and not alike:
        return call
    shift, rest = shift_with_rest(call, [(point.call, point.shift) for point in own or alike])
    times = max(math.exp(-shift), call.busbw_Bps / call.bound_Bps)
    busbw_Bps = call.busbw_Bps / times
    reach, words = _reach(call, (own or alike)[0].machine, left_out, collective, _NINETY * rest, is_own=bool(own))
    return structs.replace(
        call,
        time_s=call.time_s * times,
        latency_s=call.latency_s * times,
        filling_s=call.filling_s * times,
        flags_s=call.flags_s * times,
        wire_s=call.wire_s * times,
        busbw_Bps=busbw_Bps,
        algbw_Bps=call.algbw_Bps / times,
        share=call.share / times if call.share is not None else None,
        low_Bps=busbw_Bps * math.exp(-reach),
        high_Bps=min(busbw_Bps * math.exp(reach), call.bound_Bps),
        kinship="calibrated" if own else call.kinship,
        interval_words=words,
        widest="how far documents lay off that were calibrated like this" if own else call.widest,
        basis=(
            *call.basis,
            f"shifted by {100 * (math.exp(shift) - 1):+.1f} % through {len(own or alike)} measured cells",
        ),
    )


def _reach(
    call: PredictedCall,
    machine: MachineClass,
    left_out: Sequence[HeldOut],
    collective: str,
    rest: float,
    *,
    is_own: bool,
) -> tuple[float, str]:
    """Return how far the interval of a shifted call reaches on the logarithm, and where that is from.

    `rest`: what the cells leave open of a call that nobody measured, or that may be told by no document.
    """
    band = band_of(call.size_bytes)
    reach = math.log(call.busbw_Bps / call.low_Bps)
    own, from_words = reach_of(left_out, band, "calibrated", scope_of(machine, call.nodes), exchange_of(collective))
    own *= stretch_of(call.loose)
    if call.doubt > 1:
        own = max(own, rest)
    if call.presumed:
        times = 1.0 if is_own else max(_OTHER_NODES_TIMES, call.widened)
        return max(own, rest) * times, f"{bands_words(band)}, {from_words}; no document tells its links or network"
    if not is_own:
        words = f"{call.interval_words}; shifted by cells of another number of nodes, which does not make it narrower"
        return reach, words
    # A cell of the machine itself never makes it wider.
    return min(own, reach), f"{bands_words(band)}, {from_words}" if own < reach else call.interval_words

"""Sweeps of published cells, and what one of them tells alone: its bandwidth for very large messages, and how it rises.

Within a node that is a curve (`rising`); between nodes what a hop over the network takes and, for trees, how much of
its chunks a stage holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.limits.ceiling import ceiling
from busbw.predict.machines import MachineClass, groups_of
from busbw.predict.rising import TREES, ProtocolTime, Rise, network_hops, stages_of, ways_of
from busbw.predict.sends import SENDS
from busbw.stats.curves import Curve, fit

# A sweep of so many sizes tells a curve, if it reaches this size.
_LEAST_SIZES = 8
_LEAST_REACH_BYTES = 2**24
# More times its bytes no sweep of small calls takes.
_STEEPEST = 100.0
# The logarithm of a time, in seconds, that nothing passes.
_NOTHING = math.log(1e-9)
_MOST = 60.0
# Of a sweep that does not tell its bandwidth for endless messages: so far above its largest cell.
_ABOVE = math.log(1.3)


@dataclass(frozen=True, kw_only=True)
class CellGroup:
    """The cells of one sweep: one document, machine, collective, algorithm and number of nodes."""

    document: str
    machine: MachineClass
    nodes: int
    collective: str
    # As the document says it; None: it does not say.
    stated: str | None
    # What it can only have been; None: nobody knows.
    algorithm: str | None
    # Size in bytes, bus bandwidth in bytes a second; ascending.
    cells: tuple[tuple[int, float], ...]
    # Whether constants may be fitted to it, cell by cell: others are only predicted.
    is_fitted: bool = True

    @property
    def ranks(self) -> int:
        """Return the GPUs of all nodes."""
        return self.machine.rates.gpus * self.nodes

    @property
    def factor(self) -> float:
        """Return the factor of bus bandwidth."""
        return COLLECTIVES[self.collective].factor(self.ranks)


@dataclass(frozen=True, kw_only=True)
class FittedSweep:
    """What one group tells. Times in seconds; a curve within a node, hop and chunk between nodes."""

    group: CellGroup
    # Bus bandwidth of endless messages.
    large_Bps: float
    rise: Rise
    latency_s: float = 0.0
    full_s: float = 0.0
    slope: float = 0.0
    hop_s: float = 0.0
    # 0: no tree.
    chunks: float = 0.0


def sweep_of(group: CellGroup) -> FittedSweep | None:
    """Return what a group with enough sizes tells; None where they do not determine it."""
    if len(group.cells) < _LEAST_SIZES or group.cells[-1][0] < _LEAST_REACH_BYTES or group.algorithm is None:
        return None
    if groups_of(group.machine, group.nodes) > 1:
        return _between(group, group.algorithm)
    return _ring(group) if group.algorithm == "ring" else _within(group)


def _points(group: CellGroup) -> list[tuple[float, float]]:
    return [(float(size), rate) for size, rate in group.cells]


def _within(group: CellGroup) -> FittedSweep | None:
    """Return the curve of a sweep within a node."""
    most_Bps = max(rate for _, rate in group.cells)
    smallest_s = group.factor * group.cells[0][0] / group.cells[0][1]
    start = (math.log(1.1 * most_Bps), math.log(5e-5), math.log(2.0), math.log(max(smallest_s, 1e-6)))
    # All of it is open; without what fills where that does not determine it.
    values = _fitted(group, start, (0, 1, 2, 3)) or _fitted(group, start, (0, 3))
    if values is None:
        return None
    rate, full, slope, latency = (math.exp(value) for value in values)
    if rate > 2 * most_Bps:
        return None
    return FittedSweep(
        group=group,
        large_Bps=rate,
        rise=Rise(ways=(ProtocolTime(protocol="", latency_s=latency, data=1.0),), full_s=full, slope=slope),
        latency_s=latency,
        full_s=full,
        slope=slope,
    )


def _fitted(group: CellGroup, start: tuple[float, ...], free: tuple[int, ...]) -> tuple[float, ...] | None:
    """Return the logarithms of B, K, slope and latency with those of `free` fitted; None: none can be."""
    held = list(start)
    if 1 not in free:
        held[1] = _NOTHING
    whole = _curve(group.factor)

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        height, slopes = whole(size_bytes, _filled(held, free, values))
        return height, tuple(slopes[place] for place in free)

    found = fit(curve, _points(group), [start[place] for place in free])
    if found is None:
        return None
    values = _filled(held, free, found.parameters)
    # So high, and the sweep does not tell it.
    most_Bps = max(rate for _, rate in group.cells)
    return values if values[2] <= math.log(_STEEPEST) and math.exp(values[0]) <= 2 * most_Bps else None


def _filled(held: Sequence[float], free: Sequence[int], values: Sequence[float]) -> tuple[float, ...]:
    found = list(held)
    for place, value in zip(free, values, strict=True):
        found[place] = value
    return tuple(found)


def _curve(factor: float) -> Curve:
    """Return log busbw and its derivatives by the logarithms of B, K, slope and latency."""

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, full, slope, latency = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        wire = factor * size_bytes / rate
        filling = 1 / (1 / full + 1 / (slope * wire))
        # Of the whole, what the bytes and what K decide.
        by_bytes, by_full = filling**2 / (slope * wire), filling**2 / full
        total = latency + wire + filling
        slopes = [(wire + by_bytes) / total, -by_full / total, -by_bytes / total, -latency / total]
        return math.log(factor * size_bytes / total), tuple(slopes)

    return curve


def _ring(group: CellGroup) -> FittedSweep | None:
    """Return what fills in a ring within a node, whose hops are NCCL's."""
    most_Bps = max(rate for _, rate in group.cells)
    ways = ways_of(group.machine, group.nodes, group.collective, "ring", 0.0)
    factor = group.factor

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, full = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        rise = Rise(ways=ways, full_s=full, slope=1.0)
        parts = rise.parts(factor, size_bytes, rate)
        total = parts.time_s
        by_bytes = parts.filling_s**2 / parts.wire_s / total
        by_full = parts.filling_s**2 / full / total
        return math.log(factor * size_bytes / total), ((parts.wire_s + parts.flags_s) / total + by_bytes, -by_full)

    found = fit(curve, _points(group), [math.log(1.02 * most_Bps), math.log(1e-5)])
    if found is None or math.exp(found.parameters[0]) > 1.5 * most_Bps:
        return None
    rate, full = (math.exp(value) for value in found.parameters)
    return FittedSweep(
        group=group, large_Bps=rate, rise=Rise(ways=ways, full_s=full, slope=1.0), full_s=full, slope=1.0
    )


def _between(group: CellGroup, algorithm: str) -> FittedSweep | None:
    most_Bps = max(rate for _, rate in group.cells)
    as_tree = algorithm in TREES
    start = [math.log(1.05 * most_Bps), math.log(3e-5), *([0.0] if as_tree else [])]
    found = fit(_hops(group, algorithm), _points(group), start)
    if found is not None and math.exp(found.parameters[0]) <= 1.5 * most_Bps:
        values = found.parameters
    else:
        start[0] = math.log(most_Bps) + _ABOVE
        found = fit(_at_rate(_hops(group, algorithm), start[0]), _points(group), start[1:])
        values = (start[0], *found.parameters) if found is not None else ()
    if not values:
        return None
    rate, hop, chunks = (*(math.exp(value) for value in values), 0.0)[:3]
    return FittedSweep(
        group=group,
        large_Bps=rate,
        rise=Rise(
            ways=ways_of(group.machine, group.nodes, group.collective, algorithm, hop),
            stages=stages_of(group.machine, group.nodes, algorithm, chunks) if as_tree else None,
        ),
        hop_s=hop,
        chunks=chunks,
    )


def _at_rate(whole: Curve, first: float) -> Curve:
    """Return a curve with its first parameter held."""

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        height, slopes = whole(size_bytes, (first, *values))
        return height, slopes[1:]

    return curve


def _hops(group: CellGroup, algorithm: str) -> Curve:
    """Return log busbw and its derivatives by the logarithms of B, hop and, for a tree, chunk."""
    ways = ways_of(group.machine, group.nodes, group.collective, algorithm, 0.0)
    hops = network_hops(group.nodes, group.collective, algorithm)
    factor = group.factor

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, hop, *chunks = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        wire = factor * size_bytes / rate
        way = min(ways, key=lambda way: way.latency_s + wire / way.data)
        stages = stages_of(group.machine, group.nodes, algorithm, chunks[0]) if chunks else None
        filling = stages.filling_s(size_bytes, rate / factor) if stages is not None else 0.0
        total = way.latency_s + hops * hop + wire / way.data + filling
        slopes = [wire / way.data / total, -hops * hop / total]
        if stages is not None:
            # Of the filling, what goes with 1/B, and what the bytes that a stage holds decide.
            by_rate = stages.between / (stages.between + stages.within_s_per_byte * rate / factor)
            slopes[0] += filling * by_rate / total
            slopes.append(-filling * size_bytes / (size_bytes + stages.held_bytes) / total)
        return math.log(factor * size_bytes / total), tuple(slopes)

    return curve


def algorithm_of(group: CellGroup) -> str | None:
    """Return what a group's algorithm can only have been; None where it cannot be told.

    Above what a ring's links carry it was a tree; where a switch adds within one node, it did so from five GPUs on.
    """
    if group.stated is not None:
        return group.stated
    if group.collective in SENDS:
        return "neighbour" if group.collective == "sendrecv" else "linear"
    if group.collective != "all_reduce":
        return "ring"
    ring = next(iter(ceiling(group.machine.rates, nodes=group.nodes, collective="all_reduce", algorithm="ring").bounds))
    most_Bps = max(rate for _, rate in group.cells)
    adds = group.machine.rates.nvls is True
    if groups_of(group.machine, group.nodes) == 1:
        return "nvls" if adds and group.machine.rates.gpus * group.nodes > 4 else "ring"
    if ring.busbw_Bps is not None and most_Bps > ring.busbw_Bps:
        return "nvlstree" if adds else "tree"
    return "ring"

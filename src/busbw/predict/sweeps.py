"""Sweeps of published cells, and what one of them tells alone: its bandwidth for very large messages, and how it rises.

Within a node that is a curve (`rising`); between nodes what a hop over the network and, for trees, a chunk take.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.limits.ceiling import ceiling
from busbw.predict.machines import MachineClass, groups_of
from busbw.predict.rising import TREES, ProtocolTime, Rise, network_hops, stages_of, ways_of
from busbw.stats.curves import Curve, fit

# A sweep of so many sizes tells a curve, if it reaches this size.
_LEAST_SIZES = 8
_LEAST_REACH_BYTES = 2**24
# Steeper, and a smaller message would take longer than a larger one.
_STEEPEST = 1.0
_FLATTEST = 0.05
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
    knee_s: float = 0.0
    steepness: float = 0.0
    hop_s: float = 0.0
    # 0: no tree.
    chunk_s: float = 0.0


def sweep_of(group: CellGroup) -> FittedSweep | None:
    """Return what a group with enough sizes tells; None where they do not determine it."""
    if len(group.cells) < _LEAST_SIZES or group.cells[-1][0] < _LEAST_REACH_BYTES or group.algorithm is None:
        return None
    within = groups_of(group.machine, group.nodes) == 1
    return _within(group) if within else _between(group, group.algorithm)


def _points(group: CellGroup) -> list[tuple[float, float]]:
    return [(float(size), rate) for size, rate in group.cells]


def _within(group: CellGroup) -> FittedSweep | None:
    """Return the curve of a sweep within a node."""
    most_Bps = max(rate for _, rate in group.cells)
    smallest_s = group.factor * group.cells[0][0] / group.cells[0][1]
    start = (math.log(1.1 * most_Bps), math.log(1e-4), math.log(0.6), math.log(max(smallest_s, 1e-6)))
    # All of it is open; without what fills where that does not determine it.
    values = _fitted(group, start, (0, 1, 2, 3)) or _fitted(group, start, (0, 3))
    if values is None:
        return None
    rate, knee, steepness, latency = (math.exp(value) for value in values)
    if rate > 2 * most_Bps or steepness < _FLATTEST:
        return None
    return FittedSweep(
        group=group,
        large_Bps=rate,
        rise=Rise(ways=(ProtocolTime(protocol="", latency_s=latency, data=1.0),), knee_s=knee, steepness=steepness),
        latency_s=latency,
        knee_s=knee,
        steepness=steepness,
    )


def _fitted(group: CellGroup, start: tuple[float, ...], free: tuple[int, ...]) -> tuple[float, ...] | None:
    """Return the logarithms of B, knee, steepness and latency with those of `free` fitted; None: none can be."""
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
    """Return log busbw and its derivatives by the logarithms of B, knee, steepness and latency."""

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, knee, steepness, latency = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        bytes_s = size_bytes / rate
        wire = factor * bytes_s
        power = min(max(steepness * math.log(max(knee / bytes_s, 1e-300)), -200.0), 200.0)
        filling = bytes_s * math.exp(power)
        total = latency + wire + filling
        slopes = [
            (wire + filling * (1 - steepness)) / total,
            -filling * steepness / total,
            -filling * power / total,
            -latency / total,
        ]
        return math.log(factor * size_bytes / total), tuple(slopes)

    return curve


def _between(group: CellGroup, algorithm: str) -> FittedSweep | None:
    most_Bps = max(rate for _, rate in group.cells)
    as_tree = algorithm in TREES
    start = [math.log(1.05 * most_Bps), math.log(3e-5), *([math.log(2e-5)] if as_tree else [])]
    found = fit(_hops(group, algorithm), _points(group), start)
    if found is not None and math.exp(found.parameters[0]) <= 1.5 * most_Bps:
        values = found.parameters
    else:
        start[0] = math.log(most_Bps) + _ABOVE
        found = fit(_at_rate(_hops(group, algorithm), start[0]), _points(group), start[1:])
        values = (start[0], *found.parameters) if found is not None else ()
    if not values:
        return None
    rate, hop, chunk = (*(math.exp(value) for value in values), 0.0)[:3]
    return FittedSweep(
        group=group,
        large_Bps=rate,
        rise=Rise(
            ways=ways_of(group.machine, group.nodes, group.collective, algorithm, hop),
            tree_s=4 * chunk * stages_of(group.machine, group.nodes, algorithm),
        ),
        hop_s=hop,
        chunk_s=chunk,
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
    factor, stages = group.factor, stages_of(group.machine, group.nodes, algorithm)

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, hop, *chunks = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        wire = factor * size_bytes / rate
        way = min(ways, key=lambda way: way.latency_s + wire / way.data)
        filling = math.sqrt(4 * stages * chunks[0] * wire) if chunks else 0.0
        total = way.latency_s + hops * hop + wire / way.data + filling
        slopes = [(wire / way.data + filling / 2) / total, -hops * hop / total]
        if chunks:
            slopes.append(-filling / 2 / total)
        return math.log(factor * size_bytes / total), tuple(slopes)

    return curve


def algorithm_of(group: CellGroup) -> str | None:
    """Return what a group's algorithm can only have been; None where it cannot be told.

    Above what a ring's links carry it was a tree; where a switch adds within one node, it did so from five GPUs on.
    """
    if group.stated is not None:
        return group.stated
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

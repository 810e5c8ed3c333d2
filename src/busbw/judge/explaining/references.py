"""What somebody measured on machines like this, and what follows from it for another size, or number of nodes."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from busbw.facts.expectations import SizeCurve
from busbw.judge.explaining.scenarios import ADDING, Scenario
from busbw.judge.explaining.series import Network, Series
from busbw.model.platform import Platform, Published, PublishedSweep

Kind = Literal["here", "measured", "stated", "reference", "threshold"]
# A published figure without a size is one of large messages.
_LARGE_BYTES = 2**33
# Between two processes a message is large from here on.
LARGE_MESSAGE_BYTES = 2**20
_UNITS_Bps = {"GB/s": 1e9, "Gb/s": 1e9 / 8}
PAIRS = {"MPI bandwidth": "bandwidth", "MPI bi-directional bandwidth": "bibw"}
# What is measured between pairs of ranks, a window of messages at a time.
WINDOWED = frozenset({"bandwidth", "bibw", "message_rate"})
AVERAGE = "avg busbw"
_SEVERAL = "several nodes"
# Sizes are rounded down to whole parts.
SAME_SIZE = 0.01
# Figures of so many neighbouring numbers of nodes show how far figures of such machines lie apart.
_BESIDE = 2
# Where bandwidth rises so, the time no longer depends on the size, and smaller messages take as long.
_CONSTANT_TIME = 0.9
# Over these a tree sends another number of halves: figures of two nodes say nothing of three.
_TREE_CHANGES_TO = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """Bus bandwidth that somebody reached, over one size or several, and how. None: not said."""

    collective: str
    kind: Kind
    # Nodes and GPUs of all of them; `is_several`: the source says no more than that there were several nodes.
    nodes: int | None
    gpus: int | None
    is_several: bool = False
    algorithm: str | None = None
    nvls: bool | None = None
    sharp: bool | None = None
    network: Network | None = None
    nccl: str | None = None
    # References of one document are not independent.
    document: str
    words: str
    source: tuple[str, ...]
    # Bytes and bytes per second, ascending; `has_size`: the source says the size.
    points: tuple[tuple[int, float], ...]
    has_size: bool = True
    is_average: bool = False
    doubt: str | None = None

    @property
    def best_Bps(self) -> float:
        """The highest of it."""
        return max(rate for _, rate in self.points)

    def covers(self, size_bytes: int) -> bool:
        """Whether a size is one of its sizes, or lies between two of them."""
        first, last = self.points[0][0], self.points[-1][0]
        if not self.has_size:
            return size_bytes >= (LARGE_MESSAGE_BYTES if self.collective in WINDOWED else _LARGE_BYTES // 32)
        return first * (1 - SAME_SIZE) <= size_bytes <= last * (1 + SAME_SIZE)


def of_sweep(sweep: PublishedSweep) -> Reference:
    """Return a published sweep as a reference."""
    return Reference(
        collective=sweep.test,
        kind="measured",
        nodes=sweep.nodes,
        gpus=sweep.gpus,
        algorithm=sweep.algorithm,
        nvls=sweep.nvls,
        sharp=sweep.sharp,
        network=sweep.network,
        nccl=sweep.nccl,
        document=sweep.document,
        words=sweep.conditions or "a published sweep",
        source=sweep.source,
        points=tuple((size_bytes, rate * 1e9) for size_bytes, rate in sweep.points),
    )


def of_figure(figure: Published, doubt: str | None) -> Reference | None:
    """Return a published figure as a reference; None where it is no bandwidth of a collective, or of pairs over MPI."""
    if figure.unit not in _UNITS_Bps or not ("busbw" in figure.metric or figure.test in PAIRS):
        return None
    large = LARGE_MESSAGE_BYTES if figure.test in PAIRS else _LARGE_BYTES
    return Reference(
        collective=PAIRS.get(figure.test, figure.test),
        kind=figure.kind,
        nodes=figure.nodes,
        gpus=figure.gpus,
        is_several=figure.scope == _SEVERAL,
        algorithm=figure.algorithm,
        nvls=figure.nvls,
        sharp=figure.sharp,
        network=figure.network,
        document=figure.source[0] if figure.source else "",
        words=figure.conditions or figure.metric,
        source=figure.source,
        points=((figure.size_bytes or large, figure.value * _UNITS_Bps[figure.unit]),),
        has_size=figure.size_bytes is not None,
        is_average=figure.metric == AVERAGE,
        doubt=doubt,
    )


def references_of(platform: Platform, doubt_of: Callable[[Published, Platform], str | None]) -> tuple[Reference, ...]:
    """Return every reference of a platform; `doubt_of` says what is wrong with a figure, where anything is."""
    figures = (of_figure(figure, doubt_of(figure, platform)) for figure in platform.published)
    return (*(of_sweep(sweep) for sweep in platform.sweeps), *(figure for figure in figures if figure is not None))


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceEstimate:
    """What references say of one size: the least and the most of them, and how near they are to what is asked."""

    low_Bps: float
    centre_Bps: float
    high_Bps: float
    kind: Kind
    references: tuple[Reference, ...]
    # Of this very number of nodes and ranks, and of sizes measured there or on both sides.
    is_exact: bool
    # How many figures say so, here and at neighbouring numbers of nodes, and the least over the most of them.
    peers: int
    agreement: float
    # How bus bandwidth rises with the size, as d log(busbw) / d log(size): 1 where latency alone decides, 0 where
    # bandwidth does.
    slope: float

    @property
    def documents(self) -> int:
        """How many independent sources there are."""
        return len({reference.document for reference in self.references})


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferencePlace:
    """Where a result stands: its nodes and ranks, and in how many groups (nodes, or NVLink domains) they are."""

    nodes: int
    ranks: int
    groups: Callable[[int], int]

    @property
    def is_inside(self) -> bool:
        """Whether all ranks reach each other over links of their own."""
        return self.groups(self.nodes) == 1

    def scale_of(self, nodes: int, ranks: int) -> float:
        """Return the number by which neighbours are found: ranks within one group, nodes between several."""
        return float(ranks if self.is_inside else nodes)

    def is_like(self, reference: Reference) -> bool:
        """Whether results of a reference follow the same rules at this place."""
        if reference.nodes is None or reference.gpus is None:
            return False
        groups, here = self.groups(reference.nodes), self.groups(self.nodes)
        if (groups == 1) is not (here == 1):
            return False
        if here == 1:
            # Within one node other numbers of GPUs are neighbours; a domain of several nodes is one group as well.
            return True
        same_nodes = reference.gpus * self.nodes == self.ranks * reference.nodes
        if reference.collective == "all_reduce" and min(groups, here) < _TREE_CHANGES_TO:
            return same_nodes and groups == here
        return same_nodes


def _is_usable(reference: Reference, series: Series, scenario: Scenario) -> bool:
    """Whether a reference is of the same collective, network and algorithm, as far as anybody says."""
    if reference.collective != series.collective or reference.doubt is not None or reference.is_average:
        return False
    if reference.kind == "threshold" or (reference.network or "fabric") != (series.network or "fabric"):
        return False
    # SHARP is off in NCCL until it is switched on.
    if reference.sharp is not (series.sharp or False) and (reference.sharp is not None or series.sharp):
        return False
    return _is_same_algorithm(reference, series, scenario)


def _is_same_algorithm(reference: Reference, series: Series, scenario: Scenario) -> bool:
    if scenario.nvls is not None and reference.nvls is not None and scenario.nvls is not reference.nvls:
        return _is_small(series)
    if reference.algorithm is not None:
        return reference.algorithm in scenario.algorithms
    # What no algorithm of the scenario can carry was measured with another one.
    return not _is_of_other(reference, series, scenario)


def _is_small(series: Series) -> bool:
    """Whether there are so few GPUs that NCCL does not use the switch, on or off (one node, four or fewer)."""
    fewest = 5
    return series.nodes == 1 and series.ranks < fewest


def _is_of_other(reference: Reference, series: Series, scenario: Scenario) -> bool:
    if scenario.known_from in ("nccl", "setting") and reference.nvls is True:
        return not ADDING & set(scenario.algorithms)
    same_place = reference.nodes == series.nodes and reference.gpus == series.ranks
    return same_place and not scenario.carries(reference.best_Bps)


def estimate(
    series: Series, size_bytes: int, scenario: Scenario, references: Sequence[Reference], place: ReferencePlace,
    curve: SizeCurve | None,
) -> ReferenceEstimate | None:  # fmt: skip
    """Return what others' references say of a size; None where none is near enough.

    Between measured sizes, and nodes, by their logarithms; beyond the measured sizes by the curve of such machines.
    """
    usable = [each for each in references if _is_usable(each, series, scenario)]
    for kinds in (("measured",), ("reference", "stated")):
        found = _of_kind([each for each in usable if each.kind in kinds], series, size_bytes, place, curve)
        if found is not None:
            return found
    return None


def own_estimate(
    series: Series, size_bytes: int, scenario: Scenario, references: Sequence[Reference], place: ReferencePlace
) -> ReferenceEstimate | None:
    """Return what the site's own runs reached at this very size; None where it has none."""
    own = [each for each in references if each.kind == "here" and _is_usable(each, series, scenario)]
    found = _of_kind(own, series, size_bytes, place, None) if own else None
    return found if found is not None and found.is_exact else None


def _of_kind(
    references: Sequence[Reference], series: Series, size_bytes: int, place: ReferencePlace, curve: SizeCurve | None
) -> ReferenceEstimate | None:
    scale = place.scale_of(place.nodes, place.ranks)
    pools: dict[float, list[_ReferenceValue]] = {}
    for reference in references:
        at = _scale(reference, place)
        if at is None:
            continue
        value = _value(reference, series.factor, size_bytes, curve)
        if value is not None:
            pools.setdefault(scale if at == 0 else at, []).append(value)
    if scale in pools:
        neighbours = [] if place.is_inside else _neighbours(pools, scale)
        return _estimate(_nearest(pools[scale]), same_place=True, beside=neighbours)
    below = max((at for at in pools if at < scale), default=None)
    above = min((at for at in pools if at > scale), default=None)
    if below is not None and above is not None:
        part = math.log(scale / below) / math.log(above / below)
        low, high = (_estimate(_nearest(pools[at]), same_place=False) for at in (below, above))
        return _between(low, high, part)
    beside = below if below is not None else above
    # Of fewer GPUs on one node nothing is told by those of more, alone: at two the ring is another one.
    if beside is None or (place.is_inside and max(scale / beside, beside / scale) > _NEAR_RANKS):
        return None
    return _estimate(_nearest(pools[beside]), same_place=False)


# Within one node, how many times the GPUs of the only neighbour there may be.
_NEAR_RANKS = 1.5


def _scale(reference: Reference, place: ReferencePlace) -> float | None:
    """Return where a reference stands on the scale; 0: wherever one asks; None: it does not belong here."""
    if reference.collective in PAIRS.values():
        return 0 if reference.nodes in (None, place.nodes) else None
    if reference.nodes is None:
        return 0 if reference.is_several and not place.is_inside else None
    if reference.gpus is None or not place.is_like(reference):
        return None
    return place.scale_of(reference.nodes, reference.gpus)


@dataclass(frozen=True, kw_only=True, slots=True)
class _ReferenceValue:
    """A reference at one size. `beyond`: how many doublings the size lies outside of what it covers."""

    reference: Reference
    rate_Bps: float
    beyond: float
    slope: float


def _value(reference: Reference, factor: float, size_bytes: int, curve: SizeCurve | None) -> _ReferenceValue | None:
    def form(at_bytes: float) -> float:
        return curve.busbw_Bps(factor, reference.best_Bps, at_bytes) if curve is not None else 1.0

    points = reference.points
    if reference.covers(size_bytes) and (len(points) > 1 or not reference.has_size):
        rate_Bps = _interpolated(points, size_bytes, form) if reference.has_size else reference.best_Bps
        return _ReferenceValue(
            reference=reference, rate_Bps=rate_Bps, beyond=0.0, slope=_slope(points, size_bytes, form)
        )
    edge, rate_Bps = points[0] if size_bytes < points[0][0] else points[-1]
    steep = _slope(points, edge, form)
    if size_bytes < edge and len(points) > 1 and steep >= _CONSTANT_TIME:
        return _ReferenceValue(reference=reference, rate_Bps=rate_Bps * size_bytes / edge, beyond=0.0, slope=1.0)
    beyond = 0.0 if reference.covers(size_bytes) else abs(math.log2(size_bytes / edge))
    if curve is None and beyond > 1:
        return None
    if curve is not None and beyond > 0 and size_bytes < curve.from_bytes:
        return None
    rate_Bps *= form(size_bytes) / form(edge)
    return _ReferenceValue(reference=reference, rate_Bps=rate_Bps, beyond=beyond, slope=_slope((), size_bytes, form))


def _interpolated(points: Sequence[tuple[int, float]], size_bytes: int, form: Callable[[float], float]) -> float:
    """Return the rate between the two sizes around this one, as the form bends between them."""
    for (low, low_Bps), (high, high_Bps) in pairwise(points):
        if size_bytes <= high:
            part = min(max(math.log(size_bytes / low) / math.log(high / low), 0.0), 1.0)
            off = (1 - part) * math.log(low_Bps / form(low)) + part * math.log(high_Bps / form(high))
            return math.exp(off) * form(size_bytes)
    return points[-1][1]


def _slope(points: Sequence[tuple[int, float]], size_bytes: int, form: Callable[[float], float]) -> float:
    """Return d log(rate) / d log(size) over the measured sizes from half to twice, else that of the form."""
    near = [point for point in points if size_bytes / 2.1 <= point[0] <= size_bytes * 2.1]
    if len(near) > 1:
        (low, low_Bps), (high, high_Bps) = near[0], near[-1]
        return max(0.0, math.log(high_Bps / low_Bps) / math.log(high / low))
    return max(0.0, math.log(form(size_bytes * 1.1) / form(size_bytes / 1.1)) / (2 * math.log(1.1)))


def _nearest(values: Sequence[_ReferenceValue]) -> list[_ReferenceValue]:
    """Return the values whose references cover the size; where none does, those that come nearest to it."""
    least = min(value.beyond for value in values)
    return [value for value in values if value.beyond <= least + SAME_SIZE]


def _neighbours(pools: Mapping[float, Sequence[_ReferenceValue]], scale: float) -> list[_ReferenceValue]:
    """Return what was measured of this size on the next smaller and larger numbers of nodes."""
    ordered = sorted(pools, key=lambda at: abs(math.log(at / scale)))
    return [value for at in ordered[: _BESIDE + 1] if at != scale for value in pools[at] if value.beyond == 0]


def _estimate(
    values: Sequence[_ReferenceValue], *, same_place: bool, beside: Sequence[_ReferenceValue] = ()
) -> ReferenceEstimate:
    rates = [value.rate_Bps for value in values]
    every = [*rates, *(value.rate_Bps for value in beside)]
    return ReferenceEstimate(
        low_Bps=min(rates),
        centre_Bps=median(rates),
        high_Bps=max(rates),
        kind=values[0].reference.kind,
        references=tuple(value.reference for value in values),
        is_exact=same_place and all(value.beyond == 0 for value in values),
        peers=len(every),
        agreement=min(every) / max(every),
        slope=min(value.slope for value in values),
    )


def _between(low: ReferenceEstimate, high: ReferenceEstimate, part: float) -> ReferenceEstimate:
    def mixed(first: float, second: float) -> float:
        return math.exp((1 - part) * math.log(first) + part * math.log(second))

    return replace(
        low,
        low_Bps=mixed(low.low_Bps, high.low_Bps),
        centre_Bps=mixed(low.centre_Bps, high.centre_Bps),
        high_Bps=mixed(low.high_Bps, high.high_Bps),
        references=(*low.references, *high.references),
        slope=(1 - part) * low.slope + part * high.slope,
    )


def latencies(published: Iterable[Published], nodes: int | None) -> tuple[tuple[float, Published], ...]:
    """Return the latencies between two ranks over MPI that are published for pairs on so many nodes, ascending.

    In seconds. Of a fabric whose hop counts fall into bands there is one for each.
    """
    units_s = {"us": 1e-6, "ns": 1e-9}
    found = [
        (figure.value * units_s[figure.unit], figure)
        for figure in published
        if figure.test == "MPI latency" and figure.unit in units_s and figure.nodes == nodes
    ]
    measured = [pair for pair in found if pair[1].kind == "measured"] or found
    return tuple(sorted(measured, key=lambda pair: pair[0]))

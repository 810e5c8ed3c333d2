"""The figure of one collective at one size: bus bandwidth and time under the limit of each place."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.base.text import percent
from busbw.base.units import format_size
from busbw.judge.scaling.differences import differences_of
from busbw.judge.scaling.lines import (
    UNTOLD,
    LineGroup,
    algorithm_of,
    changes_along,
    condition,
    far_apart,
    groups_of,
    is_same_size,
    meanings,
    setting,
)
from busbw.judge.scaling.places import LinePlace, bend_of, by_place, combined, ratio, rounding_of, scaled, trend_of
from busbw.limits.algorithms import algorithm_name
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_platform
from busbw.model.platform import Platform
from busbw.model.scaling import Axis, Observation, Scaling, ScalingEstimate, ScalingPoint, ScalingSeries

# The switches between nodes add (SHARP): off unless somebody turns it on, and then the library says so.
_IN_NETWORK = "collnet"


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPlatform:
    """A platform, the name it was asked for by, and the algorithm to go by; None: that of each result."""

    platform: Platform
    name: str
    algorithm: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Height:
    """The limit at one place. `is_sure`: by the algorithm that was used, not by the highest there is."""

    busbw_Bps: float
    words: str
    is_sure: bool


def height_of(
    known: KnownPlatform,
    collective: str,
    *,
    nodes: int,
    ranks_of_node: int | None,
    algorithm: str | None,
    in_network: bool = False,
) -> Height | None:
    """Return the limit on `nodes` nodes, None where it cannot be told.

    `algorithm`: what the library says it used; None: the highest, with SHARP only where it is on (`in_network`).
    Raises InputError for a collective without a bound, and for more ranks than a node has GPUs.
    """
    asked = known.algorithm or known_algorithm(algorithm)
    gpus = ranks_of_node if known.platform.kind == "gpu" else None
    rates = rates_of_platform(known.platform, gpus=gpus, name=known.name)
    try:
        limit = ceiling(rates, nodes=nodes, collective=collective, algorithm=asked)
    except InputError:
        # An algorithm that is not used on so few nodes; what is wrong with the collective is wrong without it too.
        if asked is None:
            raise
        limit = ceiling(rates, nodes=nodes, collective=collective)
        asked = None
    bounds = [bound for bound in limit.bounds if bound.busbw_Bps is not None]
    bound = next((each for each in bounds if asked is not None or in_network or each.algorithm != _IN_NETWORK), None)
    if bound is None or bound.busbw_Bps is None:
        return None
    titles = {part.name: part.title for part in limit.parts}
    by = f"by {bound.algorithm}" if asked is not None else f"by {bound.algorithm}, the highest"
    over = f": {titles[bound.limited_by]}" if bound.limited_by is not None else ""
    return Height(busbw_Bps=bound.busbw_Bps, words=f"{by}{over}", is_sure=asked is not None)


def known_algorithm(name: str | None) -> str | None:
    """Return our name of what a library calls its algorithm; None for several at once, and for none of ours."""
    for spelling in (name or "", (name or "").replace("_", "")):
        try:
            return algorithm_name(spelling)
        except InputError:
            continue
    return None


# Of a message's time, the time of one that is so much smaller: beyond this share bandwidth is not the point.
LARGEST_SHARE = 0.1
_TIMES_SMALLER = 64
# Where nothing smaller was measured: from here on judge.expectation looks at bandwidth.
_LARGE_BYTES = 2**20


def latency_share(group: LineGroup, observations: Sequence[Observation], axis: Axis, size_bytes: int) -> float | None:
    """Return the largest share of the line's times that a small message takes; None where none was measured."""
    small = [each for each in observations if _is_small(each, group, size_bytes)]
    smallest = {at: min(_times(here), default=0.0) for at, here in by_place(small, axis).items()}
    shares = [
        smallest[at] / time_s
        for at, here in by_place(group.observations, axis).items()
        if smallest.get(at)
        for time_s in _times(here)
    ]
    return max(shares, default=None)


def is_latency(share: float | None, size_bytes: int) -> bool:
    """Whether a line is to be judged by its time."""
    return share > LARGEST_SHARE if share is not None else size_bytes < _LARGE_BYTES


def _is_small(each: Observation, group: LineGroup, size_bytes: int) -> bool:
    """Whether a result is of a much smaller size and of the same line, whatever algorithm ran."""
    if each.size_bytes is None or each.size_bytes * _TIMES_SMALLER > size_bytes:
        return False
    return all(setting(each, name) == value for name, value in group.settings if name != "algorithm")


def _times(here: Sequence[Observation]) -> list[float]:
    return [each.time_s.value for each in here if each.time_s is not None and each.time_s.value > 0]


# A double binary tree has its full traffic at a node from four nodes on (busbw.limits.algorithms).
_TREES_EVEN_FROM = 4
# Tools that measure MPI.
OVER_MPI = ("native-mpi", "osu", "imb")


def collective_view(
    observations: Sequence[Observation],
    *,
    axis: Axis,
    size_bytes: int | None,
    known: KnownPlatform | None = None,
    series: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    against: str | None = None,
) -> Scaling:
    """Return the figure of what was selected. `against`: the line that others are held against.

    Raises InputError for what cannot stand on one line, and for an unknown line.
    """
    here = [each for each in observations if is_of_size(each, size_bytes) and each.busbw_Bps is not None]
    groups = groups_of(here, axis, series)
    shares = [latency_share(group, observations, axis, size_bytes or 0) for group in groups]
    lines = tuple(
        _line(group, axis, known, by_time=size_bytes is not None and is_latency(share, size_bytes))
        for group, share in zip(groups, shares, strict=True)
    )
    changes = [
        f"{group.label}: {words}" if group.label else words
        for group, line in zip(groups, lines, strict=True)
        for words in changes_along(group, axis, [at for at, _ in line.left_out])
    ]
    apart = [words for line in lines for words in far_apart(line.points, line.label, axis)]
    by_time = all(line.judged_by == "time" for line in lines)
    value, quantity = (_speed, "speed") if by_time else (_rate, "bus bandwidth")
    conditions = _shared(here)
    collective = dict(conditions).get("collective", "bus bandwidth")
    size = f" {format_size(size_bytes)}" if size_bytes is not None else ""
    return Scaling(
        kind="collective",
        title=f"{collective}{size}",
        axis=axis,
        size_bytes=size_bytes,
        conditions=conditions,
        platform=known.name if known is not None else None,
        series=lines,
        differences=differences_of(groups, axis, value, quantity, against=against),
        notes=(
            *notes,
            *(meanings(groups) if known is not None and known.algorithm is None else ()),
            *_without_limit(lines, known),
            *_by_time(lines, shares),
            *changes,
            *apart,
        ),
    )


def _rate(observation: Observation) -> ScalingEstimate | None:
    return observation.busbw_Bps


def _speed(observation: Observation) -> ScalingEstimate | None:
    if observation.time_s is None:
        return None
    return ratio(ScalingEstimate(value=1.0, low=1.0, high=1.0), observation.time_s)


def _by_time(lines: Sequence[ScalingSeries], shares: Sequence[float | None]) -> tuple[str, ...]:
    """Return why the time of lines is looked at."""
    at_time = {share for line, share in zip(lines, shares, strict=True) if line.judged_by == "time"}
    if not at_time:
        return ()
    largest = max((share for share in at_time if share is not None), default=None)
    why = f"a small message takes up to {percent(min(largest, 1.0))} of its time" if largest else "it is below 1 MiB"
    return (f"its time is looked at, not its bandwidth: {why}",)


def _without_limit(lines: Sequence[ScalingSeries], known: KnownPlatform | None) -> tuple[str, ...]:
    """Return a note where a limit was asked for and there is none."""
    points = [point for line in lines for point in line.points]
    if known is None or any(point.limit_Bps is not None for point in points):
        return ()
    if all(point.nodes is None for point in points):
        return ("no limit: how many nodes these were is not told; --ranks-per-node",)
    return ("no limit: which collective this is is not told, or the rates of this platform are not known",)


def is_of_size(observation: Observation, size_bytes: int | None) -> bool:
    """Whether a result stands in the figure of a size; None: of results whose size is not told."""
    size = observation.size_bytes
    return size == size_bytes or (size is not None and size_bytes is not None and is_same_size(size, size_bytes))


def _shared(observations: Sequence[Observation]) -> tuple[tuple[str, str], ...]:
    names = dict.fromkeys(name for each in observations for name, _ in each.conditions)
    found = {name: {condition(each, name) for each in observations} for name in names}
    return tuple((name, str(next(iter(values)))) for name, values in found.items() if len(values) == 1)


def _line(group: LineGroup, axis: Axis, known: KnownPlatform | None, *, by_time: bool) -> ScalingSeries:
    heights: dict[int, Height | None] = {}
    points: list[ScalingPoint] = []
    places: list[LinePlace] = []
    for at, here in by_place(group.observations, axis).items():
        heights[at] = _height(here, known)
        point = _point(at, here, heights[at])
        points.append(point)
        if point.busbw_Bps is not None:
            rates = [each.busbw_Bps for each in here if each.busbw_Bps is not None]
            values = tuple(each.value for each in rates)
            places.append(LinePlace(at=at, values=values, estimate=point.busbw_Bps, rounding=rounding_of(rates)))
    # Shares of limits may be compared where each is that of the algorithm that ran, or where all are alike.
    compared = {height.busbw_Bps if height is not None else None for height in heights.values()}
    by_share = None not in compared and (
        len(compared) == 1 or all(height is not None and height.is_sure for height in heights.values())
    )
    left_out = _left_out(points, axis, is_tree=_may_be_tree(group))
    if by_time:
        return _line_of_times(group, axis, points)
    kept = [place for place in places if place.at not in dict(left_out)]
    if by_share:
        kept = [_share(place, heights[place.at]) for place in kept]
    return ScalingSeries(
        label=group.label,
        settings=group.settings,
        points=tuple(points),
        left_out=left_out,
        trend=trend_of(kept, axis),
        bend=bend_of(kept, axis),
    )


def _line_of_times(group: LineGroup, axis: Axis, points: Sequence[ScalingPoint]) -> ScalingSeries:
    """Return a line of small messages, whose time grows with the machine by nature: a trend, and no bend."""
    places = [
        LinePlace(
            at=point.at,
            values=tuple(each.time_s.value for each in here if each.time_s is not None),
            estimate=point.time_s,
            rounding=rounding_of([each.time_s for each in here if each.time_s is not None]),
        )
        for point, here in zip(points, by_place(group.observations, axis).values(), strict=True)
        if point.time_s is not None
    ]
    return ScalingSeries(
        label=group.label,
        settings=group.settings,
        points=tuple(points),
        judged_by="time",
        trend=trend_of(places, axis, "time"),
    )


def _height(here: Sequence[Observation], known: KnownPlatform | None) -> Height | None:
    nodes, ranks = here[0].nodes, here[0].ranks
    collective = condition(here[0], "collective")
    if known is None or nodes is None or collective is None:
        return None
    algorithms = {algorithm_of(each) for each in here}
    return height_of(
        known,
        collective,
        nodes=nodes,
        ranks_of_node=ranks // nodes if ranks is not None and ranks % nodes == 0 else None,
        algorithm=next(iter(algorithms)) if len(algorithms) == 1 else None,
        in_network=all(setting(each, "NCCL_COLLNET_ENABLE") == "1" for each in here),
    )


def _point(at: int, here: Sequence[Observation], height: Height | None) -> ScalingPoint:
    rates = [each.busbw_Bps for each in here if each.busbw_Bps is not None]
    times = [each.time_s for each in here if each.time_s is not None]
    busbw_Bps = combined(rates)
    return ScalingPoint(
        at=at,
        nodes=here[0].nodes,
        ranks=here[0].ranks,
        time_s=combined(times) if times else None,
        busbw_Bps=busbw_Bps,
        limit_Bps=height.busbw_Bps if height is not None else None,
        limit_words=height.words if height is not None else None,
        of_limit=scaled(busbw_Bps, 1 / height.busbw_Bps) if height is not None else None,
        observations=len(here),
        sources=tuple(dict.fromkeys(each.source for each in here)),
    )


def _share(place: LinePlace, height: Height | None) -> LinePlace:
    if height is None:
        return place
    return LinePlace(
        at=place.at,
        values=tuple(value / height.busbw_Bps for value in place.values),
        estimate=scaled(place.estimate, 1 / height.busbw_Bps),
        rounding=place.rounding,
    )


def _may_be_tree(group: LineGroup) -> bool:
    """Whether NCCL's tree may have run: its traffic at a node grows up to four nodes."""
    if any(condition(each, "collective") not in ("all_reduce", None) for each in group.observations):
        return False
    if all(setting(each, "tool") in OVER_MPI for each in group.observations):
        return False
    used = {algorithm_of(each).lower() for each in group.observations}
    return any("tree" in name or name == UNTOLD for name in used)


def _left_out(points: Sequence[ScalingPoint], axis: Axis, *, is_tree: bool) -> tuple[tuple[int, str], ...]:
    """Return the places that are not part of the same curve, with the reason."""
    if axis == "nodes" or len({point.nodes for point in points}) > 1:
        found = []
        for point in points:
            if point.nodes == 1:
                found.append((point.at, "one node: its own links, not the network"))
            elif is_tree and point.nodes is not None and point.nodes < _TREES_EVEN_FROM:
                words = f"{point.nodes} nodes: a tree sends less from a node than on four and more"
                found.append((point.at, words))
        return tuple(found)
    return ()

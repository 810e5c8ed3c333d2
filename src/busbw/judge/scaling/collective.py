"""The figure of one collective at one size: bus bandwidth and time under the limit of each place."""

from collections.abc import Sequence

from busbw.base.units import format_size
from busbw.judge.phrases import percent
from busbw.judge.scaling.ceilings import Height, Known, height_of
from busbw.judge.scaling.differences import differences_of
from busbw.judge.scaling.estimates import combined, ratio, rounding_of, scaled
from busbw.judge.scaling.latency import is_latency, latency_share
from busbw.judge.scaling.lines import UNTOLD, Group, algorithm_of, changes_along, far_apart, groups_of, setting
from busbw.judge.scaling.places import Place, by_place
from busbw.judge.scaling.selecting import condition, is_same_size
from busbw.judge.scaling.trend import bend_of, trend_of
from busbw.model.scaling import Axis, Estimate, Observation, Scaling, ScalingPoint, ScalingSeries

# A double binary tree has its full traffic at a node from four nodes on (busbw.limits.tree).
_TREES_EVEN_FROM = 4
_OVER_MPI = ("native-mpi", "osu", "imb")


def collective_view(
    observations: Sequence[Observation],
    *,
    axis: Axis,
    size_bytes: int | None,
    known: Known | None = None,
    series: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    against: str | None = None,
) -> Scaling:
    """Return the figure of what was selected. `against`: the line that others are held against.

    Raises InputError for what cannot stand on one line, and for a line that there is not.
    """
    here = [each for each in observations if _is_of(each, size_bytes) and each.busbw_Bps is not None]
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
        notes=(*notes, *_without_limit(lines, known), *_by_time(lines, shares), *changes, *apart),
    )


def _rate(observation: Observation) -> Estimate | None:
    return observation.busbw_Bps


def _speed(observation: Observation) -> Estimate | None:
    if observation.time_s is None:
        return None
    return ratio(Estimate(value=1.0, low=1.0, high=1.0), observation.time_s)


def _by_time(lines: Sequence[ScalingSeries], shares: Sequence[float | None]) -> tuple[str, ...]:
    """Return why the time of lines is looked at."""
    told = {share for line, share in zip(lines, shares, strict=True) if line.judged_by == "time"}
    if not told:
        return ()
    largest = max((share for share in told if share is not None), default=None)
    why = f"a small message takes up to {percent(min(largest, 1.0))} of its time" if largest else "it is below 1 MiB"
    return (f"its time is looked at, not its bandwidth: {why}",)


def _without_limit(lines: Sequence[ScalingSeries], known: Known | None) -> tuple[str, ...]:
    """Return a note where a limit was asked for and there is none."""
    points = [point for line in lines for point in line.points]
    if known is None or any(point.limit_Bps is not None for point in points):
        return ()
    if all(point.nodes is None for point in points):
        return ("no limit: how many nodes these were is not told; --ranks-per-node",)
    return ("no limit: which collective this is is not told, or the rates of this platform are not known",)


def _is_of(observation: Observation, size_bytes: int | None) -> bool:
    size = observation.size_bytes
    return size == size_bytes or (size is not None and size_bytes is not None and is_same_size(size, size_bytes))


def _shared(observations: Sequence[Observation]) -> tuple[tuple[str, str], ...]:
    names = dict.fromkeys(name for each in observations for name, _ in each.conditions)
    found = {name: {condition(each, name) for each in observations} for name in names}
    return tuple((name, str(next(iter(values)))) for name, values in found.items() if len(values) == 1)


def _line(group: Group, axis: Axis, known: Known | None, *, by_time: bool) -> ScalingSeries:
    heights: dict[int, Height | None] = {}
    points: list[ScalingPoint] = []
    places: list[Place] = []
    for at, here in by_place(group.observations, axis).items():
        heights[at] = _height(here, known)
        point = _point(at, here, heights[at])
        points.append(point)
        if point.busbw_Bps is not None:
            rates = [each.busbw_Bps for each in here if each.busbw_Bps is not None]
            values = tuple(each.value for each in rates)
            places.append(Place(at=at, values=values, estimate=point.busbw_Bps, rounding=rounding_of(rates)))
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


def _line_of_times(group: Group, axis: Axis, points: Sequence[ScalingPoint]) -> ScalingSeries:
    """Return a line of small messages, whose time grows with the machine by nature: a trend, and no bend."""
    places = [
        Place(
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


def _height(here: Sequence[Observation], known: Known | None) -> Height | None:
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


def _share(place: Place, height: Height | None) -> Place:
    if height is None:
        return place
    return Place(
        at=place.at,
        values=tuple(value / height.busbw_Bps for value in place.values),
        estimate=scaled(place.estimate, 1 / height.busbw_Bps),
        rounding=place.rounding,
    )


def _may_be_tree(group: Group) -> bool:
    """Whether NCCL's tree may have run: its traffic at a node grows up to four nodes."""
    if any(condition(each, "collective") not in ("all_reduce", None) for each in group.observations):
        return False
    if all(setting(each, "tool") in _OVER_MPI for each in group.observations):
        return False
    used = {algorithm_of(each).lower() for each in group.observations}
    return any("tree" in name or name == UNTOLD for name in used)


def _left_out(points: Sequence[ScalingPoint], axis: Axis, *, is_tree: bool) -> tuple[tuple[int, str], ...]:
    """Return the places that are no part of the same curve, with the reason."""
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

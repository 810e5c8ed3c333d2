"""The figure of an application: speed-up and efficiency against a base, strong or weak.

With a rate R (work a second) on p: speed-up R/R0, efficiency R/R0 over p/p0. With a time T of the same work the rate is
1/T. With a time of work that grows with p (weak scaling) efficiency is T0/T, and the speed-up that times p/p0.
"""

from collections.abc import Sequence
from typing import Literal

from busbw.base.errors import InputError
from busbw.judge.phrases import listed, percent
from busbw.judge.scaling.amdahl import beyond, serial_part, serial_share
from busbw.judge.scaling.differences import differences_of
from busbw.judge.scaling.estimates import combined, ratio, rounding_of, scaled
from busbw.judge.scaling.lines import Group, far_apart, groups_of, setting, telling_of_work
from busbw.judge.scaling.places import Place, by_place, workers
from busbw.judge.scaling.trend import trend_of
from busbw.model.scaling import Axis, Estimate, Observation, Scaling, ScalingPoint, ScalingSeries, Trend

# More work done by each worker than on the base, by weak scaling: beyond this it was not the same work.
MOST_EFFICIENCY = 1.1


def application_view(
    observations: Sequence[Observation],
    *,
    axis: Axis,
    kind: Literal["strong", "weak"],
    base: int | None = None,
    at: Sequence[int] = (),
    series: Sequence[str] | None = None,
    ignored: Sequence[str] = (),
    against: str | None = None,
) -> Scaling:
    """Return the figure. `base`: the point that is 1; None: the smallest of each line. `at`: where to extrapolate.

    `ignored`: columns that may change along a line though the work stays comparable, such as a batch that grows.
    `against`: the line that others are held against. Raises InputError for a base that was not measured, for results in
    different units, and for a line that there is not.
    """
    units = {each.rate_unit for each in observations}
    if len(units) > 1:
        raise InputError(f"results in {listed(sorted(str(unit) for unit in units))} cannot stand in one figure")
    telling = telling_of_work(observations, axis, ignored) if series is None else tuple(series)
    groups = groups_of(observations, axis, telling)
    free = {*telling, "series", "table", *ignored}
    unit = next(iter(units))
    what = unit if unit is not None else "time"
    lines = tuple(_line(group, axis, kind, base, at, free) for group in groups)
    return Scaling(
        kind=kind,
        title=f"{what}, {kind} scaling",
        axis=axis,
        rate_unit=unit,
        series=lines,
        differences=differences_of(groups, axis, _speed, unit or "speed", against=against, work_free=free),
        notes=tuple(words for line in lines for words in far_apart(line.points, line.label, axis)),
    )


def _line(
    group: Group,
    axis: Axis,
    kind: Literal["strong", "weak"],
    base: int | None,
    at: Sequence[int],
    free: set[str],
) -> ScalingSeries:
    here = by_place(group.observations, axis)
    base = base if base is not None else next(iter(here))
    if base not in here:
        raise InputError(
            f"nothing was measured on {workers(base, axis)}", hint=f"there is {listed([str(at) for at in here])}"
        )
    left_out = _other_work(here, base, free)
    kept = {place: members for place, members in here.items() if place not in dict(left_out)}
    base_point = _measured(base, kept[base])
    points = tuple(
        _point(place, members, base_point if place in kept else None, base, kind) for place, members in here.items()
    )
    places = [_place(place, members) for place, members in kept.items()]
    if kind == "weak":
        shares = [_efficient(place, base, by_rate=base_point.rate is not None) for place in places]
        return ScalingSeries(
            label=group.label,
            settings=group.settings,
            points=points,
            left_out=left_out,
            base=base,
            judged_by="efficiency",
            trend=_other_work_trend(points, axis) or trend_of(shares, axis, "efficiency"),
        )
    serial = serial_part(places, base, axis)
    return ScalingSeries(
        label=group.label,
        settings=group.settings,
        points=points,
        left_out=left_out,
        judged_by="efficiency",
        base=base,
        serial=serial,
        beyond=tuple(beyond(places, base, each, axis, serial, unit=group.observations[0].rate_unit) for each in at),
    )


def _other_work_trend(points: Sequence[ScalingPoint], axis: Axis) -> Trend | None:
    """Return that a trend cannot be told where the work of each worker was not the same; None: nothing shows that."""
    most = max((point for point in points if point.efficiency is not None), key=_least_efficiency, default=None)
    if most is None or most.efficiency is None or _least_efficiency(most) <= MOST_EFFICIENCY:
        return None
    words = (
        f"cannot tell a trend: {percent(most.efficiency.value)} efficiency on {workers(most.at, axis)} means "
        "other work there than on the base"
    )
    return Trend(answer="cannot_tell", points=len(points), words=words)


def _least_efficiency(point: ScalingPoint) -> float:
    found = point.efficiency
    if found is None:
        return 0.0
    return found.low if found.low is not None else found.value


def _other_work(here: dict[int, list[Observation]], base: int, free: set[str]) -> tuple[tuple[int, str], ...]:
    """Return the points where not the same was computed as on the base: no speed-up follows from them."""
    own = {name: setting(here[base][0], name) for each in here[base] for name, _ in each.settings if name not in free}
    found = []
    for at, members in here.items():
        if at == base:
            continue
        other = {name: setting(each, name) for name in own for each in members if setting(each, name) != own[name]}
        if other:
            words = listed([f"{name} {value} instead of {own[name]}" for name, value in other.items()], 3)
            found.append((at, f"other work than on the base: {words}"))
    return tuple(found)


def _measured(at: int, members: Sequence[Observation]) -> ScalingPoint:
    times = [each.time_s for each in members if each.time_s is not None]
    rates = [each.rate for each in members if each.rate is not None]
    return ScalingPoint(
        at=at,
        nodes=members[0].nodes,
        ranks=members[0].ranks,
        time_s=combined(times) if times else None,
        rate=combined(rates) if rates else None,
        observations=len(members),
        sources=tuple(dict.fromkeys(each.source for each in members)),
    )


def _point(
    at: int, members: Sequence[Observation], base: ScalingPoint | None, base_at: int, kind: Literal["strong", "weak"]
) -> ScalingPoint:
    point = _measured(at, members)
    if base is None:
        return point
    growth = at / base_at
    if point.rate is not None and base.rate is not None:
        speedup = ratio(point.rate, base.rate)
    elif point.time_s is not None and base.time_s is not None:
        faster = ratio(base.time_s, point.time_s)
        speedup = scaled(faster, growth) if faster is not None and kind == "weak" else faster
    else:
        speedup = None
    if at == base_at:
        # Against itself it is one, whatever its scatter.
        speedup = Estimate(value=1.0)
    return ScalingPoint(
        at=at,
        nodes=point.nodes,
        ranks=point.ranks,
        time_s=point.time_s,
        rate=point.rate,
        speedup=speedup,
        efficiency=scaled(speedup, 1 / growth) if speedup is not None else None,
        serial_share=serial_share(speedup.value, growth) if speedup is not None and kind == "strong" else None,
        observations=point.observations,
        sources=point.sources,
    )


def _place(at: int, members: Sequence[Observation]) -> Place:
    """Return the times of one place: a rate is the time of one unit of work."""
    inverse = [_time(each) for each in members]
    return Place(
        at=at,
        values=tuple(each.value for each in inverse),
        estimate=combined(inverse),
        rounding=rounding_of(inverse),
    )


def _time(observation: Observation) -> Estimate:
    if observation.time_s is not None:
        return observation.time_s
    one = Estimate(value=1.0, low=1.0, high=1.0)
    time_s = ratio(one, observation.rate) if observation.rate is not None else None
    if time_s is None:
        raise InputError("neither a time nor a rate above zero", where=observation.source)
    return time_s


def _efficient(place: Place, base: int, *, by_rate: bool) -> Place:
    """Return what one worker gets done where the work grows with them, but for a factor that all places share."""
    one = Estimate(value=1.0, low=1.0, high=1.0)
    scale = base / place.at if by_rate else 1.0
    inverse = ratio(one, place.estimate) or one
    return Place(
        at=place.at,
        values=tuple(scale / value for value in place.values),
        estimate=scaled(inverse, scale),
        rounding=place.rounding,
    )


def _speed(observation: Observation) -> Estimate | None:
    """Return what a line is compared by, larger is better: the rate, or one over the time."""
    if observation.rate is not None or observation.time_s is None:
        return observation.rate
    return ratio(Estimate(value=1.0, low=1.0, high=1.0), observation.time_s)

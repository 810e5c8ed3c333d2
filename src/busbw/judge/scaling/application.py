"""The figure of an application: speed-up and efficiency against a base, strong or weak.

With a rate R (work a second) on p: speed-up R/R0, efficiency R/R0 over p/p0. With a time T of the same work the rate is
1/T. With a time of work that grows with p (weak scaling) efficiency is T0/T, and the speed-up that times p/p0.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from busbw.base.errors import InputError
from busbw.base.text import counted, listed, percent
from busbw.base.units import format_time
from busbw.judge.scaling.differences import differences_of
from busbw.judge.scaling.lines import LineGroup, far_apart, groups_of, setting, telling_of_work
from busbw.judge.scaling.places import (
    CONFIDENCE,
    LEAST_EFFECT,
    LEAST_PLACES,
    LinePlace,
    by_place,
    combined,
    known_scatter,
    ratio,
    rounding_of,
    scaled,
    several,
    trend_of,
    workers,
)
from busbw.model.scaling import (
    Axis,
    Extrapolation,
    Observation,
    Scaling,
    ScalingEstimate,
    ScalingPoint,
    ScalingSeries,
    ScalingTrend,
    SerialAnswer,
    SerialPart,
)
from busbw.stats.distributions import StraightLine, added_term, line_through

# Beyond this many times the largest machine that was measured, the law is a guess whatever its interval says.
FARTHEST_TIMES = 4


def serial_share(speedup: float, growth: float) -> float | None:
    """Return the share of the base's time that did not shrink on `growth` bases; None on one."""
    return (1 / speedup - 1 / growth) / (1 - 1 / growth) if growth > 1 and speedup > 0 else None


def amdahl_line(places: Sequence[LinePlace], base: int) -> StraightLine | None:
    """Return the times over base/at, each weighed by its size: scatter is taken as a share of the time.

    Its scatter is no smaller than what is known of single times: their digits, or their spread within a launch.
    """
    points = [(base / place.at, value) for place in places for value in place.values]
    weights = [1 / value**2 for place in places for value in place.values]
    line = line_through(points, weights) if len(places) >= LEAST_PLACES else None
    if line is None:
        return None
    # An even spread over an interval has its half width over the root of three as its standard deviation.
    least = max(known_scatter(place) for place in places) ** 2 / 3
    return replace(line, variance=max(line.variance, least))


def serial_part(places: Sequence[LinePlace], base: int, axis: Axis) -> SerialPart:
    """Return the serial share of strong scaling from `base` on, or why there is none. The values are times."""
    line, count = amdahl_line(places, base), len(places)
    if line is None or line.intercept + line.slope <= 0:
        words = f"no serial share from {counted(count, 'point')}: three are the least"
        return SerialPart(answer="cannot_tell", points=count, words=words)
    share = line.intercept / (line.intercept + line.slope)
    ends = line.share_interval(CONFIDENCE)
    if ends is None or ends[1] - ends[0] > 1:
        words = f"no serial share: {counted(count, 'point')} scatter too much"
        return SerialPart(answer="cannot_tell", share=share, points=count, words=words)
    low, high = ends
    interval = f"{percent(CONFIDENCE)} interval {percent_of(low)} to {percent_of(high)}"
    span = f"{percent_of(share)} ({interval}, {counted(count, 'point')})"
    change = _change(places, base)
    if change is not None:
        first, last = change
        moves, why = ("grows", "communication or imbalance") if last > first else ("shrinks", "cache, for example")
        words = (
            f"no constant serial share: it {moves} with the {several(axis)}, from {percent_of(first)} to "
            f"{percent_of(last)} of the time on {workers(base, axis)} ({why}, {counted(count, 'point')}): "
            "Amdahl's law does not hold"
        )
        return _part("grows" if last > first else "shrinks", share, low, high, count, words)
    words = f"serial share of the time on {workers(base, axis)}: {span}"
    if low <= 0:
        words += ", so none is shown"
    return _part("fits", share, low, high, count, words)


def _part(answer: SerialAnswer, share: float, low: float, high: float, points: int, words: str) -> SerialPart:
    return SerialPart(
        answer=answer,
        share=share,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        points=points,
        words=words,
    )


def _change(places: Sequence[LinePlace], base: int) -> tuple[float, float] | None:
    """Return the share on the smallest and the largest machine, where it is shown to change between them.

    The larger half of the machines is looked at by itself too: there a share that grows begins to count. What changes
    the time on the largest machine by less than 2 % is none.
    """
    times_s = {place.at: place.estimate.value for place in places}
    if base not in times_s:
        return None
    for some in (places[len(places) // 2 :], places):
        at = [place.at for place in some if place.at > base]
        if not at or not _is_changing(some, base):
            continue
        first, last = (serial_share(times_s[base] / times_s[end], end / base) or 0.0 for end in (at[0], at[-1]))
        if abs(last - first) * times_s[base] >= LEAST_EFFECT * times_s[at[-1]]:
            return first, last
    return None


def _is_changing(places: Sequence[LinePlace], base: int) -> bool:
    """Whether a share f + g log2(P) explains times better than a constant one, at half the error of both looks.

    T(P) = T(1) (1/P + f (1 - 1/P) + g log2(P) (1 - 1/P)): linear in its three terms.
    """
    points = [(place.at / base, value) for place in places for value in place.values]
    if len(places) <= LEAST_PLACES:
        return False
    found = added_term(
        [1.0] * len(points),
        ([1 / growth / value for growth, value in points], [(1 - 1 / growth) / value for growth, value in points]),
        [math.log2(growth) * (1 - 1 / growth) / value for growth, value in points],
        (1 + CONFIDENCE) / 2,
    )
    return found is not None and (found[1] > 0 or found[2] < 0)


def beyond(
    places: Sequence[LinePlace], base: int, at: int, axis: Axis, serial: SerialPart, *, unit: str | None = None
) -> Extrapolation:
    """Return the time that the law gives on `at`, where nobody measured; None in it where that cannot be told.

    `unit`: of the rates that were measured instead of times.
    """
    line, largest = amdahl_line(places, base), places[-1].at
    if serial.answer != "fits" or line is None:
        why = "there is no law to go by" if serial.answer == "cannot_tell" else "Amdahl's law does not hold"
        return Extrapolation(at=at, words=f"{workers(at, axis)}: cannot tell: {why}")
    if at > FARTHEST_TIMES * largest:
        words = (
            f"{workers(at, axis)}: cannot tell: more than {FARTHEST_TIMES} times the {workers(largest, axis)} "
            "that were measured"
        )
        return Extrapolation(at=at, words=words)
    time_s = line.at(base / at)
    low_s, high_s = line.prediction_interval(base / at, CONFIDENCE, weight=1 / time_s**2) if time_s > 0 else (0.0, 0.0)
    if low_s <= 0:
        return Extrapolation(at=at, words=f"{workers(at, axis)}: cannot tell: one more run could take anything")
    base_s = line.intercept + line.slope
    found = ScalingEstimate(value=time_s, low=low_s, high=high_s)
    rate = ScalingEstimate(value=1 / time_s, low=1 / high_s, high=1 / low_s) if unit is not None else None
    shown = (format_time(time_s), format_time(low_s), format_time(high_s))
    if rate is not None:
        shown = (f"{1 / time_s:.4g} {unit}", f"{1 / high_s:.4g}", f"{1 / low_s:.4g}")
    words = (
        f"{workers(at, axis)}, by Amdahl's law and not measured: {shown[0]} "
        f"({percent(CONFIDENCE)} of runs between {shown[1]} and {shown[2]}), "
        f"{base_s / time_s:.3g} times as fast as {workers(base, axis)}, if the law holds there too; "
        f"from {counted(len(places), 'point')}"
    )
    return Extrapolation(
        at=at,
        time_s=found if rate is None else None,
        rate=rate,
        speedup=ScalingEstimate(value=base_s / time_s, low=base_s / high_s, high=base_s / low_s),
        confidence=CONFIDENCE,
        words=words,
    )


def percent_of(share: float) -> str:
    """Return a share in percent with three digits, and none behind zero."""
    return f"{100 * share:.3g} %"


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
    different units, and for an unknown line.
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
    group: LineGroup,
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


def _other_work_trend(points: Sequence[ScalingPoint], axis: Axis) -> ScalingTrend | None:
    """Return that a trend cannot be told where the work of each worker was not the same; None: nothing shows that."""
    most = max((point for point in points if point.efficiency is not None), key=_least_efficiency, default=None)
    if most is None or most.efficiency is None or _least_efficiency(most) <= MOST_EFFICIENCY:
        return None
    words = (
        f"cannot tell a trend: {percent(most.efficiency.value)} efficiency on {workers(most.at, axis)} means "
        "other work there than on the base"
    )
    return ScalingTrend(answer="cannot_tell", points=len(points), words=words)


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
        speedup = ScalingEstimate(value=1.0)
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


def _place(at: int, members: Sequence[Observation]) -> LinePlace:
    """Return the times of one place: a rate is the time of one unit of work."""
    inverse = [_time(each) for each in members]
    return LinePlace(
        at=at,
        values=tuple(each.value for each in inverse),
        estimate=combined(inverse),
        rounding=rounding_of(inverse),
    )


def _time(observation: Observation) -> ScalingEstimate:
    if observation.time_s is not None:
        return observation.time_s
    one = ScalingEstimate(value=1.0, low=1.0, high=1.0)
    time_s = ratio(one, observation.rate) if observation.rate is not None else None
    if time_s is None:
        raise InputError("neither a time nor a rate above zero", where=observation.source)
    return time_s


def _efficient(place: LinePlace, base: int, *, by_rate: bool) -> LinePlace:
    """Return what one worker gets done where the work grows with them, but for a factor that all places share."""
    one = ScalingEstimate(value=1.0, low=1.0, high=1.0)
    scale = base / place.at if by_rate else 1.0
    inverse = ratio(one, place.estimate) or one
    return LinePlace(
        at=place.at,
        values=tuple(scale / value for value in place.values),
        estimate=scaled(inverse, scale),
        rounding=place.rounding,
    )


def _speed(observation: Observation) -> ScalingEstimate | None:
    """Return what a line is compared by, larger is better: the rate, or one over the time."""
    if observation.rate is not None or observation.time_s is None:
        return observation.rate
    return ratio(ScalingEstimate(value=1.0, low=1.0, high=1.0), observation.time_s)

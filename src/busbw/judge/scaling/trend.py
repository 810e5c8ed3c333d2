"""Trend and bend of a line, told only where its scatter allows.

Both take launches (rows, where a table says no more) as independent and their scatter, as a share, as the same at every
point. The smallest effect that counts is 2 %: below that launches of one machine differ by themselves. No interval is
narrower than the rounding of the figures that it follows from.
"""

import math
from collections.abc import Sequence

from busbw.judge.phrases import counted, percent
from busbw.judge.scaling.places import LinePlace, half_width, several, workers
from busbw.model.scaling import Axis, Bend, ScalingTrend, TrendAnswer
from busbw.stats.distributions import student_quantile
from busbw.stats.regression import line_through

CONFIDENCE = 0.95
LEAST_PLACES = 3
LEAST_EFFECT = 0.02
# A drop below this is called small, and is no reason for a warning.
LARGE_EFFECT = 0.05
# A line is called straight only where a larger drop at its end would have been told.
LARGEST_UNSEEN = 0.1
# An interval that goes beyond this says nothing that is worth printing.
_WIDEST = 1.0
# exp of more than this is no floating-point number.
_LARGEST_LOG = 700.0


def trend_of(places: Sequence[LinePlace], axis: Axis, what: str = "bus bandwidth") -> ScalingTrend:
    """Return what doubling the machine changes; `what`: the quantity, in a sentence."""
    count = len(places)
    points = [(math.log2(place.at), math.log(value)) for place in places for value in place.values if value > 0]
    line = line_through(points) if count >= LEAST_PLACES else None
    if line is None:
        return ScalingTrend(answer="cannot_tell", points=count, words=_too_few(count))
    low, high = line.slope_interval(CONFIDENCE)
    rounding = _rounding_of_slope(places)
    low, high = min(low, line.slope - rounding), max(high, line.slope + rounding)
    slope, low, high = (math.expm1(min(value, _LARGEST_LOG)) for value in (line.slope, low, high))
    ends = f"{percent(CONFIDENCE)} interval {signed(low)} to {signed(high)}, {counted(count, 'point')}"
    span = f"{signed(slope)} for twice the {several(axis)} ({ends})"
    if high < 0:
        return _trend("falls", slope, low, high, count, f"{what} falls: {span}")
    if low > 0:
        return _trend("rises", slope, low, high, count, f"{what} rises: {span}")
    if low > -LEAST_EFFECT and high < LEAST_EFFECT:
        return _trend("level", slope, low, high, count, f"{what} is level: {span}")
    told = f": {span}" if high < _WIDEST else f" from {counted(count, 'point')}"
    return _trend("cannot_tell", slope, low, high, count, f"cannot tell whether {what} falls or rises{told}")


def _rounding_of_slope(places: Sequence[LinePlace]) -> float:
    """Return how far the slope would move if every value lay at the end of its own interval that moves it most."""
    middle = math.fsum(math.log2(place.at) * len(place.values) for place in places)
    middle /= sum(len(place.values) for place in places)
    spread = math.fsum((math.log2(place.at) - middle) ** 2 * len(place.values) for place in places)
    moved = math.fsum(abs(math.log2(place.at) - middle) * len(place.values) * known_scatter(place) for place in places)
    return moved / spread if spread > 0 else 0.0


def _trend(answer: TrendAnswer, slope: float, low: float, high: float, points: int, words: str) -> ScalingTrend:
    return ScalingTrend(
        answer=answer,
        per_doubling=slope,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        points=points,
        words=words,
    )


def bend_of(places: Sequence[LinePlace], axis: Axis) -> Bend:
    """Return from where on the line stays below the level of what is before: two points at least.

    A point counts as below when it lies under the one-sided prediction interval of those before, which shares 5 %
    among all points where a bend could begin; when its own interval does not reach that level; and by 2 % or more.
    """
    count = len(places)
    if count < LEAST_PLACES:
        return Bend(answer="cannot_tell", points=count, words=_too_few(count))
    starts = range(2, count)
    for start in starts:
        level, margin = _level(places[:start], len(starts))
        if all(_is_below(place, level, margin) for place in places[start:]):
            return _bend(places, start, math.exp(level), axis)
    level, margin = _level(places[:-1], len(starts))
    unseen = -math.expm1(-max(margin, LEAST_EFFECT))
    last, rests = workers(places[-1].at, axis), counted(count, "point")
    if unseen > LARGEST_UNSEEN:
        once = all(len(place.values) == 1 for place in places)
        more = "; several launches at each point would show smaller ones" if once else ""
        words = f"cannot tell whether it drops: only a drop of {percent(unseen)} or more at {last} would show"
        return Bend(answer="cannot_tell", points=count, words=f"{words} ({rests}){more}")
    words = f"no drop is shown: one of {percent(unseen)} or more at {last} would show ({rests})"
    return Bend(answer="straight", points=count, words=words)


def _bend(places: Sequence[LinePlace], start: int, level: float, axis: Axis) -> Bend:
    """Return the bend that begins at `places[start]`. A drop below 5 % is called small."""
    before, rest = places[:start], places[start:]
    drops = [1 - _centre(place) / level for place in rest]
    values = [value for place in before for value in place.values]
    scatter = (max(values) - min(values)) / level
    fall = 1 - _centre(rest[0]) / _centre(before[-1])
    at, after = workers(rest[0].at, axis), workers(before[-1].at, axis)
    if max(drops) < LARGE_EFFECT:
        where = f"at {at}" if len(rest) == 1 else f"from {at} on"
        against = "larger than the scatter of the other points" if fall > scatter else "the other points scatter by"
        words = f"a small fall of {percent(fall)} {where}, {against} ({percent(scatter)})"
    else:
        words = f"from {at} on it stays {percent(min(drops))} or more below the level up to {after}"
    rests = f"{counted(len(before), 'point')} before, {len(rest)} from there on"
    return Bend(
        answer="bends",
        at=rest[0].at,
        after=before[-1].at,
        drop=min(drops),
        largest_drop=max(drops),
        fall=fall,
        scatter=scatter,
        points=len(places),
        words=f"{words}; {rests}",
    )


def _level(before: Sequence[LinePlace], tests: int) -> tuple[float, float]:
    """Return the logarithm of the level of some places, and how far below it one more value may fall by chance."""
    logs = [math.log(value) for place in before for value in place.values if value > 0]
    mean = math.fsum(logs) / len(logs)
    scatter = math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    scatter = max(scatter, *(known_scatter(place) for place in before))
    times = student_quantile(1 - (1 - CONFIDENCE) / tests, len(logs) - 1)
    return mean, times * scatter * math.sqrt(1 + 1 / len(logs))


def known_scatter(place: LinePlace) -> float:
    """Return how far a value may be off by itself; how far launches lie apart is in the values already."""
    return half_width(place.estimate) if place.estimate.basis != "launches" else place.rounding


def _is_below(place: LinePlace, level: float, margin: float) -> bool:
    centre = _centre(place)
    if centre <= 0 or math.log(centre) > level - max(margin, LEAST_EFFECT):
        return False
    return place.estimate.high is None or place.estimate.high < math.exp(level)


def _centre(place: LinePlace) -> float:
    return place.estimate.value


def _too_few(count: int) -> str:
    return f"no trend from {counted(count, 'point')}: three are the least"


def signed(share: float) -> str:
    """Return a change in percent, with its sign and two digits where it is small."""
    return f"{100 * share:+.2f} %" if abs(share) < 0.1 else f"{100 * share:+.0f} %"

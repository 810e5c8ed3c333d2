"""Trend and bend of a line, told only where its scatter allows.

Both take launches (rows, where a table says no more) as independent and their scatter, as a share, as the same at every
place. The smallest effect that counts is a fiftieth: below that launches of one machine differ by themselves.
"""

import math
from collections.abc import Sequence

from busbw.judge.phrases import counted, percent
from busbw.judge.scaling.estimates import half_width
from busbw.judge.scaling.places import Place, several, workers
from busbw.model.scaling import Axis, Bend, Trend, TrendAnswer
from busbw.stats.line import line_through
from busbw.stats.student import student_quantile

CONFIDENCE = 0.95
LEAST_PLACES = 3
LEAST_EFFECT = 0.02
# A line is called straight only where a larger drop at its end would have been told.
LARGEST_UNSEEN = 0.1
# An interval that goes beyond this says nothing that is worth printing.
_WIDEST = 1.0


def trend_of(places: Sequence[Place], axis: Axis, what: str = "bus bandwidth") -> Trend:
    """Return what doubling the machine changes; `what`: the quantity, in a sentence."""
    count = len(places)
    points = [(math.log2(place.at), math.log(value)) for place in places for value in place.values if value > 0]
    line = line_through(points) if count >= LEAST_PLACES else None
    if line is None:
        return Trend(answer="cannot_tell", points=count, words=_too_few(count))
    # Rounding alone makes points lie on a line; what is known of each keeps the interval from vanishing.
    least = max(known_scatter(place) for place in places)
    low, high = line.slope_interval(CONFIDENCE)
    rounding = least / max(1.0, math.log2(places[-1].at / places[0].at))
    low, high = min(low, line.slope - rounding), max(high, line.slope + rounding)
    slope, low, high = (math.expm1(value) for value in (line.slope, low, high))
    ends = f"{percent(CONFIDENCE)} interval {signed(low)} to {signed(high)}"
    span = f"{signed(slope)} for twice the {several(axis)} ({ends})"
    if high < 0:
        return _trend("falls", slope, low, high, count, f"{what} falls: {span}")
    if low > 0:
        return _trend("rises", slope, low, high, count, f"{what} rises: {span}")
    if low > -LEAST_EFFECT and high < LEAST_EFFECT:
        return _trend("level", slope, low, high, count, f"{what} is level: {span}")
    told = f": {span}" if high < _WIDEST else ""
    return _trend("cannot_tell", slope, low, high, count, f"whether {what} falls or rises cannot be told{told}")


def _trend(answer: TrendAnswer, slope: float, low: float, high: float, points: int, words: str) -> Trend:
    return Trend(
        answer=answer,
        per_doubling=slope,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        points=points,
        words=words,
    )


def bend_of(places: Sequence[Place], axis: Axis) -> Bend:
    """Return from where on the line stays below the level of what is before: two places at least.

    A place counts as below when it lies under the one-sided prediction interval of those before, which shares 5 %
    among all places where a bend could begin; when its own interval does not reach that level; and by 2 % or more.
    """
    if len(places) < LEAST_PLACES:
        return Bend(answer="cannot_tell", words=_too_few(len(places)))
    starts = range(2, len(places))
    for start in starts:
        level, margin = _level(places[:start], len(starts))
        rest = places[start:]
        if all(_is_below(place, level, margin) for place in rest):
            drop = min(1 - _centre(place) / math.exp(level) for place in rest)
            at, after = places[start].at, places[start - 1].at
            words = f"from {workers(at, axis)} on it stays {percent(drop)} or more below the level up to {after}"
            return Bend(answer="bends", at=at, after=after, drop=drop, words=words)
    level, margin = _level(places[:-1], len(starts))
    unseen = -math.expm1(-max(margin, LEAST_EFFECT))
    words = f"a drop at {workers(places[-1].at, axis)} could be told from {percent(unseen)} on"
    if unseen > LARGEST_UNSEEN:
        once = all(len(place.values) == 1 for place in places)
        more = "; several launches of each place would tell more" if once else ""
        return Bend(answer="cannot_tell", words=f"whether it bends cannot be told: {words}{more}")
    return Bend(answer="straight", words=f"no bend is shown: {words}")


def _level(before: Sequence[Place], tests: int) -> tuple[float, float]:
    """Return the logarithm of the level of some places, and how far below it one more value may fall by chance."""
    logs = [math.log(value) for place in before for value in place.values if value > 0]
    mean = math.fsum(logs) / len(logs)
    scatter = math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    scatter = max(scatter, *(known_scatter(place) for place in before))
    times = student_quantile(1 - (1 - CONFIDENCE) / tests, len(logs) - 1)
    return mean, times * scatter * math.sqrt(1 + 1 / len(logs))


def known_scatter(place: Place) -> float:
    """Return how far a value may be off by itself; how far launches lie apart is in the values already."""
    return half_width(place.estimate) if place.estimate.basis != "launches" else 0.0


def _is_below(place: Place, level: float, margin: float) -> bool:
    centre = _centre(place)
    if centre <= 0 or math.log(centre) > level - max(margin, LEAST_EFFECT):
        return False
    return place.estimate.high is None or place.estimate.high < math.exp(level)


def _centre(place: Place) -> float:
    return place.estimate.value


def _too_few(count: int) -> str:
    return f"cannot tell from {counted(count, 'place')} on the line: three are the least"


def signed(share: float) -> str:
    """Return a change in percent, with its sign and two digits where it is small."""
    return f"{100 * share:+.2f} %" if abs(share) < 0.1 else f"{100 * share:+.0f} %"

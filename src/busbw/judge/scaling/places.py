"""The axis of a figure, and the observations of one line by their place on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.base.text import counted, percent
from busbw.model.scaling import AXIS_WORDS, Axis, Bend, Observation, ScalingEstimate, ScalingTrend, TrendAnswer
from busbw.stats.distributions import line_through, median, median_interval, student_quantile

# In the order in which one is taken where nobody says.
AXES: tuple[Axis, ...] = ("nodes", "gpus", "ranks", "cores")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinePlace:
    """What was measured at one point of a line: a value for each observation, and what they come to.

    `rounding`: how far each value may lie off because it was printed with few digits, as a share of it.
    """

    at: int
    values: tuple[float, ...]
    estimate: ScalingEstimate
    rounding: float = 0.0


def several(axis: Axis) -> str:
    """Return what an axis counts, in a sentence."""
    return AXIS_WORDS[axis][1]


def workers(number: int, axis: Axis) -> str:
    """Return a place of an axis in a sentence: `1 node`, `64 GPUs`."""
    return f"{number} {AXIS_WORDS[axis][number != 1]}"


def axis_of(observations: Sequence[Observation], asked: Axis | None) -> Axis:
    """Return what to draw over: what is asked for, else the first count that all know and that changes.

    Raises InputError where there is none.
    """
    known = [axis for axis in AXES if all(getattr(each, axis) is not None for each in observations)]
    if asked is not None:
        if asked not in known:
            lacking = next(each for each in observations if getattr(each, asked) is None)
            others = " or ".join(f"--by {axis}" for axis in known)
            hints = ["say it with --ranks-per-node"] if asked == "nodes" else []
            hints += [f"draw over what is known: {others}"] if others else []
            raise InputError(
                f"how many {several(asked)} this was measured on is not known",
                where=lacking.source,
                hint=", or ".join(hints) or None,
            )
        return asked
    if not known:
        lacking = next((each for each in observations if count_of(each, "ranks") is None), observations[0])
        raise InputError(
            "on how much of the machine this was measured is not known",
            where=lacking.source,
            hint="a table needs a column nodes, gpus, ranks or cores",
        )
    changing = [axis for axis in known if len({getattr(each, axis) for each in observations}) > 1]
    return (changing or known)[0]


def count_of(observation: Observation, axis: Axis) -> int | None:
    """Return the place of an observation on an axis."""
    count: int | None = getattr(observation, axis)
    return count


def by_place(observations: Sequence[Observation], axis: Axis) -> dict[int, list[Observation]]:
    """Return the observations of each place, the smallest first; those that do not know theirs are left out."""
    found: dict[int, list[Observation]] = {}
    for each in observations:
        at = count_of(each, axis)
        if at is not None:
            found.setdefault(at, []).append(each)
    return dict(sorted(found.items()))


def combined(estimates: Sequence[ScalingEstimate]) -> ScalingEstimate:
    """Return the median of several results and how far they lie apart; one alone is what it is.

    Results that print alike still lie as far apart as their rounding allows.
    """
    if len(estimates) == 1:
        return estimates[0]
    ordered = sorted(estimate.value for estimate in estimates)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    centre, rounding = median(ordered), rounding_of(estimates)
    return ScalingEstimate(
        value=centre,
        low=min(low, centre * (1 - rounding)),
        high=max(high, centre * (1 + rounding)),
        basis="launches",
    )


def rounding_of(estimates: Sequence[ScalingEstimate]) -> float:
    """Return how far the coarsest of several printed numbers may lie off by its rounding, as a share of it."""
    return max((half_width(each) for each in estimates if each.basis == "digits"), default=0.0)


def scaled(estimate: ScalingEstimate, factor: float) -> ScalingEstimate:
    """Return a positive multiple."""
    return ScalingEstimate(
        value=estimate.value * factor,
        low=estimate.low * factor if estimate.low is not None else None,
        high=estimate.high * factor if estimate.high is not None else None,
        basis=estimate.basis,
    )


def ratio(above: ScalingEstimate, below: ScalingEstimate) -> ScalingEstimate | None:
    """Return one over the other; without an interval where either has none, None where it cannot be divided."""
    if below.value <= 0:
        return None
    value = above.value / below.value
    if above.low is None or above.high is None or below.low is None or below.high is None or below.low <= 0:
        return ScalingEstimate(value=value)
    basis = below.basis if above.basis is None else above.basis
    return ScalingEstimate(value=value, low=above.low / below.high, high=above.high / below.low, basis=basis)


def half_width(estimate: ScalingEstimate) -> float:
    """Return how far the interval reaches to its farther side, as a share of the value; 0 without one."""
    if estimate.low is None or estimate.high is None or estimate.value <= 0:
        return 0.0
    return max(estimate.high - estimate.value, estimate.value - estimate.low) / estimate.value


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
    span_words = f": {span}" if high < _WIDEST else f" from {counted(count, 'point')}"
    return _trend("cannot_tell", slope, low, high, count, f"cannot tell whether {what} falls or rises{span_words}")


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

"""Amdahl's law through the times of one line, the serial share by Karp and Flatt, and what the law gives beyond.

T(P) = T(1) (f + (1 - f)/P), with P in units of the base: a straight line over 1/P. Karp, Flatt, Measuring parallel
processor performance, CACM 33(5), 1990: e = (1/S - 1/P) / (1 - 1/P). A share that changes with P is no serial part: one
that grows is communication or imbalance, which the law does not know. Then nothing is extrapolated.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from busbw.base.units import format_time
from busbw.judge.phrases import counted, percent
from busbw.judge.scaling.places import Place, several, workers
from busbw.judge.scaling.trend import CONFIDENCE, LEAST_EFFECT, LEAST_PLACES, known_scatter
from busbw.model.scaling import Axis, Estimate, Extrapolation, SerialAnswer, SerialPart
from busbw.stats.added import added_term
from busbw.stats.regression import Line, line_through

# Beyond this many times the largest machine that was measured, the law is a guess whatever its interval says.
FARTHEST_TIMES = 4


def serial_share(speedup: float, growth: float) -> float | None:
    """Return the share of the base's time that did not shrink on `growth` bases; None on one."""
    return (1 / speedup - 1 / growth) / (1 - 1 / growth) if growth > 1 and speedup > 0 else None


def amdahl_line(places: Sequence[Place], base: int) -> Line | None:
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


def serial_part(places: Sequence[Place], base: int, axis: Axis) -> SerialPart:
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


def _change(places: Sequence[Place], base: int) -> tuple[float, float] | None:
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


def _is_changing(places: Sequence[Place], base: int) -> bool:
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
    places: Sequence[Place], base: int, at: int, axis: Axis, serial: SerialPart, *, unit: str | None = None
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
    found = Estimate(value=time_s, low=low_s, high=high_s)
    rate = Estimate(value=1 / time_s, low=1 / high_s, high=1 / low_s) if unit is not None else None
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
        speedup=Estimate(value=base_s / time_s, low=base_s / high_s, high=base_s / low_s),
        confidence=CONFIDENCE,
        words=words,
    )


def percent_of(share: float) -> str:
    """Return a share in percent with three digits, and none behind zero."""
    return f"{100 * share:.3g} %"

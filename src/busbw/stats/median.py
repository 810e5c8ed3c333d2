"""Median and percentiles, with intervals that assume nothing about the distribution."""

import math
from collections.abc import Sequence

from busbw.stats.distributions import normal_quantile

# Beyond this the normal approximation of the binomial gives the same k, or one less: never too narrow an interval.
_EXACT_UP_TO = 500


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values; at least one."""
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return an interval that covers the true median with at least `confidence`.

    None when even the extremes do not reach it: below 6 values at 95 %.
    """
    place = _place(len(ordered), (1 - confidence) / 2)
    return (float(ordered[place - 1]), float(ordered[-place])) if place > 0 else None


def relative_half_width(ordered: Sequence[float], confidence: float = 0.95) -> float | None:
    """Return how far the interval reaches to its farther side, as a share of the median.

    None without an interval, and for a median that is not positive.
    """
    interval = median_interval(ordered, confidence)
    if interval is None:
        return None
    centre = median(ordered)
    return max(interval[1] - centre, centre - interval[0]) / centre if centre > 0 else None


def _place(count: int, tail: float) -> int:
    """Return the largest k with P(fewer than k of `count` samples lie below the median) <= tail; 0: there is none."""
    if not 0 < tail < 0.5:
        return 0
    if count > _EXACT_UP_TO:
        return max(math.floor((count + 1 - normal_quantile(1 - tail) * math.sqrt(count)) / 2), 0)
    place, term = 0, 0.5**count
    below = term
    while below <= tail:
        place += 1
        term *= (count - place + 1) / place
        below += term
    return place


WANTED = (1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
# A percentile is told only when at least this many samples lie beyond it.
_LEAST_BEYOND = 10


def percentiles(ordered: Sequence[float], wanted: Sequence[float] = WANTED) -> tuple[tuple[float, float], ...]:
    """Return (percentile, value) of ascending values for each wanted percentile with ten samples beyond it."""
    count = len(ordered)
    # Rounded: 0.1 % of 10,000 samples is ten, though not in binary fractions.
    return tuple(
        (percent, _value(ordered, percent))
        for percent in wanted
        if round(count * min(percent, 100 - percent) / 100, 6) >= _LEAST_BEYOND
    )


def _value(ordered: Sequence[float], percent: float) -> float:
    """Return the value at a percentile, linear between neighbours (Hyndman and Fan, 1996, definition 7)."""
    position = (len(ordered) - 1) * percent / 100
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (position - lower)

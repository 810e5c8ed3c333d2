"""The median, and an interval for it that assumes nothing about the distribution.

The interval runs from the k-th smallest to the k-th largest sample, with k from the binomial distribution of how many
samples fall below the true median (Hoefler, Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015,
rule 5; Le Boudec, "Performance Evaluation", 2010, theorem 2.1). Samples are taken as independent: autocorrelation makes
the interval too narrow.
"""

import math
from collections.abc import Sequence

from busbw.stats.chance import normal_quantile

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

"""The median, and an interval for it that assumes nothing about the distribution.

The interval runs from the k-th smallest to the k-th largest sample, with k from the binomial distribution of how many
samples fall below the true median (Hoefler, Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015,
rule 5; Le Boudec, "Performance Evaluation", 2010, theorem 2.1).
"""

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist

# Beyond this many samples the normal approximation of the binomial distribution is off by less than one rank.
_EXACT_UP_TO = 1000


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values; at least one."""
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return an interval that covers the true median with at least `confidence`; None when samples are too few."""
    below = _samples_outside(len(ordered), confidence)
    if below is None:
        return None
    return float(ordered[below]), float(ordered[len(ordered) - 1 - below])


def relative_half_width(ordered: Sequence[float], confidence: float = 0.95) -> float | None:
    """Return how far the interval reaches to its farther side, as a share of the median; None without an interval."""
    interval = median_interval(ordered, confidence)
    centre = median(ordered)
    if interval is None or centre == 0:
        return None
    return max(interval[1] - centre, centre - interval[0]) / centre


@functools.cache
def _samples_outside(count: int, confidence: float) -> int | None:
    """Return how many samples may be left outside on each side; None when even none outside is not enough."""
    tail = (1 - confidence) / 2
    if count > _EXACT_UP_TO:
        spread = NormalDist().inv_cdf(1 - tail) * math.sqrt(count) / 2
        return max(math.floor(count / 2 - spread) - 1, 0)
    # P(at most k of n samples lie below the median) must not exceed the tail.
    limit = tail * 2.0**count
    total = 0
    for outside in range(count // 2 + 1):
        total += math.comb(count, outside)
        if total > limit:
            return outside - 1 if outside > 0 else None
    return None

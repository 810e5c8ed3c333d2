"""Samples in their order: whether the first are slower, neighbours resemble each other, the level drifts."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from operator import mul

from busbw.stats.median import median, median_interval

_LEAST_VALUES = 10


def autocorrelation(values: Sequence[float]) -> float | None:
    """Return the lag-1 autocorrelation of the values' ranks; None below ten values or when all are equal.

    Ranks instead of values, so that one spike among thousands does not hide what the rest does.
    """
    if len(values) < _LEAST_VALUES:
        return None
    ranked = ranks(values)
    mean = (len(values) - 1) / 2
    deviations = [rank - mean for rank in ranked]
    spread = sum(map(mul, deviations, deviations))
    if spread == 0:
        return None
    # Each value with the one after it: map ends with the shorter.
    together = sum(map(mul, deviations, islice(deviations, 1, None)))
    return float(together / spread)


def drift(values: Sequence[float]) -> float | None:
    """Return the median of the second half over that of the first, less 1; None below ten values."""
    if len(values) < _LEAST_VALUES:
        return None
    first, second = _halves(values)
    before = median(first)
    return median(second) / before - 1 if before > 0 else None


def drift_is_shown(values: Sequence[float], confidence: float = 0.95) -> bool:
    """Whether the intervals of the two halves' medians lie apart: a claim of drift needs that.

    For independent samples without drift this is rarer than one minus the confidence; autocorrelation makes it more
    frequent.
    """
    if len(values) < _LEAST_VALUES:
        return False
    first, second = (median_interval(half, confidence) for half in _halves(values))
    if first is None or second is None:
        return False
    return first[1] < second[0] or second[1] < first[0]


def _halves(values: Sequence[float]) -> tuple[list[float], list[float]]:
    middle = len(values) // 2
    return sorted(values[:middle]), sorted(values[middle:])


def ranks(values: Sequence[float]) -> list[float]:
    """Return each value's rank from 0, equal values sharing the mean of theirs."""
    ordered = sorted(values)
    rank_of = {value: float(place) for place, value in enumerate(ordered)}
    if len(rank_of) == len(ordered):
        return [rank_of[value] for value in values]
    first = 0
    for value, equal in Counter(ordered).items():
        rank_of[value] = first + (equal - 1) / 2
        first += equal
    return [rank_of[value] for value in values]


_WARMUP_LEAST_VALUES = 8
# A few times the interval asked of the result. What is left of a warm-up below it hardly matters: the samples that
# count begin where this rest ends.
_TOLERANCE = 0.03
# Below this the intervals of the halves are little more than their extremes, and one lucky call makes them meet.
_LEAST_NOISY_VALUES = 40


def is_stable(values: Sequence[float]) -> bool:
    """Whether the second half of a series lies on the level of the first.

    The medians of the halves, which single spikes do not move, may differ by 3 %; from 40 values on also by as much as
    their own intervals allow, since a noisy series that does not move is stable. False below 8 values.
    """
    if len(values) < _WARMUP_LEAST_VALUES:
        return False
    middle = len(values) // 2
    first, second = sorted(values[:middle]), sorted(values[middle:])
    before, after = median(first), median(second)
    if abs(before - after) <= _TOLERANCE * min(before, after):
        return True
    return len(values) >= _LEAST_NOISY_VALUES and _meet(median_interval(first), median_interval(second))


def _meet(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]

"""Whether the first calls have done their warming."""

from collections.abc import Sequence

from busbw.stats.median import median, median_interval

_LEAST_VALUES = 8
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
    if len(values) < _LEAST_VALUES:
        return False
    middle = len(values) // 2
    first, second = sorted(values[:middle]), sorted(values[middle:])
    before, after = median(first), median(second)
    if abs(before - after) <= _TOLERANCE * min(before, after):
        return True
    return len(values) >= _LEAST_NOISY_VALUES and _meet(median_interval(first), median_interval(second))


def _meet(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]

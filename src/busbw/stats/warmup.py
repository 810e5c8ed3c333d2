"""When the first calls have done their warming."""

from collections.abc import Sequence

from busbw.stats.median import median, median_interval

_LEAST_VALUES = 8
# Two halves closer than this are the same level for our purpose: a few times the interval asked of the result.
_TOLERANCE = 0.03


def is_stable(durations: Sequence[float]) -> bool:
    """Whether the second half of a series lies on the level of the first.

    True when the two medians differ by at most 3 %, or by no more than their own intervals allow: a noisy series
    that does not move is stable. Needs eight values.
    """
    if len(durations) < _LEAST_VALUES:
        return False
    middle = len(durations) // 2
    first, second = sorted(durations[:middle]), sorted(durations[middle:])
    before, after = median(first), median(second)
    if abs(before - after) <= _TOLERANCE * after:
        return True
    first_interval, second_interval = median_interval(first), median_interval(second)
    if first_interval is None or second_interval is None:
        return False
    return first_interval[0] <= second_interval[1] and second_interval[0] <= first_interval[1]

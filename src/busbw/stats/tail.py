"""Slow samples: which they are, and which rank explains them.

A slow sample is blamed on a rank only when that rank alone qualifies; a rank is named only when coincidence would
hardly ever put so many of them on one rank. Otherwise the answer is None: cannot tell.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from operator import mul

from busbw.model.record import Attribution
from busbw.stats.distributions import binomial_tail, hypergeometric_tail, median, median_interval

# Standard deviations of the bulk; a normal bulk passes this once in three million samples.
_DEVIATIONS = 5.0
# Makes the median absolute deviation of a normal distribution its standard deviation.
_MAD_TO_DEVIATION = 1.4826
# Below these a tail is of no consequence, however regular the bulk: half as long again, and the cost of an interrupt.
_LEAST_EXCESS = 0.5
_LEAST_EXCESS_S = 5e-6
# Share of a sample's excess that a rank must account for.
_EXPLAINS = 0.5
_LEAST_SLOW = 5
_BLAMED_SHARE = 0.6
# Accepted probability of a coincidence.
_CHANCE = 1e-3

# One row per rank, one column per sample.
Matrix = Sequence[Sequence[float]]


def slow_samples(values: Sequence[float]) -> tuple[int, ...]:
    """Return the places of the samples, in seconds, slower than median + max(5 deviations, half the median, 5 us).

    The deviation is 1.4826 times the median absolute deviation: the bulk's own spread, whatever the tail holds.
    """
    if not values:
        return ()
    centre = median(sorted(values))
    deviation = _MAD_TO_DEVIATION * median(sorted([abs(value - centre) for value in values]))
    limit = centre + max(_DEVIATIONS * deviation, _LEAST_EXCESS * centre, _LEAST_EXCESS_S)
    return tuple(index for index, value in enumerate(values) if value > limit)


def blame(
    values: Sequence[float],
    slow: Sequence[int],
    *,
    off_processor: Matrix,
    durations: Matrix = (),
    latenesses: Matrix = (),
) -> tuple[int | None, ...]:
    """Return for each slow sample the one rank that explains it, or None; everything in seconds of one call.

    `values` are the samples over all ranks. A rank explains a sample when it alone accounts for at least half of the
    sample's excess over the median: by finishing later than the median of the other ranks, by starting later than
    they did, or by being off the processor longer than it usually is. None when nobody does, or the three ways
    point at two ranks. A matrix without this sample in every row is evidence not taken: in stream mode only
    `off_processor` is there, because the calls of a sample are not timed alone.
    """
    centre = median(sorted(values)) if values else 0.0
    usual = [median(sorted(row)) if row else 0.0 for row in off_processor]
    beyond_usual = [[value - own for value in row] for row, own in zip(off_processor, usual, strict=True)]
    blamed: list[int | None] = []
    for sample in slow:
        share = _EXPLAINS * (values[sample] - centre)
        suspects = {
            _alone(_column(durations, sample), share, _median_of_others),
            _alone(_column(latenesses, sample), share, _median_of_others),
            _alone(_column(beyond_usual, sample), share, _nothing),
        } - {None}
        blamed.append(suspects.pop() if len(suspects) == 1 else None)
    return tuple(blamed)


def _column(matrix: Matrix, sample: int) -> list[float]:
    return [row[sample] for row in matrix] if all(sample < len(row) for row in matrix) else []


def _alone(column: list[float], share: float, reference: Callable[[list[float], int], float]) -> int | None:
    """Return the one rank whose value exceeds its reference by `share`; None when no rank does, or more than one."""
    if len(column) < 2:
        return None
    ordered = sorted(column)
    # A larger value has a reference that is no larger, so the two largest decide.
    exceeds = ordered[-1] - reference(ordered, len(ordered) - 1) >= share
    second_exceeds = ordered[-2] - reference(ordered, len(ordered) - 2) >= share
    return column.index(ordered[-1]) if exceeds and not second_exceeds else None


def _median_of_others(ordered: list[float], place: int) -> float:
    return median(ordered[:place] + ordered[place + 1 :])


def _nothing(_ordered: list[float], _place: int) -> float:
    return 0.0


def culprit(blamed_counts: Sequence[int], slow_count: int, ranks: int) -> int | None:
    """Return the rank that explains the slow samples of a point; `blamed_counts` holds one number per rank.

    Named only from 5 slow samples on, when at least 60 % of all are blamed on it, and when blaming each at random
    would reach that with a probability below 0.001.
    """
    if ranks < 2 or slow_count < _LEAST_SLOW or not blamed_counts:
        return None
    most = max(blamed_counts)
    if most < _BLAMED_SHARE * slow_count or binomial_tail(most, slow_count, 1 / ranks) >= _CHANCE:
        return None
    return blamed_counts.index(most)


def culprit_of_halves(attribution: Sequence[Attribution], ranks: int) -> int | None:
    """Return the rank whose number the slower halves spell, bit by bit.

    None unless in every bit one group has at least 5 slow calls, and so many more than the other that equal groups
    would show it with a probability below 0.001.
    """
    if ranks < 2:
        return None
    spelled = 0
    for bit in range((ranks - 1).bit_length()):
        group = _slower_group([half for half in attribution if half.bit == bit])
        if group is None:
            return None
        spelled |= group << bit
    return spelled if spelled < ranks else None


def _slower_group(halves: list[Attribution]) -> int | None:
    if sorted(half.group for half in halves) != [0, 1]:
        return None
    if any(not 0 <= half.slow_calls <= half.calls for half in halves):
        return None
    less, more = sorted(halves, key=lambda half: half.slow_calls / max(half.calls, 1))
    if more.slow_calls < _LEAST_SLOW:
        return None
    chance = hypergeometric_tail(
        more.slow_calls, more.calls, more.calls + less.calls, more.slow_calls + less.slow_calls
    )
    return more.group if chance < _CHANCE else None


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

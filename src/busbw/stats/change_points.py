"""Where the level of a series changes, with a bound on how often a series whose level stays is said to change.

The test is the maximally selected rank statistic: for every place that leaves enough values on either side, the rank
sum of one side, standardised; the largest of them is held against what chance makes of the largest (Miller, Siegmund,
"Maximally Selected Chi Square Statistics", Biometrics 38, 1982; Lausen, Schumacher, Biometrics 48, 1992). Ranks, so
that no spike and no heavy tail matters. The approximation claims too little for short series, never too much.

Runs of one machine resemble their neighbours, which makes chance's largest larger. The statistic is divided by the
square root of (1 + r) / (1 - r), as for the mean of values that follow each other as AR(1) does; r is estimated around
the two levels of the best place, with a margin for what that takes away from it. tests/history holds the rates of
false alarms and of detection against simulation, up to r = 0.5 and with the noise of real runs.

Several changes are found one after the other: each part is tested again by itself. What came and went again hides
itself in the whole of a series; so its two halves and its middle are tested too, each for a share of the false alarms.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul

from busbw.stats.distributions import median
from busbw.stats.tail import ranks

# A level is a level from this many values on.
LEAST_OF_A_LEVEL = 5
# Added to the estimated autocorrelation, over the number of values: what fitting two levels takes from it.
_MARGIN = 3.0
_MOST_CORRELATED = 0.9
# Share of the false alarms that the whole of a series may have; its three parts of half the length share the rest.
_OF_THE_WHOLE = 0.75
# Below this the approximation of the tail is none.
_LEAST_STATISTIC = 1.2


def change_points(values: Sequence[float], *, false_alarms: float, least_change: float) -> tuple[int, ...]:
    """Return the places, ascending, where another level begins; values are positive and in the order of time.

    `false_alarms` bounds the probability that a series whose level stays gets any. A change by less than `least_change`
    of the median before it is left out.
    """
    place = _first_found(values, false_alarms, least_change)
    if place is None:
        return ()
    before, after = (
        change_points(part, false_alarms=false_alarms, least_change=least_change)
        for part in (values[:place], values[place:])
    )
    return (*before, place, *(place + each for each in after))


def least_values(false_alarms: float) -> int:
    """Return how many values a series must have for the clearest of changes, in its middle, to be claimed."""
    count = 2 * LEAST_OF_A_LEVEL
    while _chance(_clearest(count) / math.sqrt(_inflation(_MARGIN / count)), count) >= _OF_THE_WHOLE * false_alarms:
        count += 1
    return count


def _first_found(values: Sequence[float], false_alarms: float, least_change: float) -> int | None:
    """Return a place where a change is claimed, in the whole or else in a half of the series."""
    count = len(values)
    place = _change(values, _OF_THE_WHOLE * false_alarms, least_change)
    if place is not None:
        return place
    for first in (0, count // 4, count // 2):
        place = _change(values[first : first + count // 2], (1 - _OF_THE_WHOLE) / 3 * false_alarms, least_change)
        if place is not None:
            return first + place
    return None


def _change(values: Sequence[float], false_alarms: float, least_change: float) -> int | None:
    """Return the most probable place of a change; None where none can be claimed."""
    count = len(values)
    if count < 2 * LEAST_OF_A_LEVEL:
        return None
    ranked = ranks(values)
    place, statistic = _largest(ranked)
    # Whatever the autocorrelation, it only takes from the statistic; it need not be estimated where that is too small.
    if _chance(statistic, count) >= false_alarms:
        return None
    inflation = _inflation(_correlation(ranked, place) + _MARGIN / count)
    if _chance(statistic / math.sqrt(inflation), count) >= false_alarms:
        return None
    before, after = median(sorted(values[:place])), median(sorted(values[place:]))
    return place if abs(after - before) >= least_change * before else None


def _largest(ranked: Sequence[float]) -> tuple[int, float]:
    """Return the place with the largest standardised rank sum, and that."""
    count = len(ranked)
    mean = (count - 1) / 2
    deviations = [rank - mean for rank in ranked]
    variance = sum(map(mul, deviations, deviations)) / count
    if variance == 0:
        return LEAST_OF_A_LEVEL, 0.0
    sums = list(accumulate(deviations))[LEAST_OF_A_LEVEL - 1 :]
    squares = list(map(mul, map(mul, sums, sums), _weights(count)))
    largest = max(squares)
    return LEAST_OF_A_LEVEL + squares.index(largest), math.sqrt(largest / variance)


@lru_cache(maxsize=1024)
def _weights(count: int) -> tuple[float, ...]:
    """Return for each place one over the variance of the sum of so many ranks drawn without putting back.

    In units of the variance of the ranks.
    """
    places = range(LEAST_OF_A_LEVEL, count - LEAST_OF_A_LEVEL + 1)
    return tuple((count - 1) / (place * (count - place)) for place in places)


def _correlation(ranked: Sequence[float], place: int) -> float:
    """Return the lag-1 autocorrelation around the two levels."""
    deviations = []
    for part in (ranked[:place], ranked[place:]):
        mean = sum(part) / len(part)
        deviations += [rank - mean for rank in part]
    spread = sum(each * each for each in deviations)
    together = sum(one * other for one, other in pairwise(deviations))
    return together / spread if spread > 0 else 0.0


def _inflation(correlation: float) -> float:
    bounded = min(max(correlation, 0.0), _MOST_CORRELATED)
    return (1 + bounded) / (1 - bounded)


def _chance(statistic: float, count: int) -> float:
    """Return about how often the largest of a series without change reaches `statistic`, or more."""
    if statistic < _LEAST_STATISTIC:
        return 1.0
    density = math.exp(-statistic * statistic / 2) / math.sqrt(2 * math.pi)
    odds = count / LEAST_OF_A_LEVEL - 1
    return min(4 * density / statistic + density * (statistic - 1 / statistic) * 2 * math.log(odds), 1.0)


def _clearest(count: int) -> float:
    """Return the statistic of a series whose second half lies above its first throughout."""
    place = count // 2
    return math.sqrt(3 * place * (count - place) * (count - 1) / (count * count - 1))

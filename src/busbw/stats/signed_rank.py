"""An exact test of whether paired differences lie beyond a margin: signed ranks that count up to a third.

Each difference is of two things measured in random order, drawn for this difference alone. Where the two do not differ,
it is as likely to be positive as negative, whatever drifts, spikes or correlations the machine has: the rate of false
claims holds by the way it was measured, not by a model of its noise. It does not hold for differences whose orders
depend on each other, nor for things that were not measured in random order. This is Wilcoxon's signed-rank test
(Biometrics Bulletin 1, 1945) with the ranks of the largest differences cut off at a third of their number: launches
that came out far off then weigh no more than others (scores of Winsorized ranks; Hettmansperger, "Statistical Inference
Based on Ranks", 1984, chapter 2).
"""

import math
from collections.abc import Sequence
from functools import cache

# More than anybody launches; the exact distribution takes a tenth of a second for it.
MOST_PAIRS = 200
_STEPS = 40


def p_value(differences: Sequence[float], margin: float) -> float:
    """Return the two-sided p-value of the hypothesis that the true difference is at most `margin` either way.

    Ties and zeros are counted against a claim, so that rounded numbers cannot make one. Raises ValueError above 200.
    """
    up = _one_sided([value - margin for value in differences])
    down = _one_sided([-value - margin for value in differences])
    return min(2 * min(up, down), 1.0)


def least_p_value(count: int) -> float:
    """Return the smallest p-value that `count` differences can have."""
    return min(2 * 0.5**count, 1.0)


def shown_from(differences: Sequence[float], margin: float, level: float) -> float | None:
    """Return the difference from which on such differences would have had a p-value of `level` or less.

    That is what their scatter about their median allows, in either direction; None where no difference would.
    """
    count = len(differences)
    if least_p_value(count) > level:
        return None
    ordered = sorted(differences)
    centre = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    rest = [value - centre for value in ordered]
    return max(_shift(rest, margin, level), _shift([-value for value in rest], margin, level))


def _shift(rest: Sequence[float], margin: float, level: float) -> float:
    """Return the least shift that takes differences about zero beyond the margin, to a millionth of their range."""
    low, high = 0.0, 2 * margin + 2 * max(map(abs, rest)) + 1e-12
    for _step in range(_STEPS):
        middle = (low + high) / 2
        if 2 * _one_sided([value + middle - margin for value in rest]) <= level:
            high = middle
        else:
            low = middle
    return high


def _one_sided(values: Sequence[float]) -> float:
    """Return the probability of a sum over positive values as large as this one's, if their signs were tossed."""
    count = len(values)
    # Of equal sizes the positive ones rank lowest.
    ordered = sorted(values, key=lambda value: (abs(value), value <= 0))
    return _tail(count)[sum(score for score, value in zip(_scores(count), ordered, strict=True) if value > 0)]


@cache
def _scores(count: int) -> tuple[int, ...]:
    return tuple(min(rank, math.ceil(count / 3)) for rank in range(1, count + 1))


@cache
def _tail(count: int) -> tuple[float, ...]:
    """Return, for each sum of scores from 0 to the largest, the probability of that sum or more."""
    if count > MOST_PAIRS:
        raise ValueError(f"{count} pairs, over the limit of {MOST_PAIRS}")
    ways = [1]
    for score in _scores(count):
        longer = [*ways, *[0] * score]
        for total, number in enumerate(ways):
            longer[total + score] += number
        ways = longer
    at_least, sums = 0, []
    for number in reversed(ways):
        at_least += number
        sums.append(at_least)
    # In this order: neither 2**count nor the number of ways needs to fit into a float.
    return tuple(each / 2**count for each in reversed(sums))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted so that claiming those up to a level is wrong anywhere at most that often.

    The tests may depend on each other in any way.
    """
    adjusted = [1.0] * len(p_values)
    so_far = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        so_far = max(so_far, min(p_values[index] * (len(p_values) - place), 1.0))
        adjusted[index] = so_far
    return tuple(adjusted)

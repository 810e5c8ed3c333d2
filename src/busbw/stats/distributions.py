"""Student's t, the binomial and the runs distribution, as finite sums, without a statistics library."""

import math


def normal_quantile(probability: float) -> float:
    """Return where the standard normal distribution function reaches `probability`, which lies inside (0, 1)."""
    low, high = -40.0, 40.0
    # Each step halves 80: after 64 no double lies between.
    for _ in range(64):
        middle = (low + high) / 2
        if normal_tail(-middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def normal_tail(value: float) -> float:
    """Return the probability that a standard normal variable exceeds `value`."""
    return 0.5 * math.erfc(value / math.sqrt(2))


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """Return the probability of at least `successes` of `trials`; `probability` is that of one, inside (0, 1)."""
    if successes <= 0:
        return 1.0
    odds = math.log(probability / (1 - probability))
    none = trials * math.log1p(-probability)
    return min(math.fsum(math.exp(_log_comb(trials, k) + k * odds + none) for k in range(successes, trials + 1)), 1.0)


def hypergeometric_tail(marked: int, drawn: int, total: int, all_marked: int) -> float:
    """Return the probability that `drawn` of `total`, of which `all_marked` are marked, hold at least `marked`.

    Fisher's exact test, one-sided.
    """
    first = max(marked, drawn + all_marked - total, 0)
    ways = _log_comb(total, drawn)
    return min(
        math.fsum(
            math.exp(_log_comb(all_marked, k) + _log_comb(total - all_marked, drawn - k) - ways)
            for k in range(first, min(drawn, all_marked) + 1)
        ),
        1.0,
    )


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# From here on the normal distribution is within 0.3 % of it.
_NORMAL_FROM = 1000


def student_quantile(probability: float, degrees: int) -> float:
    """Return where the distribution function reaches `probability`, inside (0, 1); `degrees` of freedom from 1."""
    if degrees >= _NORMAL_FROM:
        return normal_quantile(probability)
    if probability < 0.5:
        return -student_quantile(1 - probability, degrees)
    # The angle whose tangent is t / sqrt(degrees): bounded, where t is not.
    low, high = 0.0, math.pi / 2
    for _ in range(64):
        middle = (low + high) / 2
        if 0.5 + _within(middle, degrees) / 2 < probability:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """Return the probability that the variable is no farther from zero than the angle says."""
    cosine = math.cos(angle)
    term, total = (1.0, 0.0) if degrees % 2 == 0 else (cosine, 0.0)
    for power in range(degrees % 2, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cosine**2
    total *= math.sin(angle)
    return total if degrees % 2 == 0 else 2 / math.pi * (angle + total)

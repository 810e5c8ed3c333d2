"""Student's t distribution with a whole number of degrees of freedom: finite sums, no statistics library.

Abramowitz, Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

import math

from busbw.stats.chance import normal_quantile

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

"""Whether one more term explains what a linear model leaves: its coefficient with an interval."""

import math
from collections.abc import Sequence
from operator import mul

from busbw.stats.distributions import student_quantile


def added_term(
    values: Sequence[float], terms: Sequence[Sequence[float]], more: Sequence[float], confidence: float
) -> tuple[float, float, float] | None:
    """Return the coefficient of `more` beside `terms` in a least-squares fit of `values`, and its interval.

    Every point is already divided by the scatter it has. None with too few points, or where `more` is made of `terms`.
    """
    degrees = len(values) - len(terms) - 1
    if degrees < 1:
        return None
    # What is left of each when all before it are taken out (Frisch, Waugh, Lovell): Gram and Schmidt.
    basis: list[Sequence[float]] = []
    for term in terms:
        left = _without(term, basis)
        if _dot(left, left) > 1e-12 * _dot(term, term):
            basis.append(left)
    own = _without(more, basis)
    square = _dot(own, own)
    if square <= 1e-12 * _dot(more, more):
        return None
    rest = _without(values, basis)
    coefficient = _dot(own, rest) / square
    scatter = _without(rest, [own])
    half = student_quantile((1 + confidence) / 2, degrees) * math.sqrt(_dot(scatter, scatter) / degrees / square)
    return coefficient, coefficient - half, coefficient + half


def _without(values: Sequence[float], basis: Sequence[Sequence[float]]) -> list[float]:
    left = list(values)
    for each in basis:
        share = _dot(each, left) / _dot(each, each)
        left = [value - share * part for value, part in zip(left, each, strict=True)]
    return left


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(mul, one, other))

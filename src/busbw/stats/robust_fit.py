"""Fits of a curve with few parameters to few points, with intervals that single outliers do not spoil.

Residuals are those of logarithms, so that every point counts by its relative deviation; large ones count less (Huber's
weights, constant 1.345). Covariance: Huber, Ronchetti, Robust Statistics, 2nd edition, section 7.6, with his correction
for few points; quantiles are Student's with the points that are left over as degrees of freedom.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busbw.stats.distributions import student_quantile
from busbw.stats.median import median

# 95 % of the efficiency of least squares where there are no outliers.
_HUBER = 1.345
# The median of absolute normal deviates.
_NORMAL = 0.6745
_MOST_STEPS = 100
# Parameters are logarithms: a millionth of their value.
_STILL = 1e-6
# Logarithms beyond this are of numbers that no measurement has.
_FARTHEST = 300.0

# At one point: the logarithm of the curve, and its derivatives by the parameters.
Curve = Callable[[float, Sequence[float]], tuple[float, tuple[float, ...]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """Parameters, their covariance, and the typical deviation of a point as a share."""

    parameters: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    spread: float
    points: int

    def interval(self, weights: Sequence[float], confidence: float) -> tuple[float, float, float]:
        """Return the weighted sum of the parameters, and the ends of its interval."""
        centre = math.fsum(weight * value for weight, value in zip(weights, self.parameters, strict=True))
        variance = math.fsum(
            left * right * self.covariance[row][column]
            for row, left in enumerate(weights)
            for column, right in enumerate(weights)
        )
        freedom = max(1, self.points - len(self.parameters))
        reach = student_quantile((1 + confidence) / 2, freedom) * math.sqrt(max(variance, 0.0))
        return centre, centre - reach, centre + reach


def fit(curve: Curve, points: Sequence[tuple[float, float]], start: Sequence[float]) -> Fit | None:
    """Return the curve through `points` (place, positive value); None where they do not determine it.

    There must be more points than parameters.
    """
    count, number = len(points), len(start)
    if count <= number:
        return None
    values = tuple(start)
    residuals = _residuals(curve, points, values)
    scale = _scale(residuals, number)
    damping = 1e-3
    for _ in range(_MOST_STEPS):
        moved = _step(curve, points, values, scale, damping)
        if moved is None:
            return None
        further = _residuals(curve, points, moved)
        after = _loss(further, scale)
        if after > _loss(residuals, scale) or not math.isfinite(after):
            damping *= 8
            if damping > 1e12:
                break
            continue
        still = max(abs(new - old) for new, old in zip(moved, values, strict=True)) < _STILL
        values, residuals, damping = moved, further, max(damping / 4, 1e-12)
        scale = _scale(residuals, number)
        if still:
            break
    covariance = _covariance(curve, points, values, scale)
    if covariance is None:
        return None
    return Fit(parameters=values, covariance=covariance, spread=scale, points=count)


def _residuals(curve: Curve, points: Sequence[tuple[float, float]], values: Sequence[float]) -> list[float]:
    return [math.log(value) - curve(place, values)[0] for place, value in points]


def _scale(residuals: Sequence[float], number: int) -> float:
    """Return a standard deviation from the median absolute residual, corrected for what the fit used up."""
    count = len(residuals)
    centre = median(sorted(abs(residual) for residual in residuals))
    return max(centre / _NORMAL * math.sqrt(count / (count - number)), 1e-9)


def _weight(residual: float, scale: float) -> float:
    size = abs(residual) / scale
    return 1.0 if size <= _HUBER else _HUBER / size


def _loss(residuals: Sequence[float], scale: float) -> float:
    total = 0.0
    for residual in residuals:
        size = abs(residual) / scale
        total += size * size / 2 if size <= _HUBER else _HUBER * (size - _HUBER / 2)
    return total


def _step(
    curve: Curve, points: Sequence[tuple[float, float]], values: tuple[float, ...], scale: float, damping: float
) -> tuple[float, ...] | None:
    """Return the parameters after one step of Levenberg and Marquardt."""
    number = len(values)
    matrix = [[0.0] * number for _ in range(number)]
    right = [0.0] * number
    for place, value in points:
        height, slopes = curve(place, values)
        residual = math.log(value) - height
        weight = _weight(residual, scale)
        for row in range(number):
            right[row] += weight * slopes[row] * residual
            for column in range(number):
                matrix[row][column] += weight * slopes[row] * slopes[column]
    for row in range(number):
        matrix[row][row] += damping * max(matrix[row][row], 1e-12)
    inverse = _inverse(matrix)
    if inverse is None:
        return None
    change = [math.fsum(inverse[row][column] * right[column] for column in range(number)) for row in range(number)]
    moved = tuple(value + min(2.0, max(-2.0, step)) for value, step in zip(values, change, strict=True))
    return moved if all(abs(value) < _FARTHEST for value in moved) else None


def _covariance(
    curve: Curve, points: Sequence[tuple[float, float]], values: tuple[float, ...], scale: float
) -> tuple[tuple[float, ...], ...] | None:
    count, number = len(points), len(values)
    residuals = _residuals(curve, points, values)
    inside = sum(abs(residual) <= _HUBER * scale for residual in residuals) / count
    if inside == 0:
        return None
    psi = math.fsum((_weight(residual, scale) * residual) ** 2 for residual in residuals) / (count - number)
    correction = 1 + number / count * (1 - inside) / inside
    factor = correction**2 * psi / inside**2
    matrix = [[0.0] * number for _ in range(number)]
    for place, _ in points:
        slopes = curve(place, values)[1]
        for row in range(number):
            for column in range(number):
                matrix[row][column] += slopes[row] * slopes[column]
    inverse = _inverse(matrix)
    if inverse is None:
        return None
    return tuple(tuple(factor * entry for entry in row) for row in inverse)


def _inverse(matrix: list[list[float]]) -> list[list[float]] | None:
    """Return the inverse of a small matrix by elimination; None where it has none to speak of."""
    size = len(matrix)
    rows = [[*row, *(1.0 if place == index else 0.0 for place in range(size))] for index, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        head = rows[pivot][column]
        if not math.isfinite(head) or abs(head) < 1e-14:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [entry / head for entry in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                share = rows[row][column]
                rows[row] = [entry - share * own for entry, own in zip(rows[row], rows[column], strict=True)]
    return [row[size:] for row in rows]

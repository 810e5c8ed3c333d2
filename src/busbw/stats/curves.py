"""Latency and bandwidth of a sweep: T = a + S/B, and busbw = B / (1 + (H/S)^p), with intervals of what is fitted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busbw.model.verdict import FittedLine, FittedParameter, Hill
from busbw.stats.distributions import median, student_quantile

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
class RobustFit:
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


def fit(curve: Curve, points: Sequence[tuple[float, float]], start: Sequence[float]) -> RobustFit | None:
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
    return RobustFit(parameters=values, covariance=covariance, spread=scale, points=count)


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


CONFIDENCE = 0.95
# A line has two parameters and a Hill curve three: with fewer points than these nothing is left to judge them by.
LEAST_FOR_LINE = 5
LEAST_FOR_HILL = 7
# An interval that reaches this many times up and down says nothing.
_WIDEST = 4.0
# Beyond this the exponential of a double is infinite.
_OVERFLOW = 700.0
# What a sweep must show of a parameter for it to be told: this part of the time at its first, or last, size; for the
# bandwidth of a Hill curve this part of it at the last size, and at most half of it at the first.
_SHOWN = 0.4
_SATURATED = 2 / 3


def line(
    points: Sequence[tuple[int, float]], *, algorithm: str | None = None, protocol: str | None = None
) -> FittedLine | None:
    """Return a latency and a bandwidth through (size in bytes, seconds), sizes ascending.

    None where there are too few points, or where they do not tell the latency.
    """
    if len(points) < LEAST_FOR_LINE:
        return None
    first_s = min(time_s for _, time_s in points)
    per_byte = max(points[-1][1] / max(points[-1][0], 1), 1e-15)
    fitted = fit(_line, [(float(size), time_s) for size, time_s in points], (math.log(first_s), math.log(per_byte)))
    if fitted is None:
        return _flat(points, algorithm, protocol)
    latency = _estimate(fitted, (1.0, 0.0))
    if latency is None or _fixed_share(fitted, points[0][0]) < _SHOWN:
        return None
    grows = 1 - _fixed_share(fitted, points[-1][0]) >= _SHOWN
    return FittedLine(
        from_bytes=points[0][0],
        to_bytes=points[-1][0],
        points=len(points),
        algorithm=algorithm,
        protocol=protocol,
        latency_s=latency,
        algbw_Bps=_estimate(fitted, (0.0, -1.0)) if grows else None,
        half_bytes=_estimate(fitted, (1.0, -1.0)) if grows else None,
        spread=fitted.spread,
    )


def _flat(points: Sequence[tuple[int, float]], algorithm: str | None, protocol: str | None) -> FittedLine | None:
    """Return a latency without a bandwidth, where the time does not grow with the size."""
    if points[-1][1] > points[0][1] / (1 - _SHOWN):
        return None
    start = (math.log(points[0][1]),)
    fitted = fit(lambda _size, values: (values[0], (1.0,)), [(float(size), time_s) for size, time_s in points], start)
    latency = _estimate(fitted, (1.0,)) if fitted is not None else None
    if fitted is None or latency is None:
        return None
    return FittedLine(
        from_bytes=points[0][0],
        to_bytes=points[-1][0],
        points=len(points),
        algorithm=algorithm,
        protocol=protocol,
        latency_s=latency,
        algbw_Bps=None,
        half_bytes=None,
        spread=fitted.spread,
    )


def hill(points: Sequence[tuple[int, float]]) -> Hill | None:
    """Return the curve of bus bandwidth through (size in bytes, bytes per second), sizes ascending.

    None where there are too few points, or where they reach neither half nor saturation.
    """
    if len(points) < LEAST_FOR_HILL:
        return None
    most_Bps = max(rate_Bps for _, rate_Bps in points)
    half = min(points, key=lambda point: abs(math.log(2 * point[1] / most_Bps)))[0]
    fitted = fit(
        _hill, [(float(size), rate_Bps) for size, rate_Bps in points], (math.log(1.1 * most_Bps), math.log(half), 0.0)
    )
    if fitted is None:
        return None
    rate, size, steepness = (
        _estimate(fitted, weights) for weights in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    if rate is None or size is None or steepness is None:
        return None
    reached = [math.exp(_hill(float(place), fitted.parameters)[0]) / rate.value for place, _ in points]
    if reached[0] > 1 / 2 or reached[-1] < _SATURATED:
        return None
    return Hill(points=len(points), busbw_Bps=rate, half_bytes=size, steepness=steepness, spread=fitted.spread)


def _fixed_share(fitted: RobustFit, size_bytes: int) -> float:
    """Return the part of the time at a size that does not depend on it."""
    return _line(float(size_bytes), fitted.parameters)[1][0]


def _estimate(fitted: RobustFit, weights: Sequence[float]) -> FittedParameter | None:
    centre, low, high = fitted.interval(weights, CONFIDENCE)
    if high - low > 2 * math.log(_WIDEST):
        return None
    return FittedParameter(value=math.exp(centre), low=math.exp(low), high=math.exp(high), confidence=CONFIDENCE)


def _line(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """Return log(a + b S) for the parameters log a and log b."""
    fixed, moving = math.exp(values[0]), math.exp(values[1]) * size_bytes
    return math.log(fixed + moving), (fixed / (fixed + moving), moving / (fixed + moving))


def _hill(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """Return log(B / (1 + (H/S)^p)) for the parameters log B, log H and log p."""
    steepness = math.exp(min(values[2], 5.0))
    reach = steepness * (values[1] - math.log(size_bytes))
    # log(1 + e^x) and its derivative, without overflow.
    soft = max(reach, 0.0) + math.log1p(math.exp(-abs(reach)))
    share = 1 / (1 + math.exp(-reach)) if reach > -_OVERFLOW else 0.0
    return values[0] - soft, (1.0, -share * steepness, -share * reach)

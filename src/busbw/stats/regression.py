"""A straight line through points by weighted least squares, and whether one more term explains what it leaves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from busbw.stats.distributions import student_quantile


@dataclass(frozen=True, kw_only=True, slots=True)
class StraightLine:
    """y = intercept + slope x, and the scatter of the points around it.

    `variance` is that of a point of weight 1; `cov_*` are the parameters' variances and covariance over it.
    """

    intercept: float
    slope: float
    variance: float
    cov_intercept: float
    cov_slope: float
    cov_both: float
    # Points less two.
    degrees: int

    def at(self, x: float) -> float:
        """Return the line's value."""
        return self.intercept + self.slope * x

    def slope_interval(self, confidence: float) -> tuple[float, float]:
        """Return an interval for the slope; points scatter normally and independently around the line."""
        half = self._times(confidence) * math.sqrt(self.cov_slope * self.variance)
        return self.slope - half, self.slope + half

    def prediction_interval(self, x: float, confidence: float, *, weight: float = 1.0) -> tuple[float, float]:
        """Return where one more point of this weight would fall."""
        spread = self.cov_intercept + 2 * x * self.cov_both + x * x * self.cov_slope + 1 / weight
        half = self._times(confidence) * math.sqrt(spread * self.variance)
        return self.at(x) - half, self.at(x) + half

    def share_interval(self, confidence: float) -> tuple[float, float] | None:
        """Return an interval for intercept / (intercept + slope), by Fieller's theorem; None: it has no ends."""
        # All f for which intercept (1 - f) - slope f is no farther from zero than its scatter: a quadratic in f.
        scale = self._times(confidence) ** 2 * self.variance
        total = self.intercept + self.slope
        var_total = scale * (self.cov_intercept + 2 * self.cov_both + self.cov_slope)
        cov_total = scale * (self.cov_intercept + self.cov_both)
        square = total * total - var_total
        cross = self.intercept * total - cov_total
        constant = self.intercept * self.intercept - scale * self.cov_intercept
        root = cross * cross - square * constant
        if square <= 0 or root < -1e-12 * cross * cross:
            return None
        half = math.sqrt(max(root, 0.0))
        return (cross - half) / square, (cross + half) / square

    def _times(self, confidence: float) -> float:
        return student_quantile((1 + confidence) / 2, self.degrees)


def line_through(points: Sequence[tuple[float, float]], weights: Sequence[float] | None = None) -> StraightLine | None:
    """Return the line through (x, y); None with fewer than three points, or when all have one x."""
    count = len(points)
    weighed = weights if weights is not None else [1.0] * count
    total = math.fsum(weighed)
    if count < 3 or total <= 0:
        return None
    mean_x = math.fsum(w * x for w, (x, _) in zip(weighed, points, strict=True)) / total
    mean_y = math.fsum(w * y for w, (_, y) in zip(weighed, points, strict=True)) / total
    spread = math.fsum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weighed, points, strict=True))
    if spread <= 0:
        return None
    slope = math.fsum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weighed, points, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    left = math.fsum(w * (y - intercept - slope * x) ** 2 for w, (x, y) in zip(weighed, points, strict=True))
    return StraightLine(
        intercept=intercept,
        slope=slope,
        variance=left / (count - 2),
        cov_intercept=1 / total + mean_x * mean_x / spread,
        cov_slope=1 / spread,
        cov_both=-mean_x / spread,
        degrees=count - 2,
    )


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

"""Student's t, the binomial and the runs distribution, as finite sums; median and percentiles with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul


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


@lru_cache(maxsize=1024)
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


# Beyond this the normal approximation of the binomial gives the same k, or one less: never too narrow an interval.
_EXACT_UP_TO = 500


def median(ordered: Sequence[float]) -> float:
    """Return the median of ascending values; at least one."""
    middle = len(ordered) // 2
    return float(ordered[middle]) if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return an interval that covers the true median with at least `confidence`.

    None when even the extremes do not reach it: below 6 values at 95 %.
    """
    place = _place(len(ordered), (1 - confidence) / 2)
    return (float(ordered[place - 1]), float(ordered[-place])) if place > 0 else None


def relative_half_width(ordered: Sequence[float], confidence: float = 0.95) -> float | None:
    """Return how far the interval reaches to its farther side, as a share of the median.

    None without an interval, and for a median that is not positive.
    """
    interval = median_interval(ordered, confidence)
    if interval is None:
        return None
    centre = median(ordered)
    return max(interval[1] - centre, centre - interval[0]) / centre if centre > 0 else None


def _place(count: int, tail: float) -> int:
    """Return the largest k with P(fewer than k of `count` samples lie below the median) <= tail; 0: there is none."""
    if not 0 < tail < 0.5:
        return 0
    if count > _EXACT_UP_TO:
        return max(math.floor((count + 1 - normal_quantile(1 - tail) * math.sqrt(count)) / 2), 0)
    place, term = 0, 0.5**count
    below = term
    while below <= tail:
        place += 1
        term *= (count - place + 1) / place
        below += term
    return place


WANTED = (1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
# A percentile is told only when at least this many samples lie beyond it.
_LEAST_BEYOND = 10


def percentiles(ordered: Sequence[float], wanted: Sequence[float] = WANTED) -> tuple[tuple[float, float], ...]:
    """Return (percentile, value) of ascending values for each wanted percentile with ten samples beyond it."""
    count = len(ordered)
    # Rounded: 0.1 % of 10,000 samples is ten, though not in binary fractions.
    return tuple(
        (percent, _value(ordered, percent))
        for percent in wanted
        if round(count * min(percent, 100 - percent) / 100, 6) >= _LEAST_BEYOND
    )


def _value(ordered: Sequence[float], percent: float) -> float:
    """Return the value at a percentile, linear between neighbours (Hyndman and Fan, 1996, definition 7)."""
    position = (len(ordered) - 1) * percent / 100
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (position - lower)

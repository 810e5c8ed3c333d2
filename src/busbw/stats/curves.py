"""Latency and bandwidth of a sweep: T = a + S/B, and busbw = B / (1 + (H/S)^p), with intervals of what is fitted."""

import math
from collections.abc import Sequence

from busbw.model.curve import Estimate, Hill, Line
from busbw.stats.robust_fit import Fit, fit

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
) -> Line | None:
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
    return Line(
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


def _flat(points: Sequence[tuple[int, float]], algorithm: str | None, protocol: str | None) -> Line | None:
    """Return a latency without a bandwidth, where the time does not grow with the size."""
    if points[-1][1] > points[0][1] / (1 - _SHOWN):
        return None
    start = (math.log(points[0][1]),)
    fitted = fit(lambda _size, values: (values[0], (1.0,)), [(float(size), time_s) for size, time_s in points], start)
    latency = _estimate(fitted, (1.0,)) if fitted is not None else None
    if fitted is None or latency is None:
        return None
    return Line(
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


def _fixed_share(fitted: Fit, size_bytes: int) -> float:
    """Return the part of the time at a size that does not depend on it."""
    return _line(float(size_bytes), fitted.parameters)[1][0]


def _estimate(fitted: Fit, weights: Sequence[float]) -> Estimate | None:
    centre, low, high = fitted.interval(weights, CONFIDENCE)
    if high - low > 2 * math.log(_WIDEST):
        return None
    return Estimate(value=math.exp(centre), low=math.exp(low), high=math.exp(high), confidence=CONFIDENCE)


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

"""What the machine could do at best: a measured rate, and the least that an exchange must move at it."""

from itertools import pairwise
from math import log

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.judge.path import path_of
from busbw.judge.traffic import TRAFFIC, Traffic, working_set_bytes
from busbw.model.finding import Ceiling
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan
from busbw.model.run import Rates

# Below this an exchange is start-up and synchronisation, and a rate says nothing: copying 64 KiB at 10 GB/s takes
# 6.6 us, the order of one collective over a few ranks. It is also the smallest size at which copies are measured.
SMALLEST_BYTES = 64 * 2**10


def ceilings(plan: Plan, rates: Rates, measurements: tuple[Measurement, ...]) -> tuple[Ceiling, ...]:
    """Return a ceiling for each measurement that has one, in their order."""
    found = (ceiling_of(plan, rates, measurement) for measurement in measurements)
    return tuple(ceiling for ceiling in found if ceiling is not None)


def ceiling_of(plan: Plan, rates: Rates, measurement: Measurement) -> Ceiling | None:
    """Return the ceiling of one measurement; None where a rate says nothing or none was measured."""
    traffic = TRAFFIC.get(measurement.collective)
    if traffic is None or measurement.size_bytes < SMALLEST_BYTES or measurement.ranks < 2:
        return None
    path = path_of(plan, measurement)
    if path == "memory":
        return _memory_ceiling(traffic, rates, measurement)
    return _loopback_ceiling(traffic, rates, measurement) if path == "loopback" else None


def _memory_ceiling(traffic: Traffic, rates: Rates, measurement: Measurement) -> Ceiling | None:
    size_bytes = working_set_bytes(traffic, measurement)
    rate_Bps = copy_rate_Bps(rates, size_bytes)
    if rate_Bps is None:
        return None
    moves = traffic.copied(measurement.ranks)
    return Ceiling(
        point=measurement.point,
        basis="memory",
        rate_Bps=rate_Bps,
        moves=moves,
        formula=f"T >= {moves:.4g} S / B: {traffic.copied_words} (n = {measurement.ranks})",
        busbw_Bps=COLLECTIVES[measurement.collective].factor(measurement.ranks) * rate_Bps / moves,
        source=f"B: all ranks copying at once {format_size(round(size_bytes))} that a neighbour had just written, "
        "with as much memory per rank as this exchange holds",
    )


def _loopback_ceiling(traffic: Traffic, rates: Rates, measurement: Measurement) -> Ceiling | None:
    rate_Bps = stream_rate_Bps(rates, traffic.stream)
    if rate_Bps is None:
        return None
    moves = COLLECTIVES[measurement.collective].crossing(measurement.ranks)
    return Ceiling(
        point=measurement.point,
        basis="loopback",
        rate_Bps=rate_Bps,
        moves=moves,
        formula=f"T >= {moves:.4g} S / R: {traffic.crossing_words} (n = {measurement.ranks})",
        busbw_Bps=COLLECTIVES[measurement.collective].factor(measurement.ranks) * rate_Bps / moves,
        source=f"R: TCP over the loopback interface, {traffic.stream} pattern, all ranks together",
    )


# A rate below one byte a second is no measurement.
_LEAST_Bps = 1.0


def stream_rate_Bps(rates: Rates, pattern: str) -> float | None:
    """Return the loopback rate of `pattern`; None when it was not measured."""
    found = [rate.rate_Bps for rate in rates.streams if rate.pattern == pattern and rate.rate_Bps >= _LEAST_Bps]
    return max(found, default=None)


def copy_rate_Bps(rates: Rates, size_bytes: float) -> float | None:
    """Return the copy rate at `size_bytes`: linear in log(size) between measured sizes, held beyond the first and last.

    Of several kernels the fastest counts: a ceiling is what could be done. None when nothing was measured.
    """
    curve = _fastest(rates)
    if not curve:
        return None
    if size_bytes <= curve[0][0]:
        return curve[0][1]
    for (left, left_Bps), (right, right_Bps) in pairwise(curve):
        if size_bytes <= right:
            share = log(size_bytes / left) / log(right / left)
            return left_Bps + share * (right_Bps - left_Bps)
    return curve[-1][1]


def slowest_copy_rate_Bps(rates: Rates, size_bytes: float) -> float | None:
    """Return the lowest copy rate measured at `size_bytes` or more, of any kernel, or at the largest size.

    An MPI's own segments and temporary buffers enlarge the working set, so an expectation must not rest on a cache that
    only just holds the buffers.
    """
    measured = [rate for rate in rates.copies if rate.size_bytes > 0 and rate.rate_Bps >= _LEAST_Bps]
    if not measured:
        return None
    from_bytes = min(size_bytes, max(rate.size_bytes for rate in measured))
    return min(rate.rate_Bps for rate in measured if rate.size_bytes >= from_bytes)


def _fastest(rates: Rates) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for rate in rates.copies:
        if rate.size_bytes > 0 and rate.rate_Bps >= _LEAST_Bps:
            best[rate.size_bytes] = max(best.get(rate.size_bytes, 0.0), rate.rate_Bps)
    return sorted(best.items())

"""What was reached, in words: the best bus bandwidth of each collective, and the shortest time."""

from busbw.base.units import format_rate, format_size, format_time
from busbw.judge.expectation import LARGE_BYTES
from busbw.judge.phrases import percent
from busbw.judge.usable import is_solid
from busbw.model.finding import Ceiling
from busbw.model.measurement import Measurement

# A time up to this size is called latency.
SMALL_BYTES = 4096
# A sentence names no more collectives than this.
_MOST_NAMED = 6

_BASIS = {"memory": "copying memory once allows", "loopback": "TCP over the loopback interface carries"}


def best_words(measurements: tuple[Measurement, ...], ceilings: tuple[Ceiling, ...]) -> str:
    """Return the best point of each collective and its share of the ceiling, where points have one.

    Without ceilings the best large points alone; "" when there are none of either.
    """
    by_point = {ceiling.point: ceiling for ceiling in ceilings}
    best: dict[tuple[str, bool], Measurement] = {}
    for measurement in measurements:
        if not is_solid(measurement) or measurement.point not in by_point:
            continue
        key = (measurement.collective, measurement.in_place)
        if key not in best or measurement.busbw_Bps > best[key].busbw_Bps:
            best[key] = measurement
    found = [(measurement, by_point[measurement.point]) for measurement in best.values()]
    if not found:
        return _bare(measurements)
    return _one(*found[0]) if len(found) == 1 else _several(found)


def _bare(measurements: tuple[Measurement, ...]) -> str:
    """Return the best large point of each collective, held against nothing."""
    best: dict[str, Measurement] = {}
    for measurement in measurements:
        if is_solid(measurement) and measurement.size_bytes >= LARGE_BYTES:
            name = _name(measurement)
            if name not in best or measurement.busbw_Bps > best[name].busbw_Bps:
                best[name] = measurement
    return ", ".join(
        f"{name} {format_rate(point.busbw_Bps)} bus bandwidth at {format_size(point.size_bytes)}"
        for name, point in list(best.items())[:_MOST_NAMED]
    )


def _one(measurement: Measurement, ceiling: Ceiling) -> str:
    share = measurement.busbw_Bps / ceiling.busbw_Bps
    cached = " (the working set stays in cache)" if share > 1 and ceiling.basis == "memory" else ""
    return (
        f"{_name(measurement)} reaches {format_rate(measurement.busbw_Bps)} bus bandwidth at "
        f"{format_size(measurement.size_bytes)} over {measurement.ranks} ranks, {percent(share)} of the "
        f"{format_rate(ceiling.busbw_Bps)} that {_BASIS[ceiling.basis]}{cached}"
    )


def _several(found: list[tuple[Measurement, Ceiling]]) -> str:
    ranks = found[0][0].ranks
    bases = " or ".join(dict.fromkeys(_BASIS[ceiling.basis] for _, ceiling in found))
    each = ", ".join(
        f"{_name(measurement)} {format_rate(measurement.busbw_Bps)} at {format_size(measurement.size_bytes)} "
        f"({percent(measurement.busbw_Bps / ceiling.busbw_Bps)})"
        for measurement, ceiling in found
    )
    return f"best bus bandwidth over {ranks} ranks, and its share of what {bases}: {each}"


def latency_words(measurements: tuple[Measurement, ...]) -> str:
    """Return the time of the smallest point; "" when none is small."""
    small = [point for point in measurements if is_solid(point) and point.size_bytes <= SMALL_BYTES]
    if not small:
        return ""
    # A ping-pong is what latency means to most; else the exchange that was measured first.
    first = min(small, key=lambda point: (point.collective != "latency", point.size_bytes, point.point))
    several = len({point.collective for point in measurements}) > 1
    of = f" of {first.collective}" if several and first.collective != "latency" else ""
    return f"latency{of} {format_time(first.median_s)} at {format_size(first.size_bytes)}"


def _name(measurement: Measurement) -> str:
    return measurement.collective + (" in place" if measurement.in_place else "")

"""One side held against the first, point by point, band by band."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from busbw.base.units import format_size
from busbw.judge.comparing.estimate import described, estimates
from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint
from busbw.model.comparison import Band, ComparedBand, ComparedPoint, Design, Side, SpeedEstimate, Versus
from busbw.stats.median import median

# Where the write-ups change from latency to bandwidth, and where protocols and algorithms of large messages take over.
SMALL_BELOW_BYTES = 64 * 2**10
LARGE_FROM_BYTES = 8 * 2**20


def band_of(size_bytes: int) -> Band:
    """Return the band that a size is in: small below 64 KiB, large from 8 MiB on."""
    if size_bytes < SMALL_BELOW_BYTES:
        return "small"
    return "medium" if size_bytes < LARGE_FROM_BYTES else "large"


@dataclass(frozen=True, slots=True)
class _Held:
    """One point on both sides: of each, the launches that count by their blocks."""

    first: dict[int, TimedPoint]
    other: dict[int, TimedPoint]

    @property
    def log_ratios(self) -> dict[int, float]:
        """Of each block, which has a launch of both."""
        return {block: math.log(self.first[block].time_s) - math.log(self.other[block].time_s) for block in self.first}


_Points = dict[PointKey, _Held]


def versus(
    sides: Sequence[Side], launches: Sequence[Launch], design: Design, *, geometric_mean: bool
) -> tuple[Versus, ...]:
    """Return every other side held against the first. P-values are adjusted over all points, and over all bands."""
    held = [_held(launches, other, design) for other in range(1, len(sides))]
    keys = [sorted(each, key=_order) for each in held]
    bands = [_bands(own) for own in keys]
    of_points = iter(_estimates([[each[key]] for each, own in zip(held, keys, strict=True) for key in own], design))
    of_bands = iter(
        _estimates([[each[key] for key in band] for each, own in zip(held, bands, strict=True) for band in own], design)
    )
    return tuple(
        Versus(
            other=number,
            points=tuple(_point(key, each[key], next(of_points)) for key in own),
            bands=tuple(_band(each, band, next(of_bands)) for band in grouped),
            geometric_mean=_estimates([[*each.values()]], design)[0] if geometric_mean and own else None,
            unmatched=_unmatched(launches, number, sides),
        )
        for number, (each, own, grouped) in enumerate(zip(held, keys, bands, strict=True), start=1)
    )


def _held(launches: Sequence[Launch], other: int, design: Design) -> _Points:
    """Return the points that the first and another side have in the same blocks; not interleaved, that they have."""
    by_side: dict[int, dict[PointKey, dict[int, TimedPoint]]] = {0: {}, other: {}}
    for launch in launches:
        for point in launch.points if launch.side in by_side else ():
            if not point.wrong:
                by_side[launch.side].setdefault(point.key, {})[launch.block] = point
    found: _Points = {}
    for key in by_side[0].keys() & by_side[other].keys():
        firsts, others = by_side[0][key], by_side[other][key]
        if design == "descriptive":
            found[key] = _Held(firsts, others)
        elif both := sorted(firsts.keys() & others.keys()):
            found[key] = _Held({block: firsts[block] for block in both}, {block: others[block] for block in both})
    return found


def _estimates(series: Sequence[Sequence[_Held]], design: Design) -> tuple[SpeedEstimate, ...]:
    """Return an estimate for each of several points, or groups of points that are taken together."""
    if design == "descriptive":
        return tuple(_measured(points) for points in series)
    return estimates([_mean_log_ratios(points) for points in series], design)


def _mean_log_ratios(points: Sequence[_Held]) -> dict[int, float]:
    """Return the mean logarithm over several points of each block that has them all."""
    logs = [point.log_ratios for point in points]
    # Where no block has them all, each gives what it has.
    blocks = set.intersection(*map(set, logs)) or set.union(*map(set, logs))
    return {block: _mean([each[block] for each in logs if block in each]) for block in blocks}


def _measured(points: Sequence[_Held]) -> SpeedEstimate:
    """Return what was measured: of each point the ratio of the medians, and the spread of launches with all points."""
    ratios = [_log_centre(each.first.values()) - _log_centre(each.other.values()) for each in points]
    firsts = _mean_log_times([point.first for point in points])
    others = _mean_log_times([point.other for point in points])
    return described(_mean(ratios), [one - another for one in firsts for another in others])


def _mean_log_times(points: Sequence[Mapping[int, TimedPoint]]) -> list[float]:
    """Return the mean logarithm of the times over several points of each launch that has them all."""
    whole = set.intersection(*map(set, points))
    return [_mean([math.log(point[launch].time_s) for point in points]) for launch in sorted(whole)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _order(key: PointKey) -> tuple[object, ...]:
    return (
        key.collective, key.in_place, key.dtype, key.op, key.root, key.pair or (-1, -1), key.group or 0, key.size_bytes,
    )  # fmt: skip


def _bands(keys: list[PointKey]) -> list[list[PointKey]]:
    """Return the points of each band of each collective."""
    return [
        list(group)
        for _name, group in groupby(
            sorted(keys, key=lambda key: (key.collective, key.in_place, key.size_bytes)),
            key=lambda key: (key.collective, key.in_place, band_of(key.size_bytes)),
        )
    ]


def _centre(points: Iterable[TimedPoint], what: Callable[[TimedPoint], float]) -> float:
    return median(sorted(map(what, points)))


def _log_centre(points: Iterable[TimedPoint]) -> float:
    return math.log(_centre(points, _time_s))


def _time_s(point: TimedPoint) -> float:
    return point.time_s


def _rate(points: Iterable[TimedPoint]) -> float | None:
    """Return the middle of the rates; None where one is not known."""
    rates = [point.busbw_Bps for point in points]
    known = sorted(rate for rate in rates if rate is not None)
    return median(known) if len(known) == len(rates) else None


def _point(key: PointKey, held: _Held, estimate: SpeedEstimate) -> ComparedPoint:
    firsts, others = held.first.values(), held.other.values()
    return ComparedPoint(
        collective=key.collective,
        size_bytes=key.size_bytes,
        dtype=key.dtype,
        op=key.op,
        root=key.root,
        in_place=key.in_place,
        pair=key.pair,
        group=key.group,
        ranks=next(iter(firsts)).ranks,
        band=band_of(key.size_bytes),
        first_s=_centre(firsts, _time_s),
        other_s=_centre(others, _time_s),
        first_busbw_Bps=_rate(firsts),
        other_busbw_Bps=_rate(others),
        first_choices=next((point.choices for point in firsts if point.choices), ()),
        other_choices=next((point.choices for point in others if point.choices), ()),
        estimate=estimate,
    )


def _band(points: _Points, keys: list[PointKey], estimate: SpeedEstimate) -> ComparedBand:
    band = band_of(keys[0].size_bytes)
    rates = [[_rate(points[key].first.values()) for key in keys], [_rate(points[key].other.values()) for key in keys]]
    known = [[rate for rate in side if rate is not None] for side in rates]
    by_time = band == "small" or any(len(side) < len(keys) for side in known)
    firsts = [_centre(points[key].first.values(), _time_s) for key in keys] if by_time else known[0]
    others = [_centre(points[key].other.values(), _time_s) for key in keys] if by_time else known[1]
    return ComparedBand(
        collective=keys[0].collective,
        in_place=keys[0].in_place,
        band=band,
        measure="latency" if by_time else "bandwidth",
        sizes_bytes=tuple(sorted({key.size_bytes for key in keys})),
        first=_geometric_mean(firsts),
        other=_geometric_mean(others),
        estimate=estimate,
    )


def _geometric_mean(values: list[float]) -> float:
    if min(values) <= 0:
        return 0.0
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _unmatched(launches: Sequence[Launch], other: int, sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the points that one of two sides alone has."""
    of_side: dict[int, set[PointKey]] = {0: set(), other: set()}
    for launch in launches:
        if launch.side in of_side:
            of_side[launch.side].update(point.key for point in launch.points)
    return tuple(
        f"{point_words(key)} (only {sides[side].letter})"
        for side, rest in ((0, of_side[0] - of_side[other]), (other, of_side[other] - of_side[0]))
        for key in sorted(rest, key=_order)
    )


def point_words(key: PointKey) -> str:
    """Return how a point is called: `all_reduce in place 4 MiB`."""
    pair = f" {key.pair[0]}-{key.pair[1]}" if key.pair is not None else ""
    return f"{key.collective}{pair}{' in place' if key.in_place else ''} {format_size(key.size_bytes)}"

"""One side held against the first, point by point, band by band."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from busbw.judge.comparing.estimate import estimates
from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint
from busbw.model.comparison import Band, ComparedBand, ComparedPoint, Estimate, Side, Versus
from busbw.stats.median import median
from busbw.units import format_size

# Where the write-ups change from latency to bandwidth, and where protocols and algorithms of large messages take over.
SMALL_BELOW_BYTES = 64 * 2**10
LARGE_FROM_BYTES = 8 * 2**20


def band_of(size_bytes: int) -> Band:
    """Return the band that a size is in: small below 64 KiB, large from 8 MiB on."""
    if size_bytes < SMALL_BELOW_BYTES:
        return "small"
    return "medium" if size_bytes < LARGE_FROM_BYTES else "large"


@dataclass(frozen=True, slots=True)
class _Pair:
    """One point of one block on both sides."""

    first: TimedPoint
    other: TimedPoint

    @property
    def log_ratio(self) -> float:
        return math.log(self.first.time_s) - math.log(self.other.time_s)


_Pairs = dict[PointKey, dict[int, _Pair]]


def versus(sides: Sequence[Side], launches: Sequence[Launch], *, geometric_mean: bool) -> tuple[Versus, ...]:
    """Return every other side held against the first. P-values are adjusted over all points, and over all bands."""
    pairs = [_pairs(launches, other) for other in range(1, len(sides))]
    keys = [sorted(each, key=_order) for each in pairs]
    of_points = iter(
        estimates([_logs(each[key].values()) for each, own in zip(pairs, keys, strict=True) for key in own])
    )
    bands = [_bands(own) for own in keys]
    of_bands = iter(estimates([_mean_logs(each, band) for each, own in zip(pairs, bands, strict=True) for band in own]))
    return tuple(
        Versus(
            other=number,
            points=tuple(_point(key, each[key].values(), next(of_points)) for key in own),
            bands=tuple(_band(each, band, next(of_bands)) for band in grouped),
            geometric_mean=estimates([_mean_logs(each, own)])[0] if geometric_mean and own else None,
            unmatched=_unmatched(launches, number, sides),
        )
        for number, (each, own, grouped) in enumerate(zip(pairs, keys, bands, strict=True), start=1)
    )


def _pairs(launches: Sequence[Launch], other: int) -> _Pairs:
    """Return the points that the first and another side have in the same blocks, by point and block."""
    by_side: dict[int, dict[int, dict[PointKey, TimedPoint]]] = {0: {}, other: {}}
    for launch in launches:
        if launch.side in by_side:
            by_side[launch.side][launch.block] = {point.key: point for point in launch.points if not point.wrong}
    found: _Pairs = {}
    for block, firsts in sorted(by_side[0].items()):
        others = by_side[other].get(block, {})
        for key in firsts.keys() & others.keys():
            found.setdefault(key, {})[block] = _Pair(firsts[key], others[key])
    return found


def _order(key: PointKey) -> tuple[object, ...]:
    return (
        key.collective, key.in_place, key.dtype, key.op, key.root, key.pair or (-1, -1), key.group or 0, key.size_bytes,
    )  # fmt: skip


def _logs(pairs: Iterable[_Pair]) -> list[float]:
    return [pair.log_ratio for pair in pairs]


def _bands(keys: list[PointKey]) -> list[list[PointKey]]:
    """Return the points of each band of each collective."""
    return [
        list(group)
        for _name, group in groupby(
            sorted(keys, key=lambda key: (key.collective, key.in_place, key.size_bytes)),
            key=lambda key: (key.collective, key.in_place, band_of(key.size_bytes)),
        )
    ]


def _mean_logs(pairs: _Pairs, keys: list[PointKey]) -> list[float]:
    """Return the mean logarithm over several points of each block that has them all."""
    blocks = set.intersection(*(set(pairs[key]) for key in keys))
    if not blocks:
        # Nobody has them all: each block gives what it has.
        blocks = set.union(*(set(pairs[key]) for key in keys))
    return [
        math.fsum(logs) / len(logs)
        for block in sorted(blocks)
        if (logs := [pairs[key][block].log_ratio for key in keys if block in pairs[key]])
    ]


def _centre(pairs: Iterable[_Pair], what: Callable[[_Pair], float]) -> float:
    return median(sorted(what(pair) for pair in pairs))


def _rate(points: Iterable[TimedPoint]) -> float | None:
    """Return the middle of the rates; None where one is not known."""
    rates = [point.busbw_Bps for point in points]
    known = sorted(rate for rate in rates if rate is not None)
    return median(known) if len(known) == len(rates) else None


def _point(key: PointKey, pairs: Iterable[_Pair], estimate: Estimate) -> ComparedPoint:
    held = list(pairs)
    return ComparedPoint(
        collective=key.collective,
        size_bytes=key.size_bytes,
        dtype=key.dtype,
        op=key.op,
        root=key.root,
        in_place=key.in_place,
        pair=key.pair,
        group=key.group,
        ranks=held[0].first.ranks,
        band=band_of(key.size_bytes),
        first_s=_centre(held, lambda pair: pair.first.time_s),
        other_s=_centre(held, lambda pair: pair.other.time_s),
        first_busbw_Bps=_rate(pair.first for pair in held),
        other_busbw_Bps=_rate(pair.other for pair in held),
        first_choices=next((pair.first.choices for pair in held if pair.first.choices), ()),
        other_choices=next((pair.other.choices for pair in held if pair.other.choices), ()),
        estimate=estimate,
    )


def _band(pairs: _Pairs, keys: list[PointKey], estimate: Estimate) -> ComparedBand:
    band = band_of(keys[0].size_bytes)
    rates = [[_rate(pair.first for pair in pairs[key].values()) for key in keys]]
    rates += [[_rate(pair.other for pair in pairs[key].values()) for key in keys]]
    known = [[rate for rate in side if rate is not None] for side in rates]
    by_time = band == "small" or any(len(side) < len(keys) for side in known)
    firsts = [_centre(pairs[key].values(), _first_s) for key in keys] if by_time else known[0]
    others = [_centre(pairs[key].values(), _other_s) for key in keys] if by_time else known[1]
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


def _first_s(pair: _Pair) -> float:
    return pair.first.time_s


def _other_s(pair: _Pair) -> float:
    return pair.other.time_s


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

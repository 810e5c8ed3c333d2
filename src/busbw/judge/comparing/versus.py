"""One side held against the first, point by point, band by band."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from busbw.base.units import format_size
from busbw.judge.comparing.bands import summaries
from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint
from busbw.model.comparison import Band, Claim, ComparedBand, ComparedPoint, Design, Side, SpeedEstimate, Versus
from busbw.model.record import NcclChoice
from busbw.stats.distributions import median, median_interval
from busbw.stats.signed_rank import holm, least_p_value, p_value, shown_from

# Rate of false claims over all points of a table together.
FALSE_CLAIMS = 0.05
# What a reader would change something for.
LEAST_DIFFERENCE = 0.01
CONFIDENCE = 0.95
# Of the ratios of a launch of each side, where these were not interleaved, the share that is printed as their spread.
SPREAD = 0.95
_MARGIN = math.log1p(LEAST_DIFFERENCE)
# Where exp() ends.
_LARGEST = 700.0


def estimates(series: Sequence[Mapping[int, float]], design: Design) -> tuple[SpeedEstimate, ...]:
    """Return what each series shows, with their p-values adjusted for all of them.

    A series holds the logarithm of one point's ratio by the number of the block: at least one
    and at most stats.signed_rank.MOST_PAIRS. The design is one that was interleaved.
    """
    level = FALSE_CLAIMS / max(len(series), 1)
    independent = [units(blocks, design) for blocks in series]
    return tuple(
        _estimate(blocks, values, own, level)
        for blocks, values, own in zip(series, independent, shown(independent), strict=True)
    )


def units(blocks: Mapping[int, float], design: Design) -> list[float]:
    """Return the values that were drawn independently: of each block, or of each mirrored pair the mean.

    A block whose mirror is missing stands for its pair: its own order was as random.
    """
    if design != "mirrored_pairs":
        return [blocks[block] for block in sorted(blocks)]
    pairs: dict[int, list[float]] = {}
    for block in sorted(blocks):
        pairs.setdefault(block // 2, []).append(blocks[block])
    return [math.fsum(values) / len(values) for values in pairs.values()]


def least_blocks(points: int, design: Design = "random_order") -> int:
    """Return how many blocks it takes before anything can be claimed of that many points together."""
    needed = 1
    while least_p_value(needed) > FALSE_CLAIMS / max(points, 1) or median_interval([0.0] * needed, CONFIDENCE) is None:
        needed += 1
    return 2 * needed if design == "mirrored_pairs" else needed


@dataclass(frozen=True, slots=True)
class Shown:
    """What is claimed of one series, by which interval of its median and which adjusted p-value."""

    claim: Claim
    interval: tuple[float, float] | None
    p_value: float


def shown(series: Sequence[Sequence[float]]) -> tuple[Shown, ...]:
    """Return what is claimed of each series of independent values.

    In a share FALSE_CLAIMS of such tables at most, any "faster" or "slower" is wrong.
    """
    adjusted = holm([p_value(values, _MARGIN) for values in series])
    level = FALSE_CLAIMS / max(len(series), 1)
    return tuple(_shown(values, p, level) for values, p in zip(series, adjusted, strict=True))


def _shown(values: Sequence[float], adjusted: float, level: float) -> Shown:
    interval = median_interval(sorted(values), CONFIDENCE)
    if interval is None or least_p_value(len(values)) > level:
        return Shown("cannot_tell", interval, adjusted)
    return Shown(_claim(*interval, adjusted), interval, adjusted)


def _claim(low: float, high: float, adjusted: float) -> Claim:
    """Return what may be said. A difference needs the test and the interval: a table must not contradict itself."""
    if adjusted <= FALSE_CLAIMS and low > _MARGIN:
        return "faster"
    if adjusted <= FALSE_CLAIMS and high < -_MARGIN:
        return "slower"
    return "same" if low > -_MARGIN and high < _MARGIN else "none"


def _estimate(blocks: Mapping[int, float], values: Sequence[float], shown: Shown, level: float) -> SpeedEstimate:
    centre = median(sorted(values))
    detectable = shown_from(values, _MARGIN, level)
    low, high = shown.interval if shown.interval is not None else (None, None)
    if detectable is not None and low is not None and high is not None:
        # A claim needs the interval beyond the margin, too.
        detectable = max(detectable, _MARGIN + centre - low, _MARGIN + high - centre)
    return SpeedEstimate(
        ratio=_ratio(centre),
        low=_ratio(low) if low is not None else None,
        high=_ratio(high) if high is not None else None,
        confidence=CONFIDENCE,
        blocks=tuple(_ratio(blocks[block]) for block in sorted(blocks)),
        p_value=shown.p_value if detectable is not None else None,
        claim=shown.claim,
        detectable=_share(detectable),
    )


def described(ratio: float, ratios: Sequence[float]) -> SpeedEstimate:
    """Return how two sides that were not interleaved differ as measured: a description, and no claim.

    The logarithms of their ratio, and of the ratio of every launch of one and every launch of the other, if any.
    """
    ordered = sorted(ratios)
    left_out = math.floor(len(ordered) * (1 - SPREAD) / 2)
    spread = (ordered[left_out], ordered[-1 - left_out]) if len(ordered) > 1 else None
    return SpeedEstimate(
        ratio=_ratio(ratio),
        low=_ratio(spread[0]) if spread is not None else None,
        high=_ratio(spread[1]) if spread is not None else None,
        confidence=None,
        blocks=(),
        claim="cannot_tell",
    )


def _share(difference: float | None) -> float | None:
    """Return a difference of logarithms as a share; None for one that no machine has."""
    return math.expm1(difference) if difference is not None and difference < _LARGEST else None


def _ratio(logarithm: float) -> float:
    return math.exp(max(-_LARGEST, min(logarithm, _LARGEST)))


# Where the write-ups change from latency to bandwidth, and where protocols and algorithms of large messages take over.
SMALL_BELOW_BYTES = 64 * 2**10
LARGE_FROM_BYTES = 8 * 2**20


_SIMPLE = "SIMPLE"


def band_of(size_bytes: int, choices: Sequence[NcclChoice] = ()) -> Band:
    """Return the band that a size is in: small below 64 KiB; above it large from where NCCL takes the Simple protocol.

    Where it does not say which one it took, or took several, large from 8 MiB on.
    """
    if size_bytes < SMALL_BELOW_BYTES:
        return "small"
    protocol = protocol_of(choices)
    if protocol is None:
        return "medium" if size_bytes < LARGE_FROM_BYTES else "large"
    return "large" if protocol == _SIMPLE else "medium"


def protocol_of(choices: Sequence[NcclChoice]) -> str | None:
    """Return the protocol of all calls, in capitals; None where there is none, or several."""
    found = {choice.protocol.upper() if choice.protocol is not None else None for choice in choices}
    return found.pop() if len(found) == 1 else None


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
    bands = [_bands(own, each) for own, each in zip(keys, held, strict=True)]
    of_points = iter(_estimates([[each[key]] for each, own in zip(held, keys, strict=True) for key in own], design))
    of_bands = iter(
        _estimates([[each[key] for key in band] for each, own in zip(held, bands, strict=True) for band in own], design)
    )
    return tuple(
        Versus(
            other=number,
            points=tuple(_point(key, each[key], next(of_points)) for key in own),
            bands=(made := tuple(_band(each, band, next(of_bands)) for band in grouped)),
            summaries=summaries(made, design),
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


_BANDS: tuple[Band, ...] = ("small", "medium", "large")


def _bands(keys: list[PointKey], held: _Points) -> list[list[PointKey]]:
    """Return the points of each band of each collective."""

    def place(key: PointKey) -> tuple[str, bool, int]:
        return key.collective, key.in_place, _BANDS.index(_band_of(key, held))

    return [list(group) for _place, group in groupby(sorted(keys, key=lambda key: (place(key), key.size_bytes)), place)]


def _band_of(key: PointKey, held: _Points) -> Band:
    return band_of(key.size_bytes, _choices(held[key].first.values()))


def _choices(points: Iterable[TimedPoint]) -> tuple[NcclChoice, ...]:
    """Return what NCCL says it used, in the first launch that tells."""
    return next((point.choices for point in points if point.choices), ())


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
        band=band_of(key.size_bytes, _choices(firsts)),
        first_s=_centre(firsts, _time_s),
        other_s=_centre(others, _time_s),
        first_busbw_Bps=_rate(firsts),
        other_busbw_Bps=_rate(others),
        first_choices=_choices(firsts),
        other_choices=_choices(others),
        estimate=estimate,
    )


def _band(points: _Points, keys: list[PointKey], estimate: SpeedEstimate) -> ComparedBand:
    band = _band_of(keys[0], points)
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
        by="protocol" if _told_by_protocol(points, keys) else "size",
        first_choices=_every(points[key].first for key in keys),
        other_choices=_every(points[key].other for key in keys),
        estimate=estimate,
    )


def _told_by_protocol(points: _Points, keys: Sequence[PointKey]) -> bool:
    """Whether NCCL's protocol, rather than size, says which band these are in."""
    return all(
        key.size_bytes >= SMALL_BELOW_BYTES and protocol_of(_choices(points[key].first.values())) is not None
        for key in keys
    )


def _every(sides: Iterable[Mapping[int, TimedPoint]]) -> tuple[NcclChoice, ...]:
    return tuple(dict.fromkeys(choice for side in sides for choice in _choices(side.values())))


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

"""What a launch has to say to a comparison: a time for each point."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeGuard

import msgspec

from busbw.base.value import Value
from busbw.model.imported import Reading
from busbw.model.measurement import Measurement
from busbw.model.record import NcclChoice


class PointKey(Value, kw_only=True, frozen=True):
    """What two launches must have in common for their times to be of the same thing."""

    collective: str
    size_bytes: int
    dtype: str
    op: str
    root: int
    in_place: bool
    pair: tuple[int, int] | None = None
    group: int | None = None


class TimedPoint(Value, kw_only=True, frozen=True):
    """The time of one point in one launch, and the interval of it within the launch; seconds and bytes per second."""

    key: PointKey
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    # None: not known.
    busbw_Bps: float | None
    ranks: int
    wrong: bool
    # What NCCL says it used; () where it does not say.
    choices: tuple[NcclChoice, ...] = ()


class Launch(Value, kw_only=True, frozen=True):
    """One start of one side. Launches of the same block were started one after the other."""

    # Place in the sides of the comparison.
    side: int
    block: int
    name: str
    points: tuple[TimedPoint, ...]
    # How it ended, where that was not as it should.
    ended: Literal["complete", "time", "stopped", "failed"] = "complete"
    cause: str | None = None


def measured_points(measurements: Iterable[Measurement]) -> tuple[TimedPoint, ...]:
    """Return the points of a run; those without a time are left out."""
    return tuple(
        TimedPoint(
            key=PointKey(
                collective=each.collective,
                size_bytes=each.size_bytes,
                dtype=each.dtype,
                op=each.op,
                root=each.root,
                in_place=each.in_place,
                pair=each.pair,
                group=each.group,
            ),
            time_s=each.median_s,
            low_s=each.low_s,
            high_s=each.high_s,
            busbw_Bps=each.busbw_Bps,
            ranks=each.ranks,
            wrong=each.wrong is not None,
            choices=each.nccl.choices if each.nccl is not None else (),
        )
        for each in measurements
        if _is_time(each.median_s) or each.wrong is not None
    )


def over_most_ranks(readings: Sequence[Reading]) -> tuple[tuple[Reading, ...], int | None]:
    """Return each exchange's rows over its most ranks, and the most of all; all rows, and None, where none has several.

    IMB measures over 2, 4, 8 ... ranks by default: those are no launches of the same.
    """
    ranks: dict[PointKey, int | None] = {}
    sized = [(each, each.size_bytes) for each in readings if each.size_bytes is not None]
    if all(ranks.setdefault(_key(each, size_bytes), each.ranks) == each.ranks for each, size_bytes in sized):
        return tuple(readings), None
    most: dict[str, int] = {}
    for each in readings:
        most[each.what] = max(most.get(each.what, 0), each.ranks or 0)
    return tuple(each for each in readings if (each.ranks or 0) == most[each.what]), max(most.values())


def imported_points(readings: Iterable[Reading]) -> tuple[TimedPoint, ...]:
    """Return the points of a table, those that it repeats with the median of their times.

    Rows without a size, or with neither a time nor a bandwidth between two, are left out; so are those of one pair of
    many, which are a matrix.
    """
    rows: dict[PointKey, list[TimedPoint]] = {}
    for each in readings:
        if each.size_bytes is None or each.source is not None:
            continue
        rate_Bps = each.busbw_Bps if each.busbw_Bps is not None else each.bandwidth_Bps
        known_Bps = rate_Bps if _is_time(rate_Bps) else None
        # Of a bandwidth test: what a message takes at it.
        time_s = each.time_s if each.time_s is not None or known_Bps is None else each.size_bytes / known_Bps
        if not _is_time(time_s):
            continue
        key = _key(each, each.size_bytes)
        rows.setdefault(key, []).append(
            TimedPoint(key=key, time_s=time_s, busbw_Bps=known_Bps, ranks=each.ranks or 0, wrong=bool(each.wrong))
        )
    return tuple(_middle(row) for row in rows.values())


def _key(reading: Reading, size_bytes: int) -> PointKey:
    return PointKey(
        collective=reading.what,
        size_bytes=size_bytes,
        dtype=reading.dtype or "",
        op=reading.op or "",
        root=reading.root if reading.root is not None else -1,
        in_place=bool(reading.in_place),
    )


def _is_time(value: float | None) -> TypeGuard[float]:
    """Whether a value is a time or rate that a machine can have."""
    return value is not None and math.isfinite(value) and value > 0


def _middle(row: list[TimedPoint]) -> TimedPoint:
    """Return one point for several of the same: the lower one of the two in the middle, wrong if any is."""
    ordered = sorted(row, key=lambda point: point.time_s)
    return msgspec.structs.replace(ordered[(len(ordered) - 1) // 2], wrong=any(point.wrong for point in row))

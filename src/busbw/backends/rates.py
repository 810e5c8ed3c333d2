"""What the ranks measured of the machine itself: their copies and streams, added up."""

from collections.abc import Mapping, Sequence
from typing import Literal

from busbw.model.record import Copied, Kernel, Streamed
from busbw.model.run import CopyRate, Rates, StreamRate
from busbw.stats.median import median

Pattern = Literal["ring", "pairs"]


def rates_of(copies: Mapping[int, Sequence[Copied]], streams: Mapping[int, Sequence[Streamed]]) -> Rates:
    """Return the rates of all ranks together, from each rank's records; only what every rank measured counts.

    Ranks worked at the same time, each for the same while, so their own rates add up.
    """
    return Rates(copies=_copies(copies), streams=_streams(streams))


def _copies(by_rank: Mapping[int, Sequence[Copied]]) -> tuple[CopyRate, ...]:
    totals: dict[tuple[int, Kernel], list[float]] = {}
    for records in by_rank.values():
        latest: dict[tuple[int, Kernel], Copied] = {(record.size_bytes, record.kernel): record for record in records}
        for key, record in latest.items():
            duration_ns = median(sorted(record.duration_ns)) if record.duration_ns else 0.0
            rate_Bps = record.size_bytes / (duration_ns * 1e-9) if duration_ns > 0 else 0.0
            totals.setdefault(key, []).append(rate_Bps)
    complete = {key: sum(rates) for key, rates in totals.items() if len(rates) == len(by_rank)}
    best: dict[int, CopyRate] = {}
    for (size_bytes, kernel), rate_Bps in sorted(complete.items()):
        if rate_Bps > 0 and (size_bytes not in best or rate_Bps > best[size_bytes].rate_Bps):
            best[size_bytes] = CopyRate(size_bytes=size_bytes, rate_Bps=rate_Bps, kernel=kernel)
    return tuple(best[size_bytes] for size_bytes in sorted(best))


def _streams(by_rank: Mapping[int, Sequence[Streamed]]) -> tuple[StreamRate, ...]:
    totals: dict[Pattern, list[float]] = {}
    for records in by_rank.values():
        latest: dict[Pattern, Streamed] = {record.pattern: record for record in records}
        for pattern, record in latest.items():
            totals.setdefault(pattern, []).append(_rate_Bps(record))
    return tuple(
        StreamRate(pattern=pattern, rate_Bps=sum(rates))
        for pattern, rates in sorted(totals.items())
        if len(rates) == len(by_rank) and sum(rates) > 0
    )


def _rate_Bps(record: Streamed) -> float:
    duration_ns = record.end_ns - record.start_ns
    return record.moved_bytes / (duration_ns * 1e-9) if duration_ns > 0 else 0.0

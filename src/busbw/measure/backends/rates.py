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
    """Return the best round of each pattern: what the machine carries when it is left alone."""
    rounds: dict[Pattern, list[list[float]]] = {}
    for records in by_rank.values():
        latest: dict[Pattern, Streamed] = {record.pattern: record for record in records}
        for pattern, record in latest.items():
            rounds.setdefault(pattern, []).append(_rates_Bps(record))
    best = {
        pattern: max((sum(round_Bps) for round_Bps in zip(*ranks, strict=False)), default=0.0)
        for pattern, ranks in rounds.items()
        if len(ranks) == len(by_rank)
    }
    return tuple(StreamRate(pattern=pattern, rate_Bps=rate) for pattern, rate in sorted(best.items()) if rate > 0)


def _rates_Bps(record: Streamed) -> list[float]:
    return [
        moved_bytes / (duration_ns * 1e-9) if duration_ns > 0 else 0.0
        for moved_bytes, duration_ns in zip(record.moved_bytes, record.duration_ns, strict=False)
    ]

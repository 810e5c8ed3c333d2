"""What the ranks measured of the machine itself: their copies and streams, added up."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from busbw.base.value import Value
from busbw.measure.backends.measurements import are_alike, empty_launches, measurement_of, middle_start
from busbw.model.plan import Plan, Point, Program, points_of
from busbw.model.record import AnyRecord, Copied, Failed, Hello, Kernel, Launched, Measured, Node, Streamed
from busbw.model.run import CopyRate, EmptyLaunch, Measurement, Rates, StreamRate
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


name = "native-mpi"

Records = Mapping[int, Sequence[tuple[str, AnyRecord]]]
# What one rank wrote of a point in one start of the run, each with its place, by number of the turn.
_Turns = dict[int, tuple[str, Measured]]

# The number of the start in the name of a records file (busbw.base.layout).
_ATTEMPT = re.compile(r"\.(\d{1,6})\.jsonl:")


class Parsed(Value, frozen=True, kw_only=True):
    """What the ranks' records say, put together."""

    ranks: tuple[Hello, ...]
    rates: Rates
    measurements: tuple[Measurement, ...]
    # (rank, why it gave up), of every start of the run.
    failures: tuple[tuple[int, Failed], ...]
    # The hosts as the latest start found them; () where there is one only.
    nodes: tuple[Node, ...] = ()
    # Launches of an empty kernel as the latest start began, by rank; () without GPUs of ours.
    launches: tuple[EmptyLaunch, ...] = ()


def program(directory: str, python: str) -> Program:
    """Return what one rank runs; the launching side appends the attempt and the points already measured."""
    return Program(argv=(python, "-P", "-m", "busbw.rank", directory), env=())


def visitor(directory: str, python: str) -> Program:
    """Return what is started once on each host to look after a run; the launching side appends what it is to do."""
    return Program(argv=(python, "-P", "-m", "busbw.rank.visit", directory), env=())


def parse(plan: Plan, records: Records) -> Parsed:
    """Put the records of all ranks together. `records`: by rank, in the order written, each with its place.

    A turn of a point counts only when every rank of the plan wrote it in the same start of the run, with as many
    samples as the others; of several starts the last counts that has more than a first sample, else the last, or the
    middle one where the plan has several launches. Records of ranks beyond the plan are ignored.
    """
    ranks = range(plan.placement.ranks)
    kept = {rank: records.get(rank, ()) for rank in ranks}
    hellos = {rank: record for rank in ranks for _, record in kept[rank] if isinstance(record, Hello)}
    points = {rank: _points(kept[rank]) for rank in ranks}
    attempts = sorted({attempt for found in points.values() for attempt, _ in found})
    measurements: list[Measurement] = []
    for number, point in enumerate(points_of(plan.sweeps)):
        starts = ([points[rank].get((attempt, number), {}) for rank in ranks] for attempt in attempts)
        found = [one for start in starts if (one := _measurement(plan, number, point, start, hellos)) is not None]
        best = [one for one in found if one.turns > 0 or one.wrong is not None] or found
        measurements += middle_start(tuple(reversed(best))) if plan.sampling.launches > 1 else best[-1:]
    return Parsed(
        ranks=tuple(hellos[rank] for rank in sorted(hellos)),
        rates=rates_of(
            {rank: [record for _, record in kept[rank] if isinstance(record, Copied)] for rank in ranks},
            {rank: [record for _, record in kept[rank] if isinstance(record, Streamed)] for rank in ranks},
        ),
        measurements=tuple(measurements),
        failures=tuple((rank, record) for rank in ranks for _, record in kept[rank] if isinstance(record, Failed)),
        nodes=_nodes(kept.get(0, ())),
        launches=_launches(kept),
    )


def _measurement(
    plan: Plan, number: int, point: Point, found: Sequence[_Turns], hellos: Mapping[int, Hello]
) -> Measurement | None:
    """Return what one start of the run measured of a point; `found`: by rank. None when no turn of it counts."""
    turns, sources = [], []
    for turn in sorted(found[0]):
        entries = [of_rank[turn] for of_rank in found if turn in of_rank]
        records = [record for _, record in entries]
        about = all(record.sweep == point.sweep and record.size_bytes == point.size_bytes for record in records)
        if len(entries) == len(found) and about and are_alike(records):
            turns.append(records)
            sources.append(entries[0][0])
    return measurement_of(plan, number, turns, hellos, source=sources[0]) if turns else None


def _points(entries: Sequence[tuple[str, AnyRecord]]) -> dict[tuple[int, int], _Turns]:
    """Return the turns of each point, by start of the run and number of the point."""
    found: dict[tuple[int, int], _Turns] = {}
    for place, record in entries:
        if isinstance(record, Measured):
            found.setdefault((_attempt(place), record.point), {})[record.turn] = (place, record)
    return found


def _nodes(entries: Sequence[tuple[str, AnyRecord]]) -> tuple[Node, ...]:
    """Return the hosts that rank 0 wrote down last."""
    found = [(_attempt(place), record) for place, record in entries if isinstance(record, Node)]
    latest = max((attempt for attempt, _ in found), default=0)
    return tuple(record for attempt, record in found if attempt == latest)


def _launches(kept: Records) -> tuple[EmptyLaunch, ...]:
    """Return what each rank's GPU took to start a kernel, where all ranks wrote it in the latest start of the run."""
    found = {
        (_attempt(place), rank): record
        for rank, entries in kept.items()
        for place, record in entries
        if isinstance(record, Launched)
    }
    latest = max((attempt for attempt, _rank in found), default=0)
    return empty_launches([found[latest, rank].empty if (latest, rank) in found else None for rank in sorted(kept)])


def _attempt(place: str) -> int:
    match = _ATTEMPT.search(place)
    return int(match[1]) if match is not None else 0

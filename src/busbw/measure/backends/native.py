"""Our own measuring loops over MPI."""

import re
from collections.abc import Mapping, Sequence

from busbw.base.value import Value
from busbw.measure.backends.launches import empty_launches, middle_start
from busbw.measure.backends.measurements import are_alike, measurement_of
from busbw.measure.backends.rates import rates_of
from busbw.model.measurement import EmptyLaunch, Measurement
from busbw.model.plan import Plan, Program
from busbw.model.record import AnyRecord, Copied, Failed, Hello, Launched, Measured, Node, Streamed
from busbw.model.run import Rates
from busbw.model.sweep import Point, points_of

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

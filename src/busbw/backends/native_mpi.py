"""Our own measuring loops over MPI."""

from collections.abc import Mapping, Sequence

from busbw.backends.measurements import measurement_of
from busbw.backends.rates import rates_of
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan, Program
from busbw.model.record import AnyRecord, Copied, Failed, Hello, Measured, Streamed
from busbw.model.run import Rates
from busbw.model.sweep import points_of
from busbw.model.value import Value

name = "native-mpi"


class Parsed(Value, kw_only=True):
    """What the ranks' records say, put together."""

    ranks: tuple[Hello, ...]
    rates: Rates
    measurements: tuple[Measurement, ...]
    # (rank, why it gave up).
    failures: tuple[tuple[int, Failed], ...]


def program(directory: str, python: str) -> Program:
    """Return what one rank runs; the launching side appends the attempt and the points already measured."""
    return Program(argv=(python, "-P", "-m", "busbw.rank", directory), env=())


def parse(plan: Plan, records: Mapping[int, Sequence[tuple[str, AnyRecord]]]) -> Parsed:
    """Put the records of all ranks together. `records`: by rank, in the order written, each with its place.

    A point is a measurement only when every rank of the plan wrote it with as many samples as the others; where a
    point was measured again after a resume, the last record counts. Records of ranks beyond the plan are ignored.
    """
    ranks = range(plan.placement.ranks)
    hellos = {rank: record for rank in ranks for _place, record in records.get(rank, ()) if isinstance(record, Hello)}
    points = {rank: _points(records.get(rank, ())) for rank in ranks}
    measurements = []
    for number, point in enumerate(points_of(plan.sweeps)):
        found = [points[rank].get(number) for rank in ranks]
        seen = [entry for entry in found if entry is not None]
        if len(seen) == len(found) and all(_is_about(record, point.sweep, point.size_bytes) for _place, record in seen):
            measurement = measurement_of(plan, number, [record for _, record in seen], hellos, source=seen[0][0])
            measurements += [measurement] if measurement is not None else []
    everything = [record for rank in ranks for _place, record in records.get(rank, ())]
    return Parsed(
        ranks=tuple(hellos[rank] for rank in sorted(hellos)),
        rates=rates_of(
            {rank: [record for _, record in records.get(rank, ()) if isinstance(record, Copied)] for rank in ranks},
            {rank: [record for _, record in records.get(rank, ()) if isinstance(record, Streamed)] for rank in ranks},
        )
        if everything
        else Rates(),
        measurements=tuple(measurements),
        failures=tuple(
            (rank, record) for rank in ranks for _place, record in records.get(rank, ()) if isinstance(record, Failed)
        ),
    )


def _points(records: Sequence[tuple[str, AnyRecord]]) -> dict[int, tuple[str, Measured]]:
    return {record.point: (place, record) for place, record in records if isinstance(record, Measured)}


def _is_about(record: Measured, sweep: int, size_bytes: int) -> bool:
    return record.sweep == sweep and record.size_bytes == size_bytes

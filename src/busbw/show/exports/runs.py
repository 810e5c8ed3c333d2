"""The rows of a run: every planned point, measured or not."""

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, part_count
from busbw.model.imported import Device
from busbw.model.measurement import Measurement
from busbw.model.point_row import MISSING, PointRow
from busbw.model.run import Run
from busbw.model.sweep import Point, points_of
from busbw.show.exports.rows import Export, Group, with_repeats


def export_of_run(run: Run) -> Export:
    """Return a run as rows; all sweeps of one collective share a table."""
    plan = run.plan
    tables = {name: number for number, name in enumerate(dict.fromkeys(sweep.collective for sweep in plan.sweeps))}
    measured = {item.point: item for item in run.measurements}
    rows = []
    for number, point in enumerate(points_of(plan.sweeps)):
        row = _planned(run, point, tables[plan.sweeps[point.sweep].collective])
        item = measured.get(number)
        rows.append(row if item is None else _measured(row, item))
    devices = _devices(run)
    return Export(
        run_id=plan.run_id,
        created=plan.created,
        busbw_version=plan.busbw_version,
        tag=plan.tag,
        verdict=run.verdict.outcome,
        because=run.verdict.because,
        sentence=run.verdict.sentence,
        findings=run.findings,
        groups=tuple(
            Group(
                table=table,
                devices=devices,
                complete=all(row.ended != MISSING for row in rows if row.table == table),
            )
            for table in tables.values()
        ),
        rows=with_repeats(rows),
    )


def _planned(run: Run, point: Point, table: int) -> PointRow:
    """Return the row of a point as it stands before it is measured."""
    plan = run.plan
    sweep, ranks = plan.sweeps[point.sweep], plan.placement.ranks
    # None: measured by a newer busbw.
    collective = COLLECTIVES.get(sweep.collective)
    return PointRow(
        run_id=plan.run_id,
        kind="run",
        created=plan.created,
        busbw_version=plan.busbw_version,
        tag=plan.tag,
        verdict=run.verdict.outcome,
        hosts=",".join(plan.placement.hosts),
        backend=plan.backend,
        libraries=_libraries(run),
        read_from=None,
        table=table,
        collective=sweep.collective,
        size_bytes=point.size_bytes,
        count=part_count(collective, point.size_bytes, ranks, sweep.dtype)
        if collective is not None and sweep.dtype in DTYPE_BYTES
        else None,
        dtype=sweep.dtype,
        op=sweep.op if collective is None or collective.reduces else None,
        root=sweep.root if collective is None or collective.rooted else None,
        in_place=sweep.in_place,
        ranks=ranks,
        source=str(sweep.pair[0]) if sweep.pair is not None else None,
        target=str(sweep.pair[1]) if sweep.pair is not None else None,
        group=sweep.group,
        mode=plan.sampling.mode,
        statistic="median",
        wrong=None,
        verified=False,
        ended=MISSING,
    )


def _measured(row: PointRow, item: Measurement) -> PointRow:
    """Return `row` with what was measured; a wrong result gets no time."""
    choices = item.nccl.choices if item.nccl is not None else ()
    known = replace(
        row,
        read_from=item.source,
        ranks=item.ranks,
        samples=item.samples,
        calls_per_sample=item.calls_per_sample,
        warmup_calls=item.warmup_calls,
        wrong=item.wrong.mismatch.wrong if item.wrong is not None else 0 if item.verified else None,
        verified=item.verified,
        ended=item.ended,
        algorithm=_distinct(choice.algorithm for choice in choices),
        protocol=_distinct(choice.protocol for choice in choices),
    )
    if item.wrong is not None or item.median_s <= 0:
        return known
    percentiles = dict(item.percentiles)
    return replace(
        known,
        time_s=item.median_s,
        median_s=item.median_s,
        low_s=item.low_s,
        high_s=item.high_s,
        confidence=item.confidence,
        min_s=item.min_s,
        max_s=item.max_s,
        mean_s=item.mean_s,
        p50_s=percentiles.get(50.0),
        p95_s=percentiles.get(95.0),
        p99_s=percentiles.get(99.0),
        algbw_Bps=item.algbw_Bps,
        busbw_Bps=item.busbw_Bps,
        messages_per_s=_messages_per_s(item),
    )


def _messages_per_s(item: Measurement) -> float | None:
    """Return the messages all pairs together moved a second."""
    return item.ranks // 2 / item.median_s if item.collective == "message_rate" else None


def _libraries(run: Run) -> str:
    """Return MPI and NCCL with their versions; more than one NCCL when the ranks loaded different ones."""
    mpi = run.plan.mpi
    names = [f"{mpi.family} {mpi.version}" if mpi.version is not None else mpi.family] if mpi is not None else []
    return ", ".join([*names, *dict.fromkeys(f"NCCL {hello.gpu.nccl}" for hello in run.ranks if hello.gpu is not None)])


def _distinct(words: Iterable[str | None]) -> str | None:
    return ",".join(dict.fromkeys(word for word in words if word)) or None


def _devices(run: Run) -> tuple[Device, ...]:
    """Return the ranks that started, each with its GPU; a rank without one has its number on its host."""
    on_host: Counter[str] = Counter()
    devices = []
    for hello in sorted(run.ranks, key=lambda hello: hello.rank):
        device = Device(rank=hello.rank, group=0, process_id=hello.process_id, host=hello.host)
        gpu = hello.gpu
        devices.append(
            replace(device, device=gpu.ordinal, bus_id=gpu.bus_id, model=gpu.model)
            if gpu is not None
            else replace(device, device=on_host[hello.host], model=run.plan.host.cpu_model)
        )
        on_host[hello.host] += 1
    return tuple(devices)

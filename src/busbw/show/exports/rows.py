"""Results as flat rows, one a point: the one form that every export is written from."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, part_count
from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.model.finding import Finding, Outcome, Verdict
from busbw.model.gates import MISSING, PointRow, is_missing, is_wrong, same_point
from busbw.model.imported import Imported, ListedDevice, Reading, Table
from busbw.model.plan import Point, points_of
from busbw.model.run import Measurement, Run

T = TypeVar("T")
ROW_SCHEMA = 1


class RowGroup(Value, kw_only=True, frozen=True):
    """What the rows of one table share: who took part, and whether all of it was measured."""

    table: Integer
    devices: tuple[ListedDevice, ...]
    # What the tool printed of its own options: ("iters", "20").
    parameters: tuple[tuple[str, str], ...] = ()
    # Whether the tool's own end was seen and nothing planned is missing.
    complete: bool


class Export(Value, kw_only=True, frozen=True):
    """Everything an export may say."""

    run_id: str
    created: str
    busbw_version: str
    tag: str | None
    verdict: str | None
    # Codes of the findings the verdict rests on.
    because: tuple[str, ...]
    # The verdict in a sentence, and all findings; of an import there is no verdict.
    sentence: str | None = None
    findings: tuple[Finding, ...] = ()
    # What single points were judged to be, by the number of their row.
    judged: tuple[tuple[Integer, Verdict], ...] = ()
    groups: tuple[RowGroup, ...]
    rows: tuple[PointRow, ...]


def numbered(items: Iterable[T], key: Callable[[T], Hashable]) -> list[tuple[T, int]]:
    """Return each item with how many of the same key came before it."""
    seen: Counter[Hashable] = Counter()
    found = []
    for item in items:
        found.append((item, seen[key(item)]))
        seen[key(item)] += 1
    return found


def with_repeats(rows: Sequence[PointRow]) -> tuple[PointRow, ...]:
    """Return the rows with `repeat` counted."""
    return tuple(replace(row, repeat=before) if before else row for row, before in numbered(rows, identity))


def identity(row: PointRow) -> tuple[Hashable, ...]:
    """Return what repetitions of the same point on the same hosts have in common."""
    return (row.hosts, *same_point(row))


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
            RowGroup(
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
    sweep = plan.sweeps[point.sweep]
    ranks = sweep.partners(plan.placement.ranks)
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


def _devices(run: Run) -> tuple[ListedDevice, ...]:
    """Return the ranks that started, each with its GPU; a rank without one has its number on its host."""
    on_host: Counter[str] = Counter()
    devices = []
    for hello in sorted(run.ranks, key=lambda hello: hello.rank):
        device = ListedDevice(rank=hello.rank, group=0, process_id=hello.process_id, host=hello.host)
        gpu = hello.gpu
        devices.append(
            replace(device, device=gpu.ordinal, bus_id=gpu.bus_id, model=gpu.model)
            if gpu is not None
            else replace(device, device=on_host[hello.host], model=run.plan.host.cpu_model)
        )
        on_host[hello.host] += 1
    return tuple(devices)


@dataclass(frozen=True, kw_only=True, slots=True)
class PointOutcome:
    """The outcome of a point, and why it is not ok; "" where it is."""

    outcome: Outcome
    reason: str = ""


def point_outcomes(export: Export) -> tuple[PointOutcome, ...]:
    """Return the outcome of each row. ok takes a verified result, a judgement of this very point, and no finding.

    Where points were not judged by themselves the verdict of the run holds for those that no finding is about.
    """
    about: dict[int, list[Finding]] = {}
    for finding in export.findings:
        if finding.point is not None and finding.is_serious:
            about.setdefault(finding.point, []).append(finding)
    judged = dict(export.judged)
    return tuple(
        _outcome(export, row, about.get(number, []), judged.get(number)) for number, row in enumerate(export.rows)
    )


def _outcome(export: Export, row: PointRow, findings: list[Finding], judged: Verdict | None) -> PointOutcome:
    if is_wrong(row):
        return PointOutcome(outcome="wrong", reason=f"wrong elements in the result: {row.wrong}")
    if is_missing(row):
        outcome: Outcome = "failed" if export.verdict == "failed" else "cannot_tell"
        return PointOutcome(outcome=outcome, reason=f"not measured: {export.sentence or 'the run did not get to it'}")
    slow = [each for each in findings if each.code in export.because and export.verdict == "slow"]
    if slow and row.verified:
        return PointOutcome(outcome="slow", reason=_words(slow[0]))
    if judged is not None and row.verified and not findings:
        return PointOutcome(outcome=judged.outcome, reason="" if judged.outcome == "ok" else _reason(judged))
    doubt = _doubt(export, row, findings)
    return PointOutcome(outcome="ok") if doubt is None else PointOutcome(outcome="cannot_tell", reason=doubt)


def _doubt(export: Export, row: PointRow, findings: list[Finding]) -> str | None:
    """Return why a point that was measured cannot be told to be right and quick."""
    if not row.verified:
        return "the result was not verified"
    if findings:
        return _words(findings[0])
    if export.verdict is None:
        return "imports are not judged"
    return export.sentence or export.verdict if export.verdict in {"cannot_tell", "failed"} else None


def _reason(judged: Verdict) -> str:
    """Return the sentence without the outcome in front, which stands beside it."""
    return judged.sentence.removeprefix(f"{judged.outcome.replace('_', ' ')}: ")


def _words(finding: Finding) -> str:
    return f"{finding.code} {finding.title}: {finding.evidence}"


# About a gigabyte of rows; a log of one job has some hundred.
MOST_ROWS = 1_000_000


def export_of_import(imported: Imported, readings: Iterable[Reading]) -> Export:
    """Return the readings of an import as rows. Numbers that a row has no field for are left out.

    Raises InputError for readings of tables that are not there, and for more than can be held at once.
    """
    tables = {table.number: table for table in imported.tables}
    rows: list[PointRow] = []
    for reading in readings:
        if reading.table not in tables or len(rows) == MOST_ROWS:
            cause = "damaged" if len(rows) < MOST_ROWS else f"more than {MOST_ROWS} readings"
            raise InputError(f"cannot export this import: {cause}", where=imported.import_id)
        rows.append(_row(imported, tables[reading.table], reading))
    return Export(
        run_id=imported.import_id,
        created=imported.created,
        busbw_version=imported.busbw_version,
        tag=imported.tag,
        verdict=None,
        because=(),
        groups=tuple(
            RowGroup(
                table=table.number,
                devices=table.devices,
                parameters=table.parameters,
                complete=table.complete and not table.failures,
            )
            for table in imported.tables
        ),
        rows=with_repeats(rows),
    )


def _row(imported: Imported, table: Table, reading: Reading) -> PointRow:
    # A tool gives wrong results a time; here they have none.
    wrong = reading.wrong is not None and reading.wrong > 0
    more = {} if wrong else dict(reading.more)
    return PointRow(
        run_id=imported.import_id,
        kind="import",
        created=imported.created,
        busbw_version=imported.busbw_version,
        tag=imported.tag,
        verdict=None,
        hosts=",".join(dict.fromkeys(device.host for device in table.devices if device.host)),
        backend=table.tool,
        libraries=", ".join(f"{name} {version}" for name, version in table.versions),
        read_from=place_of(imported, table, reading.line),
        table=table.number,
        collective=reading.what,
        size_bytes=reading.size_bytes,
        count=reading.count,
        dtype=reading.dtype,
        op=reading.op if reading.op != "none" else None,
        root=reading.root if reading.root is not None and reading.root >= 0 else None,
        in_place=reading.in_place,
        # What the rates say goes before what was declared: a list of devices may be cut, and programs that were not
        # joined declare too many.
        ranks=next(
            (ranks for ranks in (table.ranks_from_rates, reading.ranks, table.ranks) if ranks is not None), None
        ),
        source=reading.source,
        target=reading.target,
        samples=len(reading.samples_s) or None,
        statistic=table.statistic,
        time_s=reading.time_s if not wrong else None,
        median_s=more.get("median_s"),
        min_s=more.get("min_s"),
        max_s=more.get("max_s"),
        mean_s=more.get("mean_s"),
        p50_s=more.get("p50_s"),
        p95_s=more.get("p95_s"),
        p99_s=more.get("p99_s"),
        algbw_Bps=reading.algbw_Bps if not wrong else None,
        busbw_Bps=reading.busbw_Bps if not wrong else None,
        bandwidth_Bps=reading.bandwidth_Bps if not wrong else None,
        messages_per_s=reading.messages_per_s if not wrong else None,
        wrong=reading.wrong,
        verified=reading.wrong is not None,
        ended=None,
    )


def place_of(imported: Imported, table: Table, line: int) -> str:
    """Return the file and line that a row of a table was read from, as a row says it."""
    name = imported.sources[table.source].name if 0 <= table.source < len(imported.sources) else "?"
    return f"{name}:{line}"

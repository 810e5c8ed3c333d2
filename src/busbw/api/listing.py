"""A stored run, import, comparison or bisection as the history keeps it, with what can be said of a damaged one."""

from collections.abc import Mapping
from pathlib import Path

from busbw.api.bisected import bisection_row
from busbw.api.compared_row import comparison_row
from busbw.api.loading import read
from busbw.api.locating import Kind, kind_of
from busbw.api.run_platform import platform_of
from busbw.base.errors import BusbwError
from busbw.base.moment import unix_s, unix_s_of_name
from busbw.model.history import HistoryPoint, HistoryRun
from busbw.model.imported import Imported
from busbw.model.listing import Row
from busbw.model.point_row import PointRow, is_missing
from busbw.model.run import Run
from busbw.show.exports.imports import export_of_import
from busbw.show.exports.rows import Export
from busbw.show.exports.runs import export_of_run
from busbw.store import imports

_SOURCES_NAMED = 3
_POINT_FIELDS = tuple(name for name in HistoryPoint.__struct_fields__ if name != "number")


def run_of(directory: Path) -> HistoryRun:
    """Return a run or an import with its points, or a comparison or bisection, which have none: they hold runs.

    One that cannot be read has a row that says so, and no points.
    """
    kind = kind_of(directory) or "run"
    try:
        if kind == "comparison":
            row = comparison_row(directory)
            return HistoryRun(row=row, created_unix_s=_made(row), points=())
        if kind == "bisection":
            row = bisection_row(directory)
            return HistoryRun(row=row, created_unix_s=_made(row), points=())
        if kind == "import":
            imported = imports.read(directory)
            return _kept(_import_row(imported, directory), export_of_import(imported, imports.readings(directory)), {})
        run = read(directory)
        start = run.plan.surroundings
        settings = start.environment if start is not None else {}
        return _kept(_run_row(run, directory), export_of_run(run), settings)
    except BusbwError as error:
        return _unreadable(kind, directory, error.cause)


def remnant_of(directory: Path) -> HistoryRun:
    """Return the row of a directory that was made for a run whose plan was never written."""
    return _unreadable("run", directory, "it ended before its plan was written: nothing was started")


def _kept(row: Row, export: Export, settings: Mapping[str, str]) -> HistoryRun:
    return HistoryRun(
        row=row,
        created_unix_s=_made(row),
        settings=tuple(f"{name}={value}" for name, value in sorted(settings.items())),
        points=tuple(_point(number, each) for number, each in enumerate(export.rows) if not is_missing(each)),
    )


def _made(row: Row) -> float | None:
    made = unix_s(row.created)
    return made if made is not None else unix_s_of_name(row.run_id)


def _point(number: int, row: PointRow) -> HistoryPoint:
    return HistoryPoint(number=number, **{name: getattr(row, name) for name in _POINT_FIELDS})


def _run_row(run: Run, directory: Path) -> Row:
    plan = run.plan
    return Row(
        run_id=plan.run_id,
        path=str(directory),
        created=plan.created,
        host=plan.host.name,
        hosts=plan.placement.hosts,
        ranks=plan.placement.ranks,
        platform=platform_of(plan),
        backend=plan.backend,
        nccl=tuple(dict.fromkeys(hello.gpu.nccl for hello in run.ranks if hello.gpu is not None)),
        busbw_version=plan.busbw_version,
        collectives=tuple(dict.fromkeys(sweep.collective for sweep in plan.sweeps)),
        measured=len(run.measurements),
        planned=sum(len(sweep.sizes_bytes) for sweep in plan.sweeps),
        tag=plan.tag,
        ended=run.outcome.ended if run.outcome is not None else "unfinished",
        outcome=run.verdict.outcome,
        sentence=run.verdict.sentence,
    )


def _import_row(imported: Imported, directory: Path) -> Row:
    names = ", ".join(Path(source.name).name for source in imported.sources[:_SOURCES_NAMED])
    more = len(imported.sources) - _SOURCES_NAMED
    tables = imported.tables
    tools = tuple(dict.fromkeys(table.tool for table in tables))
    versions = (version for table in tables for name, version in table.versions if name == "NCCL")
    return Row(
        kind="import",
        run_id=imported.import_id,
        path=str(directory),
        created=imported.created,
        host=None,
        hosts=tuple(dict.fromkeys(device.host for table in tables for device in table.devices if device.host)),
        ranks=None,
        backend=tools[0] if len(tools) == 1 else None,
        nccl=tuple(dict.fromkeys(versions)),
        busbw_version=imported.busbw_version,
        collectives=tools,
        measured=imported.readings,
        planned=0,
        tag=imported.tag,
        outcome="imported",
        sentence=f"imported from {names}" + (f" and {more} more" if more > 0 else ""),
    )


def _unreadable(kind: Kind, directory: Path, cause: str) -> HistoryRun:
    row = Row(
        kind=kind,
        run_id=directory.name,
        path=str(directory),
        created=None,
        host=None,
        ranks=None,
        collectives=(),
        measured=0,
        planned=0,
        tag=None,
        outcome="unreadable",
        sentence=cause,
    )
    return HistoryRun(row=row, created_unix_s=unix_s_of_name(directory.name), points=())

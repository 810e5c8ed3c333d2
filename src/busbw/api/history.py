"""The history: stored runs, imports, comparisons and bisections listed, tagged, and a metric of them over time."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from busbw.api.loading import read
from busbw.api.stored import Kind, find_stored, kind_of
from busbw.api.sweeping.swept import metrics_measured
from busbw.base.errors import BusbwError, InputError
from busbw.base.moment import unix_s, unix_s_of_name
from busbw.base.text import counted, listed
from busbw.fabric.groups.isolation import name_of_search
from busbw.judge.trend import metric_called, trend
from busbw.model.comparison import Bisection, Comparison, ComparisonPlan
from busbw.model.gates import PointRow, is_missing
from busbw.model.history import GroupedBy, HistoryPoint, HistoryRun, ListRow, PointSelection, Selection, Trend
from busbw.model.imported import Imported
from busbw.model.plan import Plan, points_of
from busbw.model.run import Run
from busbw.show.exports.rows import Export, export_of_import, export_of_run
from busbw.store import bisections, comparisons, imports, isolations, tags
from busbw.store import outcome as outcomes
from busbw.store.history import History, Stored
from busbw.store.raw import read_records
from busbw.store.selecting import strands

# From here on reading takes long enough that somebody who waits wants to know why.
_MANY = 500


def opened(base: Path, say: Callable[[str], None]) -> History:
    """Return the history of a folder of runs, up to date; it is to be closed. `say` takes a line for who waits.

    Raises RunError where what was read cannot be kept.
    """
    history = History(base)
    try:
        stale = history.stale()
        if len(stale) >= _MANY:
            say(f"reading {len(stale)} runs in {base} that are new or have changed")
        history.renew(_read(base, stale))
    except BaseException:
        history.close()
        raise
    return history


def _read(base: Path, stale: tuple[Stored, ...]) -> Iterator[tuple[str, HistoryRun]]:
    if not stale:
        return
    # What reads runs, imports and comparisons takes a tenth of a second to import, and mostly nothing is stale.

    for stored in stale:
        yield stored.name, remnant_of(base / stored.name) if stored.kind == "remnant" else run_of(base / stored.name)


def platform_of(plan: Plan) -> str | None:
    """Return the platform of the planning host where it was recognised, else its GPUs or its processor in words."""
    if plan.surroundings is not None and plan.surroundings.platform is not None:
        return plan.surroundings.platform
    if plan.gpus is None:
        return plan.host.cpu_model
    models = Counter(device.model for device in plan.gpus.devices)
    return ", ".join(f"{number}x {model}" for model, number in models.items())


def comparison_row(directory: Path) -> ListRow:
    """Return the line of a comparison. Raises InputError when it is damaged or too new."""
    plan = comparisons.read_plan(directory)
    found = comparisons.read(directory)
    # All launches measure the same, in the same place.
    first = comparisons.launch_plan(directory / plan.launches[0].folder)
    whole = found is not None and found.blocks >= found.blocks_planned
    return ListRow(
        kind="comparison",
        run_id=plan.comparison_id,
        path=str(directory),
        created=plan.created,
        host=first.host.name,
        hosts=first.placement.hosts,
        ranks=first.placement.ranks,
        platform=platform_of(first),
        backend=first.backend,
        nccl=(first.gpus.nccl.version,) if first.gpus is not None and first.gpus.nccl.version else (),
        busbw_version=plan.busbw_version,
        collectives=tuple(dict.fromkeys(sweep.collective for sweep in first.sweeps)),
        measured=_most_points(found),
        planned=len(points_of(first.sweeps)),
        tag=None,
        ended="complete" if whole else "unfinished",
        outcome=found.verdict.outcome if found is not None else "cannot_tell",
        sentence=found.verdict.sentence if found is not None else _so_far(plan, directory),
    )


def _most_points(found: Comparison | None) -> int:
    return max((len(versus.points) for versus in found.versus), default=0) if found is not None else 0


def _so_far(plan: ComparisonPlan, directory: Path) -> str:
    ended = sum(outcomes.read(directory / launch.folder) is not None for launch in plan.launches)
    return f"cannot tell: {ended} of {len(plan.launches)} launches have ended, and nothing was compared yet"


def read_bisection(directory: Path) -> Bisection:
    """Return what a bisection found; without that, how far it came. Raises InputError for a damaged one."""
    plan = bisections.read_plan(directory)
    return bisections.read(directory) or Bisection(
        plan=plan,
        point=None,
        whole=None,
        steps=(),
        causes=(),
        outcome="cannot_tell",
        sentence=_bisected_so_far(directory),
    )


def bisection_row(directory: Path) -> ListRow:
    """Return the line of a bisection. Raises InputError when it is damaged or too new."""
    found = read_bisection(directory)
    is_ended = bisections.read(directory) is not None
    ends = directory / bisections.ENDS
    if comparisons.is_comparison(ends):
        # Where, on what and since when it was measured are those of its first comparison.
        row = comparison_row(ends)
    else:
        row = ListRow(
            run_id=directory.name,
            path=str(directory),
            created=None,
            host=None,
            ranks=None,
            collectives=found.plan.collectives,
            measured=0,
            planned=0,
            tag=None,
            outcome=found.outcome,
            sentence=found.sentence,
        )
    return replace(
        row,
        kind="bisection",
        run_id=directory.name,
        path=str(directory),
        ended="complete" if is_ended else "unfinished",
        outcome=found.outcome,
        sentence=found.sentence,
    )


def _bisected_so_far(directory: Path) -> str:
    measured = counted(len(bisections.comparison_folders(directory)), "comparison")
    again = f"the same command with --out {shlex.quote(str(directory))} goes on"
    return f"cannot tell: {measured} of it begun, and nothing was found yet; {again}"


def isolation_row(directory: Path) -> ListRow:
    """Return the line of a search over groups of nodes. Raises InputError when it is damaged or too new."""
    plan = isolations.read_plan(directory)
    found = isolations.read(directory)
    runs = len(isolations.read_runs(directory))
    again = f"busbw isolate --resume {shlex.quote(str(directory))} goes on"
    return ListRow(
        kind="isolation",
        run_id=directory.name,
        path=str(directory),
        created=plan.created,
        host=None,
        hosts=plan.hosts,
        ranks=None,
        busbw_version=plan.busbw_version,
        collectives=(name_of_search(plan),),
        measured=runs,
        planned=0,
        tag=None,
        ended="complete" if found is not None else "unfinished",
        outcome=found.verdict.outcome if found is not None else "cannot_tell",
        sentence=found.verdict.sentence
        if found is not None
        else f"cannot tell: {counted(runs, 'group run')} so far; {again}",
    )


_SOURCES_NAMED = 3
_POINT_FIELDS = tuple(name for name in HistoryPoint.__struct_fields__ if name != "number")


def run_of(directory: Path) -> HistoryRun:
    """Return a run or an import with its points, or what holds runs and has none: a comparison, a bisection, a search.

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
        if kind == "isolation":
            row = isolation_row(directory)
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


def _kept(row: ListRow, export: Export, settings: Mapping[str, str]) -> HistoryRun:
    return HistoryRun(
        row=row,
        created_unix_s=_made(row),
        settings=tuple(f"{name}={value}" for name, value in sorted(settings.items())),
        points=tuple(_point(number, each) for number, each in enumerate(export.rows) if not is_missing(each)),
    )


def _made(row: ListRow) -> float | None:
    made = unix_s(row.created)
    return made if made is not None else unix_s_of_name(row.run_id)


def _point(number: int, row: PointRow) -> HistoryPoint:
    return HistoryPoint(number=number, **{name: getattr(row, name) for name in _POINT_FIELDS})


def _run_row(run: Run, directory: Path) -> ListRow:
    plan = run.plan
    measured, planned = len(run.measurements), sum(len(sweep.sizes_bytes) for sweep in plan.sweeps)
    if plan.fabric is not None:
        # A sweep over pairs of hosts has no points: its metrics are counted, of which any pair has answered.
        measured, planned = len(metrics_measured(plan, read_records(directory)[0])), len(plan.fabric.probes)
    return ListRow(
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
        measured=measured,
        planned=planned,
        tag=plan.tag,
        ended=run.outcome.ended if run.outcome is not None else "unfinished",
        outcome=run.verdict.outcome,
        sentence=run.verdict.sentence,
    )


def _import_row(imported: Imported, directory: Path) -> ListRow:
    names = listed((Path(source.name).name for source in imported.sources), _SOURCES_NAMED)
    tables = imported.tables
    tools = tuple(dict.fromkeys(table.tool for table in tables))
    versions = (version for table in tables for name, version in table.versions if name == "NCCL")
    return ListRow(
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
        sentence=f"imported from {names}",
    )


def _unreadable(kind: Kind, directory: Path, cause: str) -> HistoryRun:
    row = ListRow(
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


def trend_of(
    base: Path,
    metric: str,
    selection: Selection,
    wanted: PointSelection,
    *,
    by: GroupedBy,
    false_alarms: float,
    least_change: float,
    say: Callable[[str], None],
) -> Trend:
    """Return the trend of a metric over the selected runs under `base`. `say` takes a line for who waits.

    Raises InputError for an unknown metric, RunError where what was read cannot be kept.
    """
    chosen = metric_called(metric)
    with opened(base, say) as history:
        # The points say what was measured; the runs need not be asked the same.
        found = strands(history, replace(selection, collective=None), wanted, chosen.field)
    return trend(found, chosen, by=by, false_alarms=false_alarms, least_change=least_change)


def tag_run(name: str, given: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Give something stored tags, and return where it is and all it was given. Raises InputError and RunError.

    Nothing is written unless every one of them can be a tag.
    """
    where = find_stored(name).absolute()
    for tag in given:
        tags.check_tag(tag)
    for tag in given:
        tags.add(where, tag)
    return where, tags.tags_of(where)


def untag_run(name: str, taken: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Take tags from something stored, and return where it is and what it still has. Raises InputError and RunError.

    The tag that it was made with is part of it and stays: to ask for that one is an error.
    """
    where = find_stored(name).absolute()
    there = tags.tags_of(where)
    for tag in taken:
        tags.check_tag(tag)
        if tag not in there:
            raise _not_there(where, tag, there)
    for tag in taken:
        tags.remove(where, tag)
    return where, tags.tags_of(where)


def _not_there(where: Path, tag: str, there: tuple[str, ...]) -> InputError:
    if run_of(where).row.tag == tag:
        return InputError(
            f"{where.name} was made with --tag {tag}: that is part of it, and stays",
            where=str(where),
        )
    hint = f"it has: {', '.join(there)}" if there else f"give it one: busbw runs tag {shlex.quote(where.name)} {tag}"
    return InputError(f"{where.name} has no tag {tag}", where=str(where), hint=hint)

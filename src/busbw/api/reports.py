"""What reports are made of: runs with their settings and their machine, imports, a comparison, a bisection, scaling."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from msgspec.structs import replace as replaced

from busbw.api.comparisons import read_comparison
from busbw.api.history import read_bisection
from busbw.api.importing import import_files, load_import
from busbw.api.loading import read
from busbw.api.stored import Kind, find_stored, is_bisection, is_comparison, is_import, kind_of
from busbw.api.sweeping.swept import metrics_measured, report_of
from busbw.api.verdicts import judge_import, judge_run, known_machine_of, known_machine_of_run
from busbw.base.errors import InputError
from busbw.env.layers import layers
from busbw.fabric.groups.isolation import Isolation
from busbw.fabric.report import FabricReport
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.series import StatedFacts
from busbw.machine.named import node_view, platform, platforms
from busbw.model import codec
from busbw.model.comparison import Bisection, Comparison
from busbw.model.finding import Verdict
from busbw.model.gates import PointRow
from busbw.model.predict.prediction import Prediction
from busbw.model.run import Run
from busbw.model.scaling import SCALING_SCHEMA, ScalingReport
from busbw.model.settings import JobEnvironment, Setting, Settings
from busbw.model.train.plan import TrainPlan
from busbw.model.train.proxy import ProxyResult
from busbw.show.exports import registry
from busbw.show.exports.rows import ROW_SCHEMA, Export, export_of_import, export_of_run
from busbw.show.page.pictures import ImportSubject, Picture, ReportSubject, labels_of
from busbw.store import bisections, comparisons, documents, duck, imports, isolations
from busbw.store.directory import read_plan
from busbw.store.files import is_file, is_folder, read_whole
from busbw.store.raw import read_records
from busbw.store.sources import source_kind

# Rows that go into a page.
_MOST_READINGS = 5000


def import_subject(where: Path, known_machine: KnownMachine) -> ImportSubject:
    """Return a stored import for a report, judged against a machine. Raises InputError when damaged or too new."""
    found = load_import(where)
    rows = iter(imports.readings(where))
    first = tuple(islice(rows, _MOST_READINGS))
    imported = found.imported
    return ImportSubject(
        label=imported.tag or imported.import_id,
        imported=imported,
        digests=found.digests,
        unread=found.unread,
        readings=first,
        left_out=imported.readings - len(first),
        explained=judge_import(where, imported.import_id, known_machine, StatedFacts()),
    )


def file_subject(path: Path, known_machine: KnownMachine) -> ImportSubject:
    """Return a file of another tool for a report; it is read as an import is, and no import is kept.

    Raises InputError for a file in which there is nothing to read.
    """
    with TemporaryDirectory(prefix="busbw-report-") as folder:
        done = import_files((str(path),), Path(folder) / path.name, Path(folder))
        found = import_subject(done.where, known_machine)
    return replace(found, label=path.name)


def run_subjects(folders: Sequence[Path], machine: str | None, named: Picture | None) -> tuple[ReportSubject, ...]:
    """Return runs for a report, in their order. `machine`: what they are held against; `named`: the node to draw.

    None for either: the platform that a run stored, if it did.
    """
    runs = tuple(read(folder) for folder in folders)
    known_machine = _known_machine(runs, machine)
    return tuple(
        ReportSubject(
            run=run,
            label=label,
            settings=settings_of(run),
            unseen=_unseen(run),
            picture=named or _platform_picture(run),
            explained=judge_run(run, known_machine(run), StatedFacts()),
        )
        for run, label in zip(runs, labels_of(runs), strict=True)
    )


def settings_of(run: Run) -> Settings | None:
    """Return every choice that the ranks met, weakest first; None: the run did not store them.

    Weakest first: what is recommended, NCCL's settings files and the environment of whoever started it, what busbw set
    for the job, and what rank 0 had that none of them explains.
    """
    plan = run.plan
    if plan.surroundings is None and not plan.job.env:
        return None
    start = plan.surroundings or JobEnvironment(where="this host", environment={})
    applied: dict[str, str] = {}
    if plan.recommended is not None:
        start, applied = replaced(start, recommended=plan.recommended.settings), plan.recommended.env()
    found = layers(start)
    planned = "the plan of this run"
    found = found.then(
        *(Setting(name=name, value=None, layer="command_line", source=planned) for name in plan.job.unset),
        *(
            Setting(name=name, value=value, layer="command_line", source=planned)
            for name, value in plan.job.env
            if applied.get(name) != value
        ),
    )
    first = next((rank for rank in run.ranks if rank.gpu is not None), None)
    if first is None or first.gpu is None:
        return found
    known = found.env()
    return found.then(
        *(
            Setting(name=name, value=value, layer="shell", source=f"as rank {first.rank} found it when it started")
            for name, value in first.gpu.environment
            if known.get(name) != value
        )
    )


def _known_machine(runs: Iterable[Run], machine: str | None) -> Callable[[Run], KnownMachine]:
    """Return what each run is held against: the machine that is named, else the platform it stored."""
    if machine is not None:
        named = named_machine(machine)
        return lambda _run: named
    # A platform of another site is not known here.
    known = {each.platform.id for each in platforms()}
    stored = {name for name in map(_platform_of, runs) if name in known}
    by_name = {name: known_machine_of(name) for name in (None, *stored)}
    return lambda run: by_name.get(_platform_of(run), by_name[None])


def named_machine(machine: str | None) -> KnownMachine:
    """Return what results are held against: a platform or a snapshot that is named, or nothing."""
    kind = source_kind(machine) if machine is not None else None
    return known_machine_of(
        machine if kind == "absent" else None, Path(machine) if machine is not None and kind == "snapshot" else None
    )


def _platform_of(run: Run) -> str | None:
    start = run.plan.surroundings
    return start.platform if start is not None else None


def _unseen(run: Run) -> tuple[str, ...]:
    start = run.plan.surroundings
    others = len(run.plan.placement.hosts) - 1
    elsewhere = (f"settings files of the other {others} hosts",) if others > 0 else ()
    if start is None:
        return ("the environment of whoever started it, which was not stored", *elsewhere)
    return (*start.unseen, *elsewhere)


def _platform_picture(run: Run) -> Picture | None:
    """Return the published node of the platform that a run was found to be on; None: it was not."""
    name = _platform_of(run)
    if name is None:
        return None
    try:
        view = node_view(name)
    except InputError:
        # A platform of another site: its file is not here.
        return None
    return Picture(view=view, whose=f"as published of platform {name}; this host's own may differ")


MOST_RUNS = 1000
MOST_IMPORTS = 40
_SHOWN_NAMES = 3
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportPage:
    """What a report or a drawing is about."""

    subjects: tuple[ReportSubject, ...] = ()
    imports: tuple[ImportSubject, ...] = ()
    # Of sweeps over the pairs of hosts, one for each metric.
    fabrics: tuple[FabricReport, ...] = ()
    # Of searches over groups of nodes.
    isolations: tuple[Isolation, ...] = ()
    # Of a bisection, which is beside it, that of its two ends.
    comparison: Comparison | None = None
    bisection: Bisection | None = None
    # What was asked for and cannot be shown, a line each.
    notes: tuple[str, ...] = ()


def page_of(names: Sequence[str], machine: str | None = None) -> ReportPage:
    """Return the runs, imports, and the comparison or bisection that `names` mean, in their order, each once.

    A file that is none of them is read as an import is, and not kept. `machine` names the node to draw, and to hold
    results against: an NCCL topology file, a platform or a snapshot; None: the platform that a run stored, if it did.

    Raises InputError for a name that means nothing, for two comparisons or bisections, and for too many names.
    """
    if len(names) > MOST_RUNS:
        raise InputError(f"{len(names)} runs are too many for one page", hint=f"name at most {MOST_RUNS}")
    places = tuple(dict.fromkeys(_place(name) for name in names))
    kinds: tuple[Kind | None, ...] = (*get_args(Kind), None)
    by_kind: dict[Kind | None, list[Path]] = {kind: [] for kind in kinds}
    for place in places:
        by_kind[kind_of(place)].append(place)
    files = (*by_kind["import"], *by_kind[None])
    if len(files) > MOST_IMPORTS:
        raise InputError(f"{len(files)} imports are too many for one page", hint=f"name at most {MOST_IMPORTS}")
    compared = [*by_kind["comparison"], *by_kind["bisection"]]
    if len(compared) > 1:
        names_of = ", ".join(place.name for place in compared[:_SHOWN_NAMES])
        raise InputError(f"one page holds one comparison, and {len(compared)} are named: {names_of}")
    known_machine = named_machine(machine) if files else None
    picture, notes = _named_picture(machine)
    swept = {place: _fabrics_of(place) for place in by_kind["run"]}
    return ReportPage(
        notes=notes,
        subjects=run_subjects([place for place in by_kind["run"] if not swept[place]], machine, picture),
        fabrics=tuple(report for reports in swept.values() for report in reports),
        imports=tuple(
            import_subject(place, known_machine) if kind_of(place) == "import" else file_subject(place, known_machine)
            for place in files
            if known_machine is not None
        ),
        comparison=_comparison_of(compared[0]) if compared else None,
        isolations=tuple(_isolation_of(place) for place in by_kind["isolation"]),
        bisection=read_bisection(by_kind["bisection"][0]) if by_kind["bisection"] else None,
    )


def _place(name: str) -> Path:
    """Return where a name lies: something stored, else the file of another tool."""
    path = Path(name)
    return path if is_file(path) and kind_of(path.parent) is None else find_stored(name)


def _fabrics_of(where: Path) -> tuple[FabricReport, ...]:
    """Return what a sweep over the pairs of hosts came to; () for any other run, and where no pair has answered."""
    plan = read_plan(where)
    if plan.fabric is None:
        return ()
    records, _unreadable = read_records(where)
    return tuple(report_of(plan, records, each, where, None) for each in metrics_measured(plan, records))


def _isolation_of(where: Path) -> Isolation:
    """Return what a search came to. Raises InputError where it has not ended."""
    found = isolations.read(where)
    if found is None:
        hint = f"go on: busbw isolate --resume {shlex.quote(str(where))}"
        raise InputError("this search has not come to its end", where=str(where), hint=hint)
    return found


def _comparison_of(where: Path) -> Comparison | None:
    """Return a comparison, or that of the ends of a bisection; None where they were not measured."""
    ends = where / bisections.ENDS
    if is_bisection(where):
        return read_comparison(ends) if is_comparison(ends) else None
    return read_comparison(where)


def _named_picture(machine: str | None) -> tuple[Picture | None, tuple[str, ...]]:
    """Return the node that is named, and why a platform's is not drawn. Raises InputError for what there is not."""
    if machine is None:
        return None, ()
    try:
        return Picture(view=node_view(machine), whose=f"{machine}, as named for this report"), ()
    except InputError as error:
        if source_kind(machine) != "absent":
            raise
        # Of a platform that there is, results can be judged all the same.
        return None, (f"the inside of a node of {platform(machine).platform.id} is not drawn: {error.cause}",)


def comparison(path: Path) -> Comparison:
    """Return what `busbw compare --json` wrote, or a comparison by its folder or the beginning of its name.

    Raises InputError for anything else.
    """
    if is_folder(path) or not path.suffix:
        where = find_stored(str(path))
        if not is_comparison(where):
            raise InputError("this is not a comparison", where=str(where), hint="busbw runs --kind comparison")
        return read_comparison(where)
    found = comparisons.decoded(read_whole(path, _MOST_BYTES), where=str(path))
    if any(not 0 < versus.other < len(found.sides) for versus in found.versus):
        raise InputError("not a comparison: a side is held against the first that is not there", where=str(path))
    return found


def scaling(path: Path) -> ScalingReport:
    """Return what `busbw scaling --json` wrote. Raises InputError for a file that holds something else."""
    content = read_whole(path, _MOST_BYTES)
    codec.check_schema(content, SCALING_SCHEMA, where=str(path))
    hint = "busbw scaling RUN... --json > FILE"
    return documents.decoded(content, ScalingReport, where=str(path), called="a scaling report", hint=hint)


def prediction(path: Path) -> Prediction:
    """Return what `busbw predict --json` wrote. Raises InputError for a file that holds something else."""
    hint = "busbw predict all_reduce --platform azure-nd-h100-v5 --nodes 4,16 --json > FILE"
    content = read_whole(path, _MOST_BYTES)
    return documents.decoded(content, Prediction, where=str(path), called="a prediction of sizes", hint=hint)


def step(path: Path) -> TrainPlan | ProxyResult | Run:
    """Return what `busbw train plan --json` or `busbw train proxy` wrote, or a run in which a step was replayed.

    Raises InputError for something else.
    """
    if not is_file(path):
        run = read(find_stored(str(path)))
        if run.step is None:
            hint = "busbw runs lists what is stored; busbw train run replays a step"
            raise InputError("no step was replayed in this run", where=str(path), hint=hint)
        return run
    content = read_whole(path, _MOST_BYTES)
    hint = "busbw train plan WORKLOAD --platform ID --gpus N --json > FILE"
    kind: type[TrainPlan | ProxyResult] = ProxyResult if b'"gradient_norms"' in content else TrainPlan
    return documents.decoded(content, kind, where=str(path), called="a step of training", hint=hint)


def export(directory: Path, form: str) -> bytes:
    """Return what is in `directory` in the format called `form`.

    Raises InputError when there is no such format, or when it cannot hold anything of this.
    """
    written = registry.find(form)
    if is_import(directory):
        return _written(written, export_of_import(imports.read(directory), imports.readings(directory)))
    run = read(directory)
    export = export_of_run(run)
    return _written(written, replaced(export, judged=judged_points(run)) if written.has_verdicts else export)


def _written(form: registry.Format, export: Export) -> bytes:
    if form.write is not None:
        return form.write(export)
    return duck.parquet(PointRow, export.rows, metadata={"busbw.row_schema": str(ROW_SCHEMA)})


def judged_points(run: Run) -> tuple[tuple[int, Verdict], ...]:
    """Return what each point was judged to be, held against what the run itself knows of its machine."""
    explained = judge_run(run, known_machine_of_run(run), StatedFacts())
    sizes = (size for series in explained.series for size in series.sizes)
    return tuple((size.point, size.verdict) for size in sizes if size.point is not None)

"""Results explained and judged: of a run, an import, or files of other tools, held against a machine."""

import datetime as dt
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from busbw import __version__
from busbw.api.history import opened
from busbw.api.importing import import_files
from busbw.api.loading import read
from busbw.api.stored import find, is_import
from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.facts.platforms import facts_of_gpus
from busbw.formats.lines.stream import UNCLAIMED
from busbw.judge.comparing.launch import of_run, of_table
from busbw.judge.explaining.explain import explain, explain_published
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.series import Network, Series, StatedFacts
from busbw.judge.explaining.slow_ends import pair_findings_of_import, pair_findings_of_run
from busbw.judge.explaining.sources import Logged, logged_of, series_of_import, series_of_run
from busbw.judge.gates.deciding import GatedPoints, MeasuredPoints, agreed, answers, notes_on
from busbw.judge.gates.expression import EXAMPLES, MOST_BYTES, parse_gate, parse_gates_file
from busbw.limits.algorithms import algorithm_name
from busbw.limits.ceiling import MOST_NODES
from busbw.machine.named import hardware_of_file, platform, platforms
from busbw.model.finding import Verdict
from busbw.model.gates import Gate, GateAnswers
from busbw.model.history import PointKind, PointSelection, Selection, Strand, Strands
from busbw.model.host import Hardware
from busbw.model.imported import Imported
from busbw.model.plan import MOST_RANKS
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict
from busbw.show.exports.junit import gates_junit_xml
from busbw.show.exports.rows import Export, export_of_import, export_of_run, place_of
from busbw.store import directory as directories
from busbw.store import imports
from busbw.store.files import exists, is_file, read_bounded, write_whole
from busbw.store.selecting import strands

_SHOWN_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedRun:
    """A run, and where it lies."""

    where: Path
    name: str
    run: Run


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedImport:
    """An import in the folder `where`, and the files that may hold NCCL's log."""

    where: Path
    name: str
    logs: tuple[str, ...]
    # Whether it was made of `logs` now, and is gone afterwards.
    is_temporary: bool


Opened = OpenedRun | OpenedImport


@contextmanager
def open_results(names: tuple[str, ...]) -> Iterator[Opened]:
    """Yield the result that one name means, or several files together; what was read of files is gone afterwards.

    Raises InputError for a name that means nothing, and for several that are not all files.
    """
    if all(is_file(Path(name)) and not is_import(Path(name).parent) for name in names):
        with TemporaryDirectory(prefix="busbw-judge-") as folder:
            done = import_files(names, Path(folder) / "import", Path(folder), tag=None, with_copies=False)
            shown = listed((Path(name).name for name in names), _SHOWN_NAMES)
            yield OpenedImport(where=done.where, name=shown, logs=names, is_temporary=True)
        return
    if len(names) != 1:
        raise InputError(
            f"{len(names)} results are named, and not all are files: {listed(names, _SHOWN_NAMES)}",
            hint="judge runs and imports one by one; to hold them against each other: busbw compare A B",
        )
    where = find(names[0])
    if is_import(where):
        yield OpenedImport(
            where=where, name=where.name, logs=tuple(map(str, imports.copies(where))), is_temporary=False
        )
    else:
        run = read(where)
        if run.plan.fabric is not None:
            raise InputError(
                "this is a sweep over pairs of hosts, which is judged by itself",
                where=str(where),
                hint=f"busbw fabric {where.name}",
            )
        yield OpenedRun(where=where, name=where.name, run=run)


def opened_series(result: Opened, node_gpus: int | None) -> tuple[Series, ...]:
    """Return the sweeps that an opened result holds; `node_gpus` by which an import's nodes are counted."""
    if isinstance(result, OpenedRun):
        return series_of_run(result.run, StatedFacts())
    imported, readings = imports.read(result.where), imports.readings(result.where)
    logged = _logged(result.logs)
    return series_of_import(imported, readings, StatedFacts(), node_gpus=node_gpus, logged=logged)[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedGates:
    """Gates, and the name of the baseline that those with a percentage are held against."""

    gates: tuple[Gate, ...]
    baseline: str | None = None


def asked_gates(
    *,
    at_least: tuple[str, ...] = (),
    at_most: tuple[str, ...] = (),
    within: tuple[str, ...] = (),
    baseline: str | None = None,
    file: Path | None = None,
) -> AskedGates | None:
    """Return the gates of the command line and of a file; None where there are none.

    A baseline on the command line takes the place of the file's, and so do percentages. Raises InputError for gates
    that say nothing, a file that is none, a baseline without a percentage and the other way round.
    """
    read = _read(file) if file is not None else None
    written = read.gates if read is not None else ()
    kept = tuple(gate for gate in written if gate.requirement != "within" or not within)
    gates = (
        *kept,
        *(parse_gate(text, "at_least") for text in at_least),
        *(parse_gate(text, "at_most") for text in at_most),
        *(parse_gate(text, "within") for text in within),
    )
    name = baseline if baseline is not None else read.baseline if read is not None else None
    relative = any(gate.requirement == "within" for gate in gates)
    if name is not None and not relative:
        raise InputError(f"--baseline {name}: how far below it may be is not said", hint=EXAMPLES["within"])
    if relative and name is None:
        raise InputError("--within: no baseline is named", hint="--baseline RUN, an import, or a log")
    return AskedGates(gates=gates, baseline=name) if gates else None


def _read(file: Path) -> AskedGates:
    """Return what a file of gates asks for; a baseline that lies beside it is found from anywhere."""
    found = parse_gates_file(read_bounded(file, most_bytes=MOST_BYTES, kind="file of gates"), where=str(file))
    beside = file.parent / found.baseline if found.baseline is not None else None
    is_beside = beside is not None and exists(beside)
    return AskedGates(gates=found.gates, baseline=str(beside) if is_beside else found.baseline)


def answer_gates(result: Opened, asked: AskedGates) -> GateAnswers:
    """Return what a result comes to under each gate.

    Raises InputError for an unknown baseline or that is not comparable, and for a collective that there is
    not.
    """
    measured = _measured(result)
    if asked.baseline is None:
        return answers(asked.gates, measured.held)
    with open_results((asked.baseline,)) as before:
        if _places(before) & _places(result):
            raise InputError("the baseline is the result itself", where=f"--baseline {asked.baseline}")
        baseline = _measured(before)
    try:
        notes = notes_on(baseline, measured)
    except InputError as error:
        raise InputError(error.cause, where=f"--baseline {asked.baseline}", hint=error.hint) from error
    return answers(asked.gates, measured.held, baseline.held, notes)


def _places(result: Opened) -> set[Path]:
    """Return where a result lies; of files that were read now, the files."""
    if isinstance(result, OpenedRun) or not result.is_temporary:
        return {result.where.resolve()}
    return {Path(name).resolve() for name in result.logs}


def _measured(result: Opened) -> MeasuredPoints:
    if isinstance(result, OpenedRun):
        run = result.run
        start = run.plan.surroundings
        export = export_of_run(run)
        return MeasuredPoints(
            held=GatedPoints(name=result.name, rows=export.rows, why_missing=_why_missing(run)),
            circumstances=of_run(run),
            devices=_devices(export),
            hosts=len(run.plan.placement.hosts),
            platform=start.platform if start is not None else None,
            verdict=run.verdict,
        )
    imported = imports.read(result.where)
    export = export_of_import(imported, imports.readings(result.where))
    return MeasuredPoints(
        held=GatedPoints(
            name=result.name,
            rows=export.rows,
            cut_off=frozenset(group.table for group in export.groups if not group.complete),
            torn={
                table.number: unread.line
                for unread in imports.unread(result.where)
                for table in imported.tables
                if unread.why not in UNCLAIMED
                and unread.source == table.source
                and table.first_line <= unread.line <= table.last_line
            },
            doubts={place_of(imported, table, line): why for table in imported.tables for line, why in table.doubts},
        ),
        circumstances=agreed([of_table(table) for table in imported.tables if table.readings], export.rows),
        devices=_devices(export),
        hosts=_hosts(imported),
    )


def _devices(export: Export) -> tuple[str, ...]:
    return tuple(device.model for group in export.groups for device in group.devices if device.model)


def _hosts(imported: Imported) -> int:
    """Return over how many hosts the tables of an import were measured; 0 where they differ, or do not tell."""
    counts = {
        len({device.host for device in table.devices})
        if len(table.devices) >= (table.ranks_from_rates or table.ranks or MOST_RANKS)
        and all(device.host for device in table.devices)
        else 0
        for table in imported.tables
        if table.readings
    }
    return counts.pop() if len(counts) == 1 else 0


def _why_missing(run: Run) -> str:
    """Return why points of a run that were planned have no result."""
    if run.outcome is None:
        return "not measured: the run was cut off"
    if run.outcome.ended == "time":
        return "not measured: its time limit came first (--time-limit)"
    return f"not measured: {run.outcome.cause}" if run.outcome.cause else "not measured"


def write_junit(explained: ExplainedVerdict, path: Path) -> None:
    """Write what gates came to as JUnit XML.

    Raises InputError where there were none, and for a path that is not a file's, RunError when the disk refuses.
    """
    if explained.gates is None:
        raise InputError(
            "--junit: there are no gates",
            hint=f"{EXAMPLES['at_least']}; without gates: busbw export RUN --format junit",
        )
    made = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    content = gates_junit_xml(explained.gates, subject=explained.subject, made=made, busbw_version=__version__)
    write_whole(path.absolute(), content)


_NETWORKS: dict[str, Network] = {"fabric": "fabric", "fallback": "fallback", "loopback": "loopback"}


def judge_results(
    names: tuple[str, ...],
    *,
    platform_name: str | None = None,
    host: Path | None = None,
    here: bool = False,
    stated: StatedFacts | None = None,
    gates: AskedGates | None = None,
) -> ExplainedVerdict:
    """Return everything explained: one run or import, files of other tools, or, without a name, a platform's figures.

    `platform_name`, `host` (a snapshot) or `here`: the machine to hold it against; without them the platform that a run
    stored, else the names of the GPUs that a result holds. `gates`: what the result must meet beside. Raises InputError
    for what there is not, and where nothing at all is named.
    """
    if not names and gates is not None:
        raise InputError("gates are held against a result, and none is named", hint="busbw judge last --at-least ...")
    if not names and platform_name is None:
        raise InputError(
            "nothing to judge is named",
            hint="name a run (last), files of nccl-tests, or a platform: busbw judge --platform aws-p5",
        )
    known_machine = known_machine_of(platform_name, host, here=here)
    given = stated or StatedFacts()
    if not names and known_machine.platform is not None:
        return explain_published(known_machine.platform)
    with open_results(names) as result:
        if isinstance(result, OpenedRun):
            is_named = platform_name is not None or host is not None or here
            known = known_machine if is_named else known_machine_of_run(result.run)
            explained = judge_run(result.run, replace(known, own=_own(result.run)), given)
        else:
            explained = _judge_tables(result.where, result.name, known_machine, given, _logged(result.logs))
        if gates is None:
            return explained
        return msgspec.structs.replace(explained, gates=answer_gates(result, gates))


def _own(run: Run) -> tuple[Reference, ...]:
    """Return what earlier runs over NCCL on the same hosts reached; MPI within one host is judged by the run itself."""
    if run.plan.gpu_setup is None and len(run.plan.placement.hosts) == 1:
        return ()

    return own_references(run)


def judge_run(run: Run, known_machine: KnownMachine, stated: StatedFacts) -> ExplainedVerdict:
    """Return a run explained."""
    return explain(
        run.plan.run_id,
        series_of_run(run, stated),
        known_machine,
        run=run,
        findings=pair_findings_of_run(run, known_machine),
    )


def known_machine_of_run(run: Run) -> KnownMachine:
    """Return what a run is held against where nothing is named: the platform that it stored, if it is known here."""
    start = run.plan.surroundings
    return _stored_machine(start.platform if start is not None else None)


def _stored_machine(platform_name: str | None) -> KnownMachine:
    known = {each.platform.id for each in platforms()}
    return known_machine_of(platform_name if platform_name in known else None)


def judge_import(where: Path, subject: str, known_machine: KnownMachine, stated: StatedFacts) -> ExplainedVerdict:
    """Return a stored import explained, with what NCCL's log says where it kept a copy of one."""
    return _judge_tables(where, subject, known_machine, stated, _logged(tuple(map(str, imports.copies(where)))))


def known_machine_of(platform_name: str | None, host: Path | None = None, *, here: bool = False) -> KnownMachine:
    """Return the machine to hold results against: a platform, a host by its snapshot, this host, or none of them.

    Raises InputError for an unknown platform or snapshot.
    """
    if here and host is not None:
        raise InputError(f"both {str(host)!r} and --here are given", hint="choose one of them")
    known = tuple(each.platform for each in platforms())
    return KnownMachine(
        hardware=_hardware(host, here=here),
        platform=platform(platform_name).platform if platform_name is not None else None,
        platform_name=platform_name,
        gpus=facts_of_gpus(known),
    )


def _hardware(host: Path | None, *, here: bool) -> Hardware | None:
    if here:
        from busbw.machine.named import hardware_here  # noqa: PLC0415 - importing it takes as long as judging a file

        return hardware_here()
    return hardware_of_file(host) if host is not None else None


def _logged(names: tuple[str, ...]) -> Logged:
    """Return what NCCL's log among the rows says; of several files it is not known whose it is."""
    from busbw.api.diagnoses import doctor_logs  # noqa: PLC0415 - most files hold no log

    if len(names) > 1:
        return Logged()
    try:
        return logged_of(doctor_logs(names))
    except InputError:
        # No line of NCCL's log in it.
        return Logged()


def _judge_tables(
    where: Path, subject: str, known_machine: KnownMachine, stated: StatedFacts, logged: Logged
) -> ExplainedVerdict:
    imported = imports.read(where)
    if imported.stated.platform is not None and known_machine.platform is None and known_machine.hardware is None:
        known_machine = replace(_stored_machine(imported.stated.platform), own=known_machine.own)
    node_gpus = _node_gpus(known_machine)
    series, left_out = series_of_import(imported, imports.readings(where), stated, node_gpus=node_gpus, logged=logged)
    found = (*imported.findings, *pair_findings_of_import(imported, imports.readings(where)))
    explained = explain(subject, series, known_machine, findings=found, left_out=left_out)
    return _failed(explained, imported)


def _failed(explained: ExplainedVerdict, imported: Imported) -> ExplainedVerdict:
    """Return it as failed where the programs failed before they measured anything."""
    said = [f"{table.program or table.tool}: {text}" for table in imported.tables for _, text in table.failures]
    if not said or any(table.readings for table in imported.tables):
        return explained
    verdict = Verdict(outcome="failed", sentence=f"failed: {said[0]}.", because=("IMP001",))
    return msgspec.structs.replace(explained, verdict=verdict)


def _node_gpus(known_machine: KnownMachine) -> int | None:
    if known_machine.hardware is not None:
        return len(known_machine.hardware.gpus) or None
    return known_machine.platform.gpu.count or None if known_machine.platform is not None else None


def stated_facts(
    *,
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    nvls: str | None = None,
    sharp: str | None = None,
    algorithm: str | None = None,
    network: str | None = None,
) -> StatedFacts:
    """Return what somebody says of how a result was measured, in the words of the command line.

    Raises InputError for numbers below 1 and for algorithms without a bound.
    """
    for name, number in (("--nodes", nodes), ("--gpus-per-node", gpus_per_node)):
        if number is not None and not 1 <= number <= MOST_NODES:
            raise InputError(f"{name} {number}", hint=f"from 1 to {MOST_NODES}")
    return StatedFacts(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        nvls=None if nvls is None else nvls == "on",
        sharp=None if sharp is None else sharp == "on",
        algorithms=(algorithm_name(algorithm),) if algorithm is not None else (),
        network=_NETWORKS[network] if network is not None else None,
    )


# Fewer runs do not tell how far runs of one machine lie apart.
_ENOUGH = 5
# The latest say most of the machine as it is.
_MOST = 50
# Runs that were found slow or wrong are no reference.
_SOUND = ("ok", "cannot_tell")


def own_references(run: Run) -> tuple[Reference, ...]:
    """Return what earlier runs reached, for each point that this run has too, where there were enough of them.

    Raises RunError where the history cannot be kept.
    """
    mine = {(item.collective, item.dtype, item.in_place, item.mode, item.ranks) for item in run.measurements}
    if not mine:
        return ()
    selection = Selection(kind="run", outcomes=_SOUND, backend=run.plan.backend)
    with opened(directories.root(), lambda _line: None) as history:
        found = strands(history, selection, PointSelection(ranks=run.plan.placement.ranks), "busbw_Bps")
    here = next((strand.kind for strand in found.strands if _has(found, strand, run.plan.run_id)), None)
    hosts = ",".join(sorted(run.plan.placement.hosts))
    return tuple(
        reference
        for strand in found.strands
        if _key(strand.kind) in mine and _is_same(strand.kind, hosts, here)
        for reference in _references(found, strand, run)
    )


def _key(kind: PointKind) -> tuple[str, str | None, bool | None, str | None, int | None]:
    return kind.collective, kind.dtype, kind.in_place, kind.mode, kind.ranks


def _has(found: Strands, strand: Strand, run_id: str) -> bool:
    return any(found.runs[place].run_id == run_id for place in strand.runs)


def _is_same(kind: PointKind, hosts: str, here: PointKind | None) -> bool:
    """Whether a point was measured on these hosts, and with the libraries of this run where they are known."""
    if ",".join(sorted(kind.hosts.split(","))) != hosts or kind.source is not None:
        return False
    return here is None or kind.libraries == here.libraries


def _references(found: Strands, strand: Strand, run: Run) -> Iterable[Reference]:
    size_bytes = strand.kind.size_bytes
    if not size_bytes:
        return
    settings = next((each.settings for each in found.runs if each.run_id == run.plan.run_id), None)
    values = {
        found.runs[place].run_id: value
        for place, value in sorted(zip(strand.runs, strand.values, strict=True))
        if found.runs[place].run_id != run.plan.run_id and (settings is None or found.runs[place].settings == settings)
    }
    if len(values) < _ENOUGH:
        return
    nodes = len(run.plan.placement.hosts)
    for run_id, value in list(values.items())[-_MOST:]:
        yield Reference(
            collective=strand.kind.collective,
            kind="here",
            nodes=nodes,
            gpus=strand.kind.ranks,
            document=run_id,
            words=f"run {run_id}",
            source=(run_id,),
            points=((size_bytes, value),),
        )

"""Gates asked for on the command line or in a file, and what a result comes to under them."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from busbw import __version__
from busbw.api.compared_results import exists
from busbw.api.opened_results import Opened, OpenedRun, opened
from busbw.base.errors import InputError
from busbw.formats.lines.stream import UNCLAIMED
from busbw.judge.comparing.circumstances import of_run, of_table
from busbw.judge.gates.baseline import Measured, agreed, notes_on
from busbw.judge.gates.deciding import Held, answers
from busbw.judge.gates.expression import EXAMPLES, parse_gate
from busbw.judge.gates.file import MOST_BYTES, parse_gates_file
from busbw.model.gates import Gate, GateAnswers
from busbw.model.imported import Imported
from busbw.model.plan import MOST_RANKS
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict
from busbw.show.exports.imports import export_of_import, place_of
from busbw.show.exports.junit import gates_junit_xml
from busbw.show.exports.rows import Export
from busbw.show.exports.runs import export_of_run
from busbw.store import imports
from busbw.store.files import write_whole


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
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read gates: {getattr(error, 'strerror', None) or error}", where=str(file)) from error
    found = parse_gates_file(raw, where=str(file))
    beside = file.parent / found.baseline if found.baseline is not None else None
    is_beside = beside is not None and exists(beside)
    return AskedGates(gates=found.gates, baseline=str(beside) if is_beside else found.baseline)


def answer_gates(result: Opened, asked: AskedGates) -> GateAnswers:
    """Return what a result comes to under each gate.

    Raises InputError for a baseline that there is not or that is not comparable, and for a collective that there is
    not.
    """
    measured = _measured(result)
    if asked.baseline is None:
        return answers(asked.gates, measured.held)
    with opened((asked.baseline,)) as before:
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
    if isinstance(result, OpenedRun) or not result.is_passing:
        return {result.where.resolve()}
    return {Path(name).resolve() for name in result.logs}


def _measured(result: Opened) -> Measured:
    if isinstance(result, OpenedRun):
        run = result.run
        start = run.plan.surroundings
        export = export_of_run(run)
        return Measured(
            held=Held(name=result.name, rows=export.rows, why_missing=_why_missing(run)),
            circumstances=of_run(run),
            devices=_devices(export),
            hosts=len(run.plan.placement.hosts),
            platform=start.platform if start is not None else None,
            verdict=run.verdict,
        )
    imported = imports.read(result.where)
    export = export_of_import(imported, imports.readings(result.where))
    return Measured(
        held=Held(
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

    Raises InputError where there were none, and for a path that is no file's, RunError when the disk refuses.
    """
    if explained.gates is None:
        raise InputError(
            "--junit: there are no gates",
            hint=f"{EXAMPLES['at_least']}; without gates: busbw export RUN --format junit",
        )
    made = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    content = gates_junit_xml(explained.gates, subject=explained.subject, made=made, busbw_version=__version__)
    write_whole(path.absolute(), content)

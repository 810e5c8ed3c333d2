"""What a collective will take where nothing was measured, and tables of cells held against that."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw.api.machine import rates_of_host
from busbw.api.predicting.calibrations import CELLS_BYTES, CalibratedMachine, calibration, table_machine, table_words
from busbw.api.predicting.choices import FASTEST, ChoiceStart, Chooser, MapSearch, check_start, other_ways, stated_start
from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.base.units import format_rate, format_size, format_time
from busbw.facts.nccl_model import nccl_constants, newest_release, release_of
from busbw.facts.platforms import all_platforms, platforms_called_in
from busbw.facts.predictor import predictor_constants
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.limits.algorithms import algorithm_name
from busbw.machine.named import hardware_of_file, platform, topology
from busbw.model.platform import Platform
from busbw.model.predict.nccl_choice import Protocol
from busbw.model.predict.prediction import (
    Band,
    ChangedCall,
    HeldCell,
    HeldDocument,
    HeldTable,
    PredictedCall,
    PredictedSize,
    Prediction,
    SimulatedCall,
    Tier,
)
from busbw.predict.calibrating import AskedCells, Calibration, calibrated, calls_of
from busbw.predict.cells import read_cells
from busbw.predict.changes import Changes, changed_call, changes_of
from busbw.predict.closed import predicted
from busbw.predict.described import captured_machine, described_machine
from busbw.predict.intervals import band_of
from busbw.predict.machines import CannotTellError, MachineClass, groups_of, machine_of, measured_elsewhere
from busbw.predict.sends import SENDS
from busbw.predict.sweeps import CellGroup
from busbw.predict.tiers import ScheduleTier, at_line_rate, collnet_ways, simulated
from busbw.predict.worth import narrower_of, sensitivity_of
from busbw.stats.distributions import median
from busbw.store.files import read_bounded
from busbw.topo.origins.from_platform import map_gap

MOST_NODES = 100_000
_MOST_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """What is asked: a collective on nodes of a platform. None: left to what is known."""

    collective: str
    # A platform, by id or name; None: `machine` describes one.
    platform: str | None = None
    nodes: tuple[int, ...]
    sizes_bytes: tuple[int, ...]
    gpus: int | None = None
    algorithm: str | None = None
    protocol: Protocol | None = None
    nccl: str | None = None
    graph: Path | None = None
    log: Path | None = None
    stated: tuple[str, ...] = ()
    # A run, an import, files of other tools, or a table of cells, measured on this machine.
    calibrate: Path | None = None
    # As `nic=800G,nics=16`.
    what_if: tuple[str, ...] = ()
    # None: the cheapest that models what was asked.
    tier: Tier | None = None
    # As `gpu=H200, gpus=8, nics=16x200G, fabric=RoCE`.
    machine: str | None = None
    # A captured host, of which the nodes are.
    host: Path | None = None


# Of the time of a way that was measured on such machines: one that takes less is named beside it.
_CLEARLY_LESS = 0.9
# The ends of an interval so far apart say next to nothing.
_VAGUE = 100


def predict(asked: PredictRequest) -> Prediction:
    """Return what each size takes on each number of nodes. Raises InputError for what cannot be asked."""
    _check_rows(asked)
    found, machine = _nodes_of(asked)
    release = release_of(asked.nccl) if asked.nccl is not None else newest_release()
    nccl_constants(release)
    wanted = algorithm_name(asked.algorithm) if asked.algorithm is not None else None
    stated = stated_start(asked.graph, asked.log, asked.stated)
    check_start(stated, machine.rates.gpus, asked.nodes)
    calibration = _calibration(asked, found, machine, wanted)
    changes = changes_of(asked.what_if)
    if asked.tier == "closed" and changes is not None and changes.takes_schedules:
        raise InputError(f"the closed form cannot tell {changes.words}", where="--tier closed", hint="--tier steps")
    chooser = Chooser(
        machine=machine, found=found, release=release, collective=asked.collective, wanted=wanted,
        protocol=asked.protocol,
    )  # fmt: skip
    gap = _no_map(asked, found) if stated is None else None
    name = str(asked.host) if asked.host is not None else found.id
    search = MapSearch(name, topology(name), machine, release) if stated is None and gap is None else None
    rows, notes = [], [f"calibrated: {words}" for words in calibration.words] if calibration is not None else []
    for nodes in asked.nodes:
        start = search.start(nodes) if search is not None else stated
        settled = _Settled(chooser=chooser, machine=machine, calibration=calibration, changes=changes, tier=asked.tier)
        rows += [_row(settled, asked, nodes, size, start) for size in asked.sizes_bytes]
    told = [row for row in rows if row.expected is not None]
    if told and calibration is not None and not any(_is_shifted(row) for row in told):
        raise InputError(_no_shift(asked, calibration, told), where=str(asked.calibrate))
    if any(row.choice is None for row in told) and wanted is None and asked.collective not in SENDS:
        gap = search.gap if search is not None else gap
        why = f" ({gap})" if gap is not None else ""
        notes.append(
            f"what NCCL takes cannot be told from its search{why}; it is with --graph FILE (NCCL_GRAPH_DUMP_FILE), "
            "--log FILE or --channels ring=8x48/48"
        )
    notes += [*other_ways(told), *_faster_ways(told), *_vague(told)]
    if any(groups_of(machine, row.nodes) > 1 for row in told) and changes is None:
        notes.append(
            "how the leaf switches are joined is not published: --what-if oversubscription=2 shows what a blocking "
            "spine would cost"
        )
    if any(row.at_line_rate for row in rows) and machine.rates.sharp is not True:
        notes.append("SHARP is not known to be offered here: at line rate only as if it were")
    calls = [row.expected for row in told if row.expected is not None]
    largest = max(calls, key=lambda call: (call.nodes, call.size_bytes), default=None)
    return Prediction(
        name=found.id if asked.platform is not None else machine.name,
        collective=asked.collective,
        gpus=machine.rates.gpus,
        release=release,
        beside=asked.tier if asked.tier != "closed" else None,
        rows=tuple(rows),
        elsewhere=measured_elsewhere(machine, asked.collective, all_platforms(())),
        sensitivity=sensitivity_of(machine, largest, asked.collective) if largest and not largest.presumed else None,
        narrower=narrower_of(machine, largest, asked.collective)
        if largest is not None and calibration is None
        else None,
        notes=(*notes, *machine.rates.assumptions),
    )


def _check_rows(asked: PredictRequest) -> None:
    """Raise InputError for numbers of nodes that cannot be, and for more rows than are predicted at once."""
    for nodes in asked.nodes:
        if not 1 <= nodes <= MOST_NODES:
            raise InputError(
                f"{nodes} nodes cannot be predicted", where="--nodes", hint=f"from 1 to {MOST_NODES}: --nodes 32"
            )
    if len(asked.nodes) * len(asked.sizes_bytes) > _MOST_ROWS:
        raise InputError(
            f"{len(asked.nodes)} numbers of nodes and {len(asked.sizes_bytes)} sizes are more than {_MOST_ROWS} rows",
            where="--nodes",
            hint="fewer sizes, or fewer numbers of nodes",
        )


def _faster_ways(told: Sequence[PredictedSize]) -> list[str]:
    """Return which ways would take clearly less than those that are told, because nobody measured them there."""
    faster: dict[str, list[PredictedCall]] = defaultdict(list)
    for row in told:
        if row.expected is None or row.expected.kinship != "in family" or row.chosen_by != FASTEST:
            continue
        others = [call for call in row.others if call.kinship == "across"]
        call = min(others, key=lambda each: each.time_s, default=None)
        if call is not None and call.time_s < _CLEARLY_LESS * row.expected.time_s:
            faster[call.algorithm].append(call)
    return [
        f"{name} would take less in {counted(len(calls), 'row')} ({format_time(calls[0].time_s)} for "
        f"{format_size(calls[0].size_bytes)} on {counted(calls[0].nodes, 'node')}); it is not in the table because "
        "nobody measured it on such machines: --explain"
        for name, calls in faster.items()
    ]


def _vague(told: Sequence[PredictedSize]) -> list[str]:
    """Return a line on rows whose interval is so wide that it says next to nothing."""
    calls = [row.expected for row in told if row.expected is not None]
    wide = [call for call in calls if call.high_Bps > _VAGUE * call.low_Bps]
    if not wide:
        return []
    rows = f"in {len(wide)} of {counted(len(calls), 'row')} the interval spans more than a factor of {_VAGUE}"
    return [f"{rows}, which is next to cannot tell: measured sizes of the machine itself (--calibrate) say more"]


def _is_shifted(row: PredictedSize) -> bool:
    return row.before is not None or (row.expected is not None and row.expected.presumed)


def _no_shift(asked: PredictRequest, calibration: Calibration, told: Sequence[PredictedSize]) -> str:
    """Return why no prediction goes through a cell: other algorithms, or other parts that limit."""
    measured = dict.fromkeys(f"{point.call.algorithm} ({point.call.limited_by})" for point in calibration.points)
    calls = [row.expected for row in told if row.expected is not None]
    names = dict.fromkeys(f"{call.algorithm} ({call.limited_by})" for call in calls)
    return f"{asked.calibrate} was measured by {', '.join(measured)}, and predicted is {', '.join(names)}"


def _no_map(asked: PredictRequest, found: Platform) -> str | None:
    """Return why there is no map of a node; None: there is one."""
    if asked.machine is not None:
        return "a described machine has no map"
    return map_gap(found) if asked.host is None else None


def _nodes_of(asked: PredictRequest) -> tuple[Platform, MachineClass]:
    """Return the platform that is asked about, or the one that a described machine or a host is like, and its nodes."""
    given = [each for each in (asked.platform, asked.machine, asked.host) if each is not None]
    if len(given) != 1 or (asked.machine is not None and asked.gpus is not None):
        what = "--machine and --gpus" if len(given) == 1 else "more than one of --platform, --machine and --host"
        raise InputError(
            f"the machine is said by {what}",
            where="--machine" if asked.machine is not None else "--host",
            hint="one of --platform ID, --host HOST.tar and --machine 'gpu=H200, gpus=8, ...'",
        )
    if asked.machine is not None:
        return described_machine(asked.machine, all_platforms(()), platforms_called_in(asked.machine))
    if asked.host is not None:
        hardware = hardware_of_file(asked.host)
        rates = rates_of_host(asked.host, hardware, asked.gpus)
        return captured_machine(hardware, rates, all_platforms(()), str(asked.host))
    name = asked.platform or ""
    found = platform(name).platform
    return found, machine_of(found, gpus=asked.gpus, name=name)


@dataclass(frozen=True, kw_only=True)
class _Settled:
    """What holds for every row."""

    chooser: Chooser
    machine: MachineClass
    calibration: Calibration | None
    changes: Changes | None
    tier: Tier | None


def _calibration(
    asked: PredictRequest, found: Platform, machine: MachineClass, wanted: str | None
) -> Calibration | None:
    if asked.calibrate is None:
        return None
    cells = AskedCells(collective=asked.collective, nodes=asked.nodes, sizes_bytes=asked.sizes_bytes)
    hardware = hardware_of_file(asked.host) if asked.host is not None else None
    known = KnownMachine(hardware=hardware, platform=found, platform_name=asked.platform)
    return calibration(asked.calibrate, CalibratedMachine(machine=machine, known=known, algorithm=wanted), cells)


def _row(
    settled: _Settled, asked: PredictRequest, nodes: int, size_bytes: int, start: ChoiceStart | None
) -> PredictedSize:
    chosen = settled.chooser.choice(nodes, size_bytes, start)
    try:
        before, calls = _calls(settled, asked, nodes, size_bytes)
    except CannotTellError as error:
        line_rate, cannot = _at_line_rate(settled, asked, nodes, size_bytes)
        return PredictedSize(
            nodes=nodes, size_bytes=size_bytes, choice=chosen, at_line_rate=line_rate, cannot_simulate=cannot,
            cannot=str(error),
        )  # fmt: skip
    expected, by = settled.chooser.expected(calls, chosen, is_own=start is not None and start.is_own)
    if expected is None:
        return PredictedSize(
            nodes=nodes,
            size_bytes=size_bytes,
            others=calls,
            choice=chosen,
            cannot=f"NCCL would take {by}, and no measurement of that on such machines is published",
        )
    changed, cannot = _changed(settled, expected, asked.collective)
    simulation, cannot_simulate = _simulated(settled, expected, asked.collective)
    return PredictedSize(
        nodes=nodes,
        size_bytes=size_bytes,
        expected=expected,
        before=next((call for call in before if call.algorithm == expected.algorithm and call != expected), None),
        others=tuple(call for call in calls if call is not expected),
        chosen_by=by,
        choice=chosen,
        changed=changed,
        cannot_change=cannot,
        simulated=simulation,
        cannot_simulate=cannot_simulate,
    )


def _at_line_rate(
    settled: _Settled, asked: PredictRequest, nodes: int, size_bytes: int
) -> tuple[tuple[SimulatedCall, ...], str | None]:
    """Return what SHARP takes at line rate by each way that is asked for, and why others are not told."""
    ways = collnet_ways(asked.algorithm)
    if settled.tier in (None, "closed") or not ways:
        return (), None
    if settled.changes is not None:
        return (), "SHARP is shown at line rate for the machine as it is, without --what-if"
    tier: ScheduleTier = "events" if settled.tier == "events" else "steps"
    found, reasons = [], []
    for way in ways:
        try:
            found.append(
                at_line_rate(
                    settled.machine,
                    nodes=nodes,
                    collective=asked.collective,
                    algorithm=way,
                    size_bytes=size_bytes,
                    tier=tier,
                )
            )
        except CannotTellError as error:
            reasons.append(str(error))
    return tuple(found), "; ".join(dict.fromkeys(reasons)) or None


def _calls(
    settled: _Settled, asked: PredictRequest, nodes: int, size_bytes: int
) -> tuple[tuple[PredictedCall, ...], tuple[PredictedCall, ...]]:
    """Return calls before and after measured cells shifted them; before is empty where cells alone tell them.

    Raises CannotTellError where no data applies.
    """
    machine, points = settled.machine, settled.calibration.points if settled.calibration is not None else ()
    ask = calls_of if points else predicted
    collective = asked.collective
    before = ask(
        machine, nodes=nodes, collective=collective, size_bytes=size_bytes, algorithm=settled.chooser.wanted,
        protocol=asked.protocol,
    )  # fmt: skip
    left_out = predictor_constants().left_out
    after = tuple(calibrated(call, points, left_out, collective) for call in before)
    told = tuple(call for call, old in zip(after, before, strict=True) if not call.presumed or call != old)
    if not told:
        raise CannotTellError(f"no document tells it, and the calibration says nothing of {counted(nodes, 'node')}")
    return tuple(call for call in before if not call.presumed), told


def _simulated(settled: _Settled, expected: PredictedCall, collective: str) -> tuple[SimulatedCall | None, str | None]:
    """Return what a schedule makes of the call, where that was asked for, or why it cannot be told."""
    if settled.tier in (None, "closed"):
        return None, None
    try:
        return simulated(
            settled.machine,
            nodes=expected.nodes,
            collective=collective,
            algorithm=expected.algorithm,
            size_bytes=expected.size_bytes,
            tier="steps" if settled.tier == "steps" else "events",
        ), None
    except CannotTellError as error:
        return None, str(error)


def _changed(settled: _Settled, expected: PredictedCall, collective: str) -> tuple[ChangedCall | None, str | None]:
    """Return what the changes that were asked for make of a call, or why that cannot be told."""
    if settled.changes is None:
        return None, None
    try:
        tier: ScheduleTier = "events" if settled.tier == "events" else "steps"
        return changed_call(settled.machine, expected, collective, settled.changes, tier=tier), None
    except CannotTellError as error:
        return None, str(error)


def hold_against(path: Path) -> HeldTable:
    """Return a table of measured cells beside predictions. Raises InputError for what is no such table."""
    raw = read_bounded(path, most_bytes=CELLS_BYTES, kind="table of cells")
    table = read_cells(raw, str(path), table_machine, table_words)
    cells, impossible = [], []
    for group in table.groups:
        sound, above = _held(group)
        cells += sound
        impossible += above
    return HeldTable(
        where=str(path), cells=tuple(cells), documents=_documents(cells), left_out=(*table.left_out, *impossible[:20])
    )


def _held(group: CellGroup) -> tuple[list[HeldCell], list[str]]:
    """Return the cells of a group beside what is predicted, and in words those that no way of doing it allows."""
    found, above = [], []
    for size_bytes, measured_Bps in group.cells:
        call, cannot = None, None
        try:
            calls = predicted(
                group.machine,
                nodes=group.nodes,
                collective=group.collective,
                size_bytes=size_bytes,
                algorithm=group.stated,
                constants=predictor_constants(),
            )
            most = max(calls, key=lambda way: way.bound_Bps)
            if measured_Bps > most.bound_Bps:
                above.append(
                    f"{group.document}: {format_rate(measured_Bps)} of {format_size(size_bytes)} on "
                    f"{counted(group.nodes, 'node')} is above what {most.algorithm} can reach, "
                    f"{format_rate(most.bound_Bps)}"
                )
                continue
            call = calls[0]
        except (CannotTellError, InputError) as error:
            cannot = str(error).splitlines()[0].removeprefix("error: ")
        found.append(
            HeldCell(
                document=group.document,
                name=group.machine.name,
                nodes=group.nodes,
                gpus=group.machine.rates.gpus * group.nodes,
                collective=group.collective,
                size_bytes=size_bytes,
                measured_Bps=measured_Bps,
                predicted=call,
                cannot=cannot,
            )
        )
    return found, above


def _documents(cells: Sequence[HeldCell]) -> tuple[HeldDocument, ...]:
    by: dict[tuple[str, Band], list[HeldCell]] = defaultdict(list)
    for cell in cells:
        by[cell.document, band_of(cell.size_bytes)].append(cell)
    found = []
    for (document, band), members in sorted(by.items()):
        calls = [(cell, cell.predicted) for cell in members if cell.predicted is not None]
        errors = sorted(abs(math.log(call.busbw_Bps / cell.measured_Bps)) for cell, call in calls)
        widths = sorted((call.high_Bps - call.low_Bps) / 2 / call.busbw_Bps for _, call in calls)
        found.append(
            HeldDocument(
                document=document,
                band=band,
                kinship=calls[0][1].kinship if calls else None,
                cells=len(members),
                told=len(calls),
                inside=sum(cell.is_inside is True for cell in members),
                median_error=median(errors) if errors else None,
                half_width=median(widths) if widths else None,
            )
        )
    return tuple(found)

"""Measured points that calibrate a machine: of a run, an import or files of other tools, or of a table of cells.

Results are opened as `busbw judge` opens them. What was measured on another machine, over another library or network,
or with another setting of NVLink SHARP is refused by name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import structs

from busbw.api.verdicts import Opened, OpenedRun, open_results, opened_series
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, platforms_called_in
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.series import Series
from busbw.machine.capture.sites import site_files
from busbw.machine.named import platform
from busbw.predict.calibrating import AskedCells, Calibration, calibration_of
from busbw.predict.cells import read_cells
from busbw.predict.closed import bounds_of
from busbw.predict.machines import CannotTellError, MachineClass, machine_of
from busbw.predict.sweeps import CellGroup
from busbw.predict.worded import worded_machine
from busbw.store import imports
from busbw.store.files import read_bounded

CELLS_BYTES = 64 * 2**20
_TABLES = (".csv", ".tsv")
DETOURS = {"sockets": "over sockets", "shm": "through the memory of the host"}
_NETWORKS = {"fallback": "over TCP on purpose", "loopback": "through the NICs of one node"}
_NVLS = ("nvls", "nvlstree")


@dataclass(frozen=True, kw_only=True)
class CalibratedMachine:
    """The machine that is asked about, and by what a result is told to be of another."""

    machine: MachineClass
    known: KnownMachine
    # The algorithm that was asked for; None: none was.
    algorithm: str | None


def calibration(path: Path, asked: CalibratedMachine, cells: AskedCells) -> Calibration:
    """Return what a result or a table says of a machine; a table of cells is a file whose name ends in .csv or .tsv.

    Raises InputError for what is neither, and for what was measured on another machine or in another mode.
    """
    where = str(path)
    if path.suffix.lower() in _TABLES:
        raw = read_bounded(path, most_bytes=CELLS_BYTES, kind="table of cells")
        table = read_cells(raw, where, table_machine, table_words)
        found = calibration_of(table.groups, asked.machine, cells, where)
        return replace(found, words=(*found.words, *table.left_out)) if table.left_out else found
    with open_results((where,)) as result:
        stored = _platform_of(result)
        has = asked.known.platform
        if stored is not None and has is not None and asked.known.hardware is None and stored != has.id:
            raise InputError(
                f"{where} was measured on {stored}, not on {has.id}",
                where=where,
                hint="cells of one machine say nothing of another",
            )
        series = opened_series(result, asked.machine.rates.gpus or None)
    of_collective = [each for each in series if each.collective == cells.collective]
    for each in of_collective:
        _check(each, asked, where)
    found = calibration_of([*_groups(of_collective, asked.machine, where)], asked.machine, cells, where)
    others = dict.fromkeys(each.collective for each in series if each.collective != cells.collective)
    untold = [f"not used: {each.title}: on how many nodes is not known" for each in of_collective if not each.nodes]
    return replace(found, words=(*found.words, *(f"not used: {name}" for name in others), *untold))


@cache
def table_machine(name: str, gpus: int) -> MachineClass:
    """Return a platform with so many GPUs of each node, as rows of tables name it."""
    return machine_of(platform(name).platform, gpus=gpus)


@cache
def table_words(words: str, gpus: int, nodes: int) -> MachineClass:
    """Return the machine that a row of a table words, with so many GPUs a node. Raises InputError where it does not."""
    site = site_files()
    return worded_machine(
        words, gpus=gpus, nodes=nodes, named=platforms_called_in(words, site), platforms=all_platforms(site)
    )


def _platform_of(result: Opened) -> str | None:
    """Return the platform that a result was stored with; None: none was, as for files that are read now."""
    if isinstance(result, OpenedRun):
        start = result.run.plan.surroundings
        return start.platform if start is not None else None
    return imports.read(result.where).stated.platform


def _check(series: Series, asked: CalibratedMachine, where: str) -> None:
    """Raise InputError for a series of another machine, library, network or setting of NVLink SHARP."""
    why, hint = _mismatch(series, asked)
    if why is not None:
        raise InputError(f"{where} does not calibrate this: {why}", where=where, hint=hint)


def _mismatch(series: Series, asked: CalibratedMachine) -> tuple[str | None, str]:
    another = "a calibration holds for the machine and the mode that it was measured in"
    rates, why = asked.known.rates(series)
    if rates is None:
        return why, another
    if series.library == "mpi":
        return "it was measured over MPI, and predictions are of NCCL", another
    detour, network = series.detour, series.network
    if detour is not None or network in _NETWORKS:
        went = DETOURS[detour] if detour is not None else _NETWORKS.get(network or "", "")
        return f"data went {went}, and is predicted over the machine's links and network", another
    if series.sharp:
        return "the network's switches added (SHARP), and no prediction does", another
    if series.nvls is False and _takes_nvls(series, asked):
        off = "NVLink SHARP was off (NCCL_NVLS_ENABLE=0), and is on in what is predicted"
        return off, "--algorithm ring predicts without it; or measure with it"
    return None, another


def _takes_nvls(series: Series, asked: CalibratedMachine) -> bool:
    """Return whether what is predicted may add in the switch of a node."""
    if asked.algorithm is not None:
        return asked.algorithm in _NVLS
    if asked.machine.rates.nvls is not True:
        return False
    try:
        bounds = bounds_of(asked.machine, series.nodes or 1, series.collective, None)
    except CannotTellError:
        return False
    return any(bound.algorithm in _NVLS for bound in bounds)


def _groups(several: Sequence[Series], machine: MachineClass, where: str) -> Iterator[CellGroup]:
    """Yield the sound cells of each series by the algorithm that NCCL said, those out of place first."""
    for series in sorted(several, key=lambda each: each.in_place is True):
        nodes = series.nodes
        if not nodes:
            continue
        each = series.gpus_per_node or series.ranks // nodes
        measured_on = machine
        if each != machine.rates.gpus or series.nvls is False:
            nvls = False if series.nvls is False else machine.rates.nvls
            measured_on = replace(machine, rates=structs.replace(machine.rates, gpus=each, nvls=nvls))
        only = series.algorithms[0] if len(series.algorithms) == 1 else None
        cells: dict[str | None, dict[int, float]] = {}
        for sample in series.samples:
            if sample.spoiled is None and not sample.is_wrong and sample.size_bytes > 0 and sample.busbw_Bps > 0:
                cells.setdefault(sample.algorithm or only, {})[sample.size_bytes] = sample.busbw_Bps
        for algorithm, rates_Bps in cells.items():
            yield CellGroup(
                document=where,
                machine=measured_on,
                nodes=nodes,
                collective=series.collective,
                stated=algorithm,
                algorithm=algorithm,
                cells=tuple(sorted(rates_Bps.items())),
                is_fitted=False,
            )

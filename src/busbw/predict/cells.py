"""Tables of measured cells: the columns of the training cells, read strictly, as sweeps of documents."""

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.predict.machines import MachineClass
from busbw.predict.sweeps import CellGroup, algorithm_of

COLUMNS = ("document", "platform_id", "nodes", "gpus", "collective", "size_bytes", "busbw_GBps", "algorithm")
MOST_BYTES = 64 * 2**20
_MOST_ROWS = 200_000
_MOST_LEFT_OUT = 50
_INTEGER = re.compile(r"[0-9]{1,16}", re.ASCII)
_RATE = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,9})?", re.ASCII)
_HINT = f"columns: {','.join(COLUMNS)}"
# What documents say where they mean an algorithm; all else leaves it open.
_STATED = (("nvlstree", "nvlstree"), ("nvls tree", "nvlstree"), ("ring", "ring"), ("tree", "tree"), ("nvls", "nvls"))
_OPEN = ("default", "n/a", "")


@dataclass(frozen=True, kw_only=True)
class CellTable:
    """The sweeps of a table, in its order, and which rows were left out and why."""

    groups: tuple[CellGroup, ...]
    left_out: tuple[str, ...]


def read_cells(raw: bytes, where: str, machine: Callable[[str, int], MachineClass]) -> CellTable:
    """Return the sweeps of a table of cells; `machine` gives a platform with so many GPUs a node.

    A row that cannot be (a number that is none, more than one cell of a kind, GPUs that no node has) is left out and
    named. Raises InputError for what is no such table.
    """
    reader = csv.DictReader(io.StringIO(_text(raw, where), newline=""))
    try:
        _check_columns(tuple(reader.fieldnames or ()), where)
        return _table(reader, machine)
    except csv.Error as error:
        raise InputError(f"{where} is not a table: {error}", where=f"{where}:{reader.line_num}", hint=_HINT) from error


def _check_columns(names: tuple[str, ...], where: str) -> None:
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(f"{where} lacks the column {missing[0]}", where=f"{where}:1", hint=_HINT)


def _text(raw: bytes, where: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB", where=where)
    if b"\0" in raw:
        raise InputError(f"{where} is a binary file", where=where, hint=_HINT)
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")


Key = tuple[str, str, int, int, str, str, str]


def _table(reader: "csv.DictReader[str]", machine: Callable[[str, int], MachineClass]) -> CellTable:
    cells: dict[Key, dict[int, float]] = defaultdict(dict)
    left_out: list[str] = []
    for count, row in enumerate(reader):
        if count >= _MOST_ROWS:
            left_out.append(f"line {reader.line_num}: more than {_MOST_ROWS} rows")
            break
        try:
            key, size_bytes, busbw_Bps = _cell(row)
        except InputError as error:
            left_out.append(f"line {reader.line_num}: {_cause(error)}")
            continue
        if size_bytes in cells[key]:
            left_out.append(f"line {reader.line_num}: a second cell of {size_bytes} bytes")
        else:
            cells[key][size_bytes] = busbw_Bps
    groups = []
    for key, rates_Bps in cells.items():
        if not rates_Bps:
            continue
        try:
            groups.append(_group(key, rates_Bps, machine))
        except InputError as error:
            left_out.append(f"{key[0]}, {key[1]}: {_cause(error)}")
    if len(left_out) > _MOST_LEFT_OUT:
        left_out[_MOST_LEFT_OUT:] = [f"and {len(left_out) - _MOST_LEFT_OUT} more"]
    return CellTable(groups=tuple(groups), left_out=tuple(left_out))


def _cause(error: InputError) -> str:
    return str(error).splitlines()[0].removeprefix("error: ")


def _cell(row: dict[str, str]) -> tuple[Key, int, float]:
    """Return the sweep, size and bus bandwidth of a row. Raises InputError for a row that cannot be."""
    collective = (row["collective"] or "").strip()
    if collective not in COLLECTIVES:
        raise InputError(f"{collective[:40]!r} is no collective")
    nodes, gpus, size_bytes = (_whole(row[name], name) for name in ("nodes", "gpus", "size_bytes"))
    text = (row["busbw_GBps"] or "").strip()
    busbw_Bps = float(text) * 1e9 if _RATE.fullmatch(text) else math.nan
    if not busbw_Bps > 0:
        raise InputError(f"busbw_GBps {text[:20]!r} is no bandwidth")
    if gpus % nodes:
        raise InputError(f"{gpus} GPUs on {nodes} nodes")
    document, platform = ((row[name] or "").strip()[:100] or "-" for name in ("document", "platform_id"))
    said = (row["algorithm"] or "").strip().lower()[:100]
    # What else tells two sweeps of one document apart, where the table has it.
    system = (row.get("platform") or "").strip()[:200]
    return (document, platform, nodes, gpus // nodes, collective, said, system), size_bytes, busbw_Bps


def _whole(text: str | None, name: str) -> int:
    found = (text or "").strip()
    if _INTEGER.fullmatch(found) is None or int(found) < 1:
        raise InputError(f"{name} {found[:20]!r} is no number from 1 on")
    return int(found)


def _group(key: Key, rates_Bps: dict[int, float], machine: Callable[[str, int], MachineClass]) -> CellGroup:
    document, platform, nodes, gpus, collective, said, _ = key
    if platform == "-":
        raise InputError("no platform is named")
    stated = next((name for word, name in _STATED if word in said and "sharp" not in said), None)
    if stated == "nvls" and nodes > 1:
        stated = None
    group = CellGroup(
        document=document,
        machine=machine(platform, gpus),
        nodes=nodes,
        collective=collective,
        stated="ring" if "nvls off" in said else stated,
        algorithm=None,
        cells=tuple(sorted(rates_Bps.items())),
        is_fitted="sharp" not in said,
    )
    return CellGroup(
        document=document,
        machine=group.machine,
        nodes=nodes,
        collective=collective,
        stated="collnet" if "sharp" in said else group.stated,
        algorithm=algorithm_of(group) if group.is_fitted else None,
        cells=group.cells,
        is_fitted=group.is_fitted,
    )

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
from busbw.base.units import parse_size
from busbw.predict.machines import MachineClass
from busbw.predict.sends import SENDS
from busbw.predict.sweeps import CellGroup, algorithm_of

# Each column by its name in the training cells, and as other tables call it: letters and digits only, in small.
_NAMES = {
    "document": ("document", "doc"),
    "platform_id": ("platformid",),
    "platform": ("platform", "machine", "system"),
    "nodes": ("nodes", "nnodes", "numnodes"),
    "gpus": ("gpus", "ngpus", "numgpus", "ranks", "nranks", "worldsize"),
    "gpus_per_node": ("gpuspernode",),
    "collective": ("collective", "operation", "op", "test"),
    "size_bytes": ("sizebytes", "size", "bytes", "sizeb"),
    "busbw_GBps": ("busbwgbps", "busbwgbs", "busbw"),
    "algbw_GBps": ("algbwgbps", "algbwgbs", "algbw"),
    "time_us": ("timeus", "time"),
    "algorithm": ("algorithm", "algo"),
    "nccl_version": ("ncclversion", "nccl"),
}
# Of each of these a table has one.
_NEEDED = (
    ("platform_id", "platform"),
    ("nodes",),
    ("gpus", "gpus_per_node"),
    ("collective",),
    ("size_bytes",),
    ("busbw_GBps", "algbw_GBps", "time_us"),
)
MOST_BYTES = 64 * 2**20
_MOST_ROWS = 200_000
# To find one in words takes some milliseconds.
_MOST_MACHINES = 2000
_MOST_LEFT_OUT = 50
_INTEGER = re.compile(r"[0-9]{1,16}", re.ASCII)
_SIZE = re.compile(r"[0-9]{1,6}\s*[KMGT](?:i?B)?", re.ASCII)
# How documents word a run that did not use the machine's own network.
_FALL_BACK = re.compile(r"\b(?:tcp|sockets?)[ -]fall-?back\b|\bover (?:tcp|sockets)\b", re.IGNORECASE)
# Of a row that names none.
_NONE = "-"
# As `AllReduce`, `all-reduce` or `all_reduce_perf` are called here.
_COLLECTIVES = {name.replace("_", ""): name for name in COLLECTIVES}
_RATE = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,9})?", re.ASCII)
_HINT = "columns: document,platform_id,platform,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm"
# What documents say where they mean an algorithm; all else leaves it open.
_STATED = (("nvlstree", "nvlstree"), ("nvls tree", "nvlstree"), ("ring", "ring"), ("tree", "tree"), ("nvls", "nvls"))


@dataclass(frozen=True, kw_only=True)
class CellTable:
    """The sweeps of a table, in its order, and which rows were left out and why."""

    groups: tuple[CellGroup, ...]
    left_out: tuple[str, ...]


def read_cells(
    raw: bytes,
    where: str,
    machine: Callable[[str, int], MachineClass],
    worded: Callable[[str, int, int], MachineClass] | None = None,
) -> CellTable:
    """Return the sweeps of a table of cells; `machine` gives a platform with so many GPUs a node.

    Where no platform is named, or none that is known, `worded` gives what a machine's words describe, with so many GPUs
    a node on so many nodes. A row that cannot be (a number that is none, more than one cell of a kind, GPUs that no
    node has) is left out and named. Raises InputError for what is no such table.
    """
    reader = csv.DictReader(io.StringIO(_text(raw, where), newline=""))
    try:
        columns = _columns(tuple(reader.fieldnames or ()), where)
        return _table(reader, columns, _Machines(machine=machine, worded=worded))
    except csv.Error as error:
        raise InputError(f"{where} is not a table: {error}", where=f"{where}:{reader.line_num}", hint=_HINT) from error


@dataclass(frozen=True, kw_only=True)
class _Machines:
    machine: Callable[[str, int], MachineClass]
    worded: Callable[[str, int, int], MachineClass] | None

    def of(self, platform: str, system: str, gpus: int, nodes: int) -> MachineClass:
        """Return the machine of a row, by its platform or else by its words. Raises InputError where neither tells."""
        if _FALL_BACK.search(system):
            raise InputError(
                f"{system[:60]!r} is over TCP in place of the machine's network, of which nothing is known"
            )
        if platform != _NONE:
            try:
                return self.machine(platform, gpus)
            except InputError:
                if self.worded is None or not system:
                    raise
        if self.worded is None or not system:
            raise InputError("no platform is named")
        return self.worded(system, gpus, nodes)


def _columns(names: tuple[str, ...], where: str) -> dict[str, str]:
    """Return the table's name of each column that it has."""
    plain = {re.sub(r"[\W_]+", "", name).lower(): name for name in reversed(names)}
    found = {}
    for column, spelled in _NAMES.items():
        name = next((plain[each] for each in spelled if each in plain), None)
        if name is not None:
            found[column] = name
    for needed in _NEEDED:
        if not any(column in found for column in needed):
            raise InputError(f"{where} lacks the column {needed[0]}", where=f"{where}:1", hint=_HINT)
    return found


def _text(raw: bytes, where: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB", where=where)
    if b"\0" in raw:
        raise InputError(f"{where} is a binary file", where=where, hint=_HINT)
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")


# Document, platform, nodes, GPUs a node, collective, what is said of the algorithm, words for the machine, library.
Key = tuple[str, str, int, int, str, str, str, str]


def _table(reader: "csv.DictReader[str]", columns: dict[str, str], machines: _Machines) -> CellTable:
    cells: dict[Key, dict[int, float]] = defaultdict(dict)
    left_out: list[str] = []
    for count, row in enumerate(reader):
        if count >= _MOST_ROWS:
            left_out.append(f"line {reader.line_num}: more than {_MOST_ROWS} rows")
            break
        try:
            key, size_bytes, busbw_Bps = _cell({column: row.get(name) or "" for column, name in columns.items()})
        except InputError as error:
            left_out.append(f"line {reader.line_num}: {_cause(error)}")
            continue
        if size_bytes in cells[key]:
            left_out.append(f"line {reader.line_num}: a second cell of {size_bytes} bytes")
        else:
            cells[key][size_bytes] = busbw_Bps
    groups = []
    named: set[tuple[str, str]] = set()
    for key, rates_Bps in cells.items():
        if not rates_Bps:
            continue
        named.add((key[1], key[6]))
        if len(named) > _MOST_MACHINES:
            left_out.append(f"{key[0]} and what comes after: more than {_MOST_MACHINES} machines")
            break
        try:
            groups.append(_group(key, rates_Bps, machines))
        except InputError as error:
            left_out.append(f"{key[0]}, {key[1] if key[1] != _NONE else key[6] or _NONE}: {_cause(error)}")
    if len(left_out) > _MOST_LEFT_OUT:
        left_out[_MOST_LEFT_OUT:] = [f"and {len(left_out) - _MOST_LEFT_OUT} more"]
    return CellTable(groups=tuple(groups), left_out=tuple(left_out))


def _cause(error: InputError) -> str:
    return str(error).splitlines()[0].removeprefix("error: ")


def _cell(row: dict[str, str]) -> tuple[Key, int, float]:
    """Return the sweep, size and bus bandwidth of a row. Raises InputError for a row that cannot be."""
    said = row["collective"].strip()
    collective = _COLLECTIVES.get(re.sub(r"[\W_]+", "", said).lower().removesuffix("perf"))
    if collective is None:
        raise InputError(f"{said[:40]!r} is no collective")
    nodes = _whole(row["nodes"], "nodes")
    each = row.get("gpus_per_node", "").strip()
    gpus = nodes * _whole(each, "gpus_per_node") if each else _whole(row.get("gpus"), "gpus")
    if gpus % nodes:
        raise InputError(f"{gpus} GPUs on {nodes} nodes")
    size_bytes = _size_bytes(row["size_bytes"].strip())
    document, platform = (row.get(name, "").strip()[:100] or _NONE for name in ("document", "platform_id"))
    algorithm = row.get("algorithm", "").strip().lower()[:100]
    # What else tells two sweeps of one document apart, where the table has it.
    system, library = (row.get(name, "").strip()[:200] for name in ("platform", "nccl_version"))
    key = (document, platform, nodes, gpus // nodes, collective, algorithm, system, library)
    return key, size_bytes, _busbw_Bps(row, COLLECTIVES[collective].factor(gpus), size_bytes)


def _size_bytes(text: str) -> int:
    if _INTEGER.fullmatch(text) is None and _SIZE.fullmatch(text) is not None:
        return parse_size(re.sub(r"\s|i?B$", "", text))
    return _whole(text, "size_bytes")


def _busbw_Bps(row: dict[str, str], factor: float, size_bytes: int) -> float:
    """Return the bus bandwidth of a row, from the algorithm's or the time where it has only these."""
    told = next((name for name in ("busbw_GBps", "algbw_GBps", "time_us") if row.get(name, "").strip()), "busbw_GBps")
    text = row.get(told, "").strip()
    value = float(text) if _RATE.fullmatch(text) else math.nan
    if not value > 0:
        raise InputError(f"{told} {text[:20]!r} is no {'time' if told == 'time_us' else 'bandwidth'}")
    if told == "time_us":
        return factor * size_bytes / (value * 1e-6)
    return value * 1e9 * (factor if told == "algbw_GBps" else 1.0)


def _whole(text: str | None, name: str) -> int:
    found = (text or "").strip()
    if _INTEGER.fullmatch(found) is None or int(found) < 1:
        raise InputError(f"{name} {found[:20]!r} is no number from 1 on")
    return int(found)


def _group(key: Key, rates_Bps: dict[int, float], machines: _Machines) -> CellGroup:
    document, platform, nodes, gpus, collective, said, system, _ = key
    stated = next((name for word, name in _STATED if word in said and "sharp" not in said), None)
    if stated == "nvls" and nodes > 1:
        stated = None
    if "nvls off" in said:
        stated = "ring"
    if collective in SENDS:
        # Whatever a table says of NCCL's algorithms: of sends it has none.
        stated = None
    group = CellGroup(
        document=document,
        machine=machines.of(platform, system, gpus, nodes),
        nodes=nodes,
        collective=collective,
        stated=stated,
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

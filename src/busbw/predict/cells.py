"""Tables of measured cells: the columns of the training cells, read strictly, as sweeps of documents."""

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES, collective_named, not_a_collective
from busbw.base.errors import InputError
from busbw.predict.machines import MachineClass
from busbw.predict.sends import SENDS
from busbw.predict.sweeps import CellGroup, algorithm_of

# Each column by its name in the training cells, and as other tables call it: letters and digits only, in small. A unit
# may follow that of a size, a rate or a time.
_NAMES = {
    "document": ("document", "doc"),
    "platform_id": ("platformid",),
    "platform": ("platform", "machine", "system"),
    "nodes": ("nodes", "nnodes", "numnodes"),
    "gpus": ("gpus", "ngpus", "numgpus", "ranks", "nranks", "worldsize"),
    "gpus_per_node": ("gpuspernode",),
    "collective": ("collective", "operation", "op", "test"),
    "size_bytes": ("size", "bytes", "messagesize", "msgsize"),
    "busbw_GBps": ("busbw", "busbandwidth"),
    "algbw_GBps": ("algbw", "algbandwidth"),
    "time_us": ("time",),
    "algorithm": ("algorithm", "algo"),
    "nccl_version": ("ncclversion", "nccl"),
}
# What a number of such a column counts, in bytes, GB/s or microseconds, by the letters behind its name; as everywhere K
# is 1024. Where capitals do not tell bits from bytes they are bytes, of which the column's own unit is.
_SIZES = {
    unit + end: 2.0**power
    for power, units in ((10, "Kk"), (20, "Mm"), (30, "Gg"))
    for unit in units
    for end in ("", "B", "b", "iB", "ib")
} | dict.fromkeys(("", "B", "b", "bytes", "byte"), 1.0)
_RATES = {"": 1.0, "gbps": 1.0, "gbs": 1.0}
for _unit, _GBps in (("G", 1.0), ("M", 1e-3), ("T", 1e3)):
    _RATES |= {f"{_unit}B{each}": _GBps for each in ("ps", "s")}
    _RATES |= {f"{_unit}b{each}": _GBps / 8 for each in ("ps", "s", "its", "itps")}
_RATES |= {f"GiB{each}": 2**30 / 1e9 for each in ("ps", "s")}
_TIMES = {
    "": 1.0,
    "us": 1.0,
    "usec": 1.0,
    "\u00b5s": 1.0,
    "\u03bcs": 1.0,
    "ms": 1e3,
    "msec": 1e3,
    "s": 1e6,
    "sec": 1e6,
    "ns": 1e-3,
}
_UNITS = {"size_bytes": _SIZES, "busbw_GBps": _RATES, "algbw_GBps": _RATES, "time_us": _TIMES}
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
_INTEGER = re.compile(r"[0-9]{1,16}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,5}", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)\s*([KMGT]?)(?:i?B|bytes)?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_LARGEST_BYTES = 2**50
# As tables of other programs divide cells.
_DELIMITERS = ",;\t"
# How documents word a run that did not use the machine's own network.
_FALL_BACK = re.compile(r"\b(?:tcp|sockets?)[ -]fall-?back\b|\bover (?:tcp|sockets)\b", re.IGNORECASE)
# Of a row that names none.
_NONE = "-"
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?(?:[eE][+-]?[0-9]{1,2})?)\s*([A-Za-z/\u00b5\u03bc]{0,8})", re.ASCII)
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
    text = _text(raw, where)
    # Comments and blank lines before the names of columns.
    above = 0
    lines = list(io.StringIO(text, newline=""))
    while above < len(lines) and (not lines[above].strip() or lines[above].lstrip().startswith("#")):
        above += 1
    delimiter = max(_DELIMITERS, key=lines[above].count) if above < len(lines) else ","
    reader = csv.DictReader(lines[above:], delimiter=delimiter)
    try:
        columns = _columns(tuple(reader.fieldnames or ()), where)
        return _table(reader, columns, _Machines(machine=machine, worded=worded), above)
    except csv.Error as error:
        line = reader.line_num + above
        raise InputError(f"{where} is not a table: {error}", where=f"{where}:{line}", hint=_HINT) from error


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


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A column as the table calls it, and what a number of it counts in the unit of its kind."""

    heading: str
    factor: float


def _columns(names: tuple[str, ...], where: str) -> dict[str, list[_Column]]:
    """Return which columns of a table say each of what is read, the first first."""
    found: dict[str, list[_Column]] = defaultdict(list)
    for heading in names:
        letters = re.sub(r"[\W_]+", "", heading or "")
        for column, spelled in _NAMES.items():
            factor = next((each for name in spelled if (each := _factor(column, letters, name)) is not None), None)
            if factor is not None:
                found[column].append(_Column(heading=heading, factor=factor))
    for needed in _NEEDED:
        if not any(column in found for column in needed):
            lacks = " or ".join(needed)
            raise InputError(f"{where} lacks the column {lacks}", where=f"{where}:1", hint=_HINT)
    return found


def _factor(column: str, letters: str, name: str) -> float | None:
    """Return the unit of a column whose heading has such letters; None: it is another."""
    if not letters.lower().startswith(name):
        return None
    return _UNITS.get(column, {"": 1.0}).get(letters[len(name) :])


def _text(raw: bytes, where: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB", where=where)
    if b"\0" in raw:
        raise InputError(f"{where} is a binary file", where=where, hint=_HINT)
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")


# Document, platform, nodes, GPUs a node, collective, what is said of the algorithm, words for the machine, library.
Key = tuple[str, str, int, int, str, str, str, str]


def _table(
    reader: "csv.DictReader[str]", columns: dict[str, list[_Column]], machines: _Machines, above: int
) -> CellTable:
    cells: dict[Key, dict[int, float]] = defaultdict(dict)
    left_out: list[str] = []
    for count, row in enumerate(reader):
        line = reader.line_num + above
        if count >= _MOST_ROWS:
            left_out.append(f"line {line}: more than {_MOST_ROWS} rows")
            break
        try:
            key, size_bytes, busbw_Bps = _cell({name: _said(row, several) for name, several in columns.items()})
        except InputError as error:
            left_out.append(f"line {line}: {_cause(error)}")
            continue
        if size_bytes in cells[key]:
            left_out.append(f"line {line}: a second cell of {size_bytes} bytes")
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


def _said(row: dict[str, str], several: Sequence[_Column]) -> tuple[str, float]:
    """Return what the first column that says something says, and its unit."""
    told = ((row.get(each.heading), each.factor) for each in several)
    return next(((text.strip(), factor) for text, factor in told if text and text.strip()), ("", several[0].factor))


def _cause(error: InputError) -> str:
    return str(error).splitlines()[0].removeprefix("error: ")


# What each column of a row says, and in which unit.
Row = dict[str, tuple[str, float]]


def _cell(row: Row) -> tuple[Key, int, float]:
    """Return the sweep, size and bus bandwidth of a row. Raises InputError for a row that cannot be."""
    text = {name: said for name, (said, _) in row.items()}
    collective = _collective(text["collective"])
    nodes = _whole(text["nodes"], "nodes")
    each = text.get("gpus_per_node", "")
    gpus = nodes * _whole(each, "gpus_per_node") if each else _whole(text.get("gpus"), "gpus")
    if gpus % nodes:
        raise InputError(f"{gpus} GPUs on {nodes} nodes")
    size_bytes = _size_bytes(*row["size_bytes"])
    document, platform = (text.get(name, "")[:100] or _NONE for name in ("document", "platform_id"))
    algorithm = text.get("algorithm", "").lower()[:100]
    # What else tells two sweeps of one document apart, where the table has it.
    system, library = (text.get(name, "")[:200] for name in ("platform", "nccl_version"))
    key = (document, platform, nodes, gpus // nodes, collective, algorithm, system, library)
    return key, size_bytes, _busbw_Bps(row, COLLECTIVES[collective].factor(gpus), size_bytes)


def _collective(said: str) -> str:
    collective = collective_named(said)
    if collective is None:
        raise not_a_collective(said)
    return collective


def _size_bytes(text: str, unit: float) -> int:
    """Return a size, in its own unit if it has one, else in that of its column."""
    match = _SIZE.fullmatch(text)
    if match is None or (text.isascii() and text.isdigit() and unit == 1.0):
        return _whole(text, "size_bytes")
    bytes_each = unit if text[-1:].isdigit() else 2.0 ** _POWERS[match[2].lower()]
    size = float(match[1]) * bytes_each
    if not 1 <= size <= _LARGEST_BYTES or size != int(size):
        raise InputError(f"size_bytes {text[:20]!r} is no number of bytes from 1 to 1 PiB")
    return int(size)


def _busbw_Bps(row: Row, factor: float, size_bytes: int) -> float:
    """Return the bus bandwidth of a row, from the algorithm's or the time where it has only these."""
    told = next((name for name in ("busbw_GBps", "algbw_GBps", "time_us") if row.get(name, ("", 1.0))[0]), "busbw_GBps")
    text, unit = row.get(told, ("", 1.0))
    match = _NUMBER.fullmatch(text)
    own = re.sub(r"[\W_]+", "", match[2]) if match is not None else ""
    value = float(match[1]) * (_UNITS[told].get(own, math.nan) if own else unit) if match is not None else math.nan
    if not 0 < value < math.inf:
        raise InputError(f"{told} {text[:20]!r} is no {'time' if told == 'time_us' else 'bandwidth'}")
    if told == "time_us":
        return factor * size_bytes / (value * 1e-6)
    return value * 1e9 * (factor if told == "algbw_GBps" else 1.0)


def _whole(text: str | None, name: str) -> int:
    found = (text or "").strip()
    number = int(found.replace(",", "")) if _INTEGER.fullmatch(found) is not None else 0
    if number < 1:
        raise InputError(f"{name} {found[:20]!r} is no number from 1 on")
    return number


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

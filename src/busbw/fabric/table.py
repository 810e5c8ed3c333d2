"""Pairs from a table: `sender,receiver,value[,unit][,round]`, separated by commas, semicolons or tabs.

`node07:mlx5_3` is one NIC of a node, `node07:gpu3` a GPU of a host whose GPUs were tested by pairs, a value of `-` a
test without an answer. A first line of names, comments (`#`) and empty lines are passed over. Without a unit latencies
are microseconds, bandwidths MB/s (1e6) and message rates messages a second, as OSU and ClusterKit print them.
"""

import math
import re
from collections.abc import Iterable, Iterator

from busbw.base.errors import InputError
from busbw.base.hostlist import is_host_name
from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import Endpoint, Metric, PairTest, Places, endpoint_of, flat

MOST_BYTES = 2**30
_UNITS: dict[str, tuple[str, float]] = {
    "s": ("latency", 1.0), "ms": ("latency", 1e-3), "us": ("latency", 1e-6), "usec": ("latency", 1e-6),
    "ns": ("latency", 1e-9), "B/s": ("bandwidth", 1.0), "MB/s": ("bandwidth", 1e6), "GB/s": ("bandwidth", 1e9),
    "Gb/s": ("bandwidth", 1.25e8), "Gbit/s": ("bandwidth", 1.25e8), "Mb/s": ("bandwidth", 1.25e5),
    "MiB/s": ("bandwidth", 2.0**20), "GiB/s": ("bandwidth", 2.0**30),
    "msg/s": ("message-rate", 1.0), "kmsg/s": ("message-rate", 1e3), "Mmsg/s": ("message-rate", 1e6),
    "/s": ("message-rate", 1.0), "k/s": ("message-rate", 1e3), "M/s": ("message-rate", 1e6),
}  # fmt: skip
# What a table without units holds, and the unit and scale in which tables are written.
_USUAL: dict[str, str] = {"latency": "us", "bandwidth": "MB/s", "message-rate": "msg/s"}
_WRITTEN: dict[str, tuple[str, float]] = {
    "latency": ("us", 1e6), "bandwidth": ("GB/s", 1e-9), "message-rate": ("Mmsg/s", 1e-6),
}  # fmt: skip
_SEPARATORS = ("\t", ";", ",")
_RAIL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_GPU = re.compile(r"gpu[0-9]{1,6}")
_NO_ANSWER = "-"
_MOST_ROUNDS = 10**6
_QUANTITY = re.compile(r"([0-9.eE+-]{1,40})\s*([A-Za-z/]{1,8})")


def quantity(text: str, metric: Metric, where: str) -> float:
    """Return what `380Gb/s` or `2us` is in seconds, bytes or messages a second. Raises InputError for another unit."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text[:60]!r} is not a number with a unit", where=where, hint="380Gb/s, 47GB/s, 1.7us, 3M/s")
    return _number(match[1], where) * _scale(match[2], metric, where)


def _scale(unit: str, metric: Metric, where: str | None) -> float:
    kind, scale = _UNITS.get(unit, ("", 0.0))
    if kind != _kind(metric):
        known = ", ".join(each for each, (of, _) in _UNITS.items() if of == _kind(metric))
        raise InputError(f"{unit[:20]!r} is not a unit of {metric}", where=where, hint=f"one of {known}")
    return scale


def _kind(metric: Metric) -> str:
    return "bandwidth" if metric == "bibandwidth" else metric


def _number(text: str, where: str | None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{text[:40]!r} is not a number above 0", where=where)
    return value


def read_pairs(text: str, metric: Metric, where: str) -> tuple[Places, PairTable]:
    """Return the endpoints in the order in which they come, and the tests.

    Raises InputError for a line that is none, a host that is paired with itself, one host alone, and no pair at all.
    """
    rows = _Rows(metric)
    separator: str | None = None
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if separator is None:
            separator = next((each for each in _SEPARATORS if each in line), ",")
            if line.split(separator)[0].strip().lower() in ("sender", "source", "from"):
                continue
        try:
            rows.add(line.split(separator))
        except InputError as error:
            raise InputError(error.cause, where=f"{where}:{number}", hint=error.hint) from None
    if separator is None:
        raise InputError("no pairs in this table", where=where, hint="sender,receiver,value,unit")
    if not rows.tests:
        raise InputError("a first line of names and no pair below it", where=where)
    if not rows.has_answer:
        raise InputError("none of these tests has an answer", where=where)
    return flat(rows.endpoints), rows.tests


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one: of millions a list is larger than the tests themselves."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


class _Rows:
    """The tests of a table as far as it was read; what was understood of a cell is understood once."""

    def __init__(self, metric: Metric) -> None:
        self.tests = PairTable()
        self.endpoints: list[Endpoint] = []
        self.has_answer = False
        self._metric = metric
        # By endpoint, and by the text of a cell; the scale of each unit.
        self._numbers: dict[Endpoint, int] = {}
        self._known: dict[str, int] = {}
        self._scales: dict[str, float] = {}

    def add(self, cells: list[str]) -> None:
        """Add one line. Raises InputError, which does not say where."""
        if not 3 <= len(cells) <= 5:
            raise InputError(f"{len(cells)} cells instead of sender, receiver, value, unit, round")
        one, other, value, unit, turn = [*(cell.strip() for cell in cells), "", ""][:5]
        sender, receiver = self._known.get(one), self._known.get(other)
        if sender is None:
            sender = self._number(one)
        if receiver is None:
            receiver = self._number(other)
        if self.endpoints[sender].node == self.endpoints[receiver].node:
            raise InputError(f"{one[:60]} is paired with itself", hint="leave such lines out")
        scale = self._scales.get(unit)
        if scale is None:
            scale = _scale(unit or _USUAL[_kind(self._metric)], self._metric, None)
            self._scales[unit] = scale
        if turn and not (turn.isascii() and turn.isdecimal() and int(turn[:12]) <= _MOST_ROUNDS):
            raise InputError(f"{turn[:40]!r} is no number of a round")
        reached = math.nan
        if value != _NO_ANSWER:
            reached = _number(value, None) * scale
            self.has_answer = True
        self.tests.add(sender, receiver, int(turn or 0), reached)

    def _number(self, text: str) -> int:
        """Return the number of the endpoint that a cell names, which is new as a text."""
        endpoint = _endpoint(text)
        number = self._numbers.setdefault(endpoint, len(self.endpoints))
        if number == len(self.endpoints):
            self.endpoints.append(endpoint)
        self._known[text] = number
        return number


def _endpoint(text: str) -> Endpoint:
    """Return what a cell names; a GPU of a host stands for itself, since the GPUs of one host are tested together."""
    found = endpoint_of(text)
    if not is_host_name(found.node) or (found.rail is not None and not _RAIL.fullmatch(found.rail)):
        raise InputError(f"{text[:60]!r} is no host", hint="node07, or node07:mlx5_3 for one of its NICs")
    return Endpoint(node=text) if found.rail is not None and _GPU.fullmatch(found.rail) else found


def pairs_text(places: Places, tests: Iterable[PairTest], metric: Metric) -> str:
    """Return tests as such a table, with units and rounds."""
    unit, scale = _WRITTEN[_kind(metric)]
    lines = ["sender,receiver,value,unit,round"]
    for each in tests:
        reached = _NO_ANSWER if each.value is None else f"{each.value * scale:.6g}"
        ends = f"{places.endpoints[each.sender]},{places.endpoints[each.receiver]}"
        lines.append(f"{ends},{reached},{unit},{each.round}")
    return "\n".join(lines) + "\n"

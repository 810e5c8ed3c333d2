"""Pairs from a table: `sender,receiver,value[,unit][,round]`, separated by commas, semicolons or tabs.

`node07:mlx5_3` is one NIC of a node, `node07:gpu3` a GPU of a host whose GPUs were tested by pairs, a value of `-` a
test without an answer. A first line of names, comments (`#`) and empty lines are passed over. Without a unit latencies
are microseconds, bandwidths MB/s (1e6) and message rates messages a second, as OSU and ClusterKit print them.
"""

import math
import re
from collections.abc import Iterable

from busbw._core import PairLines
from busbw.base.errors import InputError
from busbw.base.hostlist import is_host_name
from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import Endpoint, Metric, PairTest, Places, check_count, endpoint_of, flat

# Four matrices of all pairs of 4,096 hosts; 21 bytes each.
MOST_TESTS = 2**26
_LONGEST_LINE = 2**16
# What some programs of Windows begin a text with.
_MARK = "\ufeff"
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
_ROUND = re.compile(r"[0-9]{1,12}")
_NUMBER = re.compile(r"\+?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,4})?")
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
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{text[:40]!r} is not a number above 0", where=where)
    return value


def read_pairs(blocks: Iterable[bytes], metric: Metric, where: str) -> tuple[Places, PairTable]:
    """Return the endpoints in the order in which they come, and the tests; the blocks of the text end anywhere.

    Raises InputError for a line that is none, a host that is paired with itself, one host alone, no pair at all, and
    for more tests than four matrices of all pairs of 4,096 hosts have.
    """
    rows = _Rows(metric, where)
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            rows.read(rest + block[:end])
            rest = block[end:]
        else:
            rest += block
        if len(rest) > _LONGEST_LINE:
            raise InputError("a line without an end", where=f"{where}:{rows.lines + 1}", hint="sender,receiver,value")
    rows.read(rest + b"\n")
    if not rows.has_begun:
        raise InputError("no pairs in this table", where=where, hint="sender,receiver,value,unit")
    if not rows.tests:
        raise InputError("a first line of names and no pair below it", where=where)
    if all(map(math.isnan, rows.tests.values)):
        raise InputError("none of these tests has an answer", where=where)
    return flat(rows.endpoints), rows.tests


class _Rows:
    """The tests of a table as far as it was read.

    What was understood of a cell is told the core, which reads the lines of known cells; all others are read here.
    """

    def __init__(self, metric: Metric, where: str) -> None:
        self.tests = PairTable()
        self.endpoints: list[Endpoint] = []
        # Lines that were read.
        self.lines = 0
        self._metric = metric
        self._where = where
        # None as long as no line was there that tells it.
        self._separator: str | None = None
        self._core = PairLines(",", _MOST_ROUNDS)
        self._numbers: dict[Endpoint, int] = {}
        self._nodes: dict[str, int] = {}

    @property
    def has_begun(self) -> bool:
        """Whether there was a line that is neither empty nor a comment."""
        return self._separator is not None

    def read(self, text: bytes) -> None:
        """Read whole lines. Raises InputError."""
        at = 0
        while at < len(text):
            at, count, *columns = self._core.read(text, at)
            self.tests.add_columns(*columns)
            self.lines += count
            if len(self.tests) > MOST_TESTS:
                raise InputError(f"more than {MOST_TESTS} tests", where=self._where, hint="leave out older rounds")
            if at < len(text):
                end = text.index(b"\n", at)
                self.lines += 1
                self._line(text[at:end].decode("utf-8", "replace"))
                at = end + 1

    def _line(self, line: str) -> None:
        if not line.strip() or line.lstrip().startswith("#"):
            return
        if self._separator is None:
            line = line.removeprefix(_MARK)
            self._separator = next((each for each in _SEPARATORS if each in line), ",")
            self._core = PairLines(self._separator, _MOST_ROUNDS)
            if line.split(self._separator, maxsplit=1)[0].strip().lower() in ("sender", "source", "from"):
                return
        try:
            self._add(line.split(self._separator))
        except InputError as error:
            raise InputError(error.cause, where=f"{self._where}:{self.lines}", hint=error.hint) from None

    def _add(self, cells: list[str]) -> None:
        """Add one line. Raises InputError, which does not say where."""
        if not 3 <= len(cells) <= 5:
            raise InputError(
                f"{len(cells)} cells instead of sender, receiver, value, unit, round",
                hint="commas, semicolons or tabs between them",
            )
        one, other, value, unit, turn = [*(cell.strip() for cell in cells), "", ""][:5]
        sender, receiver = self._number_of(one), self._number_of(other)
        if self.endpoints[sender].node == self.endpoints[receiver].node:
            raise InputError(f"{one[:60]} is paired with itself", hint="leave such lines out")
        scale = _scale(unit or _USUAL[_kind(self._metric)], self._metric, None)
        self._core.know_unit(unit, scale)
        if turn and not (_ROUND.fullmatch(turn) and int(turn) <= _MOST_ROUNDS):
            raise InputError(f"{turn[:40]!r} is no number of a round", hint=f"0 to {_MOST_ROUNDS}")
        reached = math.nan
        if value != _NO_ANSWER:
            reached = _number(value, None) * scale
            if not 0 < reached < math.inf:
                raise InputError(f"{value[:40]} {unit} is no {self._metric}")
        self.tests.add(sender, receiver, int(turn or 0), reached)

    def _number_of(self, text: str) -> int:
        """Return the number of the endpoint that a cell names."""
        endpoint = _endpoint(text)
        number = self._numbers.setdefault(endpoint, len(self.endpoints))
        if number == len(self.endpoints):
            check_count(number + 1)
            self.endpoints.append(endpoint)
        self._core.know_endpoint(text, number, self._nodes.setdefault(endpoint.node, len(self._nodes)))
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

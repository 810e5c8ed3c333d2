"""Pairs from a table: `sender,receiver,value[,unit][,round]`, separated by commas, semicolons or tabs.

`node07:mlx5_3` is one NIC of a node, `node07:gpu3` a GPU of a host whose GPUs were tested by pairs, a value of `-` a
test without an answer. A first line of names, comments (`#`) and empty lines are passed over. Without a unit latencies
are microseconds, bandwidths MB/s (1e6) and message rates messages a second, as OSU and ClusterKit print them.
"""

import math
import re
from collections.abc import Iterable

from busbw.base.errors import InputError
from busbw.base.hostlist import is_host_name
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


def _scale(unit: str, metric: Metric, where: str) -> float:
    kind, scale = _UNITS.get(unit, ("", 0.0))
    if kind != _kind(metric):
        known = ", ".join(each for each, (of, _) in _UNITS.items() if of == _kind(metric))
        raise InputError(f"{unit[:20]!r} is not a unit of {metric}", where=where, hint=f"one of {known}")
    return scale


def _kind(metric: Metric) -> str:
    return "bandwidth" if metric == "bibandwidth" else metric


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{text[:40]!r} is not a number above 0", where=where)
    return value


def read_pairs(text: str, metric: Metric, where: str) -> tuple[Places, tuple[PairTest, ...]]:
    """Return the endpoints in the order in which they come, and the tests.

    Raises InputError for a line that is none, a host that is paired with itself, one host alone, and no pair at all.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if _says(line)]
    if not lines:
        raise InputError("no pairs in this table", where=where, hint="sender,receiver,value,unit")
    separator = next((each for each in _SEPARATORS if each in lines[0][1]), ",")
    if lines[0][1].split(separator)[0].strip().lower() in ("sender", "source", "from"):
        lines = lines[1:]
    numbers: dict[Endpoint, int] = {}
    tests = [_test(line.split(separator), metric, numbers, f"{where}:{number}") for number, line in lines]
    if not tests:
        raise InputError("a first line of names and no pair below it", where=where)
    if all(each.value is None for each in tests):
        raise InputError("none of these tests has an answer", where=where)
    return flat(numbers), tuple(tests)


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _test(cells: list[str], metric: Metric, numbers: dict[Endpoint, int], at: str) -> PairTest:
    """Return one line as a test; `numbers` gets the endpoints that are new."""
    if not 3 <= len(cells) <= 5:
        raise InputError(f"{len(cells)} cells instead of sender, receiver, value, unit, round", where=at)
    one, other, value, unit, turn = [*(cell.strip() for cell in cells), "", ""][:5]
    sender, receiver = _endpoint(one, at), _endpoint(other, at)
    ends = [numbers.setdefault(each, len(numbers)) for each in (sender, receiver)]
    if sender.node == receiver.node:
        raise InputError(f"{one[:60]} is paired with itself", where=at, hint="leave such lines out")
    scale = _scale(unit or _USUAL[_kind(metric)], metric, at)
    if turn and not (turn.isascii() and turn.isdecimal() and int(turn[:12]) <= _MOST_ROUNDS):
        raise InputError(f"{turn[:40]!r} is no number of a round", where=at)
    reached = None if value == _NO_ANSWER else _number(value, at) * scale
    return PairTest(sender=ends[0], receiver=ends[1], round=int(turn or 0), value=reached)


def _endpoint(text: str, at: str) -> Endpoint:
    """Return what a cell names; a GPU of a host stands for itself, since the GPUs of one host are tested together."""
    found = endpoint_of(text)
    if not is_host_name(found.node) or (found.rail is not None and not _RAIL.fullmatch(found.rail)):
        raise InputError(f"{text[:60]!r} is no host", where=at, hint="node07, or node07:mlx5_3 for one of its NICs")
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

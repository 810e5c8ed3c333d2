"""The names of columns and of places in a template, which say what a number is and in which unit.

A count of the machine: nodes, gpus, ranks, cores, or a usual word for one. A result: a time (`time_s`, `wall_min`),
work a time (`tokens_per_s`, `ns_per_day`), a time of one piece of work (`s_per_step`), or `busbw_GBps`; in a log also
a time that runs on (`clock_s`). Anything else is a setting of the row.
"""

import re
from typing import Literal

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.arithmetic import PrintedNumber, printed
from busbw.model.scaling import Axis, ScalingEstimate

_COUNTS: dict[str, Axis] = {
    "nodes": "nodes",
    "node": "nodes",
    "vms": "nodes",
    "vm": "nodes",
    "hosts": "nodes",
    "gpus": "gpus",
    "gpu": "gpus",
    "ranks": "ranks",
    "processes": "ranks",
    "tasks": "ranks",
    "cores": "cores",
    "cpus": "cores",
}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "days": 86400.0}
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BUSBW = re.compile(r"busbw_([KMGT])([Bb])ps", re.ASCII)
_RATE = re.compile(r"([a-z][a-z0-9]{0,30})_per_(s|min|h|day)", re.ASCII)
_INVERSE = re.compile(r"(us|ms|s|min|h|days?)_per_([a-z][a-z0-9]{0,30})", re.ASCII)
_TIME = re.compile(r"[a-z][a-z0-9_]{0,60}_(us|ms|s|min|h)", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,60}", re.ASCII)
MOST_WORKERS = 10_000_000
# No result is as large, nor one over it as small: its square is still a floating-point number.
_LARGEST = 1e50


class ScalingColumn(Value, kw_only=True, frozen=True):
    """What a name means. `factor` takes the number as printed to seconds or bytes a second; a rate stays in `unit`."""

    name: str
    kind: Literal["count", "time", "clock", "rate", "busbw", "setting"]
    axis: Axis | None = None
    factor: float = 1.0
    unit: str | None = None


def column(name: str) -> ScalingColumn:
    """Return what the name of a column means. Raises InputError for one that is not a name."""
    name = name.strip().replace(" ", "_")
    if match := _BUSBW.fullmatch(name):
        return ScalingColumn(name=name, kind="busbw", factor=_PREFIXES[match[1]] / (8 if match[2] == "b" else 1))
    low = name.lower()
    if low in _COUNTS:
        return ScalingColumn(name=name, kind="count", axis=_COUNTS[low])
    if (match := _INVERSE.fullmatch(low)) and match[2] not in _SECONDS:
        return ScalingColumn(name=name, kind="time", factor=_SECONDS[match[1]])
    if match := _RATE.fullmatch(low):
        return ScalingColumn(name=name, kind="rate", unit=f"{match[1]}/{match[2]}")
    if match := _TIME.fullmatch(low):
        kind: Literal["clock", "time"] = "clock" if low == f"clock_{match[1]}" else "time"
        return ScalingColumn(name=name, kind=kind, factor=_SECONDS[match[1]])
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:60]!r} is not a name of a column", hint="letters, digits and _, as in nodes or time_s"
        )
    return ScalingColumn(name=name, kind="setting")


def count(text: str, where: str) -> int:
    """Return a number of nodes, GPUs, ranks or cores. Raises InputError for anything else, and for none."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 8 and 1 <= int(text) <= MOST_WORKERS):
        raise InputError(f"{text[:40]!r} is not a number of nodes, GPUs, ranks or cores", where=where)
    return int(text)


def result(text: str, meaning: ScalingColumn, where: str) -> ScalingEstimate:
    """Return a number with what its digits stand for. Raises InputError for anything else, and for zero."""
    read: PrintedNumber | None = printed(text.strip())
    if read is None or not 1 / _LARGEST < read.value * meaning.factor < _LARGEST:
        raise InputError(
            f"{text.strip()[:40]!r} in {meaning.name} is not a number above zero",
            where=where,
            hint="leave out rows that have no result",
        )
    return ScalingEstimate(
        value=read.value * meaning.factor,
        low=read.low * meaning.factor,
        high=read.high * meaning.factor,
        basis="digits",
    )


LONGEST_LINE = 4096
_LONGEST_TEMPLATE = 512
_MOST_FIELDS = 16
_MOST_STARTS = 64
_FIELD = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


class Template(Value, kw_only=True, frozen=True):
    """A text taken apart: what stands before each field and after the last, and the fields; None: anything."""

    text: str
    literals: tuple[str, ...]
    fields: tuple[ScalingColumn | None, ...]


def template(text: str) -> Template:
    """Return a template taken apart. Raises InputError for one that could not be matched."""
    if len(text) > _LONGEST_TEMPLATE:
        raise InputError(f"a template of {len(text)} characters", hint=f"at most {_LONGEST_TEMPLATE}")
    parts = _FIELD.split(_spaced(text))
    literals, names = parts[0::2], parts[1::2]
    if any("{" in literal or "}" in literal for literal in literals):
        raise InputError("a brace that is not a field", where=text, hint="write a field as {time_s}")
    fields = [None if name == "*" else column(name) for name in names]
    numbers = [field for field in fields if field is not None]
    if not numbers or len(fields) > _MOST_FIELDS:
        raise InputError("a template without a field" if not numbers else "too many fields", where=text)
    for field in numbers:
        if field.kind == "setting":
            raise InputError(
                f"{{{field.name}}} is neither a count nor a result",
                where=text,
                hint="such as {nodes}, {gpus}, {cores}, {time_s}, {tokens_per_s}, {ns_per_day}",
            )
    if any(not literal for literal in literals[1:-1]) or not any(literal.strip() for literal in literals):
        raise InputError("two fields without a text between them", where=text)
    return Template(text=text, literals=tuple(literals), fields=tuple(fields))


def match(pattern: Template, line: str) -> tuple[tuple[ScalingColumn, str], ...] | None:
    """Return the numbers of the first place in a line that a template fits, as they are written; None: in none."""
    if len(line) > LONGEST_LINE:
        return None
    text = _spaced(line)
    first = pattern.literals[0]
    start = text.find(first)
    for _ in range(_MOST_STARTS):
        if start < 0:
            return None
        found = _match_at(pattern, text, start + len(first))
        if found is not None or not first:
            return found
        start = text.find(first, start + 1)
    return None


def _match_at(pattern: Template, text: str, start: int) -> tuple[tuple[ScalingColumn, str], ...] | None:
    found: list[tuple[ScalingColumn, str]] = []
    position = start
    for field, literal in zip(pattern.fields, pattern.literals[1:], strict=True):
        if field is None:
            position = text.find(literal, position)
            if position < 0:
                return None
        else:
            number = _NUMBER.match(text, position)
            if number is None:
                return None
            digits = number[0]
            # `4.log`: the point is the text's where the text begins with one.
            if digits.endswith(".") and not text.startswith(literal, position + len(digits)):
                digits = digits[:-1]
            position += len(digits)
            if not text.startswith(literal, position):
                return None
            found.append((field, digits))
        position += len(literal)
    return tuple(found)


def _spaced(text: str) -> str:
    """Return a text with one space for each white space in it."""
    return " ".join(text.split())

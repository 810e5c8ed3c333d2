"""A small table of results by the size of the machine: comma-separated values under a line of names.

    nodes, time_s, series
    1, 812.4, HBv3
    2, 409.9, HBv3

Separated by commas, semicolons, tabs or bars (Markdown); lines that begin with # are comments,
unless the first of them is the line of names. Names are those of
`busbw.formats.scaling_table`, or as people write them (`busbw.formats.scaling_table`); `collective`, `type`, `op`
and `size` are conditions of bus bandwidth; what follows from other columns (speed-up, efficiency) and remarks (source,
notes) are passed over; any other column is a setting. A rate that was computed from a time beside it has no more digits
than that time.
"""

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.base.value import Value
from busbw.formats.arithmetic import PrintedNumber, printed
from busbw.model.scaling import Axis, Observation, ScalingEstimate

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


_UNIT = re.compile(
    r"[\s_]*[(\[]\s*(us|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|[KMGT][Bb](?:/s|ps))\s*[)\]]\s*$", re.ASCII
)
_UNITS = {"sec": "s", "second": "s", "minute": "min", "hr": "h", "hour": "h"}
_COUNT = re.compile(
    r"(?:#|n|no\.?|num\.?|nr\.?|number)[\s_]*(?:of[\s_]+)?(?P<what>nodes|vms|hosts|gpus|ranks|processes|tasks|cores|cpus)"
    r"|(?P<one>node|vm|host|gpu|rank|core)[\s_]+count",
    re.ASCII | re.IGNORECASE,
)
# What is computed from the others, here too: speed-up, efficiency, the share of the peak that a model reaches.
_DERIVED = re.compile(
    r"(?:(?:parallel[\s_]+)?(?:speed[\s_-]?up|efficiency|scaling)|[mh]fu)(?:[\s_]*(?:[(\[]?%[)\]]?|pct|percent))?",
    re.IGNORECASE,
)
# What somebody wrote beside a row, and where it is from.
_REMARK = re.compile(r"(?:sources?|notes?|remarks?|comments?|references?|urls?|links?|document)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3}){1,12}(?:\.\d{0,40})?", re.ASCII)


def plain_name(heading: str) -> str:
    """Return a heading as a name of busbw.formats.scaling_table: `Time (s)` is `Time_s`, `# of nodes` is `nodes`."""
    heading = heading.strip()
    if match := _COUNT.fullmatch(heading):
        return match["what"] or f"{match['one']}s"
    match = _UNIT.search(heading)
    if match is None:
        return heading
    unit = match[1].replace("/s", "ps")
    short = _UNITS.get(unit.removesuffix("s"), "min" if unit == "mins" else unit)
    words = re.sub(r"\W+", "_", heading[: match.start()].strip(), flags=re.ASCII).strip("_")
    return f"{words}_{short}" if words else heading


def is_passed_over(heading: str) -> bool:
    """Whether a column holds what follows from the others (speed-up, efficiency), or remarks (source, notes)."""
    heading = heading.strip()
    return _DERIVED.fullmatch(heading) is not None or _REMARK.fullmatch(heading) is not None


def plain_number(cell: str, separator: str) -> str:
    """Return a number with a point and without marks of thousands.

    Between semicolons a comma is a decimal one, as spreadsheets write where it is; between commas one marks thousands.
    """
    cell = cell.strip()
    if separator == ";" and _DECIMAL_COMMA.fullmatch(cell):
        return cell.replace(",", ".")
    if separator != ";" and _THOUSANDS.fullmatch(cell):
        return cell.replace(",", "")
    return cell


MOST_BYTES = 4 * 2**20
_MOST_ROWS = 20_000
_MOST_COLUMNS = 64
_LONGEST_LINE = 4096
# A cell that tells nothing.
_UNTOLD = ("", "-", "n/a", "na", "null", "none")
# So many rows are enough to see whether rates were computed from times.
_ROWS_ASKED = 100
# Some programs put it before the first line of a file.
_MARK = "\ufeff"
_CONDITIONS = {"collective": "collective", "type": "type", "dtype": "type", "op": "op"}
_SIZES = ("size", "size_bytes", "message_size")
# What follows from the other columns, and remarks.
_PASSED_OVER = "passed_over"
_SEPARATORS = (",", ";", "\t", "|")
# The line under the heading of a table in Markdown.
_RULE = frozenset("|-: ")


def is_table(text: str) -> bool:
    """Whether a text begins with the names of such a table: one of them a count of the machine."""
    lines = text.removeprefix(_MARK).splitlines()
    first = next(
        (line for line in lines if line.strip() and (not line.startswith("#") or _names(line.lstrip("# ")))), ""
    )
    return _names(first.lstrip("# "))


def read_table(text: str, where: str, *, wanted: str | None = None) -> tuple[Observation, ...]:
    """Return its rows. `wanted`: the column with the result, where there is more than one.

    Raises InputError with the line for what is no such table.
    """
    if len(text) > MOST_BYTES:
        raise InputError(f"a table of more than {MOST_BYTES // 2**20} MiB", where=where)
    columns: list[ScalingColumn] = []
    separator, taken = ",", None
    rows: list[Observation] = []
    times: list[ScalingEstimate | None] = []
    for number, line in enumerate(text.removeprefix(_MARK).splitlines(), start=1):
        place = f"{where}:{number}"
        if not columns and line.startswith("#") and _names(line.lstrip("# ")):
            line = line.lstrip("# ")  # noqa: PLW2901 - as plotting programs have their headings
        if not line.strip() or line.startswith("#") or (separator == "|" and columns and set(line) <= _RULE):
            continue
        if len(line) > _LONGEST_LINE:
            raise InputError(f"a line of {len(line)} characters", where=place, hint=f"at most {_LONGEST_LINE}")
        if not columns:
            separator = _separator(line)
            columns = _header(_split(line, separator, place), place)
            taken = _result_of(columns, wanted, place)
            continue
        cells = _split(line, separator, place)
        if len(cells) != len(columns):
            raise InputError(f"{len(cells)} cells under {len(columns)} names", where=place)
        if len(rows) == _MOST_ROWS:
            raise InputError(f"more than {_MOST_ROWS} rows", where=place)
        assert taken is not None
        numbers = [plain_number(cell, separator) for cell in cells]
        rows.append(_row(columns, taken, numbers, place))
        times.append(_time_beside(columns, taken, numbers, place))
    if not rows:
        raise InputError("a table without rows", where=where)
    return tuple(rows) if taken is None else _as_coarse_as_times(rows, times)


def results_in(text: str, where: str) -> tuple[ScalingColumn, ...]:
    """Return the columns of a table that hold a result. Raises InputError for columns that cannot be."""
    for number, line in enumerate(text.removeprefix(_MARK).splitlines(), start=1):
        if _names(line.lstrip("# ")):
            heading = line.lstrip("# ")
            names = _split(heading, _separator(heading), f"{where}:{number}")
            return tuple(each for each in _header(names, f"{where}:{number}") if each.kind in ("time", "rate", "busbw"))
    return ()


def _names(line: str) -> bool:
    """Whether a line has the names of columns, one of them a count of the machine."""
    if len(line) > _LONGEST_LINE:
        return False
    try:
        columns = [_column(name) for name in _cells(line, _separator(line))]
    except (InputError, csv.Error):
        return False
    return len(columns) > 1 and any(each.kind == "count" for each in columns)


def observation(
    counts: dict[str, int],
    taken: ScalingColumn,
    value: ScalingEstimate,
    *,
    source: str,
    settings: Sequence[tuple[str, str]] = (),
    conditions: Sequence[tuple[str, str]] = (),
    size_bytes: int | None = None,
) -> Observation:
    """Return what a result on so much of the machine is."""
    return Observation(
        source=source,
        conditions=tuple(conditions),
        settings=tuple(settings),
        nodes=counts.get("nodes"),
        gpus=counts.get("gpus"),
        # A rank a GPU is what the results of collectives are counted by.
        ranks=counts.get("ranks", counts.get("gpus") if taken.kind == "busbw" else None),
        cores=counts.get("cores"),
        size_bytes=size_bytes,
        time_s=value if taken.kind == "time" else None,
        busbw_Bps=value if taken.kind == "busbw" else None,
        rate=value if taken.kind == "rate" else None,
        rate_unit=taken.unit,
    )


def _column(heading: str) -> ScalingColumn:
    return column(_PASSED_OVER if is_passed_over(heading) else plain_name(heading))


def _header(names: Sequence[str], where: str) -> list[ScalingColumn]:
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"{len(names)} columns", where=where, hint=f"at most {_MOST_COLUMNS}")
    try:
        columns = [_column(name) for name in names]
    except InputError as error:
        raise InputError(error.cause, where=where, hint=error.hint) from error
    if clock := next((each for each in columns if each.kind == "clock"), None):
        raise InputError(f"{clock.name} is a time that runs on, as in a log", where=where, hint="call a time time_s")
    axes = [each.axis for each in columns if each.axis is not None]
    seen = [each.name for each in columns if each.name != _PASSED_OVER]
    if len(set(seen)) < len(seen) or len(set(axes)) < len(axes):
        raise InputError("two columns mean the same", where=where)
    if not axes:
        raise InputError("no column says on how much it was measured", where=where, hint="add nodes, gpus or cores")
    return columns


def _result_of(columns: Sequence[ScalingColumn], wanted: str | None, where: str) -> ScalingColumn:
    results = [each for each in columns if each.kind in ("time", "rate", "busbw")]
    if wanted is not None:
        found = next((each for each in results if each.name == wanted), None)
        if found is None:
            names = ", ".join(each.name for each in results) or "none"
            raise InputError(f"{wanted!r} is no column with a result", where=where, hint=f"there is {names}")
        return found
    if len(results) != 1:
        names = ", ".join(each.name for each in results)
        raise InputError(
            f"{len(results)} columns hold a result: {names}" if results else "no column holds a result",
            where=where,
            hint=f"choose: --result {results[0].name}" if results else "such as time_s, tokens_per_s, busbw_GBps",
        )
    return results[0]


def _row(columns: Sequence[ScalingColumn], taken: ScalingColumn, cells: Sequence[str], where: str) -> Observation:
    counts: dict[str, int] = {}
    settings: list[tuple[str, str]] = []
    conditions: list[tuple[str, str]] = []
    size_bytes, value = None, None
    for meaning, cell in zip(columns, cells, strict=True):
        if meaning.axis is not None:
            counts[meaning.axis] = count(cell, where)
        elif meaning == taken:
            value = result(cell, meaning, where)
        elif meaning.kind == "setting" and meaning.name.lower() in _SIZES:
            size_bytes = _size(cell, where)
        elif meaning.kind == "setting" and taken.kind == "busbw" and meaning.name.lower() in _CONDITIONS:
            conditions.append((_CONDITIONS[meaning.name.lower()], cell.strip()))
        elif meaning.kind == "setting" and meaning.name != _PASSED_OVER and cell.strip().lower() not in _UNTOLD:
            settings.append((meaning.name, cell.strip()[:200]))
    assert value is not None
    return observation(
        counts, taken, value, source=where, settings=settings, conditions=conditions, size_bytes=size_bytes
    )


def _time_beside(
    columns: Sequence[ScalingColumn], taken: ScalingColumn, cells: Sequence[str], where: str
) -> ScalingEstimate | None:
    """Return the time of a row whose result is a rate; None where there is none that can be read."""
    if taken.kind != "rate":
        return None
    for meaning, cell in zip(columns, cells, strict=True):
        if meaning.kind == "time":
            with suppress(InputError):
                return result(cell, meaning, where)
    return None


def _as_coarse_as_times(
    rows: Sequence[Observation], times: Sequence[ScalingEstimate | None]
) -> tuple[Observation, ...]:
    """Return the rows, with rates no more exact than the times that they were computed from.

    Rate times time is the work. Where rows with different times come to the same work to all the digits of their rates,
    though the times have fewer, the rates were computed from the printed times.
    """
    pairs = [
        (row.rate, time) for row, time in zip(rows, times, strict=True) if row.rate is not None and time is not None
    ]
    some = pairs[:_ROWS_ASKED]
    alike = [any(_is_same_work(pair, other) for other in some) for pair in some]
    if len(pairs) < len(rows) or not pairs or 2 * sum(alike) < len(alike):
        return tuple(rows)
    found = []
    for row, (rate, time) in zip(rows, pairs, strict=True):
        low, high = (
            rate.value * time.value / (time.high or time.value),
            rate.value * time.value / (time.low or time.value),
        )
        found.append(replace(row, rate=replace(rate, low=min(low, rate.low or low), high=max(high, rate.high or high))))
    return tuple(found)


def _is_same_work(one: tuple[ScalingEstimate, ScalingEstimate], other: tuple[ScalingEstimate, ScalingEstimate]) -> bool:
    """Whether two rows with different printed times come to one amount of work, nearer than their times' digits."""
    (rate, time), (other_rate, other_time) = one, other
    if time.value == other_time.value or _rounding(time) <= _rounding(rate):
        return False
    work, other_work = rate.value * time.value, other_rate.value * other_time.value
    return abs(work / other_work - 1) <= _rounding(rate) + _rounding(other_rate)


def _rounding(estimate: ScalingEstimate) -> float:
    return ((estimate.high or estimate.value) - estimate.value) / estimate.value


def _size(cell: str, where: str) -> int:
    try:
        return parse_size(cell)
    except InputError as error:
        raise InputError(error.cause, where=where, hint=error.hint) from error


def _separator(line: str) -> str:
    return max(_SEPARATORS, key=line.count)


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|":
        return [cell.strip() for cell in line.strip().strip("|").split("|")]
    return next(csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True))


def _split(line: str, separator: str, where: str) -> list[str]:
    try:
        return _cells(line, separator)
    except (csv.Error, StopIteration) as error:
        raise InputError(f"not a line of a table: {error}", where=where) from error

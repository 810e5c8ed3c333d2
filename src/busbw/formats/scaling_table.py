"""A small table of results by the size of the machine: comma-separated values under a line of names.

    nodes, time_s, series
    1, 812.4, HBv3
    2, 409.9, HBv3

Separated by commas, semicolons, tabs or bars (Markdown); lines that begin with # are comments,
unless the first of them is the line of names. Names are those of
`busbw.formats.scaling_columns`, or as people write them (`busbw.formats.scaling_table`); `collective`, `type`, `op`
and `size` are conditions of bus bandwidth; what follows from other columns (speed-up, efficiency) and remarks (source,
notes) are passed over; any other column is a setting. A rate that was computed from a time beside it has no more digits
than that time.
"""

import csv
import re
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.formats.scaling_columns import ScalingColumn, column, count, result
from busbw.model.scaling import Observation, ScalingEstimate

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
    """Return a heading as a name of busbw.formats.scaling_columns: `Time (s)` is `Time_s`, `# of nodes` is `nodes`."""
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

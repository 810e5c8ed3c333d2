"""The header line of nccl-tests' and rccl-tests' tables, which alone says what the columns of a row are."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from busbw.formats.form import Unreadable

# As headers spell what is the same: nccl-tests 1 first, `cputime` with -C.
_SAME = {"bytes": "size", "N": "count", "op": "redop", "cputime": "time"}
# Two words in a row: a date and a time of day (-S).
_TIMESTAMP = "timestamp"
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_NAME = re.compile(r"[A-Za-z][\w.+-]{0,40}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,3})?|[+-]?nan|[+-]?inf", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(rf"(?:{_NUMBER.pattern})\*?|N/A", re.ASCII | re.IGNORECASE)
_ANYTHING = re.compile(r"\S+(?: \S+)?", re.ASCII)
_META = {"size": _WHOLE, "count": _WHOLE, "type": _NAME, "redop": _NAME, "root": _WHOLE}
_MOST_COLUMNS = 64
_RATES = frozenset({"time", "algbw", "busbw"})
_CHECKED = frozenset({"#wrong", "error", "res"})


class Column(NamedTuple):
    """One column: its name, whether it belongs to the in-place half (None: to neither), where its header ends."""

    name: str
    in_place: bool | None
    end: int


class Columns(NamedTuple):
    """The columns of a table, in order."""

    columns: tuple[Column, ...]
    # nccl-tests 1 printed milliseconds, all others microseconds: the power of ten of their unit.
    time_shift: int
    is_cpu_time: bool
    # The name and the half of each column, and a row with a value for every one.
    keys: tuple[tuple[str, bool | None], ...]
    whole_row: re.Pattern[str]
    # Whether there is more than time, rates and what was wrong.
    has_more: bool

    def names(self, *, in_place: bool | None) -> frozenset[str]:
        """Return the names of the columns of one half, or of what both share."""
        return frozenset(column.name for column in self.columns if column.in_place is in_place)


Cells = Mapping[tuple[str, bool | None], str]


def read_header(text: str, *, only_in_place: bool = False) -> Columns | None:
    """Return the columns that a header line names; None when it is none. rccl-tests can leave the first half out."""
    if "algbw" not in text:
        return None
    words = [(match[0], match.end()) for match in re.finditer(r"[^\s]+", text)]
    if words and words[0][0] == "#":
        words = words[1:]
    names = [_SAME.get(word, word) for word, _ in words]
    if names[:3] != ["size", "count", "type"] or not set(names) >= _RATES or len(names) > _MOST_COLUMNS:
        return None
    columns: list[Column] = []
    in_place: bool | None = None
    for name, (_, end) in zip(names, words, strict=True):
        if name == "time":
            in_place = only_in_place or in_place is not None
        columns.append(Column(name, None if name == _TIMESTAMP else in_place, end))
    halves = [{column.name for column in columns if column.in_place is half} for half in (False, True)]
    if len({column[:2] for column in columns}) != len(columns) or any(half and not half >= _RATES for half in halves):
        return None
    if any(column.in_place is None and column.name in _RATES | _CHECKED for column in columns):
        return None
    is_cpu_time = any(word == "cputime" for word, _ in words)
    return _columns(tuple(columns), -3 if words[0][0] == "bytes" else -6, is_cpu_time=is_cpu_time)


def split_row(columns: Columns, text: str) -> Cells | Unreadable:
    """Return the cells of a row by column; a column that the row leaves blank is missing."""
    whole = columns.whole_row.fullmatch(text)
    if whole is not None:
        return dict(zip(columns.keys, whole.groups(), strict=True))
    words = [(match[0], match.end()) for match in re.finditer(r"[^\s]+", text)]
    if columns.columns[-1].name == _TIMESTAMP and len(words) >= 2:
        words = [*words[:-2], (f"{words[-2][0]} {words[-1][0]}", words[-1][1])]
    wanted = columns.columns
    if len(words) == len(wanted) - 1 and "redop" in columns.names(in_place=None):
        # alltoall before 2.13 and hypercube leave their operation blank; a number stands in its place.
        blank = next(index for index, column in enumerate(wanted) if column.name == "redop")
        if not _NAME.fullmatch(words[blank][0]):
            wanted = (*wanted[:blank], *wanted[blank + 1 :])
    if len(words) == len(wanted):
        cells = {column[:2]: word for column, (word, _) in zip(wanted, words, strict=True)}
    elif len(words) < len(wanted):
        ends = {column.end: column[:2] for column in wanted}
        placed = {ends.get(end): word for word, end in words}
        if None in placed or len(placed) != len(words):
            return Unreadable(f"{len(words)} values where the header names {len(wanted)} columns")
        cells = {column: word for column, word in placed.items() if column is not None}
    else:
        return Unreadable(f"{len(words)} values where the header names {len(wanted)} columns")
    return _checked(columns, cells)


def _checked(columns: Columns, cells: dict[tuple[str, bool | None], str]) -> Cells | Unreadable:
    for name in ("size", "count", "type"):
        if (name, None) not in cells:
            return Unreadable(f"its {name} is missing")
    for (name, in_place), word in cells.items():
        if _pattern(name, in_place=in_place).fullmatch(word) is None:
            return Unreadable(f"{word[:40]!r} is no value of the column {name}")
    for in_place in (False, True):
        present = {name for name, half in cells if half is in_place}
        # Programs that measure in place only leave the first half blank, never the second.
        if (present or in_place) and not columns.names(in_place=in_place) <= present:
            return Unreadable(f"the {'in-place' if in_place else 'out-of-place'} half is not complete")
    if not any(half is not None for _, half in cells):
        return Unreadable("it has no times")
    return cells


def _pattern(name: str, *, in_place: bool | None) -> re.Pattern[str]:
    if name == _TIMESTAMP:
        return _ANYTHING
    if in_place is None:
        return _META.get(name, _ANYTHING)
    return _COUNT if name in _CHECKED else _NUMBER


def _columns(columns: tuple[Column, ...], time_shift: int, *, is_cpu_time: bool) -> Columns:
    keys = tuple((column.name, column.in_place) for column in columns)
    cells = (r"\S+ \S+" if name == _TIMESTAMP else _pattern(name, in_place=in_place).pattern for name, in_place in keys)
    # Atomic: a value is never shorter than it is printed, so that no row is tried twice.
    row = r"\s*" + r"\s+".join(f"((?>{cell}))(?!\\S)" for cell in cells) + r"\s*"
    has_more = any(name not in _RATES | _CHECKED for name, in_place in keys if in_place is not None)
    return Columns(columns, time_shift, is_cpu_time, keys, re.compile(row, re.ASCII | re.IGNORECASE), has_more)


# What the programs have printed since 2.13.0, for rows whose header is missing.
USUAL = _columns(
    tuple(
        Column(name, in_place, 0)
        for in_place, names in (
            (None, ("size", "count", "type", "redop", "root")),
            (False, ("time", "algbw", "busbw", "#wrong")),
            (True, ("time", "algbw", "busbw", "#wrong")),
        )
        for name in names
    ),
    -6,
    is_cpu_time=False,
)

"""The text tables of nccl-tests, every version, and of rccl-tests, which prints the same."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from busbw.formats.arithmetic import Check, PrintedNumber, RowRates, in_unit, printed
from busbw.formats.form import Taken, TextFormat, TextLine, Unreadable
from busbw.formats.nccl_tests_head import (
    COPIES,
    DTYPES,
    FAILURE,
    LEFT_OUT,
    MAY_BE_FAILURE,
    SEEMS,
    STARTS,
    Head,
    collective_of_program,
    collective_of_row,
    is_open,
    may_be,
    nothing_moved,
    parts,
)
from busbw.model.imported import Reading, Table

# As headers spell what is the same: nccl-tests 1 and the tests of NCCL 1 first, `cputime` with -C.
_SAME = {"bytes": "size", "N": "count", "op": "redop", "cputime": "time", "delta": "error"}
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


class TableColumn(NamedTuple):
    """One column: its name, whether it belongs to the in-place half (None: to neither), where its header ends."""

    name: str
    in_place: bool | None
    end: int


class Columns(NamedTuple):
    """The columns of a table, in order."""

    columns: tuple[TableColumn, ...]
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
    columns: list[TableColumn] = []
    in_place: bool | None = None
    for name, (_, end) in zip(names, words, strict=True):
        if name == "time":
            in_place = only_in_place or in_place is not None
        columns.append(TableColumn(name, None if name == _TIMESTAMP else in_place, end))
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
            return Unreadable(f"{word[:40]!r} is not a value of the column {name}")
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


def _columns(columns: tuple[TableColumn, ...], time_shift: int, *, is_cpu_time: bool) -> Columns:
    keys = tuple((column.name, column.in_place) for column in columns)
    cells = (r"\S+ \S+" if name == _TIMESTAMP else _pattern(name, in_place=in_place).pattern for name, in_place in keys)
    # Atomic: a value is never shorter than it is printed, so that no row is tried twice.
    row = r"\s*" + r"\s+".join(f"((?>{cell}))(?!\\S)" for cell in cells) + r"\s*"
    has_more = any(name not in _RATES | _CHECKED for name, in_place in keys if in_place is not None)
    return Columns(columns, time_shift, is_cpu_time, keys, re.compile(row, re.ASCII | re.IGNORECASE), has_more)


# What the programs have printed since 2.13.0, for rows whose header is missing.
USUAL = _columns(
    tuple(
        TableColumn(name, in_place, 0)
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


# Lines that somebody left out where he quotes a table: "[...]", "...".
_ELLIPSIS = re.compile(r"\s{0,40}\[?(?:\.{3}|…)\]?\s{0,40}")
_ROW = re.compile(r"\s*(?:#\s{0,40})?\d{1,19}\s+\d{1,19}\s+[a-z]", re.ASCII)
# Rows that are held back until one tells the collective; of more the first decides.
_MOST_HELD = 4096
_USUAL_ROW = (
    r"\s*\d{1,19}\s+\d{1,19}\s+[a-z]\w{2,9}\s+(?:none|sum|prod|max|min|avg|mulsum)\s+-?\d{1,6}"
    r"(?:\s+[\d.e+]{1,12}){3}\s+(?:\d\S{0,9}|N/A)(?:\s+[\d.e+]{1,12}){3}\s+(?:\d\S{0,9}|N/A)\s*$"
)
_LARGEST = 2**63 - 1
# Before 2.13 the last column was the largest difference; more than this, times the other ranks, counted as wrong.
_TOLERANCES = {"half": 1e-2, "float": 1e-5, "double": 1e-12}
_UNITS = {"i_min": ("min_s", 1e-6), "i_max": ("max_s", 1e-6), "i_p99": ("p99_s", 1e-6), "i_cv%": ("cv", 1e-2)}


class _HeldRow(NamedTuple):
    """A row of which the table does not tell yet what it measures."""

    line: int
    columns: Columns
    cells: Cells
    guess: str


class _NcclTestsTable:
    """One run of one program of nccl-tests."""

    def __init__(self, line: TextLine, *, number: int, source: int, collective: str | None) -> None:
        self._stated = collective
        self._number = number
        self._source = source
        self._first_line = line.number
        self._head = Head()
        self._columns: Columns | None = None
        self._only_in_place = False
        self._has_assumed_header = False
        self._has_rows = False
        self._ranks: int | None = None
        self._check = Check()
        self._what: str | None = None
        self._is_stated = False
        # What the rows themselves show.
        self._seems: str | None = None
        # Rows of size 0, and of rates that were rounded to 0, are of the collective that a later row shows.
        self._held: list[_HeldRow] = []
        self._busbw_sum = [0.0, 0.0]
        self._rates = 0
        # Rows that somebody left out of the text, `[...]`: the tool's average is of more rows than these.
        self._lacks_rows = False
        self._largest = 0

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        text = line.text
        if _ELLIPSIS.fullmatch(text):
            return self._leave_out()
        if _ROW.match(text) and (self._columns is not None or not text.lstrip().startswith("#")):
            taken = self._row(line)
            if not (isinstance(taken, Unreadable) and text.lstrip().startswith("#")):
                return taken
        header = read_header(text, only_in_place=self._only_in_place)
        if header is not None:
            return self._header(header)
        if "in-place" in text and text.split() in (["#", "in-place"], ["in-place"]):
            self._only_in_place = True
            return "known"
        taken = self._head.take(line, has_header=self._columns is not None)
        if taken == "known" and "average" in self._head.footer_lines:
            self._check_average()
        return taken

    def _leave_out(self) -> Taken:
        if self._columns is None:
            self._head.lacks_devices = bool(self._head.devices)
        elif not self._head.complete:
            self._lacks_rows = True
        return "known"

    def _lacks_devices(self) -> bool:
        return self._head.lacks_devices or self._head.has_gaps()

    def _left_out(self) -> str:
        """Return what somebody left out of the text, and if the rest is not of one run; "" for a whole table."""
        said = " and ".join(["devices"] * self._lacks_devices() + ["rows"] * self._lacks_rows)
        most = dict(self._head.parameters).get("maxBytes", "")
        if said and most.isdecimal() and self._largest > int(most):
            said += f"; a row of {self._largest} bytes where the head says {most} at most, as of another run"
        return said

    def finish(self, last_line: int) -> Table:
        head = self._head
        columns = self._columns
        self._check.compare(self._first_line, head.ranks())
        statistic = head.statistic or "mean over iterations and ranks"
        if columns is not None and columns.is_cpu_time:
            statistic = "mean over iterations and ranks of the CPU time of a call"
        parameters = (*head.parameters, *head.origin)
        if head.copies > 1:
            parameters = (*parameters, (COPIES, str(head.copies)))
        if self._is_stated and self._seems is not None and not may_be(self._seems, self._stated, self._ranks):
            parameters = (*parameters, (SEEMS, self._seems))
        if self._has_assumed_header:
            parameters = (*parameters, ("header", "missing; columns as since 2.13"))
        if left_out := self._left_out():
            parameters = (*parameters, (LEFT_OUT, left_out))
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=head.tool,
            tool_version=head.tool_version,
            program=head.program,
            statistic=statistic,
            ranks=head.ranks(),
            ranks_from_rates=self._check.ranks(),
            versions=head.versions,
            parameters=parameters,
            devices=() if self._lacks_devices() else tuple(head.devices),
            footer=tuple(head.footer.items()),
            complete=head.complete,
            failures=tuple(head.failures),
            doubts=self._check.doubts(),
            stated=(("collective", self._stated),) if self._is_stated and self._stated is not None else (),
        )

    def _header(self, header: Columns) -> Taken:
        # Runs that print into one another show it again and again; another run's comes after rows.
        if self._columns is not None and (header != self._columns or self._has_rows):
            return "foreign"
        self._columns = header
        self._check.of_calls_only = header.is_cpu_time
        return "known"

    def _row(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if self._columns is None:
            if re.match(_USUAL_ROW, line.text) is None:
                return Unreadable("no header line says what its columns are")
            self._columns, self._has_assumed_header = USUAL, True
        elif self._head.complete:
            return "foreign"
        # Some write a comment sign before every line of a table; the columns stay where they are.
        cells = split_row(self._columns, line.text.replace("#", " ", 1))
        if isinstance(cells, Unreadable):
            return cells
        size_bytes, count = int(cells["size", None]), int(cells["count", None])
        if max(size_bytes, count) > _LARGEST:
            return Unreadable("its size is more than 63 bits")
        self._largest = max(self._largest, size_bytes)
        if not self._has_rows:
            # The list of devices is above the rows.
            self._has_rows, self._ranks = True, self._head.ranks()
        self._sum_up(cells)
        guess = self._collective(cells, size_bytes, count)
        self._held.append(_HeldRow(line.number, self._columns, cells, guess))
        if self._what is None and len(self._held) < _MOST_HELD:
            return "held"
        return self.held()

    def held(self) -> Sequence[Reading]:
        """Return the readings of the rows so far, of what the table shows, else of what its last row seems to be."""
        rows, self._held = self._held, []
        what = self._what or next((row.guess for row in reversed(rows)), "")
        return [
            self._reading(row.line, what, row.columns, row.cells, in_place=in_place)
            for row in rows
            for in_place in (False, True)
            if ("time", in_place) in row.cells and not (self._head.origin and _is_blank(row.cells, in_place=in_place))
        ]

    def _reading(self, line: int, what: str, columns: Columns, cells: Cells, *, in_place: bool) -> Reading:
        time_s = printed(cells["time", in_place], columns.time_shift)
        algbw_Bps, busbw_Bps = printed(cells["algbw", in_place], 9), printed(cells["busbw", in_place], 9)
        size_bytes = int(cells["size", None])
        self._check.row(what, line, RowRates(size_bytes, time_s, algbw_Bps, busbw_Bps))
        if (time_s is None or algbw_Bps is None or busbw_Bps is None) and not self._head.origin:
            self._check.doubt(line, "a time or a rate is not a number")
        root = cells.get(("root", None))
        wrong, more = self._wrong(cells, in_place=in_place)
        return Reading(
            table=self._number,
            line=line,
            what=what,
            size_bytes=size_bytes,
            count=int(cells["count", None]),
            dtype=DTYPES.get(cells["type", None], cells["type", None]),
            op=cells.get(("redop", None)),
            root=int(root) if root is not None and abs(int(root)) < _LARGEST else None,
            in_place=in_place,
            ranks=self._ranks,
            time_s=time_s.value if time_s is not None else None,
            algbw_Bps=algbw_Bps.value if algbw_Bps is not None else None,
            busbw_Bps=busbw_Bps.value if busbw_Bps is not None else None,
            printed=f"{cells['busbw', in_place]} GB/s" if busbw_Bps is not None else None,
            wrong=wrong,
            more=more if not columns.has_more else (*more, *_more(cells, in_place=in_place)),
        )

    def _sum_up(self, cells: Cells) -> None:
        for in_place in (False, True):
            halves = [printed(cells.get((name, in_place), ""), 9) for name in ("time", "algbw", "busbw")]
            busbw_Bps = halves[-1]
            if busbw_Bps is not None and None not in halves:
                self._busbw_sum[0] += busbw_Bps.low
                self._busbw_sum[1] += busbw_Bps.high
                self._rates += 1

    def _wrong(self, cells: Cells, *, in_place: bool) -> tuple[int | None, tuple[tuple[str, float], ...]]:
        """Return the wrong elements, and before 2.13 the largest difference beside it; None for N/A: not checked."""
        said = cells.get(("#wrong", in_place))
        if said is not None:
            return _count(said.rstrip("*")), ()
        said = cells.get(("error", in_place), cells.get(("res", in_place), "N/A"))
        difference = _number(said.rstrip("*"))
        if difference is None:
            return (None if said == "N/A" else 1), ()
        allowed = _TOLERANCES.get(cells["type", None], 0.0) * max(1, (self._ranks or 2) - 1)
        return int(difference > allowed or said.endswith("*")), (("largest_difference", difference),)

    def _collective(self, cells: Cells, size_bytes: int, count: int) -> str:
        if self._what is None and self._head.program is not None:
            self._what = collective_of_program(self._head.program) or self._head.program
        if self._what is None and self._stated is not None:
            self._what = self._stated
            self._is_stated = True
        if self._what is not None and (not self._is_stated or self._seems is not None):
            return self._what
        seems, is_sure = self._seeming(cells, size_bytes, count)
        # The first row that leaves no other decides for the table; one of 0 bytes says too little.
        self._seems = seems if is_sure else None
        if not self._is_stated:
            self._what = self._seems
        return self._what or seems

    def _seeming(self, cells: Cells, size_bytes: int, count: int) -> tuple[str, bool]:
        """Return what a row seems to be of, and whether it leaves nothing else."""
        shares = parts(size_bytes, count, cells["type", None])
        has_redop = self._columns is not None and "redop" in self._columns.names(in_place=None)
        root = cells.get(("root", None))
        checked = {half: _wrong_cell(cells, in_place=half) not in (None, "N/A") for half in (False, True)}
        algbw, busbw = printed(cells.get(("algbw", False), "")), printed(cells.get(("busbw", False), ""))
        factor = None
        if algbw is not None and busbw is not None and algbw.low > 0:
            factor = PrintedNumber(busbw.value / algbw.value, busbw.low / algbw.high, busbw.high / algbw.low)
        what = collective_of_row(
            redop=cells.get(("redop", None)),
            root=int(root) if root is not None else None,
            has_redop=has_redop,
            parts=shares or 1,
            ranks=self._ranks,
            in_place_alone_unchecked=checked[False] and not checked[True] and ("time", True) in cells,
            factor=factor,
        )
        if shares is None:
            return nothing_moved(what, has_redop=has_redop), False
        return what, factor is not None and not is_open(what, factor, self._ranks)

    def _check_average(self) -> None:
        """Doubt the table when the tool's average is not that of its rows: then some are missing or wrong."""
        line = self._head.footer_lines.pop("average")
        said = printed(self._head.footer["Avg bus bandwidth"].split()[0])
        if said is None or self._rates == 0 or self._lacks_rows:
            return
        low, high = (total / self._rates for total in self._busbw_sum)
        if not low * (1 - 1e-5) <= said.high * 1e9 or not said.low * 1e9 <= high * (1 + 1e-5):
            mean = (low + high) / 2e9
            self._check.doubt(line, f"the tool's average is {said.value:g} GB/s, that of the rows here {mean:.6g} GB/s")


class _NcclTests:
    tool = "nccl-tests"
    passes_by = True

    def __init__(self, collective: str | None = None) -> None:
        # What somebody states that tables measure which do not name their program.
        self._collective = collective

    starts = re.compile(rf"^(?:{STARTS}|{_USUAL_ROW}|{MAY_BE_FAILURE}.*?(?:{FAILURE.pattern}))", re.ASCII)

    def begin(self, line: TextLine, *, number: int, source: int) -> _NcclTestsTable:
        return _NcclTestsTable(line, number=number, source=source, collective=self._collective)


def _wrong_cell(cells: Cells, *, in_place: bool) -> str | None:
    return next((cells[name, in_place] for name in ("#wrong", "error", "res") if (name, in_place) in cells), None)


def _is_blank(cells: Cells, *, in_place: bool) -> bool:
    """Whether a half says that nothing was measured, as busbw writes it."""
    times = (cells.get((name, in_place)) for name in ("time", "algbw", "busbw"))
    return set(times) == {"nan"} and _wrong_cell(cells, in_place=in_place) == "N/A"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _count(text: str) -> int | None:
    """Return a count of elements, which is printed with six digits; None for N/A and what is not a number."""
    value = _number(text)
    return int(min(value, _LARGEST // 2)) if value is not None and value >= 0 else None


def _more(cells: Cells, *, in_place: bool) -> tuple[tuple[str, float], ...]:
    found = []
    for (name, half), text in cells.items():
        if half is not in_place or name in ("time", "algbw", "busbw", "#wrong", "error", "res"):
            continue
        label, factor = _UNITS.get(name, (name, 1.0))
        value = _number(text)
        if value is not None:
            found.append((label, in_unit(value, factor)))
    return tuple(found)


FORMAT = _NcclTests()


def stating(collective: str) -> TextFormat:
    """Return the reader for tables of which somebody states what they measure; what a table says itself goes first."""
    return _NcclTests(collective)

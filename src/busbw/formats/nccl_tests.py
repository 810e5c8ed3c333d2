"""The text tables of nccl-tests, every version, and of rccl-tests, which prints the same."""

import math
import re
from collections.abc import Sequence

from busbw.formats.arithmetic import Check, Printed, Rates, in_unit, printed
from busbw.formats.form import Line, Taken, Unreadable
from busbw.formats.nccl_tests_columns import USUAL, Cells, Columns, read_header, split_row
from busbw.formats.nccl_tests_head import COPIES, FAILURE, MAY_BE_FAILURE, STARTS, Head
from busbw.formats.nccl_tests_names import DTYPES, collective_of_program, collective_of_row, parts
from busbw.model.imported import Reading, Table

_ROW = re.compile(r"\s*\d{1,19}\s+\d{1,19}\s+[a-z]", re.ASCII)
_USUAL_ROW = (
    r"\s*\d{1,19}\s+\d{1,19}\s+[a-z]\w{2,9}\s+(?:none|sum|prod|max|min|avg|mulsum)\s+-?\d{1,6}"
    r"(?:\s+[\d.e+]{1,12}){3}\s+(?:\d\S{0,9}|N/A)(?:\s+[\d.e+]{1,12}){3}\s+(?:\d\S{0,9}|N/A)\s*$"
)
_LARGEST = 2**63 - 1
# Before 2.13 the last column was the largest difference; more than this, times the other ranks, counted as wrong.
_TOLERANCES = {"half": 1e-2, "float": 1e-5, "double": 1e-12}
_UNITS = {"i_min": ("min_s", 1e-6), "i_max": ("max_s", 1e-6), "i_p99": ("p99_s", 1e-6), "i_cv%": ("cv", 1e-2)}


class _OpenTable:
    """One run of one program of nccl-tests."""

    def __init__(self, line: Line, *, number: int, source: int) -> None:
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
        self._busbw_sum = [0.0, 0.0]
        self._rates = 0

    def take(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
        text = line.text
        if _ROW.match(text):
            return self._row(line)
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
        if self._has_assumed_header:
            parameters = (*parameters, ("header", "missing; columns as since 2.13"))
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
            devices=tuple(head.devices),
            footer=tuple(head.footer.items()),
            complete=head.complete,
            failures=tuple(head.failures),
            doubts=self._check.doubts(),
        )

    def _header(self, header: Columns) -> Taken:
        # Runs that print into one another show it again and again; another run's comes after rows.
        if self._columns is not None and (header != self._columns or self._has_rows):
            return "foreign"
        self._columns = header
        self._check.of_calls_only = header.is_cpu_time
        return "known"

    def _row(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
        if self._columns is None:
            if re.match(_USUAL_ROW, line.text) is None:
                return Unreadable("no header line says what its columns are")
            self._columns, self._has_assumed_header = USUAL, True
        elif self._head.complete:
            return "foreign"
        cells = split_row(self._columns, line.text)
        if isinstance(cells, Unreadable):
            return cells
        size_bytes, count = int(cells["size", None]), int(cells["count", None])
        if max(size_bytes, count) > _LARGEST:
            return Unreadable("its size is more than 63 bits")
        if not self._has_rows:
            # The list of devices is above the rows.
            self._has_rows, self._ranks = True, self._head.ranks()
        what = self._collective(cells, size_bytes, count)
        return [
            self._reading(line.number, what, self._columns, cells, in_place=in_place)
            for in_place in (False, True)
            if ("time", in_place) in cells and not (self._head.origin and _is_blank(cells, in_place=in_place))
        ]

    def _reading(self, line: int, what: str, columns: Columns, cells: Cells, *, in_place: bool) -> Reading:
        time_s = printed(cells["time", in_place], columns.time_shift)
        algbw_Bps, busbw_Bps = printed(cells["algbw", in_place], 9), printed(cells["busbw", in_place], 9)
        size_bytes = int(cells["size", None])
        self._check.row(what, line, Rates(size_bytes, time_s, algbw_Bps, busbw_Bps))
        if time_s is not None and algbw_Bps is not None and busbw_Bps is not None:
            self._busbw_sum[0] += busbw_Bps.low
            self._busbw_sum[1] += busbw_Bps.high
            self._rates += 1
        elif not self._head.origin:
            self._check.doubt(line, "a time or a rate is no number")
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
            wrong=wrong,
            more=more if not columns.has_more else (*more, *_more(cells, in_place=in_place)),
        )

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
        if self._what is not None:
            return self._what
        shares = parts(size_bytes, count, cells["type", None])
        columns = self._columns
        root = cells.get(("root", None))
        checked = {half: _wrong_cell(cells, in_place=half) not in (None, "N/A") for half in (False, True)}
        algbw, busbw = printed(cells.get(("algbw", False), "")), printed(cells.get(("busbw", False), ""))
        factor = None
        if algbw is not None and busbw is not None and algbw.low > 0:
            factor = Printed(busbw.value / algbw.value, busbw.low / algbw.high, busbw.high / algbw.low)
        what = collective_of_row(
            redop=cells.get(("redop", None)),
            root=int(root) if root is not None else None,
            has_redop=columns is not None and "redop" in columns.names(in_place=None),
            parts=shares or 1,
            ranks=self._ranks,
            in_place_alone_unchecked=checked[False] and not checked[True] and ("time", True) in cells,
            factor=factor,
        )
        # The first row of a real size decides for the table; one of 0 bytes says too little.
        if shares is not None and factor is not None:
            self._what = what
        return what

    def _check_average(self) -> None:
        """Doubt the table when the tool's average is not that of its rows: then some are missing or wrong."""
        line = self._head.footer_lines.pop("average")
        said = printed(self._head.footer["Avg bus bandwidth"].split()[0])
        if said is None or self._rates == 0:
            return
        low, high = (total / self._rates for total in self._busbw_sum)
        if not low * (1 - 1e-5) <= said.high * 1e9 or not said.low * 1e9 <= high * (1 + 1e-5):
            mean = (low + high) / 2e9
            self._check.doubt(line, f"the tool's average is {said.value:g} GB/s, that of the rows here {mean:.6g} GB/s")


class _NcclTests:
    tool = "nccl-tests"
    passes_by = True
    starts = re.compile(rf"^(?:{STARTS}|{_USUAL_ROW}|{MAY_BE_FAILURE}.*?(?:{FAILURE.pattern}))", re.ASCII)

    def begin(self, line: Line, *, number: int, source: int) -> _OpenTable:
        return _OpenTable(line, number=number, source=source)


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
    """Return a count of elements, which is printed with six digits; None for N/A and what is no number."""
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

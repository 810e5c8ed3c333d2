"""nvbandwidth without -j: one table a run, the matrices of its test cases below their descriptions.

Each matrix has a line that numbers its columns, rows that begin with their number, and the sum of its cells, which
tells whether one is missing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.formats.arithmetic import in_unit
from busbw.formats.cells import LONGEST_ROW, CellError, quantity
from busbw.formats.form import Line, Taken, Unreadable
from busbw.formats.nvbandwidth import PARTS, TOOL, device_of, end_named, ends_of, unit_of, versions_of
from busbw.model.imported import Device, Reading, Table

_VERSION = r"nvbandwidth Version: (?P<version>\S{1,40})"
_RUNNING = r"Running (?P<case>[a-z][a-z0-9_]{1,100})\.$"
_DESCRIPTION = (
    r"(?P<description>(?:mem\w+|\w+ latency) .{0,80}\((?:row|column)\).{0,80}(?:bandwidth|latency)? ?"
    r"\((?:GB/s|ns)\))\s*$"
)
_BUILT = re.compile(r"Built from Git version: (\S{1,80})")
_CUDA = re.compile(r"CUDA Runtime Version: (\d{4,9})\b", re.ASCII)
_DRIVER = re.compile(r"Driver Version: (\S{1,40})")
_DEVICE = re.compile(r"Device (\d{1,6}: .{1,200})", re.ASCII)
_PROCESS = re.compile(r"Process (\d{1,6}) \(([\w.-]{1,255})\): [Dd]evice (\d{1,6}): (.{1,200})", re.ASCII)
_SUM = re.compile(r"(?P<what>SUM|MIN|MAX|AVG|AVERAGE) (?P<name>\S{1,120}) (?P<value>\S{1,40})")
_WAIVED = re.compile(r"(?:Waiving|Waived:?) (?P<case>\S{1,100}?)\.?$")
_FAILED = re.compile(
    r"(?:ASSERT in expression|\[?CUDA_ERROR|ERROR\b|Error\b|Invalid value when checking the pattern).*"
)
_KNOWN = re.compile(
    r"NOTE: .*|Additional system-specific tuning .*|Performance can vary .*|CUDA Driver Version: .*|MPI version: .*|"
    r"Current offset : .*"
)
_COLUMNS = re.compile(r"\s*\d{1,5}(?:\s+\d{1,5})*\s*", re.ASCII)
_ROW = re.compile(r"\s*\d{1,5}(?:\s+(?:[\d.]{1,20}|N/A))+\s*", re.ASCII)
_PART = re.compile(r"\b(?:(?:Read|Write)([12])|(Total)) bandwidth")
_LONGEST_FAILURE = 300
_MOST = 4096


@dataclass(slots=True)
class _Matrix:
    """The matrix under way: what it is of, and the sum of its cells so far."""

    case: str
    description: str
    columns: tuple[int, ...] = ()
    sum: float = 0.0
    cells: int = 0

    @property
    def what(self) -> str:
        """The test case, and of a bidirectional one the direction."""
        part = _PART.search(self.description)
        return self.case if part is None else self.case + PARTS[2 if part[2] else int(part[1]) - 1]


class _OpenTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._version: str | None = None
        self._cuda: int | None = None
        self._driver: str | None = None
        self._devices: list[Device] = []
        self._case: str | None = None
        self._cases: set[str] = set()
        self._matrix: _Matrix | None = None
        # Whether a test case has begun whose sum did not come yet.
        self._is_open = False
        self._footer: dict[str, str] = {}
        self._failures: list[tuple[int, str]] = []
        self._doubts: list[tuple[int, str]] = []

    def take(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
        text = line.text.strip()
        if len(text) > LONGEST_ROW:
            return "foreign"
        matrix = self._matrix
        if matrix is not None and not matrix.columns and _COLUMNS.fullmatch(text):
            matrix.columns = tuple(map(int, text.split()))
            return "known"
        if matrix is not None and matrix.columns and _ROW.fullmatch(text):
            return self._row(line.number, matrix, text.split())
        if match := _SUM.fullmatch(text):
            return self._sum(line.number, match)
        if match := _STARTS.match(text):
            return self._begin(match)
        return self._head(line.number, text)

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            tool_version=self._version,
            program=TOOL,
            statistic="median of the samples, or their mean where the run asked for it",
            versions=versions_of(self._cuda, self._driver),
            devices=tuple(self._devices),
            footer=tuple(self._footer.items()),
            # Every matrix ends with its sum.
            complete=not self._is_open and bool(self._footer),
            failures=tuple(self._failures),
            doubts=tuple(self._doubts),
        )

    def _begin(self, match: re.Match[str]) -> Taken:
        if match["version"] is not None:
            if self._version is not None or self._cases:
                return "foreign"
            self._version = match["version"]
        elif match["case"] is not None:
            if match["case"] in self._cases:
                return "foreign"
            self._case, self._matrix, self._is_open = match["case"], None, True
            self._cases.add(match["case"])
        else:
            self._is_open = True
            self._matrix = _Matrix(self._case or match["description"].partition(" (")[0], match["description"])
        return "known"

    def _head(self, number: int, text: str) -> Taken:
        if match := _BUILT.fullmatch(text):
            self._version = match[1] if self._version in {None, match[1]} else f"{self._version} ({match[1]})"
        elif match := _CUDA.match(text):
            self._cuda = int(match[1])
        elif match := _DRIVER.fullmatch(text):
            self._driver = match[1]
        elif match := _PROCESS.fullmatch(text):
            self._add(device_of(int(match[1]), f"{match[3]}: {match[4]}: ({match[2]})"))
        elif match := _DEVICE.fullmatch(text):
            self._add(device_of(len(self._devices), match[1]))
        elif match := _WAIVED.fullmatch(text):
            self._footer[f"{match['case']} status"] = "Waived"
            self._is_open = False
        elif _FAILED.fullmatch(text) and len(self._failures) < _MOST:
            self._failures.append((number, f"{self._case or TOOL}: {text}"[:_LONGEST_FAILURE]))
        elif text and not _KNOWN.fullmatch(text):
            return "foreign"
        return "known"

    def _add(self, device: Device) -> None:
        if len(self._devices) < _MOST:
            self._devices.append(device)

    def _row(self, number: int, matrix: _Matrix, cells: list[str]) -> Sequence[Reading] | Unreadable:
        if len(cells) != len(matrix.columns) + 1:
            return Unreadable(f"{len(cells) - 1} cells under {len(matrix.columns)} columns")
        try:
            values = [quantity(cell) for cell in cells[1:]]
        except CellError as error:
            return Unreadable(str(error))
        matrix.sum += sum(value or 0.0 for value in values)
        matrix.cells += len(values)
        return tuple(self._readings(number, matrix, int(cells[0]), values))

    def _readings(self, number: int, matrix: _Matrix, row: int, values: Sequence[float | None]) -> Iterator[Reading]:
        source, target = ends_of(matrix.description)
        unit = unit_of(matrix.description)
        for column, value in zip(matrix.columns, values, strict=True):
            # 0 is a pair that was not measured: versions before 0.5 print no "N/A".
            if value:
                yield Reading(
                    table=self._number,
                    line=number,
                    what=matrix.what,
                    source=end_named(source, row, column),
                    target=end_named(target, row, column),
                    time_s=in_unit(value, 1e-9) if unit == "ns" else None,
                    bandwidth_Bps=in_unit(value, 1e9) if unit == "GB/s" else None,
                )

    def _sum(self, number: int, match: re.Match[str]) -> Taken | Unreadable:
        try:
            said = quantity(match["value"])
        except CellError as error:
            return Unreadable(str(error))
        self._footer[f"{match['what'].lower()} {match['name']}"] = match["value"]
        if match["what"] != "SUM":
            return "known"
        matrix, self._matrix, self._is_open = self._matrix, None, False
        # Two decimals each.
        if matrix is not None and said is not None and abs(matrix.sum - said) > 0.005 * (matrix.cells + 1) + 1e-9:
            self._doubts.append((number, f"{matrix.what}: its sum is {said:g}, that of the rows here {matrix.sum:.6g}"))
        return "known"


_STARTS = re.compile(rf"(?:{_VERSION}|{_RUNNING}|{_DESCRIPTION})")


class _NvbandwidthText:
    tool = TOOL
    passes_by = False
    starts = re.compile(rf"^\s*{_STARTS.pattern}", re.ASCII)

    def begin(self, line: Line, *, number: int, source: int) -> _OpenTable:
        return _OpenTable(number=number, source=source, first_line=line.number)


FORMAT = _NvbandwidthText()

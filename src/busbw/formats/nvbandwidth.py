"""nvbandwidth -j: one table a test case, one reading a cell of its matrix; sum and statistics are in the footer.

What rows and columns are, and the way the data goes, is said by the description: `memcpy CE GPU(row) -> GPU(column)
bandwidth (GB/s)`. A bidirectional test writes three matrices below one another, both directions and their total, and
leaves the last one's description (json_output.cpp appends to one array; changed in 0.9).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Integer
from busbw.formats.arithmetic import in_unit
from busbw.formats.form import (
    LONGEST_ROW,
    CellError,
    Natural,
    TableFormat,
    Taken,
    TextLine,
    Unreadable,
    quantity,
    shaped,
)
from busbw.model.imported import ListedDevice, Reading, Table

TOOL = "nvbandwidth"
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_END = r"(All Gpus|All|\w+\((?:row|column)\))"
_ENDS = re.compile(rf"{_END} (<->|->|<-) {_END}")
_LOCAL = re.compile(r"\blocal (\w+\(column\))")
_DEVICE = re.compile(r"(\d{1,6}): ([^():]{1,100}?) \(([0-9A-Fa-f:.]{1,20}?):?\)(?:: \(([\w.-]{1,255})\))?")
# Versions before 0.5 print no address.
_DEVICE_ALONE = re.compile(r"(\d{1,6}): ([^:]{1,100})", re.ASCII)
PARTS = (", direction 1", ", direction 2", ", total")
_FAILED = frozenset({"Error", "Not Found"})


# All of them are a line of text.
_Text = Annotated[str, msgspec.Meta(max_length=1000)]


class _Testcase(msgspec.Struct):
    name: _Text
    status: _Text
    bandwidth_description: _Text = ""
    # A cell is a number in quotes, or "N/A"; a row without cells is null.
    bandwidth_matrix: tuple[tuple[str | Integer | float | None, ...] | None, ...] = ()
    error: _Text | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    average: float | None = None


class _NvbandwidthRun(msgspec.Struct):
    testcases: tuple[_Testcase, ...] = ()
    cuda: Natural | None = msgspec.field(default=None, name="CUDA Runtime Version")
    driver: _Text | None = msgspec.field(default=None, name="Driver Version")
    devices: tuple[_Text, ...] | None = msgspec.field(default=None, name="GPU Device list")
    git_version: _Text | None = None
    version: _Text | None = None
    error: _Text | None = None
    warning: _Text | None = None


class _NvbandwidthDocument(msgspec.Struct):
    nvbandwidth: _NvbandwidthRun


class _CellMatrix(NamedTuple):
    """How the cells of a test case are to be read."""

    ends: tuple[str, str]
    unit: str | None
    # Rows of each of the matrices that stand below one another; None when there is only one.
    part_rows: int | None


class _Nvbandwidth:
    tool = TOOL
    is_record = False

    def recognises(self, document: object) -> bool:
        return isinstance(document, dict) and "nvbandwidth" in document

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        run = shaped(document, _NvbandwidthDocument, tool=TOOL, line=line).nvbandwidth
        common = Table(
            number=number,
            source=source,
            first_line=line,
            last_line=line,
            tool=TOOL,
            tool_version=run.git_version or run.version,
            format="json",
            statistic="median of the samples, or their mean where the run asked for it",
            versions=versions_of(run.cuda, run.driver),
            devices=tuple(device_of(rank, text) for rank, text in enumerate(run.devices or ())),
            complete=True,
            failures=tuple((line, text) for text in (run.error, run.warning) if text),
        )
        if not run.testcases:
            return [(common, ())]
        found = []
        for index, case in enumerate(run.testcases):
            readings = tuple(_readings(case, index, table=number + index, line=line))
            found.append((_table(common, case, number + index), readings))
        return found


def _table(common: Table, case: _Testcase, number: int) -> Table:
    sums = (("sum", case.sum), ("min", case.min), ("max", case.max), ("average", case.average))
    footer = [("status", case.status), *((name, f"{value:.10g}") for name, value in sums if value is not None)]
    failed = [f"{case.name}: {text}" for text in (case.error, case.status if case.status in _FAILED else None) if text]
    return msgspec.structs.replace(
        common,
        number=number,
        program=case.name,
        parameters=(("description", case.bandwidth_description),) if case.bandwidth_description else (),
        footer=tuple(footer),
        failures=(*common.failures, *((common.first_line, text) for text in failed)),
    )


def _readings(case: _Testcase, index: int, *, table: int, line: int) -> Iterator[Reading]:
    matrix = _matrix(case)
    for row, cells in enumerate(case.bandwidth_matrix):
        part = ""
        row_in_part = row
        if matrix.part_rows is not None:
            part, row_in_part = PARTS[row // matrix.part_rows], row % matrix.part_rows
        for column, cell in enumerate(cells or ()):
            path = f"$.nvbandwidth.testcases[{index}].bandwidth_matrix[{row}][{column}]"
            value = _value(cell, path=path, line=line)
            if value is None:
                continue
            yield Reading(
                table=table,
                line=line,
                what=case.name + part,
                source=end_named(matrix.ends[0], row_in_part, column),
                target=end_named(matrix.ends[1], row_in_part, column),
                time_s=value * 1e-9 if matrix.unit == "ns" else None,
                bandwidth_Bps=value * 1e9 if matrix.unit == "GB/s" else None,
                more=(("value", value),) if matrix.unit is None else (),
            )


def unit_of(description: str) -> str | None:
    """Return `GB/s` or `ns`, which a description ends with; None for any other end."""
    match = _UNIT.search(description)
    return match[1] if match is not None else None


def ends_of(description: str) -> tuple[str, str]:
    """Return where the data of a matrix come from and go to: `CPU(row)` and `GPU(column)`."""
    if match := _ENDS.search(description):
        return (match[3], match[1]) if match[2] == "<-" else (match[1], match[3])
    if match := _LOCAL.search(description):
        return match[1], match[1]
    return "row(row)", "column(column)"


def end_named(end: str, row: int, column: int) -> str:
    """Return the name of one end of a cell: `GPU3` of `GPU(column)` in column 3."""
    kind, _, axis = end.partition("(")
    return f"{kind}{row}" if axis == "row)" else f"{kind}{column}" if axis == "column)" else kind


def versions_of(cuda: int | None, driver: str | None) -> tuple[tuple[str, str], ...]:
    """Return the versions of CUDA, which is printed as 12040 for 12.4, and of the driver."""
    of_cuda = () if cuda is None else (("CUDA", f"{cuda // 1000}.{cuda % 1000 // 10}"),)
    return (*of_cuda, *((("driver", driver),) if driver else ()))


def _matrix(case: _Testcase) -> _CellMatrix:
    text = case.bandwidth_description
    ends = ends_of(text)
    rows, columns = len(case.bandwidth_matrix), max((len(row or ()) for row in case.bandwidth_matrix), default=0)
    among_gpus = ends[0].startswith("GPU") and ends[1].startswith("GPU")
    tripled = " Total " in text and rows == 3 * (columns if among_gpus else 1)
    return _CellMatrix(ends=ends, unit=unit_of(text), part_rows=rows // 3 if tripled else None)


def _value(cell: str | float | None, *, path: str, line: int) -> float | None:
    try:
        value = None if cell is None else quantity(cell if isinstance(cell, str) else repr(cell))
    except CellError as error:
        raise InputError(f"not a document of {TOOL}: {error} - at `{path}`", where=f"line {line}") from error
    # A cell of exactly 0 is a pair that was not measured: versions before 0.5 print no "N/A".
    return value or None


def device_of(rank: int, text: str) -> ListedDevice:
    """Return a GPU from `3: NVIDIA H200 (00000000:4d:00): (host)`; from other words, what they are."""
    match = _DEVICE.fullmatch(text)
    if match is None and (alone := _DEVICE_ALONE.fullmatch(text)) is not None:
        return ListedDevice(rank=rank, device=int(alone[1]), model=alone[2].strip())
    if match is None:
        return ListedDevice(rank=rank, model=text[:200])
    return ListedDevice(rank=rank, device=int(match[1]), model=match[2], bus_id=match[3], host=match[4])


JSON_FORMAT = _Nvbandwidth()


_VERSION = r"nvbandwidth Version: (?P<version>\S{1,40})"
_RUNNING = r"Running (?P<case>[a-z][a-z0-9_]{1,100})\.$"
_DESCRIPTION = (
    r"(?P<description>(?:mem\w+|\w+ latency) .{0,80}\((?:row|column)\).{0,80}(?:bandwidth|latency)? ?"
    r"\((?:GB/s|ns)\))\s*$"
)
_BUILT = re.compile(r"Built from Git version: (\S{1,80})")
_CUDA = re.compile(r"CUDA Runtime Version: (\d{4,9})\b", re.ASCII)
_DRIVER = re.compile(r"Driver Version: (\S{1,40})")
_NVBANDWIDTH_TEXT_DEVICE = re.compile(r"Device (\d{1,6}: .{1,200})", re.ASCII)
_PROCESS = re.compile(r"Process (\d{1,6}) \(([\w.-]{1,255})\): [Dd]evice (\d{1,6}): (.{1,200})", re.ASCII)
_SUM = re.compile(r"(?P<what>SUM|MIN|MAX|AVG|AVERAGE) (?P<name>\S{1,120}) (?P<value>\S{1,40})")
_WAIVED = re.compile(r"(?:Waiving|Waived:?) (?P<case>\S{1,100}?)\.?$")
_NVBANDWIDTH_TEXT_FAILED = re.compile(
    r"(?:ASSERT in expression|\[?CUDA_ERROR|ERROR\b|Error\b|Invalid value when checking the pattern).*"
)
_KNOWN = re.compile(
    r"NOTE: .*|Additional system-specific tuning .*|Performance can vary .*|CUDA Driver Version: .*|MPI version: .*|"
    r"Current offset : .*|Built from Git version:|Waived:"
)
_COLUMNS = re.compile(r"\s*\d{1,5}(?:\s+\d{1,5})*\s*", re.ASCII)
_ROW = re.compile(r"\s*\d{1,5}(?:\s+(?:[\d.]{1,20}|N/A))+\s*", re.ASCII)
_PART = re.compile(r"\b(?:(?:Read|Write)([12])|(Total)) bandwidth")
_LONGEST_FAILURE = 300
_MOST = 4096


@dataclass(slots=True)
class _TextMatrix:
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


class _NvbandwidthTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._version: str | None = None
        self._cuda: int | None = None
        self._driver: str | None = None
        self._devices: list[ListedDevice] = []
        self._case: str | None = None
        self._cases: set[str] = set()
        self._matrix: _TextMatrix | None = None
        # Whether a test case has begun whose sum did not come yet.
        self._is_open = False
        self._footer: dict[str, str] = {}
        self._failures: list[tuple[int, str]] = []
        self._doubts: list[tuple[int, str]] = []

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
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
            self._matrix = _TextMatrix(self._case or match["description"].partition(" (")[0], match["description"])
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
        elif match := _NVBANDWIDTH_TEXT_DEVICE.fullmatch(text):
            self._add(device_of(len(self._devices), match[1]))
        elif match := _WAIVED.fullmatch(text):
            self._footer[f"{match['case']} status"] = "Waived"
            self._is_open = False
        elif _NVBANDWIDTH_TEXT_FAILED.fullmatch(text) and len(self._failures) < _MOST:
            self._failures.append((number, f"{self._case or TOOL}: {text}"[:_LONGEST_FAILURE]))
        elif text and not _KNOWN.fullmatch(text):
            return "foreign"
        return "known"

    def _add(self, device: ListedDevice) -> None:
        if len(self._devices) < _MOST:
            self._devices.append(device)

    def _row(self, number: int, matrix: _TextMatrix, cells: list[str]) -> Sequence[Reading] | Unreadable:
        if len(cells) != len(matrix.columns) + 1:
            return Unreadable(f"{len(cells) - 1} cells under {len(matrix.columns)} columns")
        try:
            values = [quantity(cell) for cell in cells[1:]]
        except CellError as error:
            return Unreadable(str(error))
        matrix.sum += sum(value or 0.0 for value in values)
        matrix.cells += len(values)
        return tuple(self._readings(number, matrix, int(cells[0]), values))

    def _readings(
        self, number: int, matrix: _TextMatrix, row: int, values: Sequence[float | None]
    ) -> Iterator[Reading]:
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


TEXT_FORMAT = TableFormat(tool=TOOL, starts=re.compile(rf"^\s*{_STARTS.pattern}", re.ASCII), table=_NvbandwidthTable)

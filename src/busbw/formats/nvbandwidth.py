"""nvbandwidth -j: one table a test case, one reading a cell of its matrix; sum and statistics are in the footer.

What rows and columns are, and the way the data goes, is said by the description: `memcpy CE GPU(row) -> GPU(column)
bandwidth (GB/s)`. A bidirectional test writes three matrices below one another, both directions and their total, and
leaves the last one's description (json_output.cpp appends to one array; changed in 0.9).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Integer
from busbw.formats.cells import CellError, quantity
from busbw.formats.documents import Natural, shaped
from busbw.model.imported import Device, Reading, Table

TOOL = "nvbandwidth"
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_END = r"(All Gpus|All|\w+\((?:row|column)\))"
_ENDS = re.compile(rf"{_END} (<->|->|<-) {_END}")
_LOCAL = re.compile(r"\blocal (\w+\(column\))")
_DEVICE = re.compile(r"(\d{1,6}): ([^():]{1,100}?) \(([0-9A-Fa-f:.]{1,20}?):?\)(?:: \(([\w.-]{1,255})\))?")
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


class _Run(msgspec.Struct):
    testcases: tuple[_Testcase, ...] = ()
    cuda: Natural | None = msgspec.field(default=None, name="CUDA Runtime Version")
    driver: _Text | None = msgspec.field(default=None, name="Driver Version")
    devices: tuple[_Text, ...] | None = msgspec.field(default=None, name="GPU Device list")
    git_version: _Text | None = None
    version: _Text | None = None
    error: _Text | None = None
    warning: _Text | None = None


class _Document(msgspec.Struct):
    nvbandwidth: _Run


class _Matrix(NamedTuple):
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
        run = shaped(document, _Document, tool=TOOL, line=line).nvbandwidth
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


def _matrix(case: _Testcase) -> _Matrix:
    text = case.bandwidth_description
    ends = ends_of(text)
    rows, columns = len(case.bandwidth_matrix), max((len(row or ()) for row in case.bandwidth_matrix), default=0)
    among_gpus = ends[0].startswith("GPU") and ends[1].startswith("GPU")
    tripled = " Total " in text and rows == 3 * (columns if among_gpus else 1)
    return _Matrix(ends=ends, unit=unit_of(text), part_rows=rows // 3 if tripled else None)


def _value(cell: str | float | None, *, path: str, line: int) -> float | None:
    try:
        value = None if cell is None else quantity(cell if isinstance(cell, str) else repr(cell))
    except CellError as error:
        raise InputError(f"not a document of {TOOL}: {error} - at `{path}`", where=f"line {line}") from error
    # A cell of exactly 0 is a pair that was not measured: versions before 0.5 print no "N/A".
    return value or None


def device_of(rank: int, text: str) -> Device:
    """Return a GPU from `3: NVIDIA H200 (00000000:4d:00): (host)`; from other words, what they are."""
    match = _DEVICE.fullmatch(text)
    if match is None:
        return Device(rank=rank, model=text[:200])
    return Device(rank=rank, device=int(match[1]), model=match[2], bus_id=match[3], host=match[4])


FORMAT = _Nvbandwidth()

"""rocm_bandwidth_test: matrices of copies between all devices, and tables by size between two.

GB/s are 1e9 bytes a second. A row of a matrix is where the data come from, a column where they go to. Both directions
together are what a bidirectional test counts. "Peak" is the size over the least time of all iterations, "average" that
over their mean (rocm_bandwidth_test_trans.cpp). Titles changed: before 2019 they lack `copy`, before May 2019 `Inter-`,
and until 2021 it was `Bdirectional`.
"""

import re
from collections.abc import Iterator, Sequence

from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.formats.form import LONGEST_ROW, CellError, TableFormat, Taken, TextLine, Unreadable, quantity, scaled
from busbw.model.imported import ListedDevice, Reading, Table

TOOL = "rocm_bandwidth_test"
_VERSION = r"RocmBandwidthTest Version: (?P<version>\S{1,40})"
_MATRIX = r"(?P<way>Uni|Bi|B)directional (?:copy )?(?P<statistic>peak|average) bandwidth GB/s"
_RESULT = r"=+\s+(?:(?P<result>Uni|Bi)directional )?Benchmark Result\s+=+"
_OTHER_MATRIX = re.compile(
    r"(?:Inter-)?Device (?:Access|Numa Distance)|Inter-Device Link \w{1,20}.{0,60}|Data Path Validation.{0,40}"
)
_STATISTICS = {
    "peak": "size over the least time of all iterations",
    "average": "mean over iterations, the slowest left out",
}
_END = re.compile(
    r"=+ (?P<end>Src|Dst) (?:Device|Pool) Id: (?P<id>\d{1,4}) (?:Src|Dst) (?:Device|Agent) Type: (?P<type>\w{1,10}) =+"
)
_COLUMNS = re.compile(r"D/D(?P<ids>(?:\s+\d{1,4})+)", re.ASCII)
_ROW = re.compile(r"(?P<id>\d{1,4})(?P<cells>(?:\s+(?:N/A|PASS|FAIL|[\d.]{1,25}))+)", re.ASCII)
_SIZES = re.compile(r"Data Size\s+Avg Time\(us\)\s+Avg BW\(GB/s\)\s+Min Time\(us\)\s+Peak BW\(GB/s\)")
_SIZED = re.compile(
    r"(?P<size>\d{1,6} ?(?:Bytes|B|KB|MB|GB))\s+(?P<cells>[\d.naif]{1,25}(?:\s+[\d.naif]{1,25}){3})", re.ASCII
)
_DEVICE = re.compile(r"Device(?: Index)?: (?P<id>\d{1,4}), {1,4}(?P<rest>.{0,200})", re.ASCII)
_COMMAND = re.compile(r"Launch Command is: (?P<command>.{1,300})")
_KNOWN = re.compile(r"\.+")
_MOST_DEVICES = 1024


class _RocmBandwidthTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._version: str | None = None
        self._arguments: tuple[str, ...] = ()
        self._devices: list[ListedDevice] = []
        # What the matrix or table under way measures; None: it is one of no bandwidths.
        self._what: str | None = None
        self._statistic = "average"
        self._columns: tuple[str, ...] = ()
        self._missing = 0
        self._ends = {"Src": "", "Dst": ""}
        self._is_sized = False
        self._rows = 0

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if self._columns and (match := _ROW.fullmatch(text)):
            return self._row(line.number, match["id"], match["cells"].split())
        if self._is_sized and (match := _SIZED.fullmatch(text)):
            return self._sized(line.number, match["size"], match["cells"].split())
        return self._head(text)

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            tool_version=self._version,
            program="rocm-bandwidth-test",
            statistic=_STATISTICS[self._statistic],
            arguments=self._arguments,
            devices=tuple(self._devices),
            complete=self._rows > 0 and self._missing == 0,
        )

    def _head(self, text: str) -> Taken:
        if match := re.fullmatch(_VERSION, text):
            if self._version is not None or self._rows:
                return "foreign"
            self._version = match["version"]
        elif match := re.fullmatch(_MATRIX, text):
            if self._rows and match["statistic"] != self._statistic:
                return "foreign"
            self._statistic = match["statistic"]
            self._open("unidirectional_copy" if match["way"] == "Uni" else "bidirectional_copy")
        elif match := re.fullmatch(_RESULT, text):
            self._open(f"{(match['result'] or 'Uni').lower()}directional_copy")
        elif match := _COLUMNS.fullmatch(text):
            self._columns = tuple(match["ids"].split())
            self._missing = len(self._columns) if self._what is not None else 0
        elif match := _COMMAND.fullmatch(text):
            self._arguments = tuple(match["command"].split())
        elif match := _DEVICE.fullmatch(text):
            self._add(int(match["id"]), [part.strip() for part in match["rest"].split(",")])
        elif not self._is_about_rows(text) and text and not _KNOWN.fullmatch(text):
            return "foreign"
        return "known"

    def _is_about_rows(self, text: str) -> bool:
        if match := _END.fullmatch(text):
            self._ends[match["end"]] = f"{match['type'].upper()}{match['id']}"
        elif _OTHER_MATRIX.fullmatch(text):
            self._open(None)
        elif _SIZES.fullmatch(text):
            self._is_sized = True
        else:
            return False
        return True

    def _open(self, what: str | None) -> None:
        self._what, self._columns, self._is_sized, self._missing = what, (), False, 0

    def _add(self, number: int, parts: list[str]) -> None:
        if len(self._devices) < _MOST_DEVICES:
            bus = parts[-1] if len(parts) > 1 and ":" in parts[-1] else None
            self._devices.append(
                ListedDevice(rank=len(self._devices), device=number, model=parts[0] or None, bus_id=bus)
            )

    def _row(self, number: int, row: str, cells: Sequence[str]) -> Taken | Sequence[Reading] | Unreadable:
        if self._what is None:
            return "known"
        if len(cells) != len(self._columns):
            return Unreadable(f"{len(cells)} cells under {len(self._columns)} columns")
        try:
            readings = tuple(self._readings(number, self._what, row, cells))
        except CellError as error:
            return Unreadable(str(error))
        self._rows += 1
        self._missing = max(0, self._missing - 1)
        if self._missing == 0:
            self._columns = ()
        return readings or "known"

    def _readings(self, number: int, what: str, row: str, cells: Sequence[str]) -> Iterator[Reading]:
        for column, cell in zip(self._columns, cells, strict=True):
            value = quantity(cell)
            if value is not None:
                yield Reading(
                    table=self._number,
                    line=number,
                    what=what,
                    source=f"device {row}",
                    target=f"device {column}",
                    bandwidth_Bps=scaled(value, 1e9),
                    printed=f"{cell} GB/s",
                )

    def _sized(self, number: int, size: str, cells: Sequence[str]) -> Sequence[Reading] | Unreadable:
        try:
            time, rate, least, peak = (quantity(cell) for cell in cells)
            size_bytes = parse_size(size.replace(" ", "").removesuffix("ytes"))
        except (CellError, InputError) as error:
            return Unreadable(str(error))
        self._rows += 1
        further = (("min_s", scaled(least, 1e-6)), ("peak_Bps", scaled(peak, 1e9)))
        return (
            Reading(
                table=self._number,
                line=number,
                what=self._what or "unidirectional_copy",
                size_bytes=size_bytes,
                source=self._ends["Src"] or None,
                target=self._ends["Dst"] or None,
                time_s=scaled(time, 1e-6),
                bandwidth_Bps=scaled(rate, 1e9),
                printed=f"{cells[1]} GB/s",
                more=tuple((name, value) for name, value in further if value is not None),
            ),
        )


FORMAT = TableFormat(
    tool=TOOL, starts=re.compile(rf"^\s*(?:{_VERSION}|{_MATRIX}|{_RESULT})\s*$", re.ASCII), table=_RocmBandwidthTable
)

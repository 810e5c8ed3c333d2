"""bandwidthTest of the CUDA samples: copies between a host and its GPUs, as tables or, with --csv, one line each.

GB/s are 1e9 bytes a second; MB/s, which versions before CUDA 11 print, are 2**20 (bandwidthTest.cu).
"""

import re
from collections.abc import Sequence

from busbw.formats.form import LONGEST_ROW, CellError, TableFormat, Taken, TextLine, Unreadable, quantity, scaled, whole
from busbw.model.imported import ListedDevice, Reading, Table

TOOL = "cuda-bandwidthTest"
_TITLE = r"\[CUDA Bandwidth Test\] - Starting\.\.\."
_SECTION = r"(?P<from>Host|Device) to (?P<to>Host|Device) Bandwidth, (?P<devices>\d{1,4}) Device\(s\)"
_COMMAS = (
    r"bandwidthTest-(?P<way>[HD]2[HD])(?:-(?P<memory>\w{1,20}))?(?:-(?P<more>\w{1,20}))?, "
    r"Bandwidth = (?P<rate>\S{1,30}) (?P<unit>[MG]B/s), Time = (?P<time>\S{1,30}) s, Size = (?P<size>\d{1,19}) bytes, "
    r"NumDevsUsed = (?P<devices_used>\d{1,4})"
)
_MEMORY = re.compile(r"(?P<memory>PINNED|PAGEABLE) Memory Transfers|Write-Combined Memory Writes are Enabled\.?")
_HEADER = re.compile(r"Transfer Size \(Bytes\)\s+Bandwidth\((?P<unit>[MG]B/s)\)")
_ROW = re.compile(r"(?P<size>\d{1,19})\s+(?P<rate>[\d.naif+-]{1,30})", re.ASCII)
_DEVICE = re.compile(r"Device (\d{1,4}): (.{1,120})", re.ASCII)
_RESULT = re.compile(r"Result = (PASS|FAIL)")
_FAILED = re.compile(r"CUDA error at .{1,300}|cuda\w{1,60} returned \d{1,6}.{0,200}|-> .{1,200}")
_KNOWN = re.compile(
    r"Running on\.\.\.|(?:Quick|Range|Shmoo) Mode|\.+|NOTE: The CUDA Samples are not meant .*|"
    r"running .{0,200}bandwidthTest"
)
_ENDS = {"H": "host", "D": "device"}
_FACTORS = {"GB/s": 1e9, "MB/s": 2.0**20}


class _BandwidthTestTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._has_title = False
        self._ends: tuple[str, str] | None = None
        self._memory = "pageable"
        self._unit: str | None = None
        self._devices: list[ListedDevice] = []
        self._failures: list[tuple[int, str]] = []
        self._result: str | None = None

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if self._result is not None and not text.startswith("NOTE: ") and text:
            return "foreign"
        try:
            if match := re.fullmatch(_COMMAS, text):
                ends = _ENDS[match["way"][0]], _ENDS[match["way"][2]]
                memory = (match["memory"] or "pageable").lower()
                return (self._reading(line.number, match, ends, memory, match["unit"], match["time"]),)
            if self._unit is not None and self._ends is not None and (match := _ROW.fullmatch(text)):
                return (self._reading(line.number, match, self._ends, self._memory, self._unit),)
        except CellError as error:
            return Unreadable(str(error))
        return self._head(line.number, text)

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            program="bandwidthTest",
            statistic="mean over copies",
            devices=tuple(self._devices),
            footer=(("Result", self._result),) if self._result is not None else (),
            complete=self._result is not None,
            failures=tuple(self._failures),
        )

    def _head(self, number: int, text: str) -> Taken:
        if re.fullmatch(_TITLE, text):
            if self._has_title or self._ends is not None:
                return "foreign"
            self._has_title = True
        elif match := re.fullmatch(_SECTION, text):
            self._ends, self._unit = (match["from"].lower(), match["to"].lower()), None
        elif match := _DEVICE.fullmatch(text):
            self._devices.append(ListedDevice(rank=len(self._devices), device=int(match[1]), model=match[2].strip()))
        elif match := _RESULT.fullmatch(text):
            self._result, self._unit = match[1], None
            if match[1] == "FAIL":
                self._failures.append((number, text))
        elif _FAILED.fullmatch(text):
            self._failures.append((number, text[:300]))
        elif not self._is_about_rows(text) and text and not _KNOWN.fullmatch(text):
            return "foreign"
        # What follows the result is a note, which every sample of CUDA prints.
        return "ended" if text.startswith("NOTE: The CUDA Samples") and self._result is not None else "known"

    def _is_about_rows(self, text: str) -> bool:
        if match := _MEMORY.fullmatch(text):
            self._memory = (match["memory"] or f"{self._memory} write-combined").lower()
            self._unit = None if match["memory"] else self._unit
        elif match := _HEADER.fullmatch(text):
            self._unit = match["unit"]
        return match is not None

    def _reading(
        self,
        number: int,
        match: re.Match[str],
        ends: tuple[str, str],
        memory: str,
        unit: str,
        time: str | None = None,
    ) -> Reading:
        return Reading(
            table=self._number,
            line=number,
            # The memory of a GPU is of one kind, whatever the header says.
            what=f"{ends[0]}_to_{ends[1]}" + (f", {memory}" if "host" in ends else ""),
            size_bytes=whole(match["size"]),
            source=ends[0],
            target=ends[1],
            # 0.00000 s is any time below 5 us.
            time_s=(quantity(time) or None) if time is not None else None,
            bandwidth_Bps=scaled(quantity(match["rate"]), _FACTORS[unit]),
            printed=f"{match['rate']} {unit}",
        )


FORMAT = TableFormat(
    tool=TOOL, starts=re.compile(rf"^\s*(?:{_TITLE}|{_SECTION}|{_COMMAS})\s*$", re.ASCII), table=_BandwidthTestTable
)

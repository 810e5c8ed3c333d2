"""ucx_perftest: the row of the end of a test, in its table or, with -v, separated by commas.

MB/s are 2**20 bytes a second (tools/perf/perftest.c divides by 1024 twice). A time is the latency of a message or,
where the header says overhead, what one operation takes. Rows of threads before the end are its progress. Up to 1.8
rows name no stage: the last one is the end. Of a test that was stopped before its end the last row of its only thread
tells what was measured until then. UCX_PROTO_INFO prints tables of its own in between, which hold no result.
"""

import re
from collections.abc import Sequence

from busbw.formats.form import LONGEST_ROW, CellError, TableFormat, Taken, TextLine, Unreadable, quantity, scaled, whole
from busbw.model.imported import Reading, Table

TOOL = "ucx_perftest"
_END = "Final"
_MEBIBYTE = 2.0**20
_KINDS = (
    r"\|\s+\|(?:\s+\|)?\s+(?P<kind>overhead|latency) \(usec\)\s+\|"
    r"\s+bandwidth \(MB/s\)\s+\|\s+message rate \(msg/s\)\s+\|"
)
_SETTING = (
    r"\| (?P<name>API|Test|Data layout|Send memory|Recv memory|Message size|Window size|AM header size):\s+"
    r"(?P<value>.{1,120}?)\s*\|"
)
_COMMAS = (
    r"iterations,(?P<middle>[\w.]{1,30}_(?P<comma_kind>lat|overhead)),avg_\w{1,10},overall_\w{1,10},"
    r"avg_bw,overall_bw,avg_mr,overall_mr"
)
_TOP = r"\+-{14}\+(?:-{14}\+)?-{28,32}\+-{21}\+-{23}\+"
_HEADER = re.compile(
    r"(?:\|\s+(?P<stage>Stage|Test)\s+)?\|\s+# iterations\s+\|\s+(?P<middle>[\w.%]{1,20})\s+\|"
    r"(?:\s+(?:average|overall)\s+\|){6}"
)
_ROW = re.compile(
    r"(?P<stage>Final:|\[thread \d{1,6}\]|[\w./:-]{1,80})\s+(?P<cells>\d{1,15}(?:\s+[\d.naif+-]{1,25}){7})", re.ASCII
)
_COMMA_ROW = re.compile(r"(?:[\w./:-]{1,80},)?\d{1,15}(?:,[\d.naif+-]{1,25}){7}", re.ASCII)
_STAGELESS_ROW = re.compile(r"\d{1,15}(?:\s+[\d.naif+-]{1,25}){7}", re.ASCII)
_LOG_PREFIX = re.compile(r"\[\d{1,12}\.\d{1,9}\] \[[\w.-]{1,255}:\d{1,10}:\d{1,6}\]\s{1,20}(?=[|+])", re.ASCII)
# What UCX_PROTO_INFO prints of a choice: its title, or a range of sizes, a protocol and its lanes.
_CHOICE = re.compile(
    r"\|\s+\w{1,40} (?:inter-node|intra-node|self) cfg#\d{1,6}\s+\|.{1,200}\|"
    r"|\|\s+\d[\d.]{0,12}[KMG]?\.\.(?:\d[\d.]{0,12}[KMG]?|inf)\s+\|[^|]{1,60}\|.{0,300}\|",
    re.ASCII,
)
# With -b a test of the file stands above its table.
_BATCH = r"={8,100} (?P<test>[\w./-]{1,60}) ={8,100}"
_BAR = re.compile(r"\+[-+]{20,}\+")
_KNOWN = re.compile(
    r"Waiting for connection\.{0,3}|Accepted connection from .{1,120}|.{0,120}CPU affinity is not set.{0,80}"
)
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)(?:%ile|_percentile_lat)", re.ASCII)


class _UcxPerftestTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._settings: dict[str, str] = {}
        self._kind: str | None = None
        self._middle: str | None = None
        self._is_complete = False
        self._names_stages = True
        # Where rows name no stage, or none is the end: the last one, which a further row replaces.
        self._last: tuple[int, tuple[str, ...]] | None = None
        # The first thread that a row names, and whether a row has named another one.
        self._thread: str | None = None
        self._has_threads = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if match := re.fullmatch(_SETTING, text):
            return self._setting(match)
        if self._kind is not None and (match := _ROW.fullmatch(text)):
            return self._row(line.number, match["stage"].rstrip(":"), match["cells"].split())
        if self._kind is not None and _COMMA_ROW.fullmatch(text):
            cells = text.split(",")
            return self._row(line.number, cells[0] if len(cells) > 8 else _END, cells[-8:])
        if self._kind is not None and not self._names_stages and _STAGELESS_ROW.fullmatch(text):
            return self._hold(line.number, text.split())
        return self._head(text)

    def held(self) -> Sequence[Reading]:
        """Return the reading of the last row where rows name no stage, and hold none."""
        last, self._last = self._last, None
        return () if last is None else (self._reading(last[0], _END, last[1]),)

    def _hold(self, number: int, cells: Sequence[str]) -> Taken | Unreadable:
        try:
            self._reading(number, _END, cells)
        except CellError as error:
            return Unreadable(str(error))
        self._is_complete = not self._names_stages
        self._last = (number, tuple(cells))
        return "held"

    def _head(self, text: str) -> Taken:
        if match := re.fullmatch(_KINDS, text) or re.fullmatch(_COMMAS, text):
            if self._kind is not None:
                return "foreign"
            said = match.groupdict()
            self._kind = "latency" if said.get("kind") == "latency" or said.get("comma_kind") == "lat" else "overhead"
            self._middle = said.get("middle")
        elif self._kind is None and (match := re.fullmatch(_BATCH, text)):
            self._settings["Test"] = match["test"]
        elif match := _HEADER.fullmatch(text):
            self._middle = match["middle"]
            self._names_stages = match["stage"] is not None
        elif text and not self._is_known(text):
            return "foreign"
        return "known"

    def _is_known(self, text: str) -> bool:
        if match := _LOG_PREFIX.match(text):
            text = text[match.end() :]
        return any(known.fullmatch(text) for known in (_BAR, _KNOWN, _CHOICE))

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            program=TOOL,
            statistic="mean over all iterations"
            if self._kind == "latency"
            else "mean time of an operation over all iterations",
            ranks=2,
            parameters=tuple(self._settings.items()),
            complete=self._is_complete,
        )

    def _setting(self, match: re.Match[str]) -> Taken:
        if self._is_complete or (self._kind is not None and match["name"] in self._settings):
            return "foreign"
        self._settings[match["name"]] = match["value"]
        return "known"

    def _row(self, number: int, stage: str, cells: Sequence[str]) -> Taken | Sequence[Reading] | Unreadable:
        if stage.startswith("[thread"):
            self._thread = self._thread or stage
            if stage == self._thread and not self._has_threads:
                return self._hold(number, cells)
            self._has_threads, self._last = True, None
            return "known"
        try:
            reading = self._reading(number, stage, cells)
        except CellError as error:
            return Unreadable(str(error))
        self._is_complete, self._last = True, None
        return (reading,)

    def _reading(self, number: int, stage: str, cells: Sequence[str]) -> Reading:
        iterations = whole(cells[0])
        middle, mean, overall, _, rate, _, messages = (quantity(cell) for cell in cells[1:])
        percentile = _PERCENTILE.fullmatch(self._middle or "")
        size = self._settings.get("Message size")
        middle_s = scaled(middle, 1e-6)
        more = [("iterations", float(iterations))]
        if middle_s is not None:
            more.append((f"p{float(percentile[1]):g}_s" if percentile is not None else "typical_s", middle_s))
        return Reading(
            table=self._number,
            line=number,
            what=stage if stage != _END else self._settings.get("Test", TOOL),
            size_bytes=whole(size) if size is not None and size.isdigit() else None,
            ranks=2,
            time_s=scaled(overall if overall is not None else mean, 1e-6),
            bandwidth_Bps=scaled(rate, _MEBIBYTE),
            printed=f"{cells[5]} MB/s" if rate is not None else None,
            messages_per_s=messages,
            more=tuple(more),
        )


FORMAT = TableFormat(
    tool=TOOL,
    starts=re.compile(rf"^\s*(?:{_KINDS}|{_SETTING}|{_COMMAS}|{_TOP}|{_BATCH})\s*$", re.ASCII),
    table=_UcxPerftestTable,
)

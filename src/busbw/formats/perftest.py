"""perftest (ib_write_bw, ib_send_lat, ...): the tables it prints; one table is one run.

MB/sec and MiB/sec are both 2**20 bytes a second, Gb/sec is 1.25e8 (perftest_parameters.c, `format_factor`: 0x100000
and 125000000; the header says MiB since March 2024). Times are half a round trip, of reads and atomics a whole one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.value import Integer
from busbw.formats.form import (
    LONGEST_ROW,
    CellError,
    TableFormat,
    Taken,
    TextLine,
    Unreadable,
    named,
    quantity,
    scaled,
    shaped,
    whole,
)
from busbw.model.imported import Reading, Table

MEBIBYTE = 2.0**20
GIGABIT = 1.25e8
MICROSECOND = 1e-6
MILLION_PACKETS = 1e6

_TITLE = re.compile(
    r"(?P<verb>Send_imm|Send|RDMA_Write_imm|RDMA_Write|RDMA_Read|Atomic)(?P<rest>(?:[ _][A-Za-z]+){1,9}[ _]Test)"
)
_HEADER = re.compile(r"#bytes\s+#(?:iterations|sl)\s")
# Column names hold blanks: each is found by its own form, and nothing may stand between two of them.
_COLUMN = re.compile(
    r"#bytes|#iterations|#sl|BW (?:peak|average|Port[12])\[(?:MB|MiB|Gb)/sec\]|MsgRate(?: Port[12])?\[Mpps\]"
    r"|t_(?:min|max|typical|avg|stdev)\[(?:usec|cycles)\]|99(?:\.9)?% percentile\[(?:usec|cycles)\]|tps average"
    r"|CPU_Util\[%%?\]"
)
_BANDWIDTH = re.compile(r"BW (\w+)\[(\w+)/sec\]")
_SETTING = re.compile(r"\s*([A-Za-z][\w.*-]*(?: [\w.*-]+){0,5})\s*:\s*([^\s:]+)")
_SETTINGS = re.compile(rf"(?:{_SETTING.pattern})+\s*")
# What a server prints first.
_WAITING = r"\* Waiting for client to connect"
_RULE = re.compile(r"-{20,}")
_KNOWN = re.compile(
    r"-{20,}|\*+|\* Waiting for client.*|(?:local|remote) address:.*|GID: .*|WARNING: .*|MultiCast runs on UD!"
    r"|Test with events\. .*|Waiting for client .*|Please run the same command .*|Conflicting CPU frequency .*"
)
_FAILED = re.compile(r"(?:Failed to|Couldn't|Unable to|Problems with|Completion with error|Found Incompat).*")
_PROGRAMS = {"Send": "send", "RDMA_Write": "write", "RDMA_Read": "read", "Atomic": "atomic"}
_BYTES_PER_S = {"MB": MEBIBYTE, "MiB": MEBIBYTE, "Gb": GIGABIT}
_LONGEST_SETTING = 200
_MOST_SETTINGS = 64
_FURTHER = {
    "#iterations": ("iterations", 1.0),
    "#sl": ("service_level", 1.0),
    "t_min[usec]": ("min_s", MICROSECOND),
    "t_max[usec]": ("max_s", MICROSECOND),
    "t_avg[usec]": ("mean_s", MICROSECOND),
    "t_stdev[usec]": ("stdev_s", MICROSECOND),
    "99% percentile[usec]": ("p99_s", MICROSECOND),
    "99.9% percentile[usec]": ("p99.9_s", MICROSECOND),
    "tps average": ("transactions_per_s", 1.0),
    "CPU_Util[%]": ("cpu_utilisation", 0.01),
    "CPU_Util[%%]": ("cpu_utilisation", 0.01),
    "MsgRate Port1[Mpps]": ("port1_messages_per_s", MILLION_PACKETS),
    "MsgRate Port2[Mpps]": ("port2_messages_per_s", MILLION_PACKETS),
}


def spaced_title(title: str) -> str:
    """Return `title` as the printed table has it: `RDMA_Write BW Test` for `RDMA_Write_BW_Test`."""
    match = _TITLE.fullmatch(title)
    return title if match is None else match["verb"] + match["rest"].replace("_", " ")


def program(title: str) -> str | None:
    """Return the program that prints `title`: `ib_write_bw` for `RDMA_Write Bidirectional BW Test`; None: no such."""
    match = _TITLE.fullmatch(title)
    if match is None:
        return None
    words = re.split("[ _]", match["rest"])
    kind = "bw" if "BW" in words else "lat" if "Latency" in words else None
    return None if kind is None else f"ib_{_PROGRAMS[match['verb'].removesuffix('_imm')]}_{kind}"


class _PerftestTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._title: str | None = None
        self._columns: tuple[str, ...] = ()
        self._settings: dict[str, str] = {}
        self._rows = 0
        self._failures: list[tuple[int, str]] = []
        self._complete = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if _RULE.fullmatch(text) and self._rows:
            self._complete = True
            return "ended"
        if _HEADER.match(text):
            return self._header(text)
        if self._columns and text[:1].isdigit():
            return self._row(line.number, text)
        return "known" if self._is_known(line.number, text) else "foreign"

    def finish(self, last_line: int) -> Table:
        timed = "t_typical[usec]" in self._columns
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="perftest",
            program=None if self._title is None else program(self._title),
            statistic="median over iterations" if timed else "mean over iterations",
            parameters=tuple(self._settings.items()),
            complete=self._complete,
            failures=tuple(self._failures),
        )

    def _header(self, text: str) -> Taken | Unreadable:
        self._columns = tuple(match[0] for match in _COLUMN.finditer(text))
        rest = _COLUMN.sub("", text).strip()
        if rest or len(set(self._columns)) != len(self._columns):
            self._columns = ()
            return Unreadable(f"a column that is not known: {rest[:40]!r}" if rest else "two columns have one name")
        return "known"

    def _is_known(self, number: int, text: str) -> bool:
        if _TITLE.fullmatch(text):
            if self._title is not None or self._columns:
                return False
            self._title = text
        elif _FAILED.fullmatch(text):
            self._failures.append((number, text[:_LONGEST_SETTING]))
        else:
            return not text or _KNOWN.fullmatch(text) is not None or self._is_setting(text)
        return True

    def _is_setting(self, text: str) -> bool:
        if self._columns or len(text) > _LONGEST_SETTING or _SETTINGS.fullmatch(text) is None:
            return False
        for match in _SETTING.finditer(text):
            if len(self._settings) < _MOST_SETTINGS:
                self._settings[match[1]] = match[2]
        return True

    def _row(self, number: int, text: str) -> Sequence[Reading] | Unreadable:
        try:
            cells = named(self._columns, text.split())
            values = {name: quantity(cell) for name, cell in cells.items() if name != "#bytes"}
            self._rows += 1
            return (self._reading(number, whole(cells["#bytes"]), values),)
        except CellError as error:
            return Unreadable(str(error))

    def _reading(self, number: int, size_bytes: int, values: dict[str, float | None]) -> Reading:
        time_name = "t_typical[usec]" if "t_typical[usec]" in values else "t_avg[usec]"
        bandwidth_Bps = None
        more: list[tuple[str, float | None]] = []
        for name, value in values.items():
            if match := _BANDWIDTH.fullmatch(name):
                rate_Bps = scaled(value, _BYTES_PER_S[match[2]])
                if match[1] == "average":
                    bandwidth_Bps = rate_Bps
                # A peak of 0.00 was not looked for: more messages than there is room to time.
                elif match[1] != "peak" or rate_Bps != 0:
                    more.append((f"{match[1].lower()}_Bps", rate_Bps))
            elif name not in {time_name, "MsgRate[Mpps]"}:
                further, factor = _FURTHER.get(name, (name, 1.0))
                more.append((further, scaled(value, factor)))
        return Reading(
            table=self._number,
            line=number,
            what=self._title or "perftest",
            size_bytes=size_bytes,
            time_s=scaled(values.get(time_name), MICROSECOND),
            bandwidth_Bps=bandwidth_Bps,
            messages_per_s=scaled(values.get("MsgRate[Mpps]"), MILLION_PACKETS),
            more=tuple((name, value) for name, value in more if value is not None),
        )


FORMAT = TableFormat(
    tool="perftest",
    starts=re.compile(rf"^\s*(?:{_TITLE.pattern}\s*$|{_HEADER.pattern}|{_WAITING})"),
    table=_PerftestTable,
)


_JSON_FURTHER = {
    "n_iterations": ("iterations", 1.0),
    "t_min": ("min_s", MICROSECOND),
    "t_max": ("max_s", MICROSECOND),
    "t_stdev": ("stdev_s", MICROSECOND),
    "percentile_99": ("p99_s", MICROSECOND),
    "percentile_99.9": ("p99.9_s", MICROSECOND),
    "tps_average": ("transactions_per_s", 1.0),
    "sl": ("service_level", 1.0),
    "CPU_util": ("cpu_utilisation", 0.01),
}
_LATENCIES = ("t_typical", "t_avg", "avg_lat")
_AVERAGES = ("BW_average", "bw_avg")
_RATES = ("MsgRate", "msgRate_avg")
_FIELD = re.compile(r'"?([A-Za-z][\w .]{0,40}?)"?\s*:\s*(?:"([^"]{0,200})"|([^\s",{}]{0,200})),?')
_BEGINS = re.compile(r'"?(test_info|results)"?\s*:\s*\{')
_MOST_FIELDS = 64
_LONGEST_TEXT = 200


def _reading(values: Mapping[str, str], title: str, *, table: int, line: int) -> Reading:
    """Return what one `results` object says. Raises CellError."""
    numbers = {name: quantity(text) for name, text in values.items() if name != "MsgSize"}
    size_bytes = whole(values["MsgSize"]) if "MsgSize" in values else None
    latency = next((name for name in _LATENCIES if name in numbers), None)
    average = next((numbers[name] for name in _AVERAGES if name in numbers), None)
    rate_per_s = scaled(next((numbers[name] for name in _RATES if name in numbers), None), MILLION_PACKETS)
    unit_Bps = _unit_Bps(average, rate_per_s, size_bytes)
    more = []
    for name, value in numbers.items():
        if value is None or name in {latency, *_RATES}:
            continue
        if name == "BW_peak" and unit_Bps is not None:
            # A peak of 0.00 was not looked for.
            more += [("peak_Bps", value * unit_Bps)] if value else []
        elif name == "t_avg":
            more.append(("mean_s", value * MICROSECOND))
        elif name not in _AVERAGES or unit_Bps is None:
            further, factor = _JSON_FURTHER.get(name, (name, 1.0))
            more.append((further, value * factor))
    return Reading(
        table=table,
        line=line,
        what=spaced_title(title),
        size_bytes=size_bytes,
        time_s=None if latency is None else scaled(numbers[latency], MICROSECOND),
        bandwidth_Bps=None if unit_Bps is None else scaled(average, unit_Bps),
        messages_per_s=rate_per_s,
        more=tuple(more),
    )


def _unit_Bps(average: float | None, rate_per_s: float | None, size_bytes: int | None) -> float | None:
    """Return the unit in which the bandwidth agrees with the message rate, None when both do or neither does."""
    if not average or not rate_per_s or not size_bytes:
        return None
    moved_Bps = rate_per_s * size_bytes
    # The rate has six decimals of a million, the bandwidth two; a thousandth for what else was rounded.
    rounding_Bps = 0.5 * size_bytes + moved_Bps * 1e-3
    fitting = [unit for unit in (MEBIBYTE, GIGABIT) if abs(average * unit - moved_Bps) <= 0.005 * unit + rounding_Bps]
    return fitting[0] if len(fitting) == 1 else None


class _PerftestDocument(msgspec.Struct):
    test_info: dict[str, str | Integer | float]
    results: dict[str, Integer | float]


class _PerftestDocuments:
    tool = "perftest"
    is_record = False

    def recognises(self, document: object) -> bool:
        return isinstance(document, dict) and "test_info" in document and "results" in document

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        read = shaped(document, _PerftestDocument, tool="perftest", line=line)
        info = {name[:_LONGEST_TEXT]: str(value)[:_LONGEST_TEXT] for name, value in read.test_info.items()}
        results = {name: str(value) for name, value in read.results.items()}
        try:
            reading = _reading(results, info.get("test", "perftest"), table=number, line=line)
        except CellError as error:
            raise InputError(f"not a document of perftest: {error} - at `$.results`", where=f"line {line}") from error
        table = _table(info, results, number=number, source=source, first_line=line, last_line=line)
        return ((structs.replace(table, format="json", complete=True), (reading,)),)


class _OpenObject:
    """The same file, line by line, where it is not JSON."""

    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._objects: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] | None = None
        self._complete = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if match := _BEGINS.fullmatch(text):
            if match[1] in self._objects:
                return "foreign"
            self._open = self._objects[match[1]] = {}
        elif text in {"}", "},"}:
            return self._close(line.number)
        elif text not in {"", "{"}:
            return self._field(text)
        return "known"

    def finish(self, last_line: int) -> Table:
        info, results = self._objects.get("test_info", {}), self._objects.get("results", {})
        where = {"number": self._number, "source": self._source, "first_line": self._first_line}
        return structs.replace(_table(info, results, last_line=last_line, **where), complete=self._complete)

    def _field(self, text: str) -> Taken | Unreadable:
        match = _FIELD.fullmatch(text)
        if match is None or self._open is None:
            return "foreign"
        if match[1] in self._open or len(self._open) >= _MOST_FIELDS:
            return Unreadable(f"a field too many: {match[1]!r}")
        self._open[match[1]] = match[2] if match[2] is not None else match[3]
        return "known"

    def _close(self, number: int) -> Taken | Sequence[Reading] | Unreadable:
        """Take a closing brace: the second one, of `results`, ends the numbers, the last one the file."""
        if self._open is None:
            self._complete = "results" in self._objects
            return "ended"
        closed, self._open = self._open, None
        if closed is not self._objects.get("results"):
            return "known"
        title = self._objects.get("test_info", {}).get("test", "perftest")
        try:
            return (_reading(closed, title, table=self._number, line=number),)
        except CellError as error:
            return Unreadable(str(error))


def _table(
    info: Mapping[str, str], results: Mapping[str, str], *, number: int, source: int, first_line: int, last_line: int
) -> Table:
    title = info.get("test")
    return Table(
        number=number,
        source=source,
        first_line=first_line,
        last_line=last_line,
        tool="perftest",
        program=None if title is None else program(title),
        statistic="median over iterations" if "t_typical" in results else "mean over iterations",
        parameters=tuple((name, value) for name, value in list(info.items())[:_MOST_FIELDS] if name != "test"),
        complete=False,
    )


JSON_FORMAT = _PerftestDocuments()
OLD_JSON_FORMAT = TableFormat(tool="perftest", starts=re.compile(r'^\s*"?test_info"?\s*:\s*\{\s*$'), table=_OpenObject)

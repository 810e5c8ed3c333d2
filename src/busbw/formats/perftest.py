"""perftest (ib_write_bw, ib_send_lat, ...): the tables it prints; one table is one run.

MB/sec and MiB/sec are both 2**20 bytes a second, Gb/sec is 1.25e8 (perftest_parameters.c, `format_factor`: 0x100000
and 125000000; the header says MiB since March 2024). Times are half a round trip, of reads and atomics a whole one.
"""

import re
from collections.abc import Sequence

from busbw.formats.cells import LONGEST_ROW, CellError, named, quantity, scaled, whole
from busbw.formats.form import Line, Taken, Unreadable
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


class _OpenTable:
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

    def take(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
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


class _Perftest:
    tool = "perftest"
    passes_by = False
    starts = re.compile(rf"^\s*(?:{_TITLE.pattern}\s*$|{_HEADER.pattern}|{_WAITING})")

    def begin(self, line: Line, *, number: int, source: int) -> _OpenTable:
        return _OpenTable(number=number, source=source, first_line=line.number)


FORMAT = _Perftest()

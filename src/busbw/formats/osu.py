"""The tables of the OSU micro-benchmarks, versions 5 to 7, and of OMB-Py, which leaves the # out."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from busbw.formats.arithmetic import in_unit
from busbw.formats.form import Taken, TextLine, Unreadable
from busbw.model.imported import SIZE_COUNTS, Reading, Table

_TITLE = re.compile(
    r"^\s*(?:#\s*)?(?P<title>OSU (?:MPI|NCCL|RCCL|xCCL|OpenSHMEM|UPC)[\w+-]*(?: MANAGED)? .{1,100}?(?:Test|Benchmark))"
    r"(?: (?:v|\(Version )(?P<version>\d[\w.-]{0,20})\)?)?\s*$"
)
# Tests between pairs of NCCL or RCCL may have no title: they begin with where their buffers are.
_LIBRARY = re.compile(r"^\s*#\s?Using (?P<library>NCCL|RCCL)\s*$")
_BUFFERS = re.compile(r"^\s*# Send Buffer on \S")
_START = re.compile(f"(?:{_TITLE.pattern})|{_LIBRARY.pattern}|{_BUFFERS.pattern}")
_KIND = re.compile(r"OSU (?P<over>\S+) (?:MANAGED )?(?P<kind>.+?)(?: Latency)? (?:Test|Benchmark)$")
# Of these the first word names what is called: one rank reaches into the memory of another, which takes no part.
_ONE_SIDED = ("MPI_", "OpenSHMEM", "UPC")
# Tests between threads, processes or several pairs are no collectives, and say so only with this word.
_KINDS_OF_LATENCY = frozenset({"Multi", "Multi-threaded", "Multi-process", "Partitioned"})
# Tests without a table: how long it takes to begin.
_BARE = re.compile(r"OSU MPI (?:Init|Hello World) Test$")
_HELLO = re.compile(r"\s*This is a test with \d{1,7} processes\s*")
_INIT = re.compile(
    r"\s*nprocs: (?P<ranks>\d{1,7}), min: (?P<min>\d{1,9}) ms, max: (?P<max>\d{1,9}) ms, avg: (?P<avg>\d{1,9}) ms\s*$"
)
# As nccl-tests spells a collective, and as busbw calls the patterns between pairs.
_NAMES = {
    "Allreduce": "all_reduce", "Allgather": "all_gather", "Reduce_scatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "All-to-All Personalized Exchange": "alltoall",
    "All-to-All": "alltoall", "Alltoall": "alltoall", "Gather": "gather", "Scatter": "scatter",
    "Latency": "latency", "Bandwidth": "bandwidth", "Bi-Directional Bandwidth": "bibw",
    "Bidirectional Bandwidth": "bibw",
    "Multiple Bandwidth / Message Rate": "message_rate",
}  # fmt: skip
# What a table of MB/s without a title measures.
ONE_WAY_OR_BOTH = "bandwidth or bibw"
_PAIRS = frozenset({"latency", "bandwidth", "bibw", ONE_WAY_OR_BOTH})
_UNTITLED = {
    "latency": frozenset({"Latency (us)", "Avg Latency(us)"}),
    ONE_WAY_OR_BOTH: frozenset({"Bandwidth (MB/s)"}),
}
_PER_PART = frozenset({"all_gather", "alltoall", "gather", "scatter"})
_COLUMN = re.compile(
    r"Transmit Size|(?:Avg |Min |Max )?Latency ?\(us\)|(?:Bi-)?Bandwidth ?\(MB/s\)|Million ops/s|"
    r"P\d{1,2} Tail (?:Lat\(us\)|BW\(MB/s\))|"
    r"Coll\. Init\(us\)|(?:Pure|Min|Max) Comm\.\(us\)|(?:Wait|Init) avg\(us\)|\S+(?: \S+)*?(?=\s|$)"
)
_HEADER = re.compile(
    r"\s*(?:#\s*)?(?:(?:Size|Operation)\s+\S.*|"
    r"(?:Avg Latency ?\(us\)|Overall\(us\)|Bandwidth ?\(MB/s\)|MB/s)(?:\s.*)?)$"
)
_PAIRS_LINE = re.compile(r"\s*(?:#\s*)?\[ pairs: (?P<pairs>\d{1,7}) \](?: \[ window size: (?P<window>\d{1,9}) \])?")
_SETTING = re.compile(r"\s*#\s*(?P<name>[A-Z][\w ]{1,40}): (?P<value>\S.{0,100}?)\.?\s*$")
_COMMENT = re.compile(
    r"\s*#\s*(?:$|Overall = |Send Buffer on |Rank 0 Memory on |Number of |Please note|Datatype|Iterations)"
)
_ROW = re.compile(r"\s*\d[\d.]*(?:\s|$)", re.ASCII)
_OPERATION_ROW = re.compile(r"\s*shmem_\w{1,60}\s+\d", re.ASCII)
_DTYPES = {
    "MPI_CHAR": "int8", "MPI_SIGNED_CHAR": "int8", "MPI_BYTE": "uint8", "MPI_INT": "int32", "MPI_FLOAT": "float32",
    "MPI_DOUBLE": "float64",
}  # fmt: skip
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,3})?|-?nan|inf", re.ASCII | re.IGNORECASE)


class _Unit(NamedTuple):
    """What a column is called in a reading, and what its number is multiplied with."""

    name: str
    factor: float


_UNITS = {
    "Latency": _Unit("time_s", 1e-6), "Avg Latency": _Unit("time_s", 1e-6), "Min Latency": _Unit("min_s", 1e-6),
    "Max Latency": _Unit("max_s", 1e-6), "Bandwidth": _Unit("bandwidth_Bps", 1e6),
    "Bi-Bandwidth": _Unit("bandwidth_Bps", 1e6), "Million ops/s": _Unit("messages_per_s", 1e6),
    "MB/s": _Unit("bandwidth_Bps", 1e6), "Messages/s": _Unit("messages_per_s", 1.0),
    "Iterations": _Unit("iterations", 1.0),
    "Overall": _Unit("time_s", 1e-6), "Compute": _Unit("compute_s", 1e-6), "Coll. Init": _Unit("init_s", 1e-6),
    "MPI_Test": _Unit("test_s", 1e-6), "MPI_Wait": _Unit("wait_s", 1e-6), "Pure Comm.": _Unit("communication_s", 1e-6),
    "Min Comm.": _Unit("communication_min_s", 1e-6), "Max Comm.": _Unit("communication_max_s", 1e-6),
    "Overlap": _Unit("overlap", 1e-2), "Wait avg": _Unit("wait_s", 1e-6), "Init avg": _Unit("init_s", 1e-6),
    "Transmit Size": _Unit("transmitted_bytes", 1.0),
}  # fmt: skip
_TAIL = re.compile(r"P(\d{1,2}) Tail (Lat|BW)")
_FIELDS = ("time_s", "bandwidth_Bps", "messages_per_s")


class _OsuTable:
    """One test of the OSU micro-benchmarks. It has no end of its own: the next one, or the end of the file."""

    def __init__(self, line: TextLine, *, number: int, source: int) -> None:
        self._number = number
        self._source = source
        self._first_line = line.number
        self._title: str | None = None
        self._version: str | None = None
        self._columns: tuple[str, ...] = ()
        self._settings: dict[str, str] = {}
        self._pairs: int | None = None
        self._has_rows = False

    @property
    def _what(self) -> str:
        if self._title is None:
            return next((what for what in _UNTITLED if _UNTITLED[what] & set(self._columns)), "unknown")
        match = _KIND.match(self._title)
        if match is None:
            return self._title
        kind = match["kind"]
        if match["over"].startswith(_ONE_SIDED):
            return f"{match['over']} {kind.lower()}"
        return f"{kind} latency" if kind in _KINDS_OF_LATENCY else _NAMES.get(kind, kind)

    @property
    def _ranks(self) -> int | None:
        if self._what in _PAIRS or self._what.startswith("MPI_"):
            return 2
        return 2 * self._pairs if self._pairs is not None else None

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        text = line.text
        if match := _TITLE.match(text):
            return self._name(match["title"], match["version"])
        if _ROW.match(text) or (self._columns[:1] == ("Operation",) and _OPERATION_ROW.match(text)):
            return self._row(line) if self._columns else "foreign"
        if _HEADER.match(text):
            return self._head(text)
        return self._bare(line) if _BARE.match(self._title or "") else self._comment(text)

    def _name(self, title: str, version: str | None) -> Taken:
        # Where a script or a second process says the title too, nothing of a table stands between.
        is_again = (title, version) == (self._title, self._version) and not self._columns
        if self._has_rows or (self._title is not None and not is_again):
            return "foreign"
        self._title, self._version = title, version
        return "known"

    def _head(self, text: str) -> Taken:
        if self._has_rows:
            return "foreign"
        self._columns = tuple(match[0] for match in _COLUMN.finditer(text.lstrip("# \t")))
        return "known"

    def finish(self, last_line: int) -> Table:
        settings = dict(self._settings)
        if self._what in _PER_PART:
            settings[SIZE_COUNTS] = "the part of one rank"
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="osu",
            tool_version=self._version,
            program=self._title,
            statistic="mean over iterations, half a round trip"
            if self._what == "latency"
            else "mean over iterations and ranks",
            ranks=self._ranks,
            parameters=tuple(settings.items()),
            # Nothing ends such a table, so nothing can show that it is cut off, but that there is nothing in it.
            complete=self._has_rows or _BARE.match(self._title or "") is not None,
        )

    def _comment(self, text: str) -> Taken:
        if match := _PAIRS_LINE.match(text):
            self._pairs = int(match["pairs"])
            self._settings["pairs"] = match["pairs"]
            if match["window"] is not None:
                self._settings["window size"] = match["window"]
        elif match := _LIBRARY.match(text):
            # Each rank says so, whenever it comes to it.
            self._settings["library"] = match["library"]
        elif self._has_rows and _BUFFERS.match(text):
            return "foreign"
        elif match := _SETTING.match(text):
            if self._has_rows or len(self._settings) > 20:
                return "foreign"
            self._settings[match["name"]] = match["value"]
        elif _COMMENT.match(text):
            buffers = text.strip("# \t")
            if buffers.startswith(("Send Buffer", "Rank 0 Memory")):
                self._settings["buffers"] = buffers[:100]
        else:
            return "foreign"
        return "known"

    def _bare(self, line: TextLine) -> Taken | Sequence[Reading]:
        if (match := _INIT.fullmatch(line.text)) is None or self._has_rows:
            return "known" if _HELLO.fullmatch(line.text) else self._comment(line.text)
        self._has_rows = True
        least_s, most_s, mean_s = (in_unit(float(match[name]), 1e-3) for name in ("min", "max", "avg"))
        more = (("min_s", least_s), ("max_s", most_s))
        return [
            Reading(
                table=self._number,
                line=line.number,
                what="MPI_Init",
                ranks=int(match["ranks"]),
                time_s=mean_s,
                more=more,
            )
        ]

    def _row(self, line: TextLine) -> Sequence[Reading] | Unreadable:
        words = line.text.split()
        # Tests of NCCL name the column when they are asked for it, and check nothing.
        columns = self._columns[: len(words)] if self._columns[len(words) :] == ("Validation",) else self._columns
        if len(words) != len(columns):
            return Unreadable(f"{len(words)} values where the header names {len(self._columns)} columns")
        values: dict[str, float] = {}
        size_bytes: int | None = None
        what = self._what
        wrong: int | None = None
        for column, word in zip(columns, words, strict=True):
            if column == "Size":
                if _WHOLE.fullmatch(word) is None:
                    return Unreadable(f"{word[:40]!r} is not a size")
                size_bytes = int(word)
            elif column == "Operation":
                what = word[:80]
            elif column == "Validation":
                if word.lower() not in ("pass", "fail"):
                    return Unreadable(f"{word[:40]!r} is neither Pass nor Fail")
                wrong = int(word.lower() == "fail")
            elif _NUMBER.fullmatch(word) is None:
                return Unreadable(f"{word[:40]!r} is not a value of the column {column[:40]}")
            elif math.isfinite(float(word)):
                unit = _unit(column)
                values[unit.name] = in_unit(float(word), unit.factor)
        self._has_rows = True
        return [self._reading(line.number, what, size_bytes, wrong, values)]

    def _reading(
        self, line: int, what: str, size_bytes: int | None, wrong: int | None, values: dict[str, float]
    ) -> Reading:
        dtype = self._settings.get("Datatype")
        return Reading(
            table=self._number,
            line=line,
            what=what,
            size_bytes=size_bytes,
            dtype=_DTYPES.get(dtype, dtype) if dtype is not None else None,
            ranks=self._ranks,
            time_s=values.get("time_s"),
            bandwidth_Bps=values.get("bandwidth_Bps"),
            messages_per_s=values.get("messages_per_s"),
            wrong=wrong,
            more=tuple((name, value) for name, value in values.items() if name not in _FIELDS),
        )


class _Osu:
    tool = "osu"
    passes_by = True
    starts = _START

    def begin(self, line: TextLine, *, number: int, source: int) -> _OsuTable:
        return _OsuTable(line, number=number, source=source)


def _unit(column: str) -> _Unit:
    if match := _TAIL.match(column):
        return _Unit(f"p{match[1]}_s", 1e-6) if match[2] == "Lat" else _Unit(f"p{match[1]}_Bps", 1e6)
    return _UNITS.get(re.sub(r" ?\(.*\)$", "", column), _Unit(column, 1.0))


FORMAT = _Osu()

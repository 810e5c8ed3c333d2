"""The Intel MPI Benchmarks: IMB-MPI1, -NBC, -RMA, -EXT and -P2P; one table is one run of a program.

Sizes of all-to-all-like collectives are printed per pair of ranks or per part; they are counted here as nccl-tests
counts them, all parts together.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from busbw.formats.arithmetic import in_unit
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
    whole,
)
from busbw.model.imported import Reading, Table

_BANNER = re.compile(
    r"#\s+Intel ?\(R\) MPI Benchmark(?:s| Suite) V?(?P<version>[\d.]+(?: Update \d+)?), (?P<part>\S+)", re.ASCII
)
_FIRST_NUMBER = re.compile(r"[0-9]{1,6}")
_BENCHMARK = re.compile(r"#\s+Benchmarking\s+(\S+)")
_PROCESSES = re.compile(r"# #processes = (\d{1,9})\b|# \( \d+ groups of (\d{1,9}) processes each running", re.ASCII)
_MODE = re.compile(r"#\s+MODE: (\S+)")
_SETTING = re.compile(r"# (\S[^:]{0,60}?)\s*:\s*(.*)")
_END = "# All processes entering MPI_Finalize"
# Lines that may follow a benchmark's name; before the first of them any line with "#" is the program's introduction.
_COMMENT = re.compile(r"#(?:-*|\s*(?:\( \d|Group |continu|MODE: |#processes|!! |\d).*)")
_FAILED = re.compile(r"(?:out-of-mem|int-overflow|time-out)\b")
_LONGEST_FAILURE = 300
_MOST_SETTINGS = 64

_COLLECTIVES = {
    "Allreduce": "all_reduce",
    "Allgather": "all_gather",
    "Reduce_scatter": "reduce_scatter",
    "Bcast": "broadcast",
    "Reduce": "reduce",
    "Alltoall": "alltoall",
    "Gather": "gather",
    "Scatter": "scatter",
    # A ring of ranks, as in nccl-tests; its Mbytes/sec counts both directions.
    "Sendrecv": "sendrecv",
}
_SIZE_OF_ONE_PART = frozenset({"all_gather", "alltoall", "gather", "scatter"})
_REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce"})
_DTYPES = {"MPI_FLOAT": "float32", "MPI_DOUBLE": "float64", "MPI_INT": "int32", "MPI_CHAR": "int8"}
_MICROSECOND = 1e-6
# The first of these that a table has is its time.
_TIMES = ("t_avg[usec]", "t[usec]", "t_pure[usec]")
_FURTHER = {
    "#repetitions": ("iterations", 1.0),
    "Group": ("group", 1.0),
    "t_min[usec]": ("min_s", _MICROSECOND),
    "t_max[usec]": ("max_s", _MICROSECOND),
    "t_ovrl[usec]": ("overlapped_s", _MICROSECOND),
    "t_CPU[usec]": ("compute_s", _MICROSECOND),
    "overlap[%]": ("overlap", 0.01),
}


class _Benchmark(NamedTuple):
    name: str
    ranks: int | None = None
    mode: str = ""
    columns: tuple[str, ...] = ()


class _ImbTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._version: str | None = None
        self._part: str | None = None
        self._settings: dict[str, str] = {}
        self._arguments: tuple[str, ...] = ()
        self._before = ""
        self._benchmark: _Benchmark | None = None
        self._names: set[str] = set()
        self._ranks: set[int | None] = set()
        self._failures: list[tuple[int, str]] = []
        self._complete = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        # On its way through a page a blank may have become a tab.
        text = line.text.strip().replace("\t", " ")
        if text == _END:
            self._complete = True
            return "ended"
        cells = text.split()
        if "#repetitions" in cells:
            return self._header(cells)
        if text.startswith("#") or not text:
            return self._comment(text)
        if self._benchmark is None or not cells[0].isdigit():
            return "foreign"
        return self._row(line.number, self._benchmark, cells)

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="imb",
            tool_version=self._version,
            program=None if self._part is None else f"Intel MPI Benchmarks, {self._part} part",
            statistic="mean over iterations and ranks; without t_avg, the slowest rank's mean",
            ranks=next(iter(self._ranks)) if len(self._ranks) == 1 else None,
            arguments=self._arguments,
            parameters=tuple(self._settings.items()),
            complete=self._complete,
            failures=tuple(self._failures),
        )

    def _header(self, cells: list[str]) -> Taken | Unreadable:
        if self._benchmark is None:
            return Unreadable("no line says which benchmark this header belongs to")
        if len(set(cells)) != len(cells):
            return Unreadable("two columns have one name")
        self._benchmark = self._benchmark._replace(columns=tuple(cells))
        return "known"

    def _row(self, number: int, benchmark: _Benchmark, cells: list[str]) -> Taken | Sequence[Reading] | Unreadable:
        if len(cells) > 1 and _FAILED.match(cells[1]):
            self._failures.append((number, f"{benchmark.name}: {' '.join(cells)}"[:_LONGEST_FAILURE]))
            return "known"
        try:
            return (self._reading(number, benchmark, named(benchmark.columns, cells)),)
        except CellError as error:
            return Unreadable(str(error))

    def _comment(self, text: str) -> Taken:
        if not text:
            return "known"
        if match := _BENCHMARK.match(text):
            return self._next(match[1])
        if self._benchmark is None:
            self._introduce(text)
        elif match := _PROCESSES.match(text):
            self._benchmark = self._benchmark._replace(ranks=int(match[1] or match[2]))
        elif match := _MODE.match(text):
            self._benchmark = self._benchmark._replace(mode=f", {match[1].lower()}")
        elif _COMMENT.fullmatch(text) is None:
            return "foreign"
        return "known"

    def _next(self, name: str) -> Taken:
        """Go on with a benchmark; one that was left for another comes again in the next run alone (imb.cpp)."""
        now = None if self._benchmark is None else self._benchmark.name
        if name != now and name in self._names:
            return "foreign"
        self._names.add(name)
        self._benchmark = _Benchmark(name)
        return "known"

    def _introduce(self, text: str) -> None:
        if match := _BANNER.match(text):
            self._version, self._part = match["version"], match["part"]
        elif self._before.startswith("# Calling sequence was"):
            self._arguments = tuple(text.lstrip("# ").split())
        elif (match := _SETTING.match(text)) and match[2] and len(self._settings) < _MOST_SETTINGS:
            self._settings[match[1]] = match[2]
        # Bare "#" lines stand between the calling sequence and its title.
        self._before = text if text != "#" else self._before

    def _reading(self, number: int, benchmark: _Benchmark, cells: dict[str, str]) -> Reading:
        values = {name: quantity(text) for name, text in cells.items() if name != "#bytes"}
        what = _COLLECTIVES.get(benchmark.name, benchmark.name)
        printed_bytes = whole(cells["#bytes"]) if "#bytes" in cells else None
        time_name = next((name for name in _TIMES if name in values), None)
        more = [
            (*_FURTHER.get(name, (name, 1.0)), value)
            for name, value in values.items()
            if value is not None and name not in {time_name, "Mbytes/sec", "Msg/sec"}
        ]
        megabyte = self._megabyte()
        rate = values.get("Mbytes/sec")
        if rate is not None and megabyte is None:
            more.append(("Mbytes/sec", 1.0, rate))
        size_bytes = printed_bytes
        if printed_bytes is not None and what in _SIZE_OF_ONE_PART:
            size_bytes = None if benchmark.ranks is None else whole(str(printed_bytes * benchmark.ranks))
            more.append(("printed_bytes", 1.0, float(printed_bytes)))
        reducing = what in _REDUCING
        self._ranks.add(benchmark.ranks)
        return Reading(
            table=self._number,
            line=number,
            what=what + benchmark.mode,
            size_bytes=size_bytes,
            dtype=_DTYPES.get(self._settings.get("MPI_Datatype for reductions", "")) if reducing else None,
            op="sum" if reducing and self._settings.get("MPI_Op") == "MPI_SUM" else None,
            ranks=benchmark.ranks,
            time_s=None if time_name is None else scaled(values[time_name], _MICROSECOND),
            bandwidth_Bps=None if megabyte is None else scaled(rate, megabyte),
            messages_per_s=values.get("Msg/sec"),
            more=tuple((name, in_unit(value, factor)) for name, factor, value in more),
        )

    def _megabyte(self) -> float | None:
        """Return the bytes of one Mbyte, None where the version is not printed or not known.

        2018 and later divide by 1e6 (IMB_output.c, `MEGA`). In outputs of 4.1 Update 1 they are 2**20: 4194304 bytes
        in 1077.75 us are printed as 3711.45. No output of 2017 was seen.
        """
        if self._version is None:
            return None
        first = _FIRST_NUMBER.match(self._version)
        year = int(first[0]) if first is not None else 0
        return 1e6 if year >= 2018 else float(2**20) if 1 <= year <= 4 else None


FORMAT = TableFormat(tool="imb", starts=re.compile(rf"^\s*(?:{_BANNER.pattern}|{_BENCHMARK.pattern})"), table=_ImbTable)

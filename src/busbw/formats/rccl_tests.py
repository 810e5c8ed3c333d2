"""The JSON lines of rccl-tests (-Z json). Its text tables are those of nccl-tests and are read there."""

import re
from collections.abc import Sequence

import msgspec

from busbw.base.errors import InputError
from busbw.formats.arithmetic import Check, Printed, Rates, printed
from busbw.formats.documents import Natural, shaped
from busbw.formats.form import Line, Taken, Unreadable
from busbw.formats.nccl_tests_names import DTYPES
from busbw.model.imported import Reading, Table

TOOL = "rccl-tests"
_NAMES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AlltoAll": "alltoall", "AllToAll": "alltoall", "AlltoAllv": "alltoallv", "Gather": "gather",
    "Scatter": "scatter", "SendRecv": "sendrecv", "HyperCube": "hypercube",
}  # fmt: skip
_LONGEST_BYTES = 65_536


class _Row(msgspec.Struct, rename={"wrong": "#wrong", "algbw": "algBw", "busbw": "busBw", "in_place": "inPlace"}):
    name: str
    size: Natural
    time: float | str
    algbw: float | str
    busbw: float | str
    type: str
    wrong: str | int | float | None = None
    in_place: int | bool | None = None
    redop: str | None = None
    ranks: Natural | None = None


class _OpenTable:
    """The rows of one run; nothing tells one run from the next but the name of the collective and the ranks."""

    def __init__(self, line: Line, *, number: int, source: int) -> None:
        self._number = number
        self._source = source
        self._first_line = line.number
        self._run: tuple[str, int | None] | None = None
        self._check = Check()

    def take(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
        if not _RccTests.starts.match(line.text):
            return "foreign"
        if len(line.text) > _LONGEST_BYTES:
            return Unreadable("a row of more than 64 KiB")
        try:
            row = shaped(msgspec.json.decode(line.text), _Row, tool=TOOL, line=line.number)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            return Unreadable(f"not JSON: {error}")
        except InputError as error:
            return Unreadable(error.cause)
        run = (row.name, row.ranks)
        if self._run is not None and run != self._run:
            return "foreign"
        self._run = run
        return [self._reading(line.number, row)]

    def finish(self, last_line: int) -> Table:
        self._check.compare(self._first_line, self._run[1] if self._run is not None else None)
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            program=self._run[0] if self._run is not None else None,
            format="json",
            statistic="mean over iterations and ranks",
            ranks=self._run[1] if self._run is not None else None,
            ranks_from_rates=self._check.ranks(),
            # Nothing ends these rows, so nothing can show that they are cut off.
            complete=self._run is not None,
            doubts=self._check.doubts(),
        )

    def _reading(self, line: int, row: _Row) -> Reading:
        what = _NAMES.get(row.name, row.name)
        time_s, algbw_Bps, busbw_Bps = _printed(row.time, -6), _printed(row.algbw, 9), _printed(row.busbw, 9)
        self._check.row(what, line, Rates(row.size, time_s, algbw_Bps, busbw_Bps))
        wrong = _printed(str(row.wrong).strip().rstrip("*"), 0) if row.wrong is not None else None
        return Reading(
            table=self._number,
            line=line,
            what=what,
            size_bytes=row.size,
            dtype=DTYPES.get(row.type, row.type),
            op=row.redop,
            in_place=bool(row.in_place) if row.in_place is not None else None,
            ranks=row.ranks,
            time_s=time_s.value if time_s is not None else None,
            algbw_Bps=algbw_Bps.value if algbw_Bps is not None else None,
            busbw_Bps=busbw_Bps.value if busbw_Bps is not None else None,
            wrong=int(min(wrong.value, 2**62)) if wrong is not None else None,
        )


class _RccTests:
    tool = TOOL
    passes_by = True
    starts = re.compile(r'^\s*\{(?=.{0,4000}"busBw")(?=.{0,4000}"algBw")(?=.{0,4000}"size")')

    def begin(self, line: Line, *, number: int, source: int) -> _OpenTable:
        return _OpenTable(line, number=number, source=source)


def _printed(said: float | str, shift: int) -> Printed | None:
    return printed(said.strip() if isinstance(said, str) else repr(said), shift)


FORMAT = _RccTests()

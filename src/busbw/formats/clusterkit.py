"""ClusterKit's bandwidth.txt and latency.txt: a square matrix over ranks, one reading a cell.

Bandwidths are printed with one decimal in MB/s and latencies with two in microseconds, which tells them apart before
the lines below the matrix do. MB is 1e6 bytes: on one 400 Gbit/s port, both directions together, up to 98522.9 MB/s are
printed, and 100000 MB/s of 1e6 bytes are all that it can carry. The lines below the matrix must agree.

Wide numbers grow together (`0.0332928.0`); the decimals separate them again.
"""

import re
from collections.abc import Sequence

from busbw.formats.form import CellError, TableFormat, Taken, TextLine, Unreadable, quantity
from busbw.model.imported import ListedDevice, Reading, Table

_RANKS = re.compile(r"\s*Rank:((?:\s+\d{1,7})+)\s*", re.ASCII)
_ROW = re.compile(r"\s*(\d{1,7})\s*\(\s*([^()]{0,255}?)\s*\)\s*:?(\s[\d.\s]*)", re.ASCII)
_CELLS = {
    "bandwidth": (re.compile(r"\d+\.\d", re.ASCII), re.compile(r"(?:\s*\d+\.\d)+\s*", re.ASCII)),
    "latency": (re.compile(r"\d+\.\d\d", re.ASCII), re.compile(r"(?:\s*\d+\.\d\d)+\s*", re.ASCII)),
}
_SUMMARY = re.compile(r"(Minimum|Maximum|Average) (bandwidth|latency): (\S+) (MB/s|usec)\b.*")
_UNIT_OF = {"bandwidth": "MB/s", "latency": "usec"}
_MEGABYTE = 1e6
_MICROSECOND = 1e-6
# One cell of nine characters for each rank.
_LONGEST_ROW = 2**20


class _ClusterKitTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._ranks: tuple[int, ...] = ()
        self._hosts: dict[int, str] = {}
        self._kind: str | None = None
        self._footer: dict[str, str] = {}

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > _LONGEST_ROW:
            return "foreign"
        text = line.text
        try:
            if line.number == self._first_line:
                return self._header(text)
            if match := _ROW.fullmatch(text):
                return self._row(line.number, int(match[1]), match[2], match[3])
            if match := _SUMMARY.fullmatch(text.strip()):
                return self._summary(match)
        except CellError as error:
            return Unreadable(str(error))
        return "foreign" if text.strip() else "known"

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="clusterkit",
            program=self._kind,
            statistic="mean over iterations",
            ranks=len(self._ranks) or None,
            devices=tuple(ListedDevice(rank=rank, host=host) for rank, host in sorted(self._hosts.items())),
            footer=tuple(self._footer.items()),
            complete="Average" in " ".join(self._footer),
        )

    def _header(self, text: str) -> Taken:
        match = _RANKS.fullmatch(text)
        if match is None:
            return "foreign"
        ranks = tuple(int(rank) for rank in match[1].split())
        if len(set(ranks)) != len(ranks):
            raise CellError("two columns are of one rank")
        self._ranks = ranks
        return "known"

    def _row(self, number: int, rank: int, host: str, rest: str) -> Sequence[Reading] | Unreadable:
        if rank not in self._ranks or rank in self._hosts:
            return Unreadable(f"rank {rank} has no column, or a row already")
        kind = next((kind for kind, (_, whole_row) in _CELLS.items() if whole_row.fullmatch(rest)), None)
        if kind is None or self._kind not in {None, kind}:
            return Unreadable("its numbers have neither all one decimal nor all two, or others than the rows before")
        cells = _CELLS[kind][0].findall(rest)
        if len(cells) != len(self._ranks):
            return Unreadable(f"{len(cells)} cells under a header of {len(self._ranks)} columns")
        readings = tuple(
            self._reading(number, kind, rank, column, value)
            for column, value in zip(self._ranks, map(quantity, cells), strict=True)
            # 0 stands on the diagonal and where a pair was not measured.
            if value
        )
        self._kind, self._hosts[rank] = kind, host
        return readings

    def _reading(self, number: int, kind: str, rank: int, column: int, value: float) -> Reading:
        return Reading(
            table=self._number,
            line=number,
            what=kind,
            source=str(rank),
            target=str(column),
            time_s=value * _MICROSECOND if kind == "latency" else None,
            bandwidth_Bps=value * _MEGABYTE if kind == "bandwidth" else None,
        )

    def _summary(self, match: re.Match[str]) -> Taken | Unreadable:
        which, kind, value, unit = match.groups()
        if kind != self._kind or unit != _UNIT_OF[kind]:
            return Unreadable(f"a {kind} in {unit} under a matrix of {self._kind or 'no'} values")
        quantity(value)
        self._footer[f"{which} {kind}"] = match[0][len(f"{which} {kind}: ") :][:300]
        return "ended" if which == "Average" else "known"


FORMAT = TableFormat(
    tool="clusterkit", starts=re.compile(r"^\s*Rank:(?:\s+\d{1,7}){2,100000}\s*$", re.ASCII), table=_ClusterKitTable
)

"""all_reduce_bench.py of the Machine Learning Engineering book: rows of payload, bus and algorithm bandwidth.

1 GBps is 1e9 bytes a second. A payload is printed in its largest binary unit without a fraction: 1.5 GiB, which only
--payload_size_in_gib can ask for, reads 1GiB.
"""

import re
from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.formats.form import LONGEST_ROW, CellError, TableFormat, Taken, TextLine, Unreadable, named, quantity, scaled
from busbw.model.imported import Reading, Table

_SOFTWARE = re.compile(r"- software: torch=(\S{1,80}), cuda=(\S{1,80}), nccl=\((\d+(?:, \d+)*)\)", re.ASCII)
_HARDWARE = re.compile(r"- hardware: (.{1,2000})")
_TITLE = re.compile(
    r"The (?:average|(?P<payload>\d{1,6}(?:\.\d{1,12})?)GiB payload) bandwidth of all_reduce"
    r" over (?P<ranks>\d{1,9}) ranks \((?P<warmups>\d{1,9}) warmups / (?P<trials>\d{1,9}) trials\):",
    re.ASCII,
)
_HEADER = re.compile(r"\|(?:\s*payload\s*\|)?\s*busbw\s*\|\s*algbw\s*\|")
_RULE = re.compile(r"\|(?:\s*-+:?\s*\|){2,3}")
_RATE = re.compile(r"(\S+)GBps")
_PAYLOAD = re.compile(r"\d{1,4}[KMGTPE]?iB", re.ASCII)
_KNOWN = re.compile(r"Environment:|Legend: .*|1GBps = .*|\*\*\* Plotting .*|!!! Can't generate plot.*")
_END = re.compile(r"Elapsed time: (\S{1,40})")


class _AllReduceBenchTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._versions: tuple[tuple[str, str], ...] = ()
        self._parameters: dict[str, str] = {}
        self._title: re.Match[str] | None = None
        self._columns: tuple[str, ...] = ()
        self._footer: tuple[tuple[str, str], ...] = ()
        # Whether other lines have followed the rows: what is no row of this table then belongs to another one.
        self._is_interrupted = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if match := _END.fullmatch(text):
            self._footer = (("Elapsed time", match[1]),)
            return "ended"
        if _HEADER.fullmatch(text):
            self._columns, self._is_interrupted = _cells(text), False
            return "known"
        if text.startswith("|") and self._columns and not _RULE.fullmatch(text):
            return self._row(line.number, text)
        self._is_interrupted = self._is_interrupted or not text.startswith("|")
        return "known" if self._is_known(text) else "foreign"

    def _row(self, number: int, text: str) -> Taken | Sequence[Reading] | Unreadable:
        try:
            return (self._reading(number, named(self._columns, _cells(text))),)
        except CellError as error:
            return "foreign" if self._is_interrupted else Unreadable(str(error))

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="all_reduce_bench",
            program="all_reduce_bench.py",
            statistic="mean over iterations and ranks"
            if "payload" in self._columns
            else "each iteration, mean over ranks",
            ranks=self._ranks(),
            versions=self._versions,
            parameters=tuple(self._parameters.items()),
            footer=self._footer,
            complete=bool(self._footer),
        )

    def _is_known(self, text: str) -> bool:
        if match := _TITLE.fullmatch(text):
            if self._title is not None:
                return False
            self._title = match
            self._parameters |= {"warmups": match["warmups"], "trials": match["trials"]}
        elif match := _SOFTWARE.fullmatch(text):
            if self._versions:
                return False
            self._versions = (("torch", match[1]), ("CUDA", match[2]), ("NCCL", match[3].replace(", ", ".")))
        elif match := _HARDWARE.fullmatch(text):
            self._parameters["hardware"] = match[1]
        else:
            return not text or bool(_RULE.fullmatch(text) or _KNOWN.fullmatch(text))
        return True

    def _ranks(self) -> int | None:
        return None if self._title is None else int(self._title["ranks"])

    def _reading(self, number: int, cells: dict[str, str]) -> Reading:
        size_bytes = None
        if "payload" in cells:
            size_bytes = _size_bytes(cells["payload"])
        elif self._title is not None and self._title["payload"] is not None:
            size_bytes = int(float(self._title["payload"]) * 2**30)
        return Reading(
            table=self._number,
            line=number,
            what="all_reduce",
            size_bytes=size_bytes,
            dtype="float32",
            op="sum",
            ranks=self._ranks(),
            algbw_Bps=_rate_Bps(cells["algbw"]),
            busbw_Bps=_rate_Bps(cells["busbw"]),
        )


def _cells(text: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in text.strip("|").split("|"))


def _size_bytes(text: str) -> int:
    if _PAYLOAD.fullmatch(text) is None:
        raise CellError(f"{text[:40]!r} is not a payload")
    try:
        return parse_size(text)
    except InputError as error:
        raise CellError(error.cause) from error


def _rate_Bps(text: str) -> float | None:
    match = _RATE.fullmatch(text)
    if match is None:
        raise CellError(f"{text[:40]!r} is not a rate in GBps")
    return scaled(quantity(match[1]), 1e9)


FORMAT = TableFormat(
    tool="all_reduce_bench",
    starts=re.compile(rf"^\s*(?:{_SOFTWARE.pattern}|{_TITLE.pattern}|{_HEADER.pattern})\s*$", re.ASCII),
    table=_AllReduceBenchTable,
)

"""PARAM comms (train/comms/pt): the COMMS-RES lines under a COMMS-RES header; GB is 1e9 bytes, times microseconds.

The size is of all ranks' parts together, as nccl-tests counts; elements are per rank (comms.py, `reportBenchTime`).
"""

import re
from collections.abc import Sequence

from busbw.formats.form import (
    LONGEST_ROW,
    CellError,
    TableFormat,
    Taken,
    TextLine,
    Unreadable,
    named,
    number,
    quantity,
    scaled,
    whole,
)
from busbw.model.imported import Reading, Table

_HEADER = re.compile(r"\s*COMMS-RES(?:-QUANT)?\s+((?:total-)?size \(B\)\s.*)")
_ROW = re.compile(
    r"\s*COMMS-RES-(?P<quantized>QUANT-)?(?P<name>[a-z0-9_]{1,60})-(?P<dtype>[a-z]{1,20}\d{0,4})(?P<tag>\S{0,100})\s+(?P<cells>.*)"
)
_COLUMN = re.compile(r"(?:total-)?size \(B\)|P95 Latency\(us\): Quant|\S+")
_COLLECTIVES = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "all_gather_base": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_base": "reduce_scatter",
    "all_to_all": "alltoall",
    "all_to_all_single": "alltoall",
    "all_to_allv": "alltoallv",
}
_MICROSECOND = 1e-6
_GIGABYTE = 1e9
_SIZES = ("total-size (B)", "size (B)")
_TIME = re.compile(r"(?:Time|Latency|pingLatency)\(us\):p50")
_RATE = re.compile(r"(\w+)\(GB/s\)")
# Microseconds under a name that says more about what they are; the other columns keep their own.
_TIMES = {
    "p75": "p75_s",
    "p95": "p95_s",
    "Min": "min_s",
    "Max": "max_s",
    "TotalTime(us):p50": "total_s",
    "TotalLatency(us):p50": "total_s",
    "pingPongLatency(us):p50": "round_trip_s",
    "round trip p75": "round_trip_p75_s",
    "round trip p95": "round_trip_p95_s",
    "P95 Latency(us): Quant": "quantize_p95_s",
    "Comms": "exchange_p95_s",
    "De-Quant": "dequantize_p95_s",
    "Overall": "p95_s",
}


class _ParamTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._columns: tuple[str, ...] = ()
        self._tags: dict[str, None] = {}
        self._has_rows = False

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        if match := _HEADER.fullmatch(line.text):
            if self._columns:
                return "foreign"
            self._columns = _columns(match[1])
            return "known"
        if match := _ROW.fullmatch(line.text):
            try:
                return (self._reading(line.number, match),)
            except CellError as error:
                return Unreadable(str(error))
        return "foreign" if line.text.strip() else "known"

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool="param",
            program="comms",
            statistic="median over ranks of each rank's mean over iterations",
            parameters=tuple(("tag", tag) for tag in self._tags),
            # Nothing ends such a table, so nothing but a lack of rows can show that it was cut off.
            complete=self._has_rows,
        )

    def _reading(self, line_number: int, match: re.Match[str]) -> Reading:
        cells = named(self._columns, match["cells"].split())
        size_name = next((name for name in _SIZES if name in cells), None)
        time_name = next((name for name in cells if _TIME.fullmatch(name)), None)
        rates = {rate[1]: quantity(text) for name, text in cells.items() if (rate := _RATE.fullmatch(name))}
        further = {
            _TIMES.get(name, name): scaled(number(text), _MICROSECOND if name in _TIMES else 1.0)
            for name, text in cells.items()
            if name not in {size_name, time_name, "nElementsPerRank"} and not _RATE.fullmatch(name)
        }
        further |= {
            f"{name}_Bps": scaled(rate, _GIGABYTE) for name, rate in rates.items() if name not in {"AlgBW", "BusBW"}
        }
        self._has_rows = True
        if tag := match["tag"].lstrip("-"):
            self._tags[tag] = None
        return Reading(
            table=self._number,
            line=line_number,
            what=_COLLECTIVES.get(match["name"], match["name"]) + (" quantized" if match["quantized"] else ""),
            size_bytes=None if size_name is None else whole(cells[size_name]),
            count=whole(cells["nElementsPerRank"]) if "nElementsPerRank" in cells else None,
            dtype=match["dtype"],
            time_s=None if time_name is None else scaled(quantity(cells[time_name]), _MICROSECOND),
            algbw_Bps=scaled(rates.get("AlgBW"), _GIGABYTE),
            busbw_Bps=scaled(rates.get("BusBW"), _GIGABYTE),
            more=tuple((name, value) for name, value in further.items() if value is not None),
        )


def _columns(header: str) -> tuple[str, ...]:
    """Return the names of the columns; of a point-to-point header the second p75 and p95 are told from the first."""
    columns: list[str] = []
    for match in _COLUMN.finditer(header):
        columns.append(f"round trip {match[0]}" if match[0] in columns else match[0])
    return tuple(columns) if len(set(columns)) == len(columns) else ()


FORMAT = TableFormat(
    tool="param", starts=re.compile(r"^\s*COMMS-RES(?:-QUANT)?\s+(?:total-)?size \(B\)\s"), table=_ParamTable
)

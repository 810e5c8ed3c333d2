"""GPCNeT, network_test and network_load_test: latency and bandwidth of all ranks, alone and beside congestors.

Rows stand between bars. MiB/s/rank are 2**20 bytes a second of one rank. A build with VERBOSE prints more columns. The
key results of network_load_test are factors: how much slower a test is beside congestors (utils.c, v1.3).
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
    quantity,
    scaled,
    whole,
)
from busbw.model.imported import Reading, Table

TOOL = "gpcnet"
_MEBIBYTE = 2.0**20
_TITLE = r"Network ?(?P<load>Load ?)?Tests v(?P<version>\S{1,20})"
_SECTION = (
    r"\|\s+(?P<section>Isolated Network Tests|Isolated Congestion Tests|"
    r"Network Tests running with Congestion Tests)(?P<rest>[\w +().-]{0,60}?)\s+\|"
)
_RANKS = re.compile(r"Test with (\d{1,9}) MPI ranks \((\d{1,9}) nodes\)", re.ASCII)
_NODES = re.compile(r"(\d{1,9}) nodes running (Network|Congestion) Tests.{0,80}", re.ASCII)
_BAR = re.compile(r"\+[-+]{20,}\+")
_NAME = re.compile(r"(.{1,60}?) \((\d{1,12}) B\)", re.ASCII)
_FACTOR = re.compile(r"(\S{1,20})X")
_KNOWN = re.compile(r"Legend|(?:RR|Nat|Lat|BW|BW\+Sync) = .{1,60}")
_KEY_RESULTS = "Key Results"
# What stands behind the name of a test, by the section that it is in.
_BESIDE = {"Isolated Congestion Tests": ", congestor alone"}
_FURTHER = {"Min": "min", "Max": "max", "Avg(Worst)": "mean_of_worst", "99%": "p99", "99.9%": "p99.9"}
_UNITS = {"usec": ("s", 1e-6), "MiB/s": ("Bps", _MEBIBYTE), "MiB/s/rank": ("Bps", _MEBIBYTE)}


class _GpcnetTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._title: re.Match[str] | None = None
        self._ranks: int | None = None
        self._parameters: dict[str, str] = {}
        self._beside = ""
        self._columns: tuple[str, ...] = ()
        self._has_key_results = False
        self._ends_with_bar = False
        self._rows = 0

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if _BAR.fullmatch(text):
            self._ends_with_bar = True
            return "known"
        if match := re.fullmatch(_SECTION, text):
            return self._section(match)
        if text.startswith("|") and text.endswith("|"):
            self._ends_with_bar = False
            return self._row(line.number, [cell.strip() for cell in text[1:-1].split("|")])
        return self._head(text)

    def finish(self, last_line: int) -> Table:
        is_load = self._title is not None and self._title["load"] is not None
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            tool_version=self._title["version"] if self._title is not None else None,
            program="network_load_test" if is_load or self._has_key_results else "network_test",
            statistic="mean over ranks and iterations",
            ranks=self._ranks,
            parameters=tuple(self._parameters.items()),
            complete=self._ends_with_bar and self._rows > 0 and (self._has_key_results or not is_load),
        )

    def _section(self, match: re.Match[str]) -> Taken:
        self._columns = ()
        self._has_key_results = self._has_key_results or _KEY_RESULTS in match["rest"]
        beside = f", beside congestors{match['rest'].rstrip()}" if "running with" in match["section"] else ""
        self._beside = (
            ", congestion impact" if _KEY_RESULTS in match["rest"] else beside or _BESIDE.get(match["section"], "")
        )
        return "known"

    def _head(self, text: str) -> Taken:
        if match := re.fullmatch(_TITLE, text):
            if self._title is not None or self._rows:
                return "foreign"
            self._title = match
        elif match := _RANKS.fullmatch(text):
            self._ranks = int(match[1])
            self._parameters["nodes"] = match[2]
        elif match := _NODES.fullmatch(text):
            self._parameters[f"nodes of {match[2].lower()} tests"] = match[1]
        elif text and not _KNOWN.fullmatch(text):
            return "foreign"
        return "known"

    def _row(self, number: int, cells: list[str]) -> Taken | Sequence[Reading] | Unreadable:
        if cells[0] in {"Name", ""}:
            # The key results have their columns in the second of two lines.
            self._columns = ("Name", *cells[1:]) if cells[-1] != "Congestion Impact Factor" else ()
            return "known"
        try:
            values = named(self._columns, cells)
            reading = self._factors(number, values) if "Units" not in values else self._reading(number, values)
        except CellError as error:
            return Unreadable(str(error))
        self._rows += 1
        return (reading,)

    def _what(self, cell: str) -> tuple[str, int | None]:
        match = _NAME.fullmatch(cell)
        name, size_bytes = (match[1], whole(match[2])) if match is not None else (cell[:60], None)
        return name + self._beside, size_bytes

    def _reading(self, number: int, values: dict[str, str]) -> Reading:
        unit = _UNITS.get(values["Units"])
        if unit is None or "Avg" not in values:
            raise CellError(f"{values['Units'][:40]!r} is not a unit of GPCNeT")
        suffix, factor = unit
        mean = scaled(quantity(values["Avg"]), factor)
        further = (
            (name, scaled(quantity(values[column]), factor)) for column, name in _FURTHER.items() if column in values
        )
        what, size_bytes = self._what(values["Name"])
        return Reading(
            table=self._number,
            line=number,
            what=what,
            size_bytes=size_bytes,
            ranks=self._ranks,
            time_s=mean if suffix == "s" else None,
            bandwidth_Bps=mean if suffix == "Bps" else None,
            printed=f"{values['Avg']} {values['Units']}" if suffix == "Bps" else None,
            more=tuple((f"{name}_{suffix}", value) for name, value in further if value is not None),
        )

    def _factors(self, number: int, values: dict[str, str]) -> Reading:
        found = []
        for column, name in (("Avg", "mean_factor"), ("99%", "p99_factor")):
            match = _FACTOR.fullmatch(values.get(column, ""))
            value = quantity(match[1]) if match is not None else None
            if match is None:
                raise CellError(f"{values.get(column, '')[:40]!r} is not a factor")
            if value is not None:
                found.append((name, value))
        what, size_bytes = self._what(values["Name"])
        return Reading(
            table=self._number, line=number, what=what, size_bytes=size_bytes, ranks=self._ranks, more=tuple(found)
        )


FORMAT = TableFormat(tool=TOOL, starts=re.compile(rf"^\s*(?:{_TITLE}|{_SECTION})\s*$", re.ASCII), table=_GpcnetTable)

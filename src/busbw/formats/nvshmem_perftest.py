"""The perftest programs of NVSHMEM: tables by size, in bars before 3.0, and lines of NVSHMEM_MACHINE_READABLE_OUTPUT.

A bandwidth of a put or get, GB/sec, is 1e9 bytes a second since 3.2.5, and 2**30 up to 3.1.7 (B_TO_GB in
perftest/common/utils.h of each release). No version is printed: bars end with 3.0.6, columns with a bandwidth and the
line of runtime options begin with 3.2.5. algbw and busbw of collectives, GB/s, are 1e9, as in nccl-tests, whose factors
they have.
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
from busbw.model.imported import ListedDevice, Reading, Table

TOOL = "nvshmem-perftest"
_PE = r"mype: (?P<pe>\d{1,7}) mype_node: (?P<local>\d{1,4}) device name: (?P<model>.{1,80}?) bus id: (?P<bus>\d{1,4})"
# The first begins a table, the second may stand in one: alone it is any comment.
_FIRST_JOB = (
    r"#\s*(?:shmem_\w{1,60}|device_\w{1,60}|(?:alltoall|bcast|broadcast|fcollect|reduction|reducescatter|barrier|sync)"
    r"_(?:device|on_stream))"
)
_OPTIONS = r"(?:\[PE \d{1,7}\] )?Runtime options after parsing command line arguments"
_JOB = r"#\s*(?P<job>[a-z]\w{1,60})"
# nccom-test, of AWS Neuron, has "size(B)  count(elems)".
_HEADER = r"size ?\(B\)  +(?:count|type|redop|scope|latency ?\(us\))  +\S.{0,200}"
_PERF = (
    r"&&&& PERF (?P<name>\w{1,100}?)___(?P<kind>[\w-]{0,60}?)___size__(?P<size>\d{1,19})___(?P<quantity>[\w ]{1,40}) "
    r"(?P<value>\S{1,40}) [+-](?P<unit>\S{1,20})"
)
_BOX = r"\+-{24}\+-{22}\+"
_BOXED = re.compile(r"\| (?P<left>.{1,40}?)\s*\| (?P<right>.{1,40}?)\s*\|")
_COLUMN = re.compile(r"\S+(?: \(\S+\)| \S+/sec)?")
_KNOWN = re.compile(
    rf"{_OPTIONS}|shmem_\w{{1,60}}|device_\w{{1,60}}|\w{{1,40}}_on_stream|\w{{1,40}}_device|"
    r"min_size: .{1,1000}|"
    r"Note: Above is full list of options.{0,100}|"
    r"NVSHMEM v\S{1,40}|CUBIN Selected: .{1,300}|.{0,20}Library Testing Method Chosen\.|repetitions: \d{1,9}|"
    r"variables\.|PE \d{1,7}: GPU \d{1,4}, UUID: .{1,100}"
)
_WHAT = {
    "reduction": "all_reduce", "reduce": "all_reduce", "reducescatter": "reduce_scatter", "fcollect": "all_gather",
    "alltoall": "alltoall", "bcast": "broadcast", "broadcast": "broadcast",
}  # fmt: skip
_GIGABYTE, _GIBIBYTE = 1e9, 2.0**30
# Column, as it is named with its unit left off, to what it is.
_UNIT = re.compile(r"(?P<name>[\w -]{1,30}?) ?\(?(?P<unit>us|ms|GB/s|GB/sec|MMPS|MOPS|B)\)?", re.ASCII)
_FACTORS = {"us": 1e-6, "ms": 1e-3, "GB/s": _GIGABYTE, "GB/sec": _GIGABYTE, "MMPS": 1e6, "MOPS": 1e6}
_OLD_FACTORS = {**_FACTORS, "GB/sec": _GIBIBYTE}
_MOST_DEVICES = 65_536
# Lines before the rows; after them they are another test's.
_BEGINNINGS = (_PE, _JOB, _HEADER, _BOX)


class _NvshmemTable:
    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._job: str | None = None
        self._columns: tuple[str, ...] = ()
        self._box: list[tuple[str, str]] = []
        self._devices: list[ListedDevice] = []
        self._says_options = False
        self._rows = 0

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if len(line.text) > LONGEST_ROW:
            return "foreign"
        text = line.text.strip()
        if match := re.fullmatch(_PERF, text):
            return self._perf(line.number, match)
        if self._columns and text[:1].isdigit():
            return self._row(line.number, text.split())
        if match := _BOXED.fullmatch(text):
            return self._boxed(line.number, match["left"], match["right"])
        return self._head(text)

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=TOOL,
            program=self._job,
            statistic="mean over iterations",
            ranks=len({device.rank for device in self._devices}) or None,
            devices=tuple(self._devices),
            # The programs print their rows at the end, all at once.
            complete=self._rows > 0,
        )

    def _head(self, text: str) -> Taken:
        begins = next((match for form in _BEGINNINGS if (match := re.fullmatch(form, text)) is not None), None)
        if begins is not None:
            if self._rows and not (begins.re.pattern == _BOX and self._box):
                return "foreign"
            self._begin(begins, text)
        elif text and text != self._job and not _KNOWN.fullmatch(text):
            return "foreign"
        self._says_options = self._says_options or re.match(_OPTIONS, text) is not None
        return "known"

    def _begin(self, match: re.Match[str], text: str) -> None:
        said = match.groupdict()
        if "pe" in said:
            if len(self._devices) < _MOST_DEVICES:
                self._devices.append(
                    ListedDevice(
                        rank=int(match["pe"]), device=int(match["local"]), model=match["model"], bus_id=match["bus"]
                    )
                )
        elif "job" in said:
            self._job = said["job"]
        elif match.re.pattern == _HEADER:
            self._columns = tuple(_COLUMN.findall(text))

    def _boxed(self, number: int, left: str, right: str) -> Taken | Sequence[Reading] | Unreadable:
        if not left.isdigit():
            if self._rows:
                return "foreign"
            self._box.append((left, right))
            if len(self._box) == 1:
                self._job = left
            return "known"
        if not self._box:
            return "foreign"
        return self._row_of(number, {"size(B)": left, self._box[-1][1]: right})

    def _perf(self, number: int, match: re.Match[str]) -> Taken | Sequence[Reading] | Unreadable:
        if self._job not in {None, match["name"]}:
            return "foreign"
        self._job = match["name"]
        return self._row_of(number, {"size(B)": match["size"], f"{match['quantity']} {match['unit']}": match["value"]})

    def _row(self, number: int, cells: Sequence[str]) -> Sequence[Reading] | Unreadable:
        try:
            return self._row_of(number, named(self._columns, cells))
        except CellError as error:
            return Unreadable(str(error))

    def _row_of(self, number: int, values: dict[str, str]) -> Sequence[Reading] | Unreadable:
        try:
            reading = self._reading(number, values)
        except CellError as error:
            return Unreadable(str(error))
        self._rows += 1
        return (reading,)

    def _factors(self) -> dict[str, float]:
        """Return what a unit is: of the release that printed such a beginning; with no beginning, as it is written."""
        is_old = bool(self._box) or (bool(self._devices) and not self._columns and not self._says_options)
        return _OLD_FACTORS if is_old else _FACTORS

    def _reading(self, number: int, values: dict[str, str]) -> Reading:
        factors = self._factors()
        size = next((cell for name, cell in values.items() if name.replace(" ", "") == "size(B)"), None)
        numbers: dict[str, float] = {}
        printed = None
        for name, cell in values.items():
            match = _UNIT.fullmatch(name)
            value = scaled(quantity(cell), factors[match["unit"]]) if match and match["unit"] in factors else None
            if match is None or value is None:
                continue
            key = _key(match["name"].strip().lower(), match["unit"])
            numbers[key] = value
            if key in {"busbw_Bps", "bandwidth_Bps"}:
                printed = f"{cell} {match['unit']}"
        if not numbers:
            raise CellError("no column of it is a time or a rate")
        return Reading(
            table=self._number,
            line=number,
            what=self._what(),
            size_bytes=whole(size) if size is not None else None,
            count=whole(values["count"]) if values.get("count", "").isdigit() else None,
            dtype=values.get("type"),
            op=values.get("redop"),
            time_s=numbers.pop("time_s", None),
            algbw_Bps=numbers.pop("algbw_Bps", None),
            busbw_Bps=numbers.pop("busbw_Bps", None),
            bandwidth_Bps=numbers.pop("bandwidth_Bps", None),
            messages_per_s=numbers.pop("messages_per_s", None),
            printed=printed,
            more=tuple(numbers.items()),
        )

    def _what(self) -> str:
        job = self._job or TOOL
        return _WHAT.get(job.removeprefix("device_").removesuffix("_device").removesuffix("_on_stream"), job)


def _key(name: str, unit: str) -> str:
    """Return what a column is called here: `latency(us)` is time_s, `min_lat(us)` is min_s."""
    if unit in {"us", "ms"}:
        return {"latency": "time_s", "min_lat": "min_s", "max_lat": "max_s"}.get(name, f"{name.replace(' ', '_')}_s")
    if unit in {"MMPS", "MOPS"}:
        return "messages_per_s"
    return {"algbw": "algbw_Bps", "busbw": "busbw_Bps"}.get(name, "bandwidth_Bps")


FORMAT = TableFormat(
    tool=TOOL,
    starts=re.compile(rf"^\s*(?:{_PE}|{_OPTIONS}|{_FIRST_JOB}|{_HEADER}|{_PERF}|{_BOX})\s*$", re.ASCII),
    table=_NvshmemTable,
)

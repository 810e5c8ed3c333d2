"""perftest's --out_json: JSON since January 2024, before that (and still for --output and --qos runs) only nearly.

The file gives bandwidths without a unit, MiB/s or Gbit/s as the run was asked for. Both come from the same clock as the
message rate beside them, so that the unit is the one in which they agree.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.value import Integer
from busbw.formats.cells import LONGEST_ROW, CellError, quantity, scaled, whole
from busbw.formats.documents import shaped
from busbw.formats.form import Line, Taken, Unreadable
from busbw.formats.perftest import GIGABIT, MEBIBYTE, MICROSECOND, MILLION_PACKETS, program, spaced_title
from busbw.model.imported import Reading, Table

_FURTHER = {
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
            further, factor = _FURTHER.get(name, (name, 1.0))
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


class _Document(msgspec.Struct):
    test_info: dict[str, str | Integer | float]
    results: dict[str, Integer | float]


class _Documents:
    tool = "perftest"
    is_record = False

    def recognises(self, document: object) -> bool:
        return isinstance(document, dict) and "test_info" in document and "results" in document

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        read = shaped(document, _Document, tool="perftest", line=line)
        info = {name[:_LONGEST_TEXT]: str(value)[:_LONGEST_TEXT] for name, value in read.test_info.items()}
        results = {name: str(value) for name, value in read.results.items()}
        try:
            reading = _reading(results, info.get("test", "perftest"), table=number, line=line)
        except CellError as error:
            raise InputError(f"not a document of perftest: {error} - at `$.results`", where=f"line {line}") from error
        table = _table(info, results, number=number, source=source, first_line=line, last_line=line)
        return ((structs.replace(table, format="json", complete=True), (reading,)),)


class _OpenObject:
    """The same file, line by line, where it is no JSON."""

    def __init__(self, *, number: int, source: int, first_line: int) -> None:
        self._number = number
        self._source = source
        self._first_line = first_line
        self._objects: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] | None = None
        self._complete = False

    def take(self, line: Line) -> Taken | Sequence[Reading] | Unreadable:
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


class _Text:
    tool = "perftest"
    passes_by = False
    starts = re.compile(r'^\s*"?test_info"?\s*:\s*\{\s*$')

    def begin(self, line: Line, *, number: int, source: int) -> _OpenObject:
        return _OpenObject(number=number, source=source, first_line=line.number)


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


FORMAT = _Documents()
TEXT_FORMAT = _Text()

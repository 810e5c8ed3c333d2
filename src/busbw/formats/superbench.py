"""SuperBench's results-summary.jsonl: one object a node, whose metrics are named after benchmark, test and size.

Read are nccl-bw, rccl-bw (GB/s as nccl-tests prints them, microseconds) and ib-traffic (GB/s: its Gbit/s divided by 8;
microseconds). The others are counted: their sizes and ends are not in their names, or their unit is not certain.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from busbw.base.value import Integer
from busbw.formats.form import amount, shaped
from busbw.model.imported import Reading, Table

TOOL = "superbench"
_METRIC = re.compile(r"[\w-]+(?::[\w.-]+)?/\S+")
_NCCL = re.compile(
    r"(?:nccl|rccl)-bw(?::(?P<annotation>[\w.-]+))?/(?P<operation>[a-z]+)(?:_(?P<serial>\d{1,9})_(?P<parallel>\d{1,9}):|_)"
    r"(?P<size>\d{1,19})_(?P<quantity>busbw|algbw|time)(?::(?P<rank>\d{1,9}))?",
    re.ASCII,
)
_TRAFFIC = re.compile(
    r"ib-traffic(?::(?P<annotation>[\w.-]+))?/(?P<operation>ib_[a-z]+_(?P<quantity>bw|lat))_(?P<size>\d{1,19})_"
    r"(?P<direction>[a-z]+-to-[a-z]+)_(?P<serial>\d{1,9})_(?P<parallel>\d{1,9}):(?P<ends>[^:\s]+)(?::(?P<rank>\d{1,9}))?",
    re.ASCII,
)
_COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
}
_GIGABYTE = 1e9
_MICROSECOND = 1e-6
_LONGEST_NAME = 600


class _Key(NamedTuple):
    """What the three metrics of one row of nccl-tests have in common, or the one of a pair of hosts."""

    what: str
    size_bytes: str
    serial: str | None
    parallel: str | None
    rank: str | None
    ends: str | None = None
    direction: str | None = None


class _Superbench:
    tool = TOOL
    is_record = False

    def recognises(self, document: object) -> bool:
        return (
            isinstance(document, dict)
            and isinstance(document.get("node"), str)
            and any(isinstance(name, str) and _METRIC.fullmatch(name) for name in document)
        )

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        metrics = shaped(document, dict[str, object], tool=TOOL, line=line)
        # One table for each benchmark that has an annotation of its own: the same test with other options.
        benchmarks: dict[str, dict[_Key, dict[str, float]]] = {}
        left_out = 0
        for name, value in metrics.items():
            found = _found(name)
            if found is None:
                left_out += name != "node"
                continue
            annotation, key, quantity = found
            number_read = _number(name, value, line=line)
            row = benchmarks.setdefault(annotation, {}).setdefault(key, {})
            if number_read is not None:
                row[quantity] = number_read
        common = Table(
            number=number,
            source=source,
            first_line=line,
            last_line=line,
            tool=TOOL,
            program="sb run",
            format="json",
            statistic="as nccl-tests and perftest print it, one run",
            parameters=(("node", str(metrics.get("node", ""))[:255]), ("metrics left out", str(left_out))),
            complete=True,
        )
        return tuple(
            _table(common, annotation, rows, number=number + index)
            for index, (annotation, rows) in enumerate((benchmarks or {"": {}}).items())
        )


def _table(
    common: Table, annotation: str, rows: dict[_Key, dict[str, float]], *, number: int
) -> tuple[Table, Sequence[Reading]]:
    table = structs.replace(common, number=number)
    if annotation:
        # Only the first one counts what was left out of all of the document.
        kept = common.parameters if number == common.number else common.parameters[:1]
        table = structs.replace(table, parameters=(*kept, ("annotation", annotation)))
    # busbw names its own exports so; the configurations of SuperBench do not say which half they took.
    in_place = True if annotation.split("-")[-2:] == ["in", "place"] else None
    return table, tuple(
        _reading(key, row, table=number, line=common.first_line, in_place=in_place) for key, row in rows.items()
    )


def _found(name: str) -> tuple[str, _Key, str] | None:
    """Return a metric's annotation, which row it is of, and what of it; None for a metric that is not read."""
    if len(name) > _LONGEST_NAME:
        return None
    if match := _NCCL.fullmatch(name):
        what = _COLLECTIVES.get(match["operation"], match["operation"])
        key = _Key(what, match["size"], match["serial"], match["parallel"], match["rank"])
        return match["annotation"] or "", key, match["quantity"]
    if match := _TRAFFIC.fullmatch(name):
        key = _Key(
            match["operation"],
            match["size"],
            match["serial"],
            match["parallel"],
            match["rank"],
            match["ends"],
            match["direction"],
        )
        return match["annotation"] or "", key, match["quantity"]
    return None


def _number(name: str, value: object, *, line: int) -> float | None:
    """Return a metric's value, None where it failed: SuperBench then writes null, NaN or -1."""
    number = shaped({name: value}, dict[str, Integer | float | None], tool=TOOL, line=line)[name]
    if number is None or number == -1:
        return None
    return amount(float(number), path=f"$.{name}", tool=TOOL, line=line)


def _reading(key: _Key, row: dict[str, float], *, table: int, line: int, in_place: bool | None) -> Reading:
    # server_client, where neither name has the underscore in it.
    ends = tuple((key.ends or "").split("_"))
    time_us = row.get("time", row.get("lat"))
    indices = (("serial", key.serial), ("parallel", key.parallel), ("rank", key.rank))
    return Reading(
        table=table,
        line=line,
        what=key.what if key.direction is None else f"{key.what} {key.direction}",
        size_bytes=int(key.size_bytes) if int(key.size_bytes) < 2**63 else None,
        source=ends[0] if len(ends) == 2 else key.ends,
        target=ends[1] if len(ends) == 2 else None,
        in_place=in_place,
        time_s=None if time_us is None else time_us * _MICROSECOND,
        algbw_Bps=row["algbw"] * _GIGABYTE if "algbw" in row else None,
        busbw_Bps=row["busbw"] * _GIGABYTE if "busbw" in row else None,
        bandwidth_Bps=row["bw"] * _GIGABYTE if "bw" in row else None,
        more=tuple((name, float(index)) for name, index in indices if index is not None),
    )


FORMAT = _Superbench()

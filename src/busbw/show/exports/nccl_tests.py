"""The text table of nccl-tests: its lines, widths and number format (src/util.cu, 2.19), one table a collective.

What it cannot say truly, it says in a comment or as `nan`: every reader of numbers takes it, and no threshold is met.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from busbw.base.errors import InputError
from busbw.base.text import one_line, one_word
from busbw.model.gates import PointRow, is_missing, is_wrong
from busbw.model.imported import SIZE_COUNTS, ListedDevice
from busbw.show.exports.rows import Export, RowGroup, numbered

# Exchanges that a program of nccl-tests measures.
PROGRAMS = frozenset(
    {
        "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather",
        "scatter", "sendrecv", "hypercube",
    }
)  # fmt: skip
TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
_NAN = float("nan")


def nccl_tests_text(export: Export) -> str:
    """Return one table for each collective of an export, as nccl-tests would have printed them one after the other.

    Raises InputError when there is nothing that nccl-tests has a program for.
    """
    rows = [row for row in export.rows if _has_program(row)]
    if not rows:
        raise InputError(
            "no program of nccl-tests measures what this holds",
            where=one_line(export.run_id),
            hint="choose another format: --format csv",
        )
    others = dict.fromkeys(_others_name(row) for row in export.rows if not _has_program(row))
    groups = {group.table: group for group in export.groups}
    tables: dict[tuple[int, str], list[PointRow]] = {}
    for row in rows:
        tables.setdefault((row.table, row.collective), []).append(row)
    left_out = f"# busbw: left out, no program of nccl-tests measures it: {', '.join(others)}\n"
    return (left_out if others else "") + "".join(
        _table(export, groups[number], of_one) for (number, _), of_one in tables.items()
    )


def _has_program(row: PointRow) -> bool:
    """Whether a program of nccl-tests measures this; none has two ranks exchange while the others wait."""
    return row.collective in PROGRAMS and row.size_bytes is not None and row.source is None


def _others_name(row: PointRow) -> str:
    return one_word(row.collective) + (" between two" if row.collective in PROGRAMS and row.source is not None else "")


def _table(export: Export, group: RowGroup, rows: Sequence[PointRow]) -> str:
    return "".join(
        f"{line}\n"
        for line in (
            *_origin(export, group, rows),
            f"# Collective test starting: {rows[0].collective}_perf",
            _parameters(group, rows),
            "#",
            "# Using devices",
            *map(_device, group.devices),
            "#",
            *_HEADER,
            *map(_line, _pairs(rows)),
            *_footer(group, rows),
        )
    )


def _origin(export: Export, group: RowGroup, rows: Sequence[PointRow]) -> tuple[str, ...]:
    """Return who measured this, and what differs from the tool's own meaning.

    Nothing here may say what other readers look for in the header and the footer; so there is no tag, which says
    anything.
    """
    first = rows[0]
    size_counts = dict(group.parameters).get(SIZE_COUNTS)
    unchecked = sum(row.time_s is not None and not row.verified for row in rows)
    version = one_word(export.busbw_version)
    measured_by = ", ".join(filter(None, (one_line(first.backend), one_line(first.libraries))))
    return (
        f"# busbw {version} wrote this in the format of nccl-tests 2.19; measured by {measured_by}",
        f"# busbw: {first.kind} {one_line(export.run_id)} of {one_line(export.created)}{_verdict_words(export)}",
        f"# busbw: column time: {_STATISTICS.get(first.mode or '', one_line(first.statistic))}; nan: there is none",
        *((f"# busbw: not checked for right results: {unchecked} of {len(rows)}",) if unchecked else ()),
        *((f"# busbw: sizes are not as nccl-tests counts them: {one_line(size_counts)}",) if size_counts else ()),
    )


_STATISTICS = {
    "isolated": "median of calls started together, each as long as on its slowest rank (mode isolated)",
    "stream": "median of samples of calls back to back, each the mean over ranks (mode stream)",
    "graph": "median of replays of captured calls, each the mean over ranks (mode graph)",
    "loaded": "median of samples of calls beside matrix products, each the mean over ranks (mode loaded)",
}


def _verdict_words(export: Export) -> str:
    if export.verdict is None:
        return ""
    codes = f" ({', '.join(export.because)})" if export.because else ""
    return f", verdict: {export.verdict.replace('_', ' ')}{codes}"


def _parameters(group: RowGroup, rows: Sequence[PointRow]) -> str:
    """Return the tool's line of parameters: as the tool gave them, else counts that are the least of the rows'."""
    sizes_bytes = sorted({row.size_bytes or 0 for row in rows})
    ours = {
        "nThread": "1",
        "nGpus": "1",
        "minBytes": str(sizes_bytes[0]),
        "maxBytes": str(sizes_bytes[-1]),
        "step": _step(sizes_bytes),
        "warmup iters": _least(rows, lambda row: row.warmup_calls),
        "iters": _least(rows, lambda row: row.samples),
        "agg iters": _least(rows, lambda row: row.calls_per_sample),
        "validation": str(int(all(row.verified for row in rows))),
        "graph": "0",
        "unalign": "0",
    }
    given = dict(group.parameters)
    # The first four have no colon.
    words = (
        f"{name}{':' if place >= 4 else ''} {one_word(given.get(name, value))}"
        for place, (name, value) in enumerate(ours.items())
    )
    return f"# {' '.join(words)}"


def _least(rows: Sequence[PointRow], field: Callable[[PointRow], int | None]) -> str:
    return str(min((value for row in rows if (value := field(row)) is not None), default=0))


def _step(sizes_bytes: Sequence[int]) -> str:
    """Return how the sizes grow; `0(bytes)` when neither by one factor nor by one step."""
    neighbours = tuple(pairwise(sizes_bytes))
    factors = {round(after / before) if before > 0 else 0 for before, after in neighbours}
    if len(factors) == 1 and (factor := factors.pop()) > 1:
        return f"{factor}(factor)"
    steps_bytes = {after - before for before, after in neighbours}
    return f"{steps_bytes.pop()}(bytes)" if len(steps_bytes) == 1 else "0(bytes)"


def _device(device: ListedDevice) -> str:
    # The tool leaves out the function, which is 0 for every GPU.
    bus_id = one_word((device.bus_id or "0000:00:00").split(".")[0].lower())
    return (
        f"#  Rank {device.rank:2d} Group {device.group or 0:2d} Pid {device.process_id or 0:6d} "
        f"on {one_word(device.host or ''):>10} device {device.device or 0:2d} [{bus_id}] "
        f"{one_line(device.model or 'CPU')}"
    )


_HEADER = tuple(
    template % words
    for template, words in (
        (
            "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          ",
            ("", "", "", "", ""),
        ),
        (
            "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s ",
            ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2),
        ),
        (
            "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s ",
            ("(B)", "(elements)", "", "", "", *("(us)", "(GB/s)", "(GB/s)", "") * 2),
        ),
    )
)

_Pair = tuple[PointRow | None, PointRow | None]


def _pairs(rows: Sequence[PointRow]) -> list[_Pair]:
    """Return the out-of-place and the in-place row of each size that has one of them."""
    pairs: dict[tuple[object, ...], _Pair] = {}
    measured = [row for row in rows if not is_missing(row)]
    for row, before in numbered(measured, lambda row: (*_preamble(row), bool(row.in_place))):
        out_of_place, in_place = pairs.get((*_preamble(row), before), (None, None))
        pairs[(*_preamble(row), before)] = (out_of_place, row) if row.in_place else (row, in_place)
    return list(pairs.values())


def _line(pair: _Pair) -> str:
    row = pair[0] or pair[1]
    assert row is not None, "a pair has one row at least"
    size_bytes, count, dtype, op, root = _preamble(row)
    return f"{size_bytes:12d}  {count:12d}  {dtype:>8}  {op:>6}  {root:6d}" + "".join(map(_half, pair))


def _preamble(row: PointRow) -> tuple[int, int, str, str, int]:
    dtype = TYPE_NAMES.get(row.dtype or "", row.dtype or "none")
    # The tool names an operation for sendrecv too, which has none.
    op = row.op or ("sum" if row.collective == "sendrecv" else "none")
    return row.size_bytes or 0, row.count or 0, one_word(dtype), one_word(op), row.root if row.root is not None else -1


def _half(row: PointRow | None) -> str:
    """Return time, algbw, busbw and #wrong of one placement; not measured: nan and N/A."""
    time_us = row.time_s * 1e6 if row is not None and row.time_s is not None else _NAN
    algbw, busbw = (_giga(row.algbw_Bps), _giga(row.busbw_Bps)) if row is not None else (_NAN, _NAN)
    wrong = f"  {row.wrong:6g}" if row is not None and row.wrong is not None else "    N/A"
    return f"  {number(time_us, 7)}  {number(algbw, 6)}  {number(busbw, 6)}{wrong}"


def _giga(rate_Bps: float | None) -> float:
    return rate_Bps / 1e9 if rate_Bps is not None else _NAN


def number(value: float, width: int) -> str:
    """Return `value` with two decimals, one or none, whichever fits into `width` first, else with an exponent."""
    for decimals in (2, 1, 0):
        if len(text := f"{value:{width}.{decimals}f}") <= width:
            return text
    return f"{value:{width}.{1 if width >= 7 else 0}e}"


def _footer(group: RowGroup, rows: Sequence[PointRow]) -> tuple[str, ...]:
    """Return the tool's footer; where points are missing none, as when the tool was cut off."""
    missing = sum(map(is_missing, rows))
    if missing or not group.complete:
        counted = f": {missing} of {len(rows)} points were not measured" if missing else ""
        return (f"# busbw: cut off{counted}; so there is no footer", "#", "")
    wrong = sum(map(is_wrong, rows))
    rates_Bps = [row.busbw_Bps for row in rows if row.busbw_Bps is not None]
    mean_Bps = sum(rates_Bps) / len(rates_Bps) if rates_Bps else None
    return (
        f"# {'Out of bounds values':<20} : {wrong} {'FAILED' if wrong else 'OK'}",
        f"# {'Avg bus bandwidth':<20} : {_giga(mean_Bps):g} ",
        "#",
        f"# Collective test concluded: {rows[0].collective}_perf",
        "#",
        "",
    )

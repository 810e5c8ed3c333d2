"""The curves of an import: what each sweep of each table says of time and bandwidth, with what is expected of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from busbw.base.units import format_rate, format_size, format_time
from busbw.model.imported import Imported, Reading, Table
from busbw.model.verdict import SizeExplanation
from busbw.show.figures.series import Figure, bound_traces, line_trace, marker, plain, size_layout, time_traces
from busbw.show.page.pictures import ImportSubject
from busbw.show.page.summary import Curve, curve_of, reached_of

MOST_CURVES = 24

# Table, line and form: a line may hold both forms.
_Place = tuple[int, int, bool | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportCurve:
    """One sweep of one table. `time` and `rate` are None where the tool says nothing of them."""

    name: str
    note: str
    summary: str
    time: Figure | None
    rate: Figure | None
    # Which of the two bandwidths `rate` is of, in words.
    rate_words: str
    # The same for the figure that a page begins with; None: the tool says no bus bandwidth.
    reached: Curve | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    row: Reading
    size_bytes: int
    # 0: the tool does not say.
    rate_Bps: float
    explained: SizeExplanation | None


def import_curves(subject: ImportSubject) -> tuple[ImportCurve, ...]:
    """Return the curves of every sweep that has one: two sizes or more, right, with a time or a rate."""
    tables = {table.number: table for table in subject.imported.tables}
    explained = _explained(subject)
    found = []
    for (number, *_), rows in _sweeps(subject.readings).items():
        usable = sorted((row for row in rows if row.size_bytes and not row.wrong), key=lambda row: row.size_bytes or 0)
        if len({row.size_bytes for row in usable}) > 1 and any(
            row.time_s or row.busbw_Bps or row.bandwidth_Bps for row in usable
        ):
            found.append(_curve(subject.imported, tables[number], usable, explained))
    return tuple(found)


def place_words(row: Reading) -> str:
    """Return "in place" or "out of place"; "" where the tool knows no such forms."""
    return "" if row.in_place is None else "in place" if row.in_place else "out of place"


def table_words(imported: Imported, table: Table) -> str:
    """Return the program of a table with its file and line."""
    file = imported.sources[table.source].name.rpartition("/")[2]
    return f"{table.program or table.tool}, {file}:{table.first_line}"


def _sweeps(readings: Sequence[Reading]) -> dict[tuple[int, object], list[Reading]]:
    found: dict[tuple[int, object], list[Reading]] = {}
    for row in readings:
        ends = row.source, row.target
        key = (row.table, (row.what, row.dtype, row.op, row.root, row.in_place, row.ranks, ends))
        found.setdefault(key, []).append(row)
    return found


def _explained(subject: ImportSubject) -> dict[_Place, SizeExplanation]:
    """Return the explanation of each row that has one, by its place."""
    return {
        (series.table, size.line, series.in_place): size
        for series in subject.explained.series
        for size in series.sizes
        if series.table is not None and size.line is not None
    }


def _curve(
    imported: Imported, table: Table, rows: Sequence[Reading], explained: Mapping[_Place, SizeExplanation]
) -> ImportCurve:
    first = rows[0]
    points = [_point(row, explained.get((row.table, row.line, row.in_place))) for row in rows]
    is_bus = any(row.busbw_Bps for row in rows)
    ends = f"{first.source or '?'} to {first.target or '?'}" if first.source or first.target else ""
    operation = first.op if first.op not in (None, "none", "") else ""
    name = ", ".join(part for part in (first.what, first.dtype, operation, place_words(first), ends) if part)
    return ImportCurve(
        name=name,
        note=f"{table_words(imported, table)}; time: {table.statistic}",
        summary=_summary(points),
        time=_time_figure(points) if any(row.time_s for row in rows) else None,
        rate=_rate_figure(points, is_bus=is_bus) if any(point.rate_Bps for point in points) else None,
        rate_words="bus bandwidth" if is_bus else "bandwidth",
        reached=_reached(first, points) if is_bus else None,
    )


def _reached(first: Reading, points: Sequence[_Point]) -> Curve | None:
    rated = [
        reached_of(point.size_bytes, point.row.time_s, point.rate_Bps, point.explained)
        for point in points
        if point.rate_Bps
    ]
    label = f"{first.what}{', in place' if first.in_place else ''}"
    return curve_of(label, rated, in_place=bool(first.in_place)) if rated else None


def _point(row: Reading, explained: SizeExplanation | None) -> _Point:
    # A table rounds what is small to 0.01 and 0.00 GB/s; from size and time it is known better.
    rate_Bps = explained.busbw_Bps if explained is not None and row.time_s else row.busbw_Bps or row.bandwidth_Bps
    return _Point(row=row, size_bytes=row.size_bytes or 0, rate_Bps=rate_Bps or 0.0, explained=explained)


def _time_figure(points: Sequence[_Point]) -> Figure:
    timed = [point for point in points if point.row.time_s]
    trace = _trace("time", timed, [(point.row.time_s or 0.0) * 1e6 for point in timed])
    trace |= {"line": {"color": "--fig-median", "width": 2}, "marker": marker("circle", "--fig-median")}
    traces = [*time_traces(_known(timed)), *_tail(timed), trace]
    return {"data": traces, "layout": size_layout("time (us)", [point.size_bytes for point in timed], traces)}


def _tail(points: Sequence[_Point]) -> Iterator[Figure]:
    """Yield the 99th percentile where the tool gives one."""
    with_p99 = [(point, time_s) for point in points if (time_s := dict(point.row.more).get("p99_s"))]
    if with_p99:
        yield _trace("p99", [point for point, _ in with_p99], [time_s * 1e6 for _, time_s in with_p99]) | {
            "line": {"color": "--fig-tail", "width": 1, "dash": "dot"},
            "marker": marker("triangle-up-open", "--fig-tail", 6),
        }


def _rate_figure(points: Sequence[_Point], *, is_bus: bool) -> Figure:
    rated = [point for point in points if point.rate_Bps]
    name = "busbw" if is_bus else "bandwidth"
    trace = _trace(name, rated, [point.rate_Bps / 1e9 for point in rated])
    trace |= {"line": {"color": "--fig-busbw", "width": 2}, "marker": marker("square", "--fig-busbw")}
    traces = [*bound_traces(_known(rated), ()), trace]
    return {"data": traces, "layout": size_layout(f"{name} (GB/s)", [point.size_bytes for point in rated], traces)}


def _trace(name: str, points: Sequence[_Point], values: list[float]) -> Figure:
    return line_trace(name, [point.size_bytes for point in points], [_text(point) for point in points], values)


def _known(points: Sequence[_Point]) -> list[SizeExplanation]:
    return [point.explained for point in points if point.explained is not None]


def _text(point: _Point) -> str:
    row = point.row
    lines = [
        f"<b>{plain(row.what)} {format_size(point.size_bytes)}</b>",
        f"time {format_time(row.time_s)}" if row.time_s else "",
        f"{'busbw' if row.busbw_Bps is not None else 'bandwidth'} {format_rate(point.rate_Bps)}"
        if point.rate_Bps
        else "",
        f"line {row.line}",
    ]
    return "<br>".join(line for line in lines if line)


def _summary(points: Sequence[_Point]) -> str:
    """Return what a figure of these shows, in a sentence for who cannot see it."""
    sizes = f"from {format_size(points[0].size_bytes)} to {format_size(points[-1].size_bytes)}"
    best = max(points, key=lambda point: point.rate_Bps)
    return f"{sizes}; best {format_rate(best.rate_Bps)} at {format_size(best.size_bytes)}" if best.rate_Bps else sizes

"""Lists of runs, and a metric over time, as text for a terminal."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from busbw.base.moment import day_and_time
from busbw.base.text import printable
from busbw.base.units import format_in
from busbw.model.history import Change, ListRow, Metric, Trend, TrendSeries

# Whole: a name that is cut off cannot be pasted. What comes last is left to --json where there is no room.
_WHOLE = ("run", "ranks", "points", "verdict")
_OTHERS = ("collectives", "host", "tags")
# Before those, where there is something else than runs.
_KIND = "kind"
_GAP = "  "
_LEAST_ROOM = 12


def listing_lines(rows: Sequence[ListRow], width: int) -> Iterator[str]:
    """Yield a heading and a line for each row, none longer than `width` unless its first columns are."""
    is_mixed = any(row.kind != "run" for row in rows)
    headings = (*_WHOLE, *((_KIND,) if is_mixed else ()), *_OTHERS)
    cells = [_cells(row, with_kind=is_mixed) for row in rows]
    wanted = [_longest(heading, [each[index] for each in cells]) for index, heading in enumerate(headings)]
    whole = wanted[: len(_WHOLE)]
    others = _shared(wanted[len(_WHOLE) :], width - sum(whole) - len(_GAP) * len(whole))
    widths = [*whole, *others]
    for line in (headings, *cells):
        yield _GAP.join(_cut(cell, each) for cell, each in zip(line, widths, strict=False)).rstrip()


def _shared(wanted: Sequence[int], room: int) -> list[int]:
    """Return the widths of as many columns as have room: what is left of one's share goes to those after it."""
    widths: list[int] = []
    for index, each in enumerate(wanted):
        least = [min(other, _LEAST_ROOM) + len(_GAP) for other in wanted[index + 1 :]]
        # The later ones are kept narrow for this one, and left out where even that does not do.
        kept = max(room - sum(least), min(room, _LEAST_ROOM))
        if kept < min(each, _LEAST_ROOM):
            break
        widths.append(min(each, kept))
        room -= widths[-1] + len(_GAP)
    return widths


def _longest(heading: str, cells: Sequence[str]) -> int:
    return max(len(heading), *(len(cell) for cell in cells))


def _cut(cell: str, width: int) -> str:
    return cell.ljust(width) if len(cell) <= width else cell[: width - 1] + "…"


def _cells(row: ListRow, *, with_kind: bool) -> tuple[str, ...]:
    of_import = row.kind == "import"
    ranks = "" if of_import else str(row.ranks) if row.ranks is not None else "?"
    points = str(row.measured) if of_import else f"{row.measured}/{row.planned}"
    kind = (row.kind,) if with_kind else ()
    cells = (row.run_id, ranks, points, verdict_word(row), *kind, _about(row), row.host or "", " ".join(row.tags))
    return tuple(printable(cell).replace("\n", " ") for cell in cells)


def verdict_word(row: ListRow) -> str:
    """Return the verdict; of a run that did not come to its end that it is unfinished says more."""
    if row.kind == "comparison" and row.outcome == "none":
        return "not shown"
    return "unfinished" if row.ended == "unfinished" and row.outcome == "cannot_tell" else row.outcome.replace("_", " ")


def _about(row: ListRow) -> str:
    if row.outcome == "unreadable":
        return row.sentence
    return ", ".join(row.collectives) + (f", {row.sentence}" if row.kind != "run" else "")


_HEIGHT = 7
_LEAST_COLUMNS = 20
_DOT, _LEVEL, _BAR = "•", "─", "│"


def time_plot(
    values: Sequence[float], places: Sequence[int], *, shown: Callable[[float], str], width: int
) -> tuple[str, ...]:
    """Return lines at most `width` wide: values from left to right, and a bar where each of `places` begins.

    Of more values than there are columns, neighbours share one and it shows their median. Lines are those of the
    medians between the places.
    """
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.99, high * 1.01
    labels = [shown(high), shown((low + high) / 2), shown(low)]
    margin = max(map(len, labels))
    columns = min(len(values), max(width - margin - 2, _LEAST_COLUMNS))
    edges = [round(column * len(values) / columns) for column in range(columns + 1)]
    grid = [[" "] * columns for _ in range(_HEIGHT)]

    def line_of(value: float) -> int:
        return round((high - value) / (high - low) * (_HEIGHT - 1))

    bounds = [0, *places, len(values)]
    for first, last in pairwise(bounds):
        level = line_of(median(values[first:last]))
        for column in range(columns):
            if first <= edges[column] < last:
                grid[level][column] = _LEVEL
    for place in places:
        column = max(column for column in range(columns) if edges[column] <= place)
        for row in grid:
            row[column] = _BAR
    for column in range(columns):
        grid[line_of(median(values[edges[column] : max(edges[column + 1], edges[column] + 1)]))][column] = _DOT
    at = {0: labels[0], _HEIGHT // 2: labels[1], _HEIGHT - 1: labels[2]}
    return tuple(f"{at.get(number, ''):>{margin}} {''.join(row)}".rstrip() for number, row in enumerate(grid))


_MOST_PLOTS = 4
_FEW = 2
_MOST_LINES = 60
_LONGEST_GROUP = 24


def trend_lines(trend: Trend, width: int) -> Iterator[str]:
    """Yield a line for each series, plots of those that changed (of all, where they are few), and the answer."""
    if trend.series:
        first, last = _first(trend.series), _last(trend.series)
        period = f"{day_and_time(first)} to {day_and_time(last)} UTC"
        yield f"{trend.metric.name} ({trend.metric.meaning}) by {trend.by}, {period}"
        yield ""
        yield from _table(trend)
    changed = [each for each in trend.series if each.changes]
    for each in changed[:_MOST_PLOTS] or (trend.series if len(trend.series) <= _FEW else ()):
        if len(each.observations) > 1:
            yield ""
            yield from _plot(each, trend.metric, width)
    if trend.series:
        yield ""
    yield from _notes(trend)
    yield printable(trend.sentence)


def _first(series: Sequence[TrendSeries]) -> float:
    return min(each.observations[0].created_unix_s for each in series)


def _last(series: Sequence[TrendSeries]) -> float:
    return max(each.observations[-1].created_unix_s for each in series)


def _table(trend: Trend) -> Iterator[str]:
    # What changed stands first; the rest in its own order.
    ordered = sorted(trend.series, key=lambda each: ("worse", "better", "cannot_tell", "steady").index(each.outcome))
    lines = [
        (trend.by, "series", "runs", "now", "change", "since"),
        *(_trend_cells(each, trend.metric) for each in ordered[:_MOST_LINES]),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        yield _GAP.join(
            cell.rjust(each) if column in {2, 3, 4} else cell.ljust(each)
            for column, (cell, each) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
    if len(ordered) > _MOST_LINES:
        yield f"and {len(ordered) - _MOST_LINES} more: choose with --collective, --size and --host, or see --json"


def _trend_cells(series: TrendSeries, metric: Metric) -> tuple[str, ...]:
    change = series.changes[-1] if series.changes else None
    group = printable(series.group).replace("\n", " ")
    return (
        group if len(group) <= _LONGEST_GROUP else group[: _LONGEST_GROUP - 1] + "…",
        printable(series.title).replace("\n", " "),
        str(len(series.observations)),
        format_in(series.levels[-1].median, metric.unit),
        _change_word(change) if change is not None else {"cannot_tell": "too few"}.get(series.outcome, "~"),
        day_and_time(change.created_unix_s) if change is not None else "",
    )


def _change_word(change: Change) -> str:
    return f"{change.share * 100:+.1f} % {'worse' if change.is_worse else 'better'}"


def _plot(series: TrendSeries, metric: Metric, width: int) -> Iterator[str]:
    yield printable(f"{series.title} on {series.group}").replace("\n", " ")
    values = [each.value for each in series.observations]
    places = [each.first for each in series.changes]
    yield from time_plot(values, places, shown=lambda value: format_in(value, metric.unit), width=width)
    for change in series.changes:
        others = f"; with it {', '.join(change.with_it)}" if change.with_it else ""
        yield printable(
            f"  │ {_change_word(change)} since {day_and_time(change.created_unix_s)}, {change.run_id}{others}"
        ).replace("\n", " ")


def _notes(trend: Trend) -> Iterator[str]:
    if any(each.outcome == "cannot_tell" for each in trend.series):
        yield f"too few: a change can be seen from {trend.least_runs} runs on"
    if trend.without_value:
        yield f"left out: {trend.without_value} points without this number: wrong results, or not measured"

"""A metric over time as text for a terminal."""

from collections.abc import Iterator, Sequence

from busbw.base.moment import day_and_time
from busbw.base.units import format_in
from busbw.model.trend import Change, Metric, Trend, TrendSeries
from busbw.show.plain import printable
from busbw.show.text.time_plot import time_plot

_GAP = "  "
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
        *(_cells(each, trend.metric) for each in ordered[:_MOST_LINES]),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        yield _GAP.join(
            cell.rjust(each) if column in {2, 3, 4} else cell.ljust(each)
            for column, (cell, each) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
    if len(ordered) > _MOST_LINES:
        yield f"and {len(ordered) - _MOST_LINES} more: choose with --collective, --size and --host, or see --json"


def _cells(series: TrendSeries, metric: Metric) -> tuple[str, ...]:
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

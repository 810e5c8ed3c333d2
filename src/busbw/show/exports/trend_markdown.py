"""A trend as a summary in GitHub's Markdown."""

from busbw.base.moment import day_and_time
from busbw.base.units import format_in
from busbw.model.trend import Trend, TrendSeries
from busbw.show.exports.markdown_text import escaped, table

_MARKS = {"worse": "❌", "better": "✅", "steady": "✅", "cannot_tell": "❔"}
_ORDER = ("worse", "better", "cannot_tell", "steady")
_MOST_LINES = 100


def trend_markdown(trend: Trend) -> str:
    """Return the answer and a table with a line for each series; what changed first."""
    ordered = sorted(trend.series, key=lambda each: _ORDER.index(each.outcome))
    lines = [_line(each, trend) for each in ordered[:_MOST_LINES]]
    more = len(ordered) - _MOST_LINES
    parts = [
        f"### busbw trend: {escaped(trend.metric.name)} by {trend.by}\n",
        f"{_MARKS[trend.outcome]} {escaped(trend.sentence)}\n",
        table((trend.by, "series", "runs", "now", "change", "since"), lines, right=frozenset({2, 3, 4}))
        if lines
        else "",
        f"{more} more series are left out here.\n" if more > 0 else "",
    ]
    return "\n".join(part for part in parts if part)


def _line(series: TrendSeries, trend: Trend) -> tuple[str, ...]:
    change = series.changes[-1] if series.changes else None
    return (
        escaped(series.group),
        escaped(series.title),
        str(len(series.observations)),
        format_in(series.levels[-1].median, trend.metric.unit),
        f"{_MARKS[series.outcome]} {change.share * 100:+.1f} %" if change is not None else _MARKS[series.outcome],
        f"{day_and_time(change.created_unix_s)}" if change is not None else "",
    )

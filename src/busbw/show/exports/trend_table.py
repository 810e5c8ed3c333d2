"""A trend as comma-separated values (RFC 4180): a line for each run of each series, CRLF."""

from collections.abc import Iterator

from busbw.model.trend import Trend
from busbw.show.exports.tables import csv_lines

_COLUMNS = (
    "group", "series", "collective", "size_bytes", "dtype", "in_place", "ranks", "mode", "backend",
    "run_id", "created_unix_s", "metric", "unit", "value", "level", "level_median", "change_share", "outcome",
)  # fmt: skip


def trend_csv(trend: Trend) -> str:
    """Return a line for each run of each series: its value, number and median of its level, and the step into it."""
    return csv_lines(_COLUMNS, _lines(trend))


def _lines(trend: Trend) -> Iterator[tuple[object, ...]]:
    for series in trend.series:
        entered = {change.first: change.share for change in series.changes}
        about = (
            series.group, series.title, series.collective, series.size_bytes, series.dtype, series.in_place,
            series.ranks, series.mode, series.backend,
        )  # fmt: skip
        for number, level in enumerate(series.levels):
            for place in range(level.first, level.first + level.runs):
                seen = series.observations[place]
                step = entered.get(place)
                yield (*about, seen.run_id, seen.created_unix_s, trend.metric.name, trend.metric.unit, seen.value,
                       number, level.median, step, series.outcome)  # fmt: skip

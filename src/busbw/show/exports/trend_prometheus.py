"""A trend as gauges, one sample a series: the level now, the latest change, and whether it is a regression."""

from typing import get_args

from busbw.model.trend import Trend, TrendOutcome, TrendSeries
from busbw.show.exports.gauges import Family, Labels, families_text

_UNIT = {"s": "seconds", "B/s": "bytes_per_second", "messages/s": "messages_per_second"}


def trend_prometheus(trend: Trend) -> str:
    """Return the gauges of a trend; those of a change only where there is one."""
    labelled = [(_labels(each, trend), each) for each in trend.series]
    outcomes = get_args(TrendOutcome)
    return families_text(
        (
            Family(
                name=f"busbw_trend_level_{_UNIT[trend.metric.unit]}",
                help="Median of the runs since the latest change.",
                samples=tuple((labels, each.levels[-1].median) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_runs",
                help="Runs in the series.",
                samples=tuple((labels, len(each.observations)) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_last_timestamp_seconds",
                help="When the latest run was made, in seconds since 1970.",
                samples=tuple((labels, each.observations[-1].created_unix_s) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_change_ratio",
                help="The level now over the one before the latest change.",
                samples=tuple((labels, 1 + each.changes[-1].share) for labels, each in labelled if each.changes),
            ),
            Family(
                name="busbw_trend_change_timestamp_seconds",
                help="When the first run after the latest change was made, in seconds since 1970.",
                samples=tuple((labels, each.changes[-1].created_unix_s) for labels, each in labelled if each.changes),
            ),
            Family(
                name="busbw_trend_outcome",
                help="1 for what is said of the series, 0 for the others.",
                samples=tuple(
                    ((("outcome", outcome), *labels), int(outcome == each.outcome))
                    for labels, each in labelled
                    for outcome in outcomes
                ),
            ),
        )
    )


def _labels(series: TrendSeries, trend: Trend) -> Labels:
    return (
        ("metric", trend.metric.name),
        (trend.by, series.group),
        ("series", series.title),
        ("collective", series.collective),
        ("size_bytes", str(series.size_bytes) if series.size_bytes is not None else ""),
        ("ranks", str(series.ranks) if series.ranks is not None else ""),
        ("backend", series.backend),
    )

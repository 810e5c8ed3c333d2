"""Scaling figures as comma-separated values: one line a point, names that carry the units."""

from busbw.model.scaling import Estimate, Scaling, ScalingPoint, ScalingReport, ScalingSeries
from busbw.show.exports.tables import csv_lines

COLUMNS = (
    "figure",
    "kind",
    "series",
    "axis",
    "at",
    "nodes",
    "ranks",
    "size_bytes",
    "time_s",
    "time_low_s",
    "time_high_s",
    "busbw_Bps",
    "busbw_low_Bps",
    "busbw_high_Bps",
    "limit_Bps",
    "of_limit",
    "rate_unit",
    "rate",
    "speedup",
    "efficiency",
    "efficiency_low",
    "efficiency_high",
    "serial_share",
    "observations",
    "in_trend",
)


def scaling_csv(report: ScalingReport) -> str:
    """Return every point of every figure; what is not known is empty."""
    return csv_lines(
        COLUMNS,
        [_row(view, series, point) for view in report.views for series in view.series for point in series.points],
    )


def _row(view: Scaling, series: ScalingSeries, point: ScalingPoint) -> tuple[object, ...]:
    return (
        view.title,
        view.kind,
        series.label,
        view.axis,
        point.at,
        point.nodes,
        point.ranks,
        view.size_bytes,
        *_ends(point.time_s),
        *_ends(point.busbw_Bps),
        point.limit_Bps,
        point.of_limit.value if point.of_limit is not None else None,
        view.rate_unit,
        point.rate.value if point.rate is not None else None,
        point.speedup.value if point.speedup is not None else None,
        *_ends(point.efficiency),
        point.serial_share,
        point.observations,
        point.at not in dict(series.left_out),
    )


def _ends(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (estimate.value, estimate.low, estimate.high) if estimate is not None else (None, None, None)

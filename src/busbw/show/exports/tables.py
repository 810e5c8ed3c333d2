"""Rows as tables: comma-separated values (RFC 4180) and JSON."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from busbw.base.text import one_line
from busbw.base.value import Integer, Value
from busbw.model import codec
from busbw.model.comparison import Comparison
from busbw.model.gates import PointRow
from busbw.model.history import ListRow, Trend
from busbw.model.scaling import (
    PredictedPoint,
    Scaling,
    ScalingEstimate,
    ScalingPoint,
    ScalingReport,
    ScalingSeries,
)
from busbw.show.exports.rows import ROW_SCHEMA, Export
from busbw.show.scaling_words import predicted_at

COLUMNS = tuple(field.name for field in msgspec.structs.fields(PointRow))
# A spreadsheet takes text that begins with one of these for a formula, and runs it; some take the wide forms too.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(export: Export) -> str:
    """Return the rows of an export; what is unknown is empty, and text that could be a formula gets a leading `'`."""
    return csv_lines(COLUMNS, [[getattr(row, name) for name in COLUMNS] for row in export.rows])


def csv_lines(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a header and lines; None is an empty cell, and text that could be a formula gets a leading `'`."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return file.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = "\n".join(map(one_line, value.split("\n")))
        return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
    return repr(value)


class RowsDocument(Value, kw_only=True, frozen=True):
    """Rows and the number of their schema."""

    schema: Integer = ROW_SCHEMA
    rows: tuple[PointRow, ...]


def json_bytes(export: Export) -> bytes:
    """Return the rows of an export as indented JSON."""
    return codec.encode_pretty(RowsDocument(rows=export.rows))


_COLUMNS = (
    "first", "other", "collective", "size_bytes", "dtype", "op", "root", "in_place", "pair", "group", "ranks", "band",
    "first_s", "other_s", "first_busbw_Bps", "other_busbw_Bps", "ratio", "low", "high", "confidence", "blocks",
    "p_value", "claim", "detectable", "design",
)  # fmt: skip


def comparison_csv(comparison: Comparison) -> str:
    """Return one line a point; a ratio is the first side's time over the other's, and unknown values are empty."""
    lines = []
    for versus in comparison.versus:
        names = (comparison.sides[0].name, comparison.sides[versus.other].name)
        for point in versus.points:
            pair = f"{point.pair[0]}-{point.pair[1]}" if point.pair is not None else None
            estimate = point.estimate
            lines.append(
                (
                    *names, point.collective, point.size_bytes, point.dtype, point.op, point.root, point.in_place, pair,
                    point.group, point.ranks, point.band, point.first_s, point.other_s, point.first_busbw_Bps,
                    point.other_busbw_Bps, estimate.ratio, estimate.low, estimate.high, estimate.confidence,
                    len(estimate.blocks), estimate.p_value, estimate.claim, estimate.detectable,
                    comparison.design,
                )
            )  # fmt: skip
    return csv_lines(_COLUMNS, lines)


_RUN_COLUMNS = ListRow.__struct_fields__


def run_table_csv(rows: Sequence[ListRow]) -> str:
    """Return a line for each run; several names in one cell are separated by blanks, and what is unknown is empty."""
    return csv_lines(_RUN_COLUMNS, [[_flat(getattr(row, name)) for name in _RUN_COLUMNS] for row in rows])


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


_TREND_COLUMNS = (
    "group", "series", "collective", "size_bytes", "dtype", "in_place", "ranks", "mode", "backend",
    "run_id", "created_unix_s", "metric", "unit", "value", "level", "level_median", "change_share", "outcome",
)  # fmt: skip


def trend_csv(trend: Trend) -> str:
    """Return a line for each run of each series: its value, number and median of its level, and the step into it."""
    return csv_lines(_TREND_COLUMNS, _lines(trend))


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


SCALING_COLUMNS = (
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
    "predicted_Bps",
    "predicted_low_Bps",
    "predicted_high_Bps",
    "is_inside",
)


def scaling_csv(report: ScalingReport) -> str:
    """Return every point of every figure; what is not known is empty."""
    return csv_lines(
        SCALING_COLUMNS,
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
        *_predicted(predicted_at(view, series).get(point.at)),
    )


def _predicted(point: PredictedPoint | None) -> tuple[float | bool | None, ...]:
    """Return what is predicted in columns of its own, empty where nothing was asked for or can be told."""
    if point is None or point.call is None:
        return None, None, None, None
    return point.call.busbw_Bps, point.call.low_Bps, point.call.high_Bps, point.is_inside


def _ends(estimate: ScalingEstimate | None) -> tuple[float | None, float | None, float | None]:
    return (estimate.value, estimate.low, estimate.high) if estimate is not None else (None, None, None)

"""Bus bandwidth, or an application's speed, against the size of the machine: under its limit, and as a share of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from busbw.base.units import format_rate, rate_range, signed_percent
from busbw.model.scaling import (
    AXIS_WORDS,
    Axis,
    LineDifference,
    PredictedPoint,
    Scaling,
    ScalingEstimate,
    ScalingPoint,
    ScalingSeries,
)
from busbw.show.figures.axes import STYLES, count_axis, even_axis, value_axis
from busbw.show.figures.prediction import band_area, call_text
from busbw.show.figures.series import Figure, base_layout, legend_name, line_trace, marker, plain
from busbw.show.scaling_words import (
    answer_words,
    half_interval,
    inside_word,
    interval_cell,
    interval_notes,
    left_out_words,
    meaning_words,
    predicted_at,
    prediction_words,
    unmatched_notes,
)

Pick = Callable[[ScalingPoint], ScalingEstimate | None]


_HIGH_PERCENT = 80.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DifferenceTable:
    """How one line lies against another: a row a point, with the difference, its interval, and how many results."""

    title: str
    words: str
    notes: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingFigure:
    """One view: what was reached, the share of the limit or of the base, and the numbers of both as rows.

    A row has a cell for each of `headings`, "" where it is not known; columns that say nothing are left out.
    """

    key: str
    title: str
    conditions: str
    axis: str
    unit: str
    share_words: str
    reached: Figure
    # None: there is neither a limit nor a base.
    share: Figure | None
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]
    differences: tuple[DifferenceTable, ...]
    notes: tuple[str, ...]


def scaling_figures(views: Sequence[Scaling]) -> tuple[ScalingFigure, ...]:
    """Return a pair of figures for each view."""
    return tuple(_view(view, f"scaling-{number}") for number, view in enumerate(views, start=1))


def _view(view: Scaling, key: str) -> ScalingFigure:
    pick, unit, factor = _reached(view)
    share, share_words = _share(view)
    traces = [*_limits(view)] if view.kind == "collective" else []
    traces += [*_predicted(view)]
    traces += [_line(series, number, pick, factor, unit) for number, series in enumerate(view.series)]
    shares = [*_bands(view, share, 100.0)] if view.kind != "collective" else []
    shares += [_line(series, number, share, 100.0, "%") for number, series in enumerate(view.series)]
    has_share = any(share(point) is not None for series in view.series for point in series.points)
    rows = list(_rows(view, pick, factor, share))
    measured = (
        "line",
        AXIS_WORDS[view.axis][1],
        unit,
        "+-",
        "limit (GB/s)",
        f"{share_words} (%)",
        "interval",
        "results",
    )
    names = (*measured, "predicted (GB/s)", "90 %", "measured")
    columns = [each for each in zip(names, zip(*rows, strict=True), strict=False) if any(each[1])]
    return ScalingFigure(
        key=key,
        title=view.title,
        conditions=", ".join(f"{name} {value}" for name, value in view.conditions),
        unit=unit,
        share_words=share_words,
        reached=_figure(view, traces, unit, logarithmic=view.kind != "collective"),
        share=_figure(view, shares, f"{share_words} (%)", logarithmic=False) if has_share else None,
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        axis=AXIS_WORDS[view.axis][1],
        answers=tuple(_answers(view)),
        differences=tuple(_difference(each, view.axis) for each in view.differences),
        notes=(
            *prediction_words(view),
            *meaning_words(view),
            *left_out_words(view, [series.label for series in view.series]),
            *view.notes,
            *interval_notes(view),
        ),
    )


def _reached(view: Scaling) -> tuple[Pick, str, float]:
    """Return what stands on the axis, its unit, and the factor from the value to the unit."""
    if view.kind == "collective":
        return (lambda point: point.busbw_Bps), "busbw (GB/s)", 1e-9
    if any(point.rate is not None for series in view.series for point in series.points):
        return (lambda point: point.rate), plain(view.rate_unit or "work a second"), 1.0
    return (lambda point: point.time_s), "time (s)", 1.0


def _share(view: Scaling) -> tuple[Pick, str]:
    if view.kind == "collective":
        return (lambda point: point.of_limit), "share of the limit"
    return (lambda point: point.efficiency), "efficiency"


def _figure(view: Scaling, traces: list[dict[str, Any]], title: str, *, logarithmic: bool) -> Figure:
    counts = [point.at for series in view.series for point in series.points]
    values = [value for trace in traces for value in trace["y"] if value is not None]
    # Efficiencies that are all high would be one line at the top of an axis from 0.
    from_zero = view.kind == "collective" or min(values, default=0.0) < _HIGH_PERCENT
    y_axis = value_axis(title, values) if logarithmic else even_axis(title, [*((0.0,) if from_zero else ()), *values])
    return {"data": traces, "layout": base_layout(count_axis(AXIS_WORDS[view.axis][1], counts), y_axis)}


def _line(series: ScalingSeries, number: int, pick: Pick, factor: float, unit: str) -> dict[str, Any]:
    colour, dash, symbol = STYLES[number % len(STYLES)]
    found = [(point, value) for point in series.points if (value := pick(point)) is not None]
    high = [factor * (value.high - value.value) if value.high is not None else None for _, value in found]
    low = [factor * (value.value - value.low) if value.low is not None else None for _, value in found]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": legend_name(series.label) or "measured",
        "x": [point.at for point, _ in found],
        "y": [float(f"{factor * value.value:.6g}") for _, value in found],
        "text": [_text(series, point, factor * value.value, unit) for point, value in found],
        "hovertemplate": "%{text}<extra></extra>",
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": high,
            "arrayminus": low,
            "color": colour,
            "thickness": 1.2,
        },
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": symbol, "size": 7, "color": colour, "line": {"color": colour, "width": 1.5}},
    }


def _bands(view: Scaling, pick: Pick, factor: float) -> Iterator[dict[str, Any]]:
    """Yield the intervals of each line as an area behind it; what has none, as the base, is a point of it."""
    for number, series in enumerate(view.series):
        found = [(point.at, value) for point in series.points if (value := pick(point)) is not None]
        known = [
            (
                at,
                factor * (v.low if v.low is not None else v.value),
                factor * (v.high if v.high is not None else v.value),
            )
            for at, v in found
        ]
        if len(known) < 2 or all(low == high for _, low, high in known):
            continue
        colour = STYLES[number % len(STYLES)][0]
        yield {
            "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": f"{colour}-band", "hoverinfo": "skip",
            "showlegend": False, "name": legend_name(series.label) or "measured", "line": {"width": 0, "color": colour},
            "x": [*(at for at, _, _ in known), *(at for at, _, _ in reversed(known))],
            "y": [*(high for _, _, high in known), *(low for _, low, _ in reversed(known))],
        }  # fmt: skip


def _predicted(view: Scaling) -> Iterator[dict[str, Any]]:
    """Yield what is predicted beside each line: its interval as an area and its middle, with a gap where none is."""
    for number, series in enumerate(view.series):
        colour = STYLES[number % len(STYLES)][0]
        name = f"{legend_name(series.label)}: predicted, 90 %" if series.label else "predicted, 90 %"
        told = groupby(predicted_at(view, series).values(), key=lambda point: point.call is not None)
        stretches = [list(points) for is_told, points in told if is_told]
        for points in stretches:
            calls = [point.call for point in points if point.call is not None]
            places = [point.at for point in points]
            low, high = [call.low_Bps / 1e9 for call in calls], [call.high_Bps / 1e9 for call in calls]
            band = band_area(places, low, high, f"{colour}-band", colour)
            yield band | {"name": name, "showlegend": points is stretches[0]}
            middle = line_trace(name, places, [*map(call_text, calls)], [call.busbw_Bps / 1e9 for call in calls])
            mark = marker("line-ew-open", colour, 9)
            yield middle | {"line": {"color": colour, "width": 1, "dash": "dot"}, "marker": mark, "showlegend": False}


def _limits(view: Scaling) -> Iterator[dict[str, Any]]:
    """Yield the theoretical limits as one trace, with a gap between lines; lines under the same limit share it."""
    lines = dict.fromkeys(
        tuple((point.at, point.limit_Bps, point.limit_words) for point in series.points if point.limit_Bps is not None)
        for series in view.series
    )
    places: list[int | None] = []
    limits: list[float | None] = []
    texts: list[str] = []
    for line in filter(None, lines):
        for at, limit_Bps, words in line:
            places.append(at)
            limits.append(float(f"{(limit_Bps or 0.0) / 1e9:.6g}"))
            texts.append(f"limit {format_rate(limit_Bps or 0.0)}<br>{plain(words or '')}")
        places.append(None)
        limits.append(None)
        texts.append("")
    if places:
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "theoretical limit",
            "x": places,
            "y": limits,
            "text": texts,
            "hovertemplate": "%{text}<extra></extra>",
            "line": {"color": "--fig-text", "width": 1.5, "dash": "dot"},
            "marker": {"symbol": "line-ew-open", "size": 12, "color": "--fig-text", "line": {"color": "--fig-text"}},
        }


def _text(series: ScalingSeries, point: ScalingPoint, value: float, unit: str) -> str:
    name = plain(series.label)
    lines = [
        f"<b>{name + ', ' if name else ''}{point.at}</b>",
        f"{value:.4g} {unit}",
        f"limit {format_rate(point.limit_Bps)}" if point.limit_Bps is not None else "",
    ]
    return "<br>".join(line for line in lines if line)


def _rows(view: Scaling, pick: Pick, factor: float, share: Pick) -> Iterator[tuple[str, ...]]:
    for series in view.series:
        left_out = dict(series.left_out)
        predicted = predicted_at(view, series)
        for point in series.points:
            value, part = pick(point), share(point)
            yield (
                series.label or "measured",
                f"{'*' if point.at in left_out else ''}{point.at}",
                f"{factor * value.value:.4g}" if value is not None else "",
                half_interval(value),
                f"{point.limit_Bps / 1e9:.1f}" if point.limit_Bps is not None else "",
                f"{100 * part.value:.1f}" if part is not None else "",
                interval_cell(part),
                str(point.observations),
                *_predicted_cells(point, predicted.get(point.at)),
            )


def _predicted_cells(point: ScalingPoint, predicted: PredictedPoint | None) -> tuple[str, str, str]:
    if predicted is None:
        return "", "", ""
    call = predicted.call
    if call is None:
        return "cannot tell", "", ""
    interval = rate_range(call.low_Bps, call.high_Bps)
    return f"{call.busbw_Bps / 1e9:.1f}", interval, inside_word(predicted, point.busbw_Bps)


def _answers(view: Scaling) -> Iterator[str]:
    for series in view.series:
        answers = [*answer_words(series), *(each.words for each in series.beyond)]
        if answers and len(series.left_out) < len(series.points):
            # A label may be a sentence of who published it.
            yield f"{series.label.rstrip('.')}: {'; '.join(answers)}" if series.label else "; ".join(answers)


def _difference(difference: LineDifference, axis: Axis) -> DifferenceTable:
    names = f"{difference.line or 'this line'} against {difference.reference or 'the first'}"
    return DifferenceTable(
        title=f"{names}, in {difference.quantity}",
        words=difference.words,
        notes=tuple(unmatched_notes(difference, axis)),
        rows=tuple(
            (
                str(point.at),
                signed_percent(point.change.value),
                interval_cell(point.change),
                f"{point.observations} and {point.reference_observations}",
            )
            for point in difference.points
        ),
    )

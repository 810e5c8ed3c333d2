"""What is predicted, drawn: bus bandwidth with its band, where the time goes, and what each input is worth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from busbw.base.text import counted
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.predict.prediction import PredictedCall, Prediction, Sensitivity
from busbw.show.figures.axes import STYLES, count_axis, value_axis, zero_axis
from busbw.show.figures.series import Figure, base_layout, line_trace, marker, plain, size_layout
from busbw.show.figures.training import StepLane, lanes_figure

# As many as there are colours.
MOST_CURVES = len(STYLES)
# What is drawn of the inputs, and the least that one changes, in percent.
_MOST_INPUTS = 8
_LEAST_PERCENT = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionFigure:
    """One figure of a prediction, and what it shows."""

    title: str
    figure: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    """Calls along one axis, and the style they are drawn in."""

    name: str
    number: int
    calls: tuple[PredictedCall, ...]
    at: Callable[[PredictedCall], int]


def prediction_figures(found: Prediction) -> tuple[PredictionFigure, ...]:
    """Return what is predicted against size and nodes, the parts of the time, and inputs by worth; empty: nothing is.

    Of more numbers of nodes than there are colours the smallest are drawn against size, and all against nodes.
    """
    calls = [row.expected for row in found.rows if row.expected is not None and row.expected.busbw_Bps > 0]
    if not calls:
        return ()
    nodes = sorted({call.nodes for call in calls})
    figures = [_against_size(found, calls, nodes)]
    if len(nodes) > 1:
        figures.append(_against_nodes(found, calls))
    most = sorted((call for call in calls if call.nodes == nodes[-1]), key=lambda call: call.size_bytes)
    figures.append(_time_parts(most, nodes[-1]))
    worth = _worth(found.sensitivity) if found.sensitivity is not None else None
    return (*figures, worth) if worth is not None else tuple(figures)


def _against_size(found: Prediction, calls: Sequence[PredictedCall], nodes: Sequence[int]) -> PredictionFigure:
    shown = nodes[:MOST_CURVES]
    traces: list[dict[str, Any]] = []
    sizes_bytes: list[int] = []
    for number, count in enumerate(shown):
        mine = sorted((call for call in calls if call.nodes == count), key=lambda call: call.size_bytes)
        sizes_bytes += [call.size_bytes for call in mine]
        curve = _Curve(name=counted(count, "node"), number=number, calls=tuple(mine), at=lambda call: call.size_bytes)
        traces += _curve_traces(curve)
    first, last = min(sizes_bytes), max(sizes_bytes)
    points = [each for each in found.elsewhere if each.nodes in shown and first <= each.size_bytes <= last]
    traces += _elsewhere(
        [
            (each.size_bytes, each.busbw_Bps, f"{each.name}, {counted(each.nodes, 'node')}: {each.document}")
            for each in points
        ]
    )
    left_out = f", of {', '.join(map(str, shown))} nodes" if len(shown) < len(nodes) else ""
    layout = size_layout("busbw (GB/s)", sizes_bytes, traces)
    title = f"bus bandwidth against size: predicted{left_out}"
    return PredictionFigure(title=title, figure={"data": traces, "layout": layout})


def _against_nodes(found: Prediction, calls: Sequence[PredictedCall]) -> PredictionFigure:
    """Return the largest size that most numbers of nodes have, against nodes."""
    sizes_bytes = [call.size_bytes for call in calls]
    size_bytes = max(sizes_bytes, key=lambda size: (sizes_bytes.count(size), size))
    mine = sorted((call for call in calls if call.size_bytes == size_bytes), key=lambda call: call.nodes)
    traces = _curve_traces(_Curve(name="predicted", number=0, calls=tuple(mine), at=lambda call: call.nodes))
    points = [
        (each.nodes, each.busbw_Bps, f"{each.name}: {each.document}")
        for each in found.elsewhere
        if each.size_bytes == size_bytes and each.nodes > 0
    ]
    traces += _elsewhere(points)
    counts = [*(call.nodes for call in mine), *(nodes for nodes, _, _ in points)]
    values = [value for trace in traces for value in trace["y"]]
    layout = base_layout(count_axis("nodes", counts), value_axis("busbw (GB/s)", values))
    title = f"bus bandwidth against nodes: {format_size(size_bytes)}, predicted"
    return PredictionFigure(title=title, figure={"data": traces, "layout": layout})


def _curve_traces(curve: _Curve) -> list[dict[str, Any]]:
    """Return the band, the bound and the line of predicted calls."""
    colour, dash, symbol = STYLES[curve.number]
    places = [curve.at(call) for call in curve.calls]
    band = band_area(
        places,
        [call.low_Bps / 1e9 for call in curve.calls],
        [call.high_Bps / 1e9 for call in curve.calls],
        f"{colour}-band",
        colour,
    )
    bound = line_trace(
        f"{curve.name}: bound",
        places,
        [f"not above {format_rate(call.bound_Bps)}: {plain(call.limited_by)}" for call in curve.calls],
        [call.bound_Bps / 1e9 for call in curve.calls],
    )
    bound |= {"line": {"color": colour, "width": 1, "dash": "dot"}, "marker": marker("line-ew-open", colour, 9)}
    line = line_trace(
        curve.name, places, [call_text(call) for call in curve.calls], [call.busbw_Bps / 1e9 for call in curve.calls]
    )
    line |= {"line": {"color": colour, "width": 2, "dash": dash}, "marker": marker(symbol, colour)}
    return [band | {"name": f"{curve.name}: 90 % interval"}, bound, line]


def band_area(places: Sequence[int], low: list[float], high: list[float], fill: str, colour: str) -> dict[str, Any]:
    """Return the area between two curves; one point alone shows it as a short column."""
    across: list[float] = list(places)
    if len(places) == 1:
        across, low, high = [places[0] * 0.97, places[0] * 1.03], low * 2, high * 2
    return {
        "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": fill, "hoverinfo": "skip",
        "line": {"width": 0, "color": colour}, "x": [*across, *reversed(across)],
        "y": [float(f"{value:.6g}") for value in [*high, *reversed(low)]],
    }  # fmt: skip


def call_text(call: PredictedCall) -> str:
    """Return what a mark of a prediction says of it."""
    lines = (
        f"<b>predicted: {format_size(call.size_bytes)} on {counted(call.nodes, 'node')}</b>",
        f"{format_rate(call.busbw_Bps)} busbw, {format_time(call.time_s)}",
        f"90 %: {format_rate(call.low_Bps)} to {format_rate(call.high_Bps)}",
        f"{plain(call.algorithm)}; {call.kinship}",
        *(f"extrapolated: {plain(words)}" for words in call.extrapolated),
    )
    return "<br>".join(lines)


def _elsewhere(points: Sequence[tuple[int, float, str]]) -> list[dict[str, Any]]:
    """Return what others measured, as marks without a line; nothing where nobody did."""
    known = sorted((point for point in points if point[1] > 0), key=lambda point: point[:2])
    if not known:
        return []
    texts = [f"<b>measured elsewhere</b><br>{plain(words)}<br>{format_rate(rate)} busbw" for _, rate, words in known]
    trace = line_trace("measured elsewhere", [at for at, _, _ in known], texts, [rate / 1e9 for _, rate, _ in known])
    mark = marker("diamond-open", "--fig-text", 6)
    return [trace | {"mode": "markers", "line": {"color": "--fig-text", "width": 0}, "marker": mark}]


def _time_parts(calls: Sequence[PredictedCall], nodes: int) -> PredictionFigure:
    """Return the share of the time that each part has, one above the other, against size."""
    names = dict.fromkeys(call.limited_by for call in calls)
    parts: list[tuple[str, Callable[[PredictedCall], float]]] = [
        ("latency", lambda call: call.latency_s),
        ("pipeline that is not full", lambda call: call.filling_s),
        ("flags of LL and LL128", lambda call: call.flags_s),
        (f"bytes: {', '.join(names)}", lambda call: call.wire_s),
    ]
    sizes_bytes = [call.size_bytes for call in calls]
    below, traces = [0.0] * len(calls), []
    for number, (name, part) in enumerate(parts):
        above = [low + _percent(part(call), call.time_s) for low, call in zip(below, calls, strict=True)]
        colour = STYLES[number][0]
        traces.append(band_area(sizes_bytes, below, above, f"{colour}-band", colour) | {"name": plain(name)})
        below = above
    layout = size_layout("% of the time", sizes_bytes, traces)
    layout["yaxis"] |= zero_axis("% of the time", below)
    title = f"where the time goes: {counted(nodes, 'node')}, predicted"
    return PredictionFigure(title=title, figure={"data": traces, "layout": layout})


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if 0 <= part <= 1.001 * whole < inf and whole > 0 else 0.0


def _worth(found: Sensitivity) -> PredictionFigure | None:
    """Return how far bus bandwidth goes from each input less to the same more; None: no input changes it."""
    lanes = list(_input_lanes(found))
    if not lanes:
        return None
    change = f"{100 * found.change:.0f} %"
    what = f"{format_size(found.size_bytes)} on {counted(found.nodes, 'node')}"
    return PredictionFigure(
        title=f"what each input is worth: {what}",
        figure=lanes_figure(lanes, f"change of busbw (%), an input from {change} less to {change} more", "input"),
    )


def _input_lanes(found: Sensitivity) -> Iterator[StepLane]:
    for each in found.inputs[:_MOST_INPUTS]:
        if not 0 < found.busbw_Bps < inf:
            return
        less, more = (100 * (rate / found.busbw_Bps - 1) for rate in (each.less_Bps, each.more_Bps))
        width = abs(more - less)
        if _LEAST_PERCENT <= width < inf:
            fitted = ", fitted" if each.is_fitted else ""
            yield StepLane(name=f"{each.name}{fitted}: {less:+.1f} to {more:+.1f} %", spans=((0.0, width),))

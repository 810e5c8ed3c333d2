"""Figures of a swept fabric in Plotly's words: histogram, bars, matrices, nodes by rails."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from busbw.base.units import format_in
from busbw.fabric.drawing import bin_words, loss_words
from busbw.fabric.report import FabricReport
from busbw.fabric.views import FabricBar, FabricMatrix, HistogramBin, RailGrid, SuspectDetail, ViewLine
from busbw.show.figures.axes import even_axis, zero_axis
from busbw.show.figures.series import Figure, base_layout, plain

# A cell from here on has the strongest colour, in percent.
MOST_LOSS = 25.0
# What is as fast as most, up to 3 %, has one colour.
_COLOURS = ((0.0, 0), (0.12, 0), (0.24, 1), (0.48, 2), (0.75, 3), (1.0, 4))
_SUSPECT = "▶ "
ROW_PX = 17
_LEAST_PX = 190
_HEAD_PX = 70
# Of bars: margins, axis and legend; how far below the axis the legend begins.
FRAME_PX = 104
LEGEND_PX = 44
_LONGEST = 26


def _scaled(report: FabricReport) -> tuple[float, str]:
    return (1e6, "us") if report.unit == "s" else (1e-9, "GB/s")


def histogram_figure(report: FabricReport) -> Figure:
    """Return the tests by value, those of suspects apart; bands of latency are in what is said of each bin."""
    scale, unit = _scaled(report)
    bins = report.views.histogram
    inner = [each for each in bins if each.low is not None and each.high is not None]
    wide = ((inner[0].high or 0.0) - (inner[0].low or 0.0)) if inner else 1.0 / scale
    lows = [each.low if each.low is not None else (each.high or 0.0) - wide for each in bins]
    middles = [float(f"{(low + wide / 2) * scale:.6g}") for low in lows]
    texts = [_bin_text(each, report.unit) for each in bins]
    traces = [_columns("other tests", middles, [each.tests - each.suspects for each in bins], texts, "--fig-1")]
    if any(each.suspects for each in bins):
        traces.append(_columns("tests of suspects", middles, [each.suspects for each in bins], texts, "--fig-suspect"))
    for trace in traces:
        trace["width"] = wide * scale * 0.92
    most = max(each.tests for each in bins)
    traces += [_cut_trace(cut * scale, most) for cut in _band_cuts(report)]
    ends = [middles[0] - wide * scale / 2, middles[-1] + wide * scale / 2]
    layout = base_layout(even_axis(unit, ends), zero_axis("tests", [float(most)]))
    return {"data": traces, "layout": layout | {"barmode": "stack"}}


def _bin_text(each: HistogramBin, unit: str) -> str:
    end = f" to {format_in(each.high, unit)}" if each.low is not None and each.high is not None else ""
    band = f"<br>band {each.band + 1}" if each.band is not None else ""
    own = f", {each.suspects} of suspects" if each.suspects else ""
    return f"<b>{bin_words(each, unit)}{end}</b><br>{each.tests} tests{own}{band}"


def _band_cuts(report: FabricReport) -> list[float]:
    """Return the values between the bands of latency."""
    return [(one.high_s + other.low_s) / 2 for one, other in pairwise(report.bands)]


def _cut_trace(at: float, most: float) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": "between bands", "showlegend": False, "hoverinfo": "skip",
        "x": [at, at], "y": [0, most], "line": {"color": "--fig-line", "width": 1, "dash": "dash"},
    }  # fmt: skip


def _columns(name: str, x: Sequence[float], y: Sequence[int], texts: Sequence[str], colour: str) -> dict[str, Any]:
    return {
        "type": "bar", "name": name, "x": list(x), "y": list(y), "text": list(texts), "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>", "marker": {"color": colour},
    }  # fmt: skip


def bars_figure(bars: Sequence[FabricBar], ways: tuple[str, str]) -> Figure:
    """Return what each loses in both directions, the slowest above. `ways`: what the directions are called."""
    names = [name_label(each.name, suspect=each.suspect) for each in bars]
    texts = [
        f"<b>{plain(each.name)}</b><br>{ways[0]} {_percent(each.sending)}, {ways[1]} {_percent(each.receiving)}"
        f"<br>{each.tests} tests, {100 * each.slow:.0f} % of them slow"
        for each in bars
    ]
    values = [[_hundredfold(each.sending) for each in bars], [_hundredfold(each.receiving) for each in bars]]
    traces = [
        _columns(way, [], [], texts, colour) | {"orientation": "h", "x": own, "y": names}
        for way, own, colour in zip(ways, values, ("--fig-1", "--fig-2"), strict=True)
    ]
    reach = [each for own in values for each in own if each is not None]
    across = even_axis("loss, %", [min([0.0, *reach]), max([5.0, *reach])])
    layout = base_layout(across, names_axis("", names) | {"autorange": "reversed"})
    inner = 2 * ROW_PX * len(bars)
    legend = layout["legend"] | {"y": -LEGEND_PX / inner}
    return {"data": traces, "layout": layout | {"barmode": "group", "height": FRAME_PX + inner, "legend": legend}}


def names_axis(title: str, names: Sequence[str]) -> dict[str, Any]:
    """Return an axis of names, each with its label."""
    return {
        "type": "category", "categoryarray": list(names), "tickvals": list(names), "ticktext": list(names),
        "title": {"text": title, "standoff": 6}, "tickangle": 0, "automargin": True, "showline": True,
    }  # fmt: skip


def name_label(name: str, *, suspect: bool) -> str:
    """Return a name as an axis has it: cut where it is long, and marked where it is suspected."""
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    return f"{_SUSPECT if suspect else ''}{plain(short)}"


def _labels(lines: Sequence[ViewLine]) -> list[str]:
    """Return a name for each line; what is alike when cut gets a number, since axes tell lines by name."""
    names: list[str] = []
    for each in lines:
        name = name_label(each.name, suspect=each.suspect)
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    return names


def _percent(loss: float | None) -> str:
    return loss_words(loss) or "not tested"


def _hundredfold(loss: float | None) -> float | None:
    return None if loss is None else round(100 * loss, 2)


def matrix_figure(matrix: FabricMatrix, *, worst: bool = False) -> Figure:
    """Return senders by receivers as colours: the median of each cell, or its worst test."""
    names = _labels(matrix.lines)
    every = range(len(names))
    texts = [[_cell_words(matrix, row, column) for column in every] for row in every]
    return _heat(names, names, matrix.worst if worst else matrix.typical, texts, ("receiver", "sender"))


def _cell_words(matrix: FabricMatrix, row: int, column: int) -> str:
    sender, receiver = (matrix.lines[each].name for each in (row, column))
    silent = matrix.silent[row][column] if matrix.silent else 0
    unanswered = f"<br>{silent} without an answer" if silent else ""
    if not matrix.tests[row][column]:
        return f"<b>{plain(sender)} to {plain(receiver)}</b><br>no value{unanswered}"
    return (
        f"<b>{plain(sender)} to {plain(receiver)}</b><br>loss {_percent(matrix.typical[row][column])}, "
        f"worst test {_percent(matrix.worst[row][column])}<br>{matrix.tests[row][column]} tests{unanswered}"
    )


def detail_figure(detail: SuspectDetail) -> Figure:
    """Return a suspect among its partners."""
    return matrix_figure(detail.matrix)


def grid_figure(grid: RailGrid) -> Figure:
    """Return nodes by rails as colours."""
    rows, columns = _labels(grid.lines), _labels(grid.rails)
    texts = [
        [
            f"<b>{plain(line.name)}, {plain(rail.name)}</b><br>loss {_percent(grid.cells[row][column])}"
            f"{'<br>suspected' if grid.suspects[row][column] else ''}"
            for column, rail in enumerate(grid.rails)
        ]
        for row, line in enumerate(grid.lines)
    ]
    return _heat(rows, columns, grid.cells, texts, ("rail", "node"))


def _heat(
    rows: Sequence[str],
    columns: Sequence[str],
    losses: Sequence[Sequence[float | None]],
    texts: Sequence[Sequence[str]],
    titles: tuple[str, str],
) -> Figure:
    trace = {
        "type": "heatmap", "x": list(columns), "y": list(rows), "z": [list(map(_hundredfold, row)) for row in losses],
        "text": [list(row) for row in texts], "hovertemplate": "%{text}<extra></extra>", "hoverongaps": True,
        "zmin": 0.0, "zmax": MOST_LOSS, "xgap": 1, "ygap": 1,
        "colorscale": [[at, f"--fig-heat-{number}"] for at, number in _COLOURS],
        "colorbar": {"title": {"text": "loss, %", "side": "right"}, "thickness": 12, "outlinewidth": 0,
                     "tickvals": [0, 5, 10, 15, 20, 25], "ticktext": ["0", "5", "10", "15", "20", "25+"]},
    }  # fmt: skip
    layout = base_layout(
        names_axis(titles[0], columns) | {"tickangle": -60 if len(columns) > 4 else 0, "showgrid": False},
        names_axis(titles[1], rows) | {"autorange": "reversed", "showgrid": False},
    )
    height = max(_LEAST_PX, 2 * _HEAD_PX + ROW_PX * len(rows))
    return {"data": [trace], "layout": layout | {"height": height, "hovermode": "closest"}}

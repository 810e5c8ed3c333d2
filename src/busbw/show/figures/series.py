"""The curves of one series: time and bus bandwidth against size, as Plotly's own dictionaries.

Colours are names of the page's CSS properties (`--fig-median`); the page puts in their values, light or dark.
Plotly reads a little HTML in its texts, so every text from a run goes through `plain`.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import printable
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.finding import Ceiling
from busbw.model.run import Measurement
from busbw.model.verdict import SizeExplanation
from busbw.show.figures.axes import STYLES, size_axis, value_axis
from busbw.show.words import interval_words, percentile_s, point_name, share_percent


def bound_traces(sizes: Sequence[SizeExplanation], measured: Container[int]) -> Iterator[dict[str, Any]]:
    """Yield the band of the expectations that apply, and the physical ceiling, in GB/s; each only where it is known.

    `measured`: points whose ceiling was measured in the run, and is drawn as such.
    """
    ordered = sorted(sizes, key=lambda each: each.size_bytes)
    expected = [
        (each.size_bytes, each.band_low_Bps, each.band_high_Bps)
        for each in ordered
        if each.band_low_Bps is not None and each.band_high_Bps is not None
    ]
    if expected:
        yield _bounds_band(expected)
    limited = [each for each in ordered if each.ceiling_Bps and each.point not in measured]
    if limited:
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "physical ceiling",
            "x": [each.size_bytes for each in limited],
            "y": [float(f"{(each.ceiling_Bps or 0.0) / 1e9:.6g}") for each in limited],
            "text": [_bounds_ceiling_text(each) for each in limited],
            "hovertemplate": "%{text}<extra></extra>",
            "line": {"color": "--fig-ceiling", "width": 2, "dash": "dash"},
            "marker": {
                "symbol": "line-ew-open",
                "size": 9,
                "color": "--fig-ceiling",
                "line": {"color": "--fig-ceiling"},
            },
        }


def time_traces(sizes: Sequence[SizeExplanation]) -> Iterator[dict[str, Any]]:
    """Yield the time in microseconds that small messages are expected to need, where it is known."""
    limited = [each for each in sorted(sizes, key=lambda each: each.size_bytes) if each.band_time_s]
    if limited:
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "expected",
            "x": [each.size_bytes for each in limited],
            "y": [float(f"{(each.band_time_s or 0.0) * 1e6:.6g}") for each in limited],
            "hovertemplate": "expected %{y} us<extra></extra>",
            "line": {"color": "--fig-expected", "width": 2, "dash": "dashdot"},
            "marker": {
                "symbol": "line-ew-open",
                "size": 9,
                "color": "--fig-expected",
                "line": {"color": "--fig-expected"},
            },
        }


def _bounds_band(expected: Sequence[tuple[int, float, float]]) -> dict[str, Any]:
    """Return an area; that of one size alone is a short column."""
    sizes_bytes: list[float] = [size_bytes for size_bytes, _, _ in expected]
    low, high = [each[1] / 1e9 for each in expected], [each[2] / 1e9 for each in expected]
    if len(expected) == 1:
        sizes_bytes, low, high = [sizes_bytes[0] * 0.9, sizes_bytes[0] * 1.1], low * 2, high * 2
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "expected",
        "x": [*sizes_bytes, *reversed(sizes_bytes)],
        "y": [float(f"{value:.6g}") for value in [*high, *reversed(low)]],
        "fill": "toself",
        "fillcolor": "--fig-expected-band",
        "line": {"width": 0, "color": "--fig-expected"},
        "hoverinfo": "skip",
    }


def _bounds_ceiling_text(each: SizeExplanation) -> str:
    lines = [
        f"<b>physical ceiling at {format_size(each.size_bytes)}</b>",
        f"{format_rate(each.ceiling_Bps or 0.0)} busbw",
        escape(printable(each.ceiling_words or "")),
        f"limited by {escape(printable(each.limited_by))}" if each.limited_by is not None else "",
    ]
    return "<br>".join(line for line in lines if line)


Figure = dict[str, Any]
Ceilings = Mapping[int, Ceiling]
Explanations = Mapping[int, SizeExplanation]

_LONGEST_NAME = 50

BASIS_WORDS = {"memory": "copying memory once", "loopback": "TCP over the loopback interface"}


def plain(text: str) -> str:
    """Return `text` for a text of a figure: no markup, no control characters."""
    return escape(printable(text))


def legend_name(label: str) -> str:
    """Return a label for a legend, which is no wider than its figure; tables have the whole."""
    return plain(label if len(label) <= _LONGEST_NAME else f"{label[: _LONGEST_NAME - 3]}...")


def time_figure(
    measurements: Sequence[Measurement], ceilings: Ceilings, explained: Explanations = MappingProxyType({})
) -> Figure:
    """Return median, interval and p99 of the time, and what is expected of small messages, in us against size."""
    usable = [item for item in measurements if item.median_s > 0]
    texts = [hover_text(item, ceilings.get(item.point)) for item in usable]
    tails = [(item, text) for item, text in zip(usable, texts, strict=True) if percentile_s(item, 99.0)]
    band = _band(usable, lambda item: (item.low_s * 1e6, item.high_s * 1e6), "--fig-median-band")
    median = _line("median", usable, texts, [item.median_s * 1e6 for item in usable])
    median |= {"line": {"color": "--fig-median", "width": 2}, "marker": marker("circle", "--fig-median")}
    p99 = _line(
        "p99",
        [item for item, _ in tails],
        [text for _, text in tails],
        [(percentile_s(item, 99.0) or 0.0) * 1e6 for item, _ in tails],
    )
    p99 |= {
        "line": {"color": "--fig-tail", "width": 1, "dash": "dot"},
        "marker": marker("triangle-up-open", "--fig-tail", 6),
    }
    limits = [explained[item.point] for item in usable if item.point in explained]
    traces = [*time_traces(limits), band, *([p99] if tails else []), median]
    return {"data": traces, "layout": size_layout("time (us)", [item.size_bytes for item in usable], traces)}


def busbw_figure(
    measurements: Sequence[Measurement], ceilings: Ceilings, explained: Explanations = MappingProxyType({})
) -> Figure:
    """Return bus bandwidth with its interval, in GB/s against size, under what is expected and what is possible.

    `explained` holds explanations by the point they are of; where none says a ceiling, that of `ceilings` is drawn.
    """
    usable = [item for item in measurements if item.median_s > 0 and item.busbw_Bps > 0]
    texts = [hover_text(item, ceilings.get(item.point)) for item in usable]
    band = _band(usable, _busbw_interval, "--fig-busbw-band")
    busbw = _line("busbw", usable, texts, [item.busbw_Bps / 1e9 for item in usable])
    busbw |= {"line": {"color": "--fig-busbw", "width": 2}, "marker": marker("square", "--fig-busbw")}
    limited = [item for item in usable if item.point in ceilings]
    ceiling = _line(
        "ceiling",
        limited,
        [_ceiling_text(item, ceilings[item.point]) for item in limited],
        [ceilings[item.point].busbw_Bps / 1e9 for item in limited],
    )
    ceiling |= {
        "line": {"color": "--fig-ceiling", "width": 2, "dash": "dash"},
        "marker": marker("line-ew-open", "--fig-ceiling", 9),
    }
    known = [explained[item.point] for item in usable if item.point in explained]
    traces = [*bound_traces(known, ceilings), band, busbw, *([ceiling] if limited else [])]
    return {"data": traces, "layout": size_layout("busbw (GB/s)", [item.size_bytes for item in usable], traces)}


def hover_text(item: Measurement, ceiling: Ceiling | None) -> str:
    """Return everything about one point, in lines."""
    p99_s = percentile_s(item, 99.0)
    share = share_percent(item, ceiling)
    of_ceiling = f"{share} % of {format_rate(ceiling.busbw_Bps)}" if ceiling is not None and share else "none here"
    lines = [
        f"<b>{plain(point_name(item))}</b>",
        f"median {format_time(item.median_s)}",
        f"interval {interval_words(item)}",
        f"samples {item.samples}",
        f"p99 {format_time(p99_s)}" if p99_s is not None else "p99 n/a: too few samples",
        f"busbw {format_rate(item.busbw_Bps)}",
        f"ceiling {of_ceiling}",
    ]
    return "<br>".join(lines)


def base_layout(x_axis: dict[str, Any], y_axis: dict[str, Any]) -> dict[str, Any]:
    """Return what all figures have in common."""
    colours = {"gridcolor": "--fig-grid", "linecolor": "--fig-line", "tickcolor": "--fig-line"}
    return {
        "autosize": True,
        "height": 340,
        "margin": {"l": 52, "r": 12, "t": 12, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "--fig-text"},
        "hovermode": "closest",
        "hoverdistance": -1,
        "hoverlabel": {
            "align": "left",
            "bgcolor": "--fig-paper",
            "bordercolor": "--fig-line",
            "font": {"color": "--fig-text", "size": 12},
        },
        "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top", "itemsizing": "constant"},
        "dragmode": "zoom",
        # What a reader toggled or zoomed stays when the colours change.
        "uirevision": "keep",
        "xaxis": x_axis | colours,
        "yaxis": y_axis | colours,
    }


def marker(symbol: str, colour: str, size_px: int = 7) -> dict[str, Any]:
    """Return how the points of a trace are drawn."""
    return {"symbol": symbol, "size": size_px, "color": colour, "line": {"color": colour, "width": 1.5}}


def line_trace(name: str, sizes_bytes: list[int], texts: list[str], values: list[float]) -> dict[str, Any]:
    """Return a curve over sizes, with a text for each point; its line and marker are to be added."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": sizes_bytes,
        "y": [float(f"{value:.6g}") for value in values],
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    }


def size_layout(title: str, sizes_bytes: list[int], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the layout of a figure of `traces` over sizes; `title` names their values."""
    values = [value for trace in traces for value in trace["y"]]
    return base_layout(size_axis(sizes_bytes), value_axis(title, values))


def _line(name: str, items: Sequence[Measurement], texts: list[str], values: list[float]) -> dict[str, Any]:
    return line_trace(name, [item.size_bytes for item in items], texts, values)


def _band(
    items: Sequence[Measurement], interval: Callable[[Measurement], tuple[float, float]], colour: str
) -> dict[str, Any]:
    """Return the area between the ends of the interval; one point alone shows it as a short column."""
    sizes_bytes: list[float] = [item.size_bytes for item in items]
    ends = [interval(item) for item in items]
    low, high = [end[0] for end in ends], [end[1] for end in ends]
    if len(items) == 1:
        sizes_bytes, low, high = [sizes_bytes[0] * 0.97, sizes_bytes[0] * 1.03], low * 2, high * 2
    confidence = f"{100 * items[0].confidence:g} % interval" if items else "interval"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": confidence,
        "x": [*sizes_bytes, *reversed(sizes_bytes)],
        "y": [float(f"{value:.6g}") for value in [*high, *reversed(low)]],
        "fill": "toself",
        "fillcolor": colour,
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
    }


def _busbw_interval(item: Measurement) -> tuple[float, float]:
    """Return the ends in GB/s."""
    scale = item.busbw_Bps * item.median_s / 1e9
    return (scale / item.high_s if item.high_s > 0 else 0.0, scale / item.low_s if item.low_s > 0 else 0.0)


def _ceiling_text(item: Measurement, ceiling: Ceiling) -> str:
    factor = COLLECTIVES[item.collective].factor(item.ranks) if item.collective in COLLECTIVES else None
    lines = [
        f"<b>ceiling of {plain(point_name(item))}</b>",
        f"{format_rate(ceiling.busbw_Bps)} busbw: {BASIS_WORDS[ceiling.basis]}",
        f"measured rate {format_rate(ceiling.rate_Bps)}",
        f"times factor {factor:.4g} / {ceiling.moves:.4g} moves" if factor is not None else "",
        f"reached: {format_rate(item.busbw_Bps)}, {share_percent(item, ceiling)} %",
    ]
    return "<br>".join(line for line in lines if line)


MOST_DISTINCT = len(STYLES)
_LEGEND_LINE_PX = 19
_USUAL_NAMES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepLine:
    """One sweep of one run. `style` is the run's place in STYLES, the same in every figure; None: not told apart."""

    label: str
    style: int | None
    measurements: tuple[Measurement, ...]


def joint_time_figure(lines: Sequence[SweepLine], others: Sequence[SweepLine]) -> Figure:
    """Return median times in microseconds against size; `lines` are told apart, `others` are not."""
    return _figure(lines, others, "time (us)", lambda item: item.median_s * 1e6)


def joint_busbw_figure(lines: Sequence[SweepLine], others: Sequence[SweepLine]) -> Figure:
    """Return bus bandwidth in GB/s against size; `lines` are told apart, `others` are not."""
    return _figure(lines, others, "busbw (GB/s)", lambda item: item.busbw_Bps / 1e9)


def _figure(
    lines: Sequence[SweepLine], others: Sequence[SweepLine], title: str, value: Callable[[Measurement], float]
) -> Figure:
    traces = [_quiet(others, title, value)] if others else []
    traces += [_told(line, STYLES[line.style], value) for line in lines if line.style is not None]
    sizes_bytes = [item.size_bytes for line in (*lines, *others) for item in line.measurements]
    values = [float(each) for trace in traces for each in trace["y"] if each is not None]
    layout = base_layout(size_axis(sizes_bytes), value_axis(title, values))
    # Names of runs are long: each may need a line of the legend, and the curves keep their room.
    layout["height"] += _LEGEND_LINE_PX * max(len(traces) - _USUAL_NAMES, 0)
    return {"data": traces, "layout": layout}


def _told(line: SweepLine, style: tuple[str, str, str], value: Callable[[Measurement], float]) -> dict[str, Any]:
    colour, dash, symbol = style
    items = [item for item in line.measurements if value(item) > 0]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": legend_name(line.label),
        "x": [item.size_bytes for item in items],
        "y": [float(f"{value(item):.6g}") for item in items],
        "text": [f"<b>{plain(line.label)}</b><br>{hover_text(item, None)}" for item in items],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": symbol, "size": 7, "color": colour, "line": {"color": colour, "width": 1.5}},
    }


def _quiet(lines: Sequence[SweepLine], title: str, value: Callable[[Measurement], float]) -> dict[str, Any]:
    """Return one trace of many lines, with a gap after each."""
    sizes_bytes: list[int | None] = []
    values: list[float | None] = []
    texts: list[str] = []
    for line in lines:
        for item in line.measurements:
            if value(item) > 0:
                sizes_bytes.append(item.size_bytes)
                values.append(float(f"{value(item):.4g}"))
                texts.append(f"{plain(line.label)}<br>{format_size(item.size_bytes)}")
        sizes_bytes.append(None)
        values.append(None)
        texts.append("")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{len(lines)} other run{'s' if len(lines) != 1 else ''}",
        "x": sizes_bytes,
        "y": values,
        "text": texts,
        "hovertemplate": f"%{{text}}: %{{y}} {title.partition('(')[2].rstrip(')')}<extra></extra>",
        "line": {"color": "--fig-others", "width": 1},
        "connectgaps": False,
    }

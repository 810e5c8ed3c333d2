"""The curves of several runs in one figure: a few told apart by colour, dash and marker, all others in a quiet one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from busbw.base.units import format_size
from busbw.model.measurement import Measurement
from busbw.show.figures.axes import STYLES, size_axis, value_axis
from busbw.show.figures.series import Figure, base_layout, hover_text, legend_name, plain

MOST_TOLD_APART = len(STYLES)
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

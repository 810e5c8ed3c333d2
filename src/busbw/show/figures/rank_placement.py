"""Where the ranks of each side ran: their NUMA nodes beside those of their GPUs, or their CPUs."""

from collections.abc import Iterator, Sequence
from typing import Any

from busbw.base.cpus import format_cpu_list
from busbw.model.comparison import Comparison, RankPlacement, Side
from busbw.show.figures.axes import STYLES, even_axis
from busbw.show.figures.series import Figure, base_layout, plain
from busbw.show.rank_placement import with_placements

# Sides stand beside each other within the place of a rank.
_SPREAD = 0.5
_MOST_CPUS = 4096


def rank_placement_figure(comparison: Comparison) -> Figure | None:
    """Return the figure; None the ranks of all sides were placed alike, or do not tell."""
    sides = with_placements(comparison)
    if not sides:
        return None
    by_node = any(
        place.gpu_numa is not None and place.numa is not None for side in sides for place in side.rank_placements
    )
    traces = list(_gpus(sides[0])) if by_node else []
    for number, side in enumerate(sides):
        shift = _SPREAD * ((number + 0.5) / len(sides) - 0.5)
        traces.append(_side(side, shift, STYLES[number % len(STYLES)], by_node=by_node))
    across = [float(value) for trace in traces for value in trace["x"]]
    up = [float(value) for trace in traces for value in trace["y"]]
    title = "NUMA node" if by_node else "CPU"
    return {"data": traces, "layout": base_layout(_counting("rank", across), _counting(title, up or [0.0]))}


def _counting(title: str, values: list[float]) -> dict[str, Any]:
    """Return an axis of things that are counted from 0, labelled at whole numbers."""
    axis = even_axis(title, [min(values) - 0.5, max(values) + 0.5])
    labels = [(at, text) for at, text in zip(axis["tickvals"], axis["ticktext"], strict=True) if float(at).is_integer()]
    return axis | {"tickvals": [at for at, _text in labels], "ticktext": [text for _at, text in labels]}


def _gpus(side: Side) -> Iterator[dict[str, Any]]:
    known = [place for place in side.rank_placements if place.gpu_numa is not None]
    yield _markers(
        "NUMA node of the GPU",
        [float(place.rank) for place in known],
        [place.gpu_numa or 0 for place in known],
        ("--fig-others", "solid", "square"),
        [f"rank {place.rank}: its GPU is beside node {place.gpu_numa}" for place in known],
        size_px=26,
    )


def _side(side: Side, shift: float, style: tuple[str, str, str], *, by_node: bool) -> dict[str, Any]:
    """Return a marker for each NUMA node, or each CPU, that a rank of a side had."""
    had = [
        (place, number) for place in side.rank_placements for number in ((place.numa or ()) if by_node else place.cpus)
    ][:_MOST_CPUS]
    return _markers(
        f"{side.letter}: {'node of the CPUs' if by_node else 'CPUs'}",
        [place.rank + shift for place, _number in had],
        [number for _place, number in had],
        style,
        [_text(side, place) for place, _number in had],
        size_px=9,
    )


def _text(side: Side, place: RankPlacement) -> str:
    return f"<b>{plain(side.letter)}, rank {place.rank}</b><br>{plain(place.host)}, CPUs {format_cpu_list(place.cpus)}"


def _markers(
    name: str, x: Sequence[float], y: Sequence[int], style: tuple[str, str, str], texts: Sequence[str], *, size_px: int
) -> dict[str, Any]:
    colour, _dash, symbol = style
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "x": list(x),
        "y": list(y),
        "text": list(texts),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": symbol, "size": size_px, "color": colour, "line": {"color": colour, "width": 1.5}},
    }

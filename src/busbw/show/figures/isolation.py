"""Figures of a search over groups in Plotly's words: groups by what they lose, and nodes by their groups."""

from collections.abc import Sequence
from typing import Any

from busbw.base.hostlist import compressed
from busbw.fabric.drawing import loss_words
from busbw.fabric.groups.isolation import TestedGroup
from busbw.fabric.groups.nodes import NodeGroups
from busbw.show.figures.axes import even_axis, zero_axis
from busbw.show.figures.fabric import FRAME_PX, LEGEND_PX, ROW_PX, name_label, names_axis
from busbw.show.figures.series import Figure, base_layout, plain

_STATES = (
    ("sound", "--fig-1", "circle"), ("unclear", "--fig-2", "square"), ("slow", "--fig-suspect", "triangle-up"),
)  # fmt: skip
_MOST_HOSTS = 12


def groups_figure(tests: Sequence[TestedGroup]) -> Figure | None:
    """Return what each group loses against its peers, by round; None where no group has a value."""
    valued = [each for each in tests if each.loss is not None]
    if not valued:
        return None
    traces = []
    for state, colour, symbol in _STATES:
        own = [each for each in valued if each.state == state]
        if own:
            traces.append(_dots(state, own, colour, symbol))
    losses = [100 * (each.loss or 0.0) for each in valued]
    rounds = zero_axis("round", [float(max(each.round for each in valued) + 1)])
    layout = base_layout(rounds, even_axis("loss, %", [min(0.0, *losses), max(5.0, *losses)]))
    return {"data": traces, "layout": layout}


def _dots(state: str, own: Sequence[TestedGroup], colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": f"{state} groups",
        "x": [each.round + 1 for each in own], "y": [round(100 * (each.loss or 0.0), 2) for each in own],
        "text": [_group_text(each) for each in own], "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "size": 9},
    }  # fmt: skip


def _group_text(each: TestedGroup) -> str:
    more = f" and {len(each.hosts) - _MOST_HOSTS} more" if len(each.hosts) > _MOST_HOSTS else ""
    hosts = plain(compressed(each.hosts[:_MOST_HOSTS]))
    return f"<b>{hosts}{more}</b><br>round {each.round + 1}, {plain(each.purpose)}<br>loss {loss_words(each.loss)}"


def nodes_figure(nodes: Sequence[NodeGroups]) -> Figure:
    """Return of each node how many of its groups were bad and how many were not, the first above."""
    names = [name_label(each.host, suspect=each.suspect) for each in nodes]
    texts = [f"<b>{plain(each.host)}</b><br>{each.bad} of {each.groups} groups bad" for each in nodes]
    counts = (
        ("bad groups", [each.bad for each in nodes], "--fig-suspect"),
        ("other groups", [each.groups - each.bad for each in nodes], "--fig-1"),
    )
    traces = [
        {
            "type": "bar", "orientation": "h", "name": name, "x": own, "y": names, "marker": {"color": colour},
            "text": texts, "textposition": "none", "hovertemplate": "%{text}<extra></extra>",
        }
        for name, own, colour in counts
    ]  # fmt: skip
    across = zero_axis("groups", [float(max(each.groups for each in nodes))])
    layout = base_layout(across, names_axis("", names) | {"autorange": "reversed"})
    inner = ROW_PX * max(len(nodes), 4)
    legend = layout["legend"] | {"y": -LEGEND_PX / inner}
    return {"data": traces, "layout": layout | {"barmode": "stack", "height": FRAME_PX + inner, "legend": legend}}

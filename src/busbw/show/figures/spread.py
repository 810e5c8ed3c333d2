"""Figures of what a median hides: the distribution of each size, and the ranks one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from busbw.base.text import printable
from busbw.base.units import format_size, format_time
from busbw.model.run import Measurement
from busbw.show.figures.axes import value_axis
from busbw.show.figures.series import Ceilings, Figure, base_layout, hover_text
from busbw.show.words import percentile_s, point_name, tail_weight, tail_words

# Rank views that go into the page: with many ranks the measurements with the lightest tails stay in run.json alone.
_MOST_VIEWS = 6000
_MOST_LABELS = 12

_MARKS = (
    (95.0, "p95", "line-ew-open"),
    (99.0, "p99", "triangle-up-open"),
    (99.9, "p99.9", "diamond-open"),
    (None, "maximum", "x-thin-open"),
)


def spread_figure(measurements: Sequence[Measurement], ceilings: Ceilings) -> Figure:
    """Return a box of each size, with its tail, as times the median of that size."""
    usable = [item for item in measurements if item.median_s > 0]
    texts = [f"{hover_text(item, ceilings.get(item.point))}<br>{_extremes(item)}" for item in usable]
    boxes = [item for item in usable if percentile_s(item, 25.0) and percentile_s(item, 75.0)]
    traces = [_boxes(boxes)] if boxes else []
    values: list[float] = []
    for percentile, name, symbol in _MARKS:
        marked = [
            (item, text, value_s / item.median_s)
            for item, text in zip(usable, texts, strict=True)
            if (value_s := item.max_s if percentile is None else percentile_s(item, percentile)) is not None
        ]
        if marked:
            traces.append(_marks(name, symbol, marked))
            values += [ratio for _, _, ratio in marked]
    labelled = usable[:: ceil(len(usable) / _MOST_LABELS) or 1]
    values += [1.0, *(item.min_s / item.median_s for item in usable)]
    layout = base_layout(
        {
            "type": "category",
            "title": {"text": "size", "standoff": 6},
            "categoryorder": "array",
            "categoryarray": [str(item.size_bytes) for item in usable],
            "tickvals": [str(item.size_bytes) for item in labelled],
            "ticktext": [format_size(item.size_bytes) for item in labelled],
            "automargin": True,
            "showline": True,
        },
        value_axis("time / median of its size", values),
    )
    return {"data": traces, "layout": layout | {"boxgap": 0.4, "legend": layout["legend"] | {"y": -0.34}}}


@dataclass(frozen=True, kw_only=True, slots=True)
class RankViews:
    """The measurements whose ranks the page can show."""

    shown: tuple[Measurement, ...]
    heaviest: Measurement
    # Measurements left out because the page would grow too large.
    left_out: int


def rank_views(measurements: Sequence[Measurement]) -> RankViews | None:
    """Return what the per-rank view shows; None when no measurement tells its ranks apart."""
    with_ranks = [item for item in measurements if item.per_rank]
    if not with_ranks:
        return None
    chosen: list[Measurement] = []
    views = 0
    for item in sorted(with_ranks, key=tail_weight, reverse=True):
        views += len(item.per_rank)
        if chosen and views > _MOST_VIEWS:
            break
        chosen.append(item)
    kept = {id(item) for item in chosen}
    return RankViews(
        shown=tuple(item for item in with_ranks if id(item) in kept),
        heaviest=chosen[0],
        left_out=len(with_ranks) - len(chosen),
    )


def rank_layout() -> dict[str, Any]:
    """Return the layout of the per-rank figure; the page sets the ranges of what it shows."""
    axis = {"title": {"text": "time (us)", "standoff": 6}, "type": "log", "automargin": True, "showline": True}
    layout = base_layout(
        {"title": {"text": "rank", "standoff": 6}, "type": "category", "automargin": True, "showline": True}, axis
    )
    layout["yaxis"] |= {"domain": [0.36, 1.0]}
    layout["yaxis2"] = {
        **{key: value for key, value in layout["yaxis"].items() if key.endswith("color")},
        "title": {"text": "blamed", "standoff": 6},
        "domain": [0.0, 0.24],
        "rangemode": "tozero",
        "nticks": 3,
        "tickformat": "d",
        "automargin": True,
        "showline": True,
    }
    layout["xaxis"] |= {"anchor": "y2"}
    return layout | {"height": 420, "bargap": 0.6}


def rank_numbers(item: Measurement) -> dict[str, Any]:
    """Return one measurement's ranks as columns; times in microseconds, None for a p99 that is not there.

    Host names are printable text, not markup: whoever shows them escapes them.
    """
    views = sorted(item.per_rank, key=lambda view: view.rank)
    hosts = list(dict.fromkeys(view.host for view in views))
    numbers = {host: number for number, host in enumerate(hosts)}
    return {
        "name": printable(point_name(item)),
        "note": f"{tail_words(item)}; median of the exchange {format_time(item.median_s)}",
        "hosts": [printable(host) for host in hosts],
        "host": [numbers[view.host] for view in views],
        "rank": [view.rank for view in views],
        "median": [_us(view.median_s) for view in views],
        "p99": [_us(view.p99_s) if view.p99_s is not None else None for view in views],
        "max": [_us(view.max_s) for view in views],
        "blamed": [view.blamed for view in views],
        "switches": [view.involuntary_switches for view in views],
    }


def _us(time_s: float) -> float:
    return float(f"{time_s * 1e6:.5g}")


def _extremes(item: Measurement) -> str:
    return f"fastest {format_time(item.min_s)}, slowest {format_time(item.max_s)}"


def _boxes(items: Sequence[Measurement]) -> dict[str, Any]:
    def ratios(percentile: float, otherwise: float) -> list[float]:
        """Whiskers end where the box does when there are too few samples for a p90."""
        found = (
            (percentile_s(item, percentile) or percentile_s(item, otherwise) or 0.0) / item.median_s for item in items
        )
        return [float(f"{ratio:.5g}") for ratio in found]

    return {
        "type": "box",
        "name": "middle half; whiskers: fastest, p90",
        "x": [str(item.size_bytes) for item in items],
        "lowerfence": [float(f"{item.min_s / item.median_s:.5g}") for item in items],
        "q1": ratios(25.0, 25.0),
        "median": [1.0] * len(items),
        "q3": ratios(75.0, 75.0),
        "upperfence": ratios(90.0, 75.0),
        "boxpoints": False,
        "line": {"color": "--fig-median", "width": 1.5},
        "fillcolor": "--fig-median-band",
        "hoverinfo": "skip",
    }


def _marks(name: str, symbol: str, marked: list[tuple[Measurement, str, float]]) -> dict[str, Any]:
    colour = "--fig-ceiling" if name == "maximum" else "--fig-tail"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [str(item.size_bytes) for item, _, _ in marked],
        "y": [float(f"{ratio:.5g}") for _, _, ratio in marked],
        "text": [text for _, text, _ in marked],
        "marker": {"symbol": symbol, "size": 8, "color": colour, "line": {"color": colour, "width": 1.5}},
        "hovertemplate": "%{text}<extra></extra>",
    }

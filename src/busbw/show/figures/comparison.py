"""How much faster than the first side each other one is, size by size, with intervals and what is claimed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from busbw.base.units import format_rate, format_size, format_time
from busbw.model.comparison import BandSummary, ComparedBand, ComparedPoint, Comparison, Side, SpeedEstimate, Versus
from busbw.show.figures.axes import STYLES, even_axis, size_axis
from busbw.show.figures.series import Figure, base_layout, plain
from busbw.show.words import bounds_words, us, used_words

# How the answer is shown: the word, a sign beside it, and the tone of a verdict.
OUTCOME_SIGNS = {
    "faster": ("▲", "ok"),
    "slower": ("▼", "slow"),
    "mixed": ("◆", "slow"),
    "same": ("=", "ok"),
    "none": ("~", "cannot_tell"),
    "wrong": ("✗", "wrong"),
    "cannot_tell": ("?", "cannot_tell"),
}
CLAIM_WORDS = {
    "faster": "faster",
    "slower": "slower",
    "same": "the same",
    "none": "~ no difference shown",
    "cannot_tell": "cannot tell",
}
# Of sides that were not interleaved, in place of a claim.
_NO_CLAIM = "as measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class VersusFigure:
    """One side against the first: the figure, what it shows in words, and its numbers as rows of a table.

    A row: collective, size, time of the first and of the other (us), bus bandwidth of both (GB/s), change (%), its
    interval, the claim.
    """

    key: str
    title: str
    summary: str
    # Of the first and the other side.
    letters: tuple[str, str]
    figure: Figure
    rows: tuple[tuple[str, ...], ...]
    # Small, medium and large sizes taken together: collective, band, both sides with their unit, then as above, and
    # what NCCL used.
    bands: tuple[tuple[str, ...], ...]
    # What small, medium and large mean, and what is claimed of each.
    bounds: str
    summaries: tuple[BandSummary, ...]
    unmatched: tuple[str, ...]


def versus_figures(comparison: Comparison) -> tuple[VersusFigure, ...]:
    """Return a figure for each side beside the first."""
    return tuple(_versus(comparison, versus) for versus in comparison.versus)


def _versus(comparison: Comparison, versus: Versus) -> VersusFigure:
    first, other = comparison.sides[0], comparison.sides[versus.other]
    groups = [(name, tuple(items)) for name, items in groupby(versus.points, key=_name)]
    traces = list(_least(versus.points, comparison.least_difference))
    traces += [_line(name, items, STYLES[number % len(STYLES)]) for number, (name, items) in enumerate(groups)]
    values = [value for item in versus.points for value in _ends(item.estimate)]
    bound = 100 * comparison.least_difference
    layout = base_layout(
        size_axis([item.size_bytes for item in versus.points]),
        even_axis(f"{_short(other)} faster than {_short(first)} (%)", [*values, -bound, bound]),
    )
    claims = [_claim(item.estimate) for item in versus.points]
    words = (*CLAIM_WORDS.values(), _NO_CLAIM)
    counted = ", ".join(f"{claims.count(each)} {each}" for each in words if each in claims)
    return VersusFigure(
        key=f"versus-{versus.other}",
        title=f"{other.letter} ({other.name}) against {first.letter} ({first.name})",
        summary=f"of {len(claims)} sizes {counted}" if claims else "no size was measured on both sides",
        figure={"data": traces, "layout": layout},
        letters=(first.letter, other.letter),
        rows=tuple(_row(item) for item in versus.points),
        # Of one size each they would be the rows once more.
        bands=tuple(map(_band_row, versus.bands)) if any(len(band.sizes_bytes) > 1 for band in versus.bands) else (),
        bounds=bounds_words(versus.bands),
        summaries=versus.summaries,
        unmatched=versus.unmatched,
    )


def _name(item: ComparedPoint) -> str:
    return f"{item.collective}{', in place' if item.in_place else ''}"


def _short(side: Side) -> str:
    return plain(side.letter)


def _ends(estimate: SpeedEstimate) -> tuple[float, ...]:
    known = (estimate.ratio, estimate.low, estimate.high)
    return tuple(_percent(value) for value in known if value is not None)


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _claim(estimate: SpeedEstimate) -> str:
    return CLAIM_WORDS[estimate.claim] if estimate.confidence is not None else _NO_CLAIM


def _least(points: Sequence[ComparedPoint], least: float) -> Iterator[dict[str, Any]]:
    """Yield the band within which a difference does not count."""
    if not points:
        return
    sizes_bytes = [item.size_bytes for item in points]
    low, high = min(sizes_bytes) * 0.9, max(sizes_bytes) * 1.1
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": f"less than {100 * least:g} %: does not count",
        "x": [low, high, high, low],
        "y": [100 * least, 100 * least, -100 * least, -100 * least],
        "fill": "toself",
        "fillcolor": "--fig-expected-band",
        "line": {"width": 0, "color": "--fig-expected"},
        "hoverinfo": "skip",
    }


def _line(name: str, items: Sequence[ComparedPoint], style: tuple[str, str, str]) -> dict[str, Any]:
    colour, dash, symbol = style
    whole = [item.estimate for item in items]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(name),
        "x": [item.size_bytes for item in items],
        "y": [float(f"{_percent(each.ratio):.5g}") for each in whole],
        "text": [_text(item) for item in items],
        "hovertemplate": "%{text}<extra></extra>",
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [100 * (each.high - each.ratio) if each.high is not None else None for each in whole],
            "arrayminus": [100 * (each.ratio - each.low) if each.low is not None else None for each in whole],
            "color": colour,
            "thickness": 1.2,
        },
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": symbol, "size": 7, "color": colour, "line": {"color": colour, "width": 1.5}},
    }


def _text(item: ComparedPoint) -> str:
    lines = [
        f"<b>{plain(_name(item))} {format_size(item.size_bytes)}</b>",
        f"{_percent(item.estimate.ratio):+.2f} %: {_claim(item.estimate)}",
        f"{'interval' if item.estimate.confidence is not None else 'spread'} {_interval(item.estimate)}",
        f"{format_time(item.first_s)} against {format_time(item.other_s)}",
    ]
    lines += [f"{len(item.estimate.blocks)} blocks"] if item.estimate.blocks else []
    return "<br>".join(lines)


def _interval(estimate: SpeedEstimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "n/a: too few blocks" if estimate.confidence is not None else "n/a"
    return f"{_percent(estimate.low):+.2f} to {_percent(estimate.high):+.2f} %"


def _row(item: ComparedPoint) -> tuple[str, ...]:
    return (
        _name(item),
        format_size(item.size_bytes),
        us(item.first_s),
        us(item.other_s),
        _rate(item.first_busbw_Bps),
        _rate(item.other_busbw_Bps),
        *_change(item.estimate),
    )


def _rate(busbw_Bps: float | None) -> str:
    return f"{busbw_Bps / 1e9:.2f}" if busbw_Bps is not None else "n/a"


def _band_row(band: ComparedBand) -> tuple[str, ...]:
    values = (
        format_time(each) if band.measure == "latency" else format_rate(each) for each in (band.first, band.other)
    )
    name = f"{band.collective}{', in place' if band.in_place else ''}"
    return (name, f"{band.band}: {band.measure}", *values, *_change(band.estimate), used_words(band))


def _change(estimate: SpeedEstimate) -> tuple[str, str, str]:
    return f"{_percent(estimate.ratio):+.2f}", _interval(estimate), _claim(estimate)

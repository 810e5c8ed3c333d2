"""What is expected of each size, and what is possible there, as traces under its bus bandwidth."""

from collections.abc import Container, Iterator, Sequence
from html import escape
from typing import Any

from busbw.base.units import format_rate, format_size
from busbw.model.budget import SizeExplanation
from busbw.show.plain import printable


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
        yield _band(expected)
    limited = [each for each in ordered if each.ceiling_Bps and each.point not in measured]
    if limited:
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "physical ceiling",
            "x": [each.size_bytes for each in limited],
            "y": [float(f"{(each.ceiling_Bps or 0.0) / 1e9:.6g}") for each in limited],
            "text": [_ceiling_text(each) for each in limited],
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


def _band(expected: Sequence[tuple[int, float, float]]) -> dict[str, Any]:
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


def _ceiling_text(each: SizeExplanation) -> str:
    lines = [
        f"<b>physical ceiling at {format_size(each.size_bytes)}</b>",
        f"{format_rate(each.ceiling_Bps or 0.0)} busbw",
        escape(printable(each.ceiling_words or "")),
        f"limited by {escape(printable(each.limited_by))}" if each.limited_by is not None else "",
    ]
    return "<br>".join(line for line in lines if line)

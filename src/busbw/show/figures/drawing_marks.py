"""The marks, lines and boxes of a trace, as elements of SVG."""

from collections.abc import Iterator, Sequence
from typing import Any

from busbw.show.figures.drawing_scale import Scale

Place = tuple[float, float]

_DASHES = {"dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}
_BOX_SHARE = 0.6


def trace_elements(trace: dict[str, Any], x: Scale, y: Scale, colours: dict[str, str]) -> Iterator[str]:
    """Yield what draws a trace: a box plot, or a scatter with lines, markers, an area or intervals."""
    if trace["type"] == "box":
        yield from _boxes(trace, x, y, colours)
        return
    runs = list(_unbroken(trace, x, y))
    line = trace.get("line", {})
    colour = colours.get(line.get("color", ""), "none")
    if trace.get("fill") == "toself":
        fill = colours[trace["fillcolor"]]
        yield from (f'<path d="{_path(run)}Z" fill="{fill}" stroke="none"/>' for run in runs if run)
        return
    if "lines" in trace["mode"]:
        dash = f' stroke-dasharray="{_DASHES[line["dash"]]}"' if line.get("dash") in _DASHES else ""
        width = line.get("width", 1)
        yield from (
            f'<path d="{_path(run)}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'
            for run in runs
            if len(run) > 1
        )
    if "error_y" in trace:
        yield from _intervals(trace, x, y, colours)
    if "markers" in trace["mode"]:
        marker = trace["marker"]
        for left, top in (place for run in runs for place in run):
            yield marker_element(marker["symbol"], left, top, marker["size"], colours[marker["color"]])


def legend_key(trace: dict[str, Any], left: float, top: float, colours: dict[str, str]) -> Iterator[str]:
    """Yield a short piece of the trace, for the legend: 22 wide, its middle at `top`."""
    line = trace.get("line", {})
    if trace.get("fill") == "toself" or trace["type"] == "box":
        fill = colours[trace["fillcolor"]]
        stroke = colours[line["color"]] if trace["type"] == "box" else "none"
        yield f'<rect x="{left:.1f}" y="{top - 5:.1f}" width="22" height="10" fill="{fill}" stroke="{stroke}"/>'
        return
    if "lines" in trace["mode"]:
        dash = f' stroke-dasharray="{_DASHES[line["dash"]]}"' if line.get("dash") in _DASHES else ""
        yield (
            f'<path d="M{left:.1f} {top:.1f}h22" stroke="{colours[line["color"]]}" '
            f'stroke-width="{line.get("width", 1)}"{dash} fill="none"/>'
        )
    if "markers" in trace["mode"]:
        marker = trace["marker"]
        yield marker_element(marker["symbol"], left + 11, top, marker["size"], colours[marker["color"]])


def marker_element(symbol: str, left: float, top: float, size_px: float, colour: str) -> str:
    """Return one marker. Raises KeyError for a symbol that no figure of busbw uses."""
    shape, is_open = symbol.removesuffix("-open"), symbol.endswith("-open")
    half = size_px / 2
    paint = f'fill="{"none" if is_open else colour}" stroke="{colour}" stroke-width="1.5"'
    if shape == "circle":
        return f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{half:.1f}" {paint}/>'
    paths = {
        "square": f"M{left - half:.1f} {top - half:.1f}h{size_px:.1f}v{size_px:.1f}h{-size_px:.1f}Z",
        "triangle-up": f"M{left:.1f} {top - half:.1f}l{half:.1f} {size_px:.1f}h{-size_px:.1f}Z",
        "diamond": (
            f"M{left:.1f} {top - half:.1f}L{left + half:.1f} {top:.1f}L{left:.1f} {top + half:.1f}"
            f"L{left - half:.1f} {top:.1f}Z"
        ),
        "line-ew": f"M{left - half:.1f} {top:.1f}h{size_px:.1f}",
        "x-thin": (
            f"M{left - half:.1f} {top - half:.1f}L{left + half:.1f} {top + half:.1f}"
            f"M{left - half:.1f} {top + half:.1f}L{left + half:.1f} {top - half:.1f}"
        ),
    }
    return f'<path d="{paths[shape]}" {paint}/>'


def _unbroken(trace: dict[str, Any], x: Scale, y: Scale) -> Iterator[list[Place]]:
    """Yield the points between gaps."""
    run: list[Place] = []
    for across, up in zip(trace["x"], trace["y"], strict=True):
        left, top = x.place(across), y.place(up)
        if left is None or top is None:
            yield run
            run = []
        else:
            run.append((left, top))
    yield run


def _path(run: Sequence[Place]) -> str:
    return "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in run)


def _intervals(trace: dict[str, Any], x: Scale, y: Scale, colours: dict[str, str]) -> Iterator[str]:
    bars = trace["error_y"]
    for across, up, above, below in zip(trace["x"], trace["y"], bars["array"], bars["arrayminus"], strict=True):
        if across is None or up is None or above is None or below is None:
            continue
        left, high, low = x.place(across), y.place(up + above), y.place(up - below)
        if left is not None and high is not None and low is not None:
            yield (
                f'<path d="M{left - 3:.1f} {high:.1f}h6m-3 0V{low:.1f}m-3 0h6" stroke="{colours[bars["color"]]}" '
                'stroke-width="1.2" fill="none"/>'
            )


def _boxes(trace: dict[str, Any], x: Scale, y: Scale, colours: dict[str, str]) -> Iterator[str]:
    wide = (x.end - x.start) / (len(x.categories) or 1) * _BOX_SHARE
    stroke, fill = colours[trace["line"]["color"]], colours[trace["fillcolor"]]
    for number, name in enumerate(trace["x"]):
        left = x.place(name)
        ends = [y.place(trace[key][number]) for key in ("lowerfence", "q1", "median", "q3", "upperfence")]
        places = [end for end in ends if end is not None]
        if left is None or len(places) < len(ends):
            continue
        low, first, middle, third, high = places
        yield (
            f'<path d="M{left:.1f} {low:.1f}V{first:.1f}M{left:.1f} {third:.1f}V{high:.1f}" fill="none" '
            f'stroke="{stroke}"/>'
            f'<rect x="{left - wide / 2:.1f}" y="{third:.1f}" width="{wide:.1f}" height="{first - third:.1f}" '
            f'fill="{fill}" stroke="{stroke}"/>'
            f'<path d="M{left - wide / 2:.1f} {middle:.1f}h{wide:.1f}" stroke="{stroke}" stroke-width="2" fill="none"/>'
        )

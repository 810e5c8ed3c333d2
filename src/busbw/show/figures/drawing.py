"""Figures as one SVG, without a browser: the same values that the report's page draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from math import log10
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from busbw.base.errors import InputError
from busbw.base.text import printable
from busbw.show.figures.axes import COLOURS, Theme
from busbw.show.figures.series import Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """An axis of a figure in Plotly's words, laid between two places of a drawing."""

    kind: str
    low: float
    high: float
    categories: tuple[str, ...]
    # Pixels at `low` and at `high`.
    start: float
    end: float

    def place(self, value: object) -> float | None:
        """Return the pixel of a value; None for a gap, and for what an axis of logarithms cannot hold."""
        if self.kind == "category":
            name = str(value)
            at = self.categories.index(name) + 0.5 if name in self.categories else None
        elif not isinstance(value, int | float):
            at = None
        elif self.kind == "log":
            at = log10(value) if value > 0 else None
        else:
            at = float(value)
        if at is None:
            return None
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_of(axis: dict[str, Any], start: float, end: float) -> Scale:
    """Return the scale of an axis that says its range (`log`: in powers of ten), or its categories."""
    if axis["type"] == "category":
        names = tuple(axis["categoryarray"])
        return Scale(kind="category", low=0.0, high=float(len(names) or 1), categories=names, start=start, end=end)
    low, high = axis["range"]
    return Scale(kind=axis["type"], low=low, high=high, categories=(), start=start, end=end)


def ticks_of(axis: dict[str, Any], scale: Scale) -> Sequence[tuple[float, str]]:
    """Return pixel and label of each tick."""
    placed = ((scale.place(value), str(text)) for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True))
    return [(at, text) for at, text in placed if at is not None]


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


_WIDTH = 560
_HEIGHT = 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 82, 16, 34, 46
_MARGIN = 16
_HEAD = 56
_LEGEND_LINE = 18
# Wider than a character of 12 px on average, so that what is counted fits.
_CHARACTER = 6.8
_TITLE_CHARACTER = 11.0
_FONT = "font-family=\"'DejaVu Sans', 'Liberation Sans', Arial, sans-serif\""
_LONGEST = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One figure of a drawing, and what stands above it."""

    title: str
    figure: Figure


def figures_svg(title: str, subtitle: str, panels: Sequence[Panel], theme: Theme) -> str:
    """Return panels two beside each other, in order, under a title: the same text for the same values."""
    colours = dict(COLOURS[theme])
    columns = min(2, len(panels)) or 1
    width = columns * _WIDTH + 2 * _MARGIN
    parts: list[str] = []
    top = float(_HEAD)
    for first in range(0, len(panels), columns):
        row = panels[first : first + columns]
        for place, panel in enumerate(row):
            parts += _panel(panel, _MARGIN + place * _WIDTH, top, colours)
        top += _HEIGHT + max(_legend_lines(panel.figure) for panel in row) * _LEGEND_LINE + 14
    size = f'width="{width}" height="{top:.0f}"'
    name = printable(title)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:.0f}" {size} role="img"',
            f'  aria-label={quoteattr(name)} {_FONT} font-size="12">',
            f"<title>{escape(name)}</title>",
            f'<rect {size} fill="{colours["--fig-paper"]}"/>',
            _text(
                _MARGIN,
                24,
                _cut(name, int(width / _TITLE_CHARACTER)),
                colours["--fig-text"],
                'font-size="16" font-weight="bold"',
            ),
            _text(_MARGIN, 43, _cut(printable(subtitle), int(width / _CHARACTER)), colours["--fig-text"]),
            *parts,
            "</svg>\n",
        )
    )


def _panel(panel: Panel, left: float, top: float, colours: dict[str, str]) -> Iterator[str]:
    layout = panel.figure["layout"]
    x = scale_of(layout["xaxis"], left + _LEFT, left + _WIDTH - _RIGHT)
    y = scale_of(layout["yaxis"], top + _HEIGHT - _BOTTOM, top + _TOP)
    ink, grid, line = colours["--fig-text"], colours["--fig-grid"], colours["--fig-line"]
    yield _text(left + _LEFT, top + 20, _cut(printable(panel.title), _LONGEST), ink, 'font-weight="bold"')
    for at, text in ticks_of(layout["yaxis"], y):
        yield f'<path d="M{x.start:.1f} {at:.1f}H{x.end:.1f}" stroke="{grid}" fill="none"/>'
        yield _text(x.start - 6, at + 4, text, ink, 'text-anchor="end"')
    for at, text in ticks_of(layout["xaxis"], x):
        yield f'<path d="M{at:.1f} {y.start:.1f}V{y.end:.1f}" stroke="{grid}" fill="none"/>'
        yield _text(at, y.start + 17, text, ink, 'text-anchor="middle"')
    yield f'<path d="M{x.start:.1f} {y.end:.1f}V{y.start:.1f}H{x.end:.1f}" stroke="{line}" fill="none"/>'
    yield _text((x.start + x.end) / 2, y.start + 35, layout["xaxis"]["title"]["text"], ink, 'text-anchor="middle"')
    middle = (y.start + y.end) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 {left + 16:.1f} {middle:.1f})"'
    yield _text(left + 16, middle, layout["yaxis"]["title"]["text"], ink, turned)
    for trace in panel.figure["data"]:
        yield from trace_elements(trace, x, y, colours)
    down = top + _HEIGHT + 6
    for trace, across, line_number in _legend(panel.figure):
        at = down + line_number * _LEGEND_LINE
        yield from legend_key(trace, left + _LEFT + across, at, colours)
        yield _text(left + _LEFT + across + 28, at + 4, _name(trace), ink)


def _legend(figure: Figure) -> Iterator[tuple[dict[str, Any], float, int]]:
    """Yield each trace that has a name to show, with its distance from the left and its line."""
    across, line = 0.0, 0
    room = _WIDTH - _LEFT - _RIGHT
    for trace in figure["data"]:
        if trace.get("showlegend") is False:
            continue
        wide = 28 + len(_name(trace)) * _CHARACTER + 14
        if across and across + wide > room:
            across, line = 0.0, line + 1
        yield trace, across, line
        across += wide


def _legend_lines(figure: Figure) -> int:
    return max((line for _, _, line in _legend(figure)), default=-1) + 1


def _name(trace: dict[str, Any]) -> str:
    # Names are escaped for Plotly, which reads a little HTML.
    return _cut(unescape(trace["name"]), _LONGEST)


def _text(left: float, top: float, text: str, colour: str, more: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" fill="{colour}" {more}>{escape(text)}</text>'


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


# Twice as many pixels as the drawing counts: sharp on paper and on dense screens.
_ZOOM = 2
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="16" font-size="16">{}</text></svg>'


def png(svg: str) -> bytes:
    """Return a PNG of an SVG. Raises InputError without resvg-py, and where there is no font to write with."""
    draw = _resvg()
    # Without any font text is left out in silence, and a figure without numbers says nothing.
    if draw(svg_string=_PROBE.format("M"), font_family="DejaVu Sans") == draw(svg_string=_PROBE.format("")):
        raise InputError(
            "no font is installed here, and a PNG without words would say nothing",
            hint="write an SVG (-o FILE.svg), or install fonts such as fonts-dejavu-core",
        )
    return bytes(draw(svg_string=svg, zoom=_ZOOM))


def _resvg() -> Any:  # noqa: ANN401 - resvg's function, whose own types say less than it takes
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an extra, loaded for a PNG only
    except ImportError as error:
        raise InputError(
            "PNG needs resvg-py, which is not installed", hint="pip install 'busbw[png]', or write an SVG: -o FILE.svg"
        ) from error
    return svg_to_bytes

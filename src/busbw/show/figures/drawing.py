"""Figures as one SVG, without a browser: the same values that the report's page draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from busbw.show.figures.drawing_marks import legend_key, trace_elements
from busbw.show.figures.drawing_scale import scale_of, ticks_of
from busbw.show.figures.palette import COLOURS, Theme
from busbw.show.figures.series import Figure
from busbw.show.plain import printable

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

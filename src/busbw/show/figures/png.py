"""A drawing as PNG, by resvg; no browser and no display is needed."""

from typing import Any

from busbw.base.errors import InputError

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

"""The colours of figures, by name, on light and on dark ground.

They are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), darkened or lightened until each has a contrast of
at least 3 to its ground. No line is told by colour alone: `STYLES` gives each a dash and a marker of its own.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

Theme = Literal["light", "dark"]

_NAMED: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "--fig-paper": "#ffffff", "--fig-text": "#1b1f24", "--fig-grid": "#e4e8ec", "--fig-line": "#8c959f",
        "--fig-median": "#0072b2", "--fig-median-band": "rgba(0, 114, 178, 0.25)", "--fig-tail": "#a3487c",
        "--fig-busbw": "#00805f", "--fig-busbw-band": "rgba(0, 158, 115, 0.28)", "--fig-ceiling": "#d55e00",
        "--fig-expected": "#8a5a00", "--fig-expected-band": "rgba(230, 159, 0, 0.25)", "--fig-others": "#b4bcc5",
        "--fig-1": "#0072b2", "--fig-2": "#d55e00", "--fig-3": "#00805f", "--fig-4": "#a3487c",
        "--fig-5": "#3f86b5", "--fig-6": "#8a5a00", "--fig-7": "#4b5563", "--fig-8": "#7a4fbf",
    },
    "dark": {
        "--fig-paper": "#1d232a", "--fig-text": "#e6eaee", "--fig-grid": "#2c343d", "--fig-line": "#77828e",
        "--fig-median": "#56b4e9", "--fig-median-band": "rgba(86, 180, 233, 0.3)", "--fig-tail": "#e59ac4",
        "--fig-busbw": "#2fc79a", "--fig-busbw-band": "rgba(47, 199, 154, 0.3)", "--fig-ceiling": "#e69f00",
        "--fig-expected": "#f0e442", "--fig-expected-band": "rgba(240, 228, 66, 0.2)", "--fig-others": "#4a5561",
        "--fig-1": "#56b4e9", "--fig-2": "#e69f00", "--fig-3": "#2fc79a", "--fig-4": "#e59ac4",
        "--fig-5": "#8fd0f5", "--fig-6": "#f0e442", "--fig-7": "#c3cbd4", "--fig-8": "#bd9df0",
    },
}  # fmt: skip

# How much of the ground a band of a curve hides.
_BAND_ALPHA: Mapping[Theme, float] = {"light": 0.2, "dark": 0.25}
_CURVES = tuple(f"--fig-{number}" for number in range(1, 9))


def _bands(theme: Theme) -> Iterator[tuple[str, str]]:
    """Yield the colours of bands that belong to curves: theirs, seen through."""
    for name in _CURVES:
        red, green, blue = bytes.fromhex(_NAMED[theme][name].removeprefix("#"))
        yield f"{name}-band", f"rgba({red}, {green}, {blue}, {_BAND_ALPHA[theme]})"


COLOURS: Mapping[Theme, Mapping[str, str]] = {
    "light": {**_NAMED["light"], **dict(_bands("light"))},
    "dark": {**_NAMED["dark"], **dict(_bands("dark"))},
}

# Colour, dash and marker of the first, the second ... of several lines.
STYLES: tuple[tuple[str, str, str], ...] = (
    ("--fig-1", "solid", "circle"),
    ("--fig-2", "dash", "square"),
    ("--fig-3", "dot", "triangle-up"),
    ("--fig-4", "dashdot", "diamond"),
    ("--fig-5", "solid", "circle-open"),
    ("--fig-6", "dash", "square-open"),
    ("--fig-7", "dot", "triangle-up-open"),
    ("--fig-8", "dashdot", "diamond-open"),
)


def style_sheet() -> str:
    """Return the colours as properties of CSS: light, and dark for readers whose screen is dark."""
    light, dark = (
        " ".join(f"{name}: {value};" for name, value in COLOURS[theme].items()) for theme in ("light", "dark")
    )
    return (
        f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root:not(.on-paper) {{ {dark} }} }}\n"
    )

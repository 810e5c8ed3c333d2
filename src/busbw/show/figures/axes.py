"""Logarithmic axes whose labels a person would have chosen."""

from collections.abc import Iterator, Mapping
from itertools import count
from math import ceil, floor, inf, isfinite, log2, log10
from typing import Any, Literal

from busbw.base.units import format_size

# As many labels as fit beside each other on a phone.
_MOST_LABELS = 6
# From 8 B on: 8, 64, 512 B, 4 KiB ..., or every fourth, fifth, tenth power of two.
_STEPS = (1, 2, 3, 4, 5, 10)
# Between the outermost values and the frame, so that no marker stands on it: a share of the range, at least this.
_MARGIN_SHARE = 0.04
_LEAST_MARGIN_DECADES = 0.06
_MOST_COUNTS = 8
# Nothing is; what a file says beyond has no place on an axis.
_LARGEST = 1e300


def size_axis(sizes_bytes: list[int]) -> dict[str, Any]:
    """Return an axis of sizes, labelled at powers of two."""
    sizes = [size_bytes for size_bytes in sizes_bytes if size_bytes > 0] or [1]
    first, last = floor(log2(min(sizes))), ceil(log2(max(sizes)))
    by_step = ([exponent for exponent in range(first, last + 1) if exponent % step == 0] for step in _STEPS)
    exponents = next((found for found in by_step if len(found) <= _MOST_LABELS), [])
    ticks = [2**exponent for exponent in exponents] if len(set(sizes)) > 1 and exponents else [sizes[0]]
    labels = [format_size(tick) for tick in ticks]
    margin = max(_MARGIN_SHARE * log10(max(sizes) / min(sizes)), 0.1)
    axis_range = [log10(min(sizes)) - margin, log10(max(sizes)) + margin]
    return _axis("size", axis_range, [float(tick) for tick in ticks], labels)


def value_axis(title: str, values: list[float]) -> dict[str, Any]:
    """Return an axis that holds all positive `values`, labelled at decades, at 1-2-5, or evenly, as the range asks."""
    positive = [value for value in values if 1 / _LARGEST < value < _LARGEST] or [1.0]
    low, high = log10(min(positive)), log10(max(positive))
    margin = max(_MARGIN_SHARE * (high - low), _LEAST_MARGIN_DECADES)
    low, high = low - margin, high + margin
    if high - low < 0.3:
        low, high = low - 0.1, high + 0.1
    ticks = _ticks(low, high)
    return _axis(title, [low, high], ticks, [plain_number(tick) for tick in ticks])


def even_axis(title: str, values: list[float]) -> dict[str, Any]:
    """Return an axis that is not logarithmic and holds all `values`, of either sign."""
    finite = [value for value in values if abs(value) < _LARGEST] or [0.0]
    margin = 0.06 * (max(finite) - min(finite)) or 0.1 * abs(finite[0]) or 1.0
    low, high = min(finite) - margin, max(finite) + margin
    ticks = _even_ticks(low, high)
    return _axis(title, [low, high], ticks, [plain_number(tick) for tick in ticks]) | {"type": "linear"}


def zero_axis(title: str, values: list[float]) -> dict[str, Any]:
    """Return an axis that is not logarithmic and holds all `values` above zero, where it begins."""
    high = 1.06 * max((value for value in values if 0 < value < _LARGEST), default=1.0)
    ticks = _even_ticks(0.0, high)
    return _axis(title, [0.0, high], ticks, [plain_number(tick) for tick in ticks]) | {"type": "linear"}


def count_axis(title: str, counts: list[int]) -> dict[str, Any]:
    """Return a logarithmic axis of counts, labelled at some of them."""
    known = sorted({count for count in counts if count > 0}) or [1]
    margin = max(_MARGIN_SHARE * log10(known[-1] / known[0]), 0.1)
    every = ceil(len(known) / _MOST_COUNTS)
    ticks = known[::every]
    axis_range = [log10(known[0]) - margin, log10(known[-1]) + margin]
    return _axis(title, axis_range, [float(tick) for tick in ticks], [str(tick) for tick in ticks])


def plain_number(value: float) -> str:
    """Return a label without an exponent."""
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return text if len(text) < 8 else f"{value:.3g}"


def _ticks(low: float, high: float) -> list[float]:
    """Return values between 10**low and 10**high."""
    decades = high - low
    if decades >= 1:
        steps = (1.0,) if decades >= 2.5 else (1.0, 2.0, 5.0)
        every = ceil(decades / _MOST_LABELS)
        found = [
            float(f"{digit:g}e{exponent}")
            for exponent in range(floor(low), ceil(high) + 1)
            if exponent % every == 0
            for digit in steps
        ]
        return [tick for tick in found if low <= log10(tick) <= high]
    return _even_ticks(10**low, 10**high)


def _even_ticks(low: float, high: float) -> list[float]:
    unit = 10.0 ** floor(log10((high - low) / 4))
    step = min((unit * digit for digit in (1, 2, 5, 10) if (high - low) / (unit * digit) <= _MOST_LABELS), default=inf)
    if not isfinite(step):
        return [low]
    ticks: list[float] = []
    for number in count(ceil(low / step)):
        if number * step > high:
            return ticks
        ticks.append(float(f"{number * step:.12g}"))
    return ticks


def _axis(title: str, axis_range: list[float], ticks: list[float], labels: list[str]) -> dict[str, Any]:
    return {
        "type": "log",
        "title": {"text": title, "standoff": 6},
        "range": axis_range,
        "tickvals": ticks,
        "ticktext": labels,
        "tickangle": 0,
        "automargin": True,
        "zeroline": False,
        "showline": True,
    }


Theme = Literal["light", "dark"]

_NAMED: Mapping[Theme, Mapping[str, str]] = {
    "light": {
        "--fig-paper": "#ffffff", "--fig-text": "#1b1f24", "--fig-grid": "#e4e8ec", "--fig-line": "#8c959f",
        "--fig-median": "#0072b2", "--fig-median-band": "rgba(0, 114, 178, 0.25)", "--fig-tail": "#a3487c",
        "--fig-busbw": "#00805f", "--fig-busbw-band": "rgba(0, 158, 115, 0.28)", "--fig-ceiling": "#d55e00",
        "--fig-expected": "#8a5a00", "--fig-expected-band": "rgba(230, 159, 0, 0.25)", "--fig-others": "#b4bcc5",
        "--fig-1": "#0072b2", "--fig-2": "#d55e00", "--fig-3": "#00805f", "--fig-4": "#a3487c",
        "--fig-5": "#3f86b5", "--fig-6": "#8a5a00", "--fig-7": "#4b5563", "--fig-8": "#7a4fbf",
        "--fig-suspect": "#b3261e", "--fig-heat-0": "#eef1f4", "--fig-heat-1": "#fbdfa8", "--fig-heat-2": "#f2a541",
        "--fig-heat-3": "#d55e00", "--fig-heat-4": "#7a2100",
    },
    "dark": {
        "--fig-paper": "#1d232a", "--fig-text": "#e6eaee", "--fig-grid": "#2c343d", "--fig-line": "#77828e",
        "--fig-median": "#56b4e9", "--fig-median-band": "rgba(86, 180, 233, 0.3)", "--fig-tail": "#e59ac4",
        "--fig-busbw": "#2fc79a", "--fig-busbw-band": "rgba(47, 199, 154, 0.3)", "--fig-ceiling": "#e69f00",
        "--fig-expected": "#f0e442", "--fig-expected-band": "rgba(240, 228, 66, 0.2)", "--fig-others": "#4a5561",
        "--fig-1": "#56b4e9", "--fig-2": "#e69f00", "--fig-3": "#2fc79a", "--fig-4": "#e59ac4",
        "--fig-5": "#8fd0f5", "--fig-6": "#f0e442", "--fig-7": "#c3cbd4", "--fig-8": "#bd9df0",
        "--fig-suspect": "#ff8a80", "--fig-heat-0": "#2a323b", "--fig-heat-1": "#5b4a1e", "--fig-heat-2": "#a5680f",
        "--fig-heat-3": "#e69f00", "--fig-heat-4": "#fff0c2",
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

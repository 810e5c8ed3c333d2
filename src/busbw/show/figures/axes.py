"""Logarithmic axes whose labels a person would have chosen."""

from itertools import count
from math import ceil, floor, inf, isfinite, log2, log10
from typing import Any

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

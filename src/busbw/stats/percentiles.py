"""Percentiles, where there are enough samples to speak of them."""

from collections.abc import Sequence

WANTED = (1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
# A percentile is told only when at least this many samples lie beyond it.
_LEAST_BEYOND = 10


def percentiles(ordered: Sequence[float], wanted: Sequence[float] = WANTED) -> tuple[tuple[float, float], ...]:
    """Return (percentile, value) of ascending values for each wanted percentile with ten samples beyond it."""
    count = len(ordered)
    # Rounded: 0.1 % of 10,000 samples is ten, though not in binary fractions.
    return tuple(
        (percent, _value(ordered, percent))
        for percent in wanted
        if round(count * min(percent, 100 - percent) / 100, 6) >= _LEAST_BEYOND
    )


def _value(ordered: Sequence[float], percent: float) -> float:
    """Return the value at a percentile, linear between neighbours (Hyndman and Fan, 1996, definition 7)."""
    position = (len(ordered) - 1) * percent / 100
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (position - lower)

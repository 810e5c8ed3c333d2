"""Where on an axis a value stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any


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

"""A small plot of a scaling figure in characters: the machine doubles from left to right, every line has its mark."""

import math
from collections.abc import Callable, Sequence

from busbw.model.scaling import Scaling, ScalingPoint, ScalingSeries

_MARKS = "o+x#@%&s"
_LIMIT = "-"
_HEIGHT = 9
_LEAST_WIDTH = 24
_LONGEST_LABEL = 40
MOST_SERIES = len(_MARKS)

Value = Callable[[ScalingPoint], float | None]


def mark(number: int) -> str:
    """Return the mark of a line; of more than there are marks some share one."""
    return _MARKS[number % len(_MARKS)]


def plot_lines(
    view: Scaling, value: Value, label: Callable[[float], str], *, width: int, limit: Value | None = None
) -> list[str]:
    """Return the lines of the plot of what `value` says of each point; [] with fewer than two places.

    The axis of values begins at zero: a fall looks as large as it is. `label` writes a value beside it, and `limit` is
    drawn too, where it is no more than twice as high as the highest value.
    """
    places = sorted({point.at for series in view.series for point in series.points if value(point) is not None})
    if len(places) < 2:
        return []
    points = [point for series in view.series for point in series.points]
    drawn = [here for point in points if (here := value(point)) is not None]
    limits = [(point.at, here) for point in points if limit is not None and (here := limit(point)) is not None]
    top = max([*drawn, *(here for _, here in limits if here <= 2 * max(drawn))])
    margin = max(len(label(top)), len(label(0.0)))
    columns = max(_LEAST_WIDTH, width - margin - 3)
    canvas = [[" "] * columns for _ in range(_HEIGHT)]
    scale = _Scale(places[0], places[-1], top, columns)
    for at, height in limits:
        scale.put(canvas, at, height, _LIMIT)
    for number, series in enumerate(view.series):
        for point in series.points:
            here = value(point)
            if here is not None:
                scale.put(canvas, point.at, here, mark(number))
    lines = []
    for row, cells in enumerate(canvas):
        words = label(top) if row == 0 else label(top / 2) if row == _HEIGHT // 2 else ""
        words = label(0.0) if row == _HEIGHT - 1 else words
        lines.append(f"{words:>{margin}} |{''.join(cells).rstrip()}")
    return [*lines, f"{'':>{margin}} +{'-' * columns}", f"{'':>{margin}}  {_ticks(places, scale, columns)}"]


class _Scale:
    """Where a value lies among the characters: logarithmic over the machine, linear from zero upwards."""

    def __init__(self, first: int, last: int, top: float, columns: int) -> None:
        self._first = first
        self._doublings = max(math.log2(last / first), 1e-9)
        self._top = top
        self._columns = columns

    def column(self, at: int) -> int:
        """Return the column of a place."""
        return round(math.log2(at / self._first) / self._doublings * (self._columns - 1))

    def put(self, canvas: list[list[str]], at: int, value: float, sign: str) -> None:
        """Draw one character; what lies above the plot is left out, and lines that meet show the later one."""
        if not 0 <= value <= self._top * (1 + 1e-9):
            return
        row = _HEIGHT - 1 - round(value / self._top * (_HEIGHT - 1)) if self._top > 0 else _HEIGHT - 1
        canvas[row][self.column(at)] = sign


def _ticks(places: Sequence[int], scale: _Scale, columns: int) -> str:
    """Return the places under their columns, as many as fit."""
    line = [" "] * (columns + 8)
    free = 0
    for at in places:
        text = str(at)
        start = max(0, scale.column(at) - len(text) // 2)
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 1
    return "".join(line).rstrip()


def legend(series: Sequence[ScalingSeries], *, with_limit: bool) -> str:
    """Return what the marks mean; "" where there is nothing to tell apart."""
    words = [f"{mark(number)} {_short(each.label)}" for number, each in enumerate(series) if each.label]
    return "   ".join([*words, *([f"{_LIMIT} limit"] if with_limit else [])])


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 3]}..."

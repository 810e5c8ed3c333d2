"""Values over time as lines of text: a dot for each column of runs, levels as lines, changes as bars."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

_HEIGHT = 7
_LEAST_COLUMNS = 20
_DOT, _LEVEL, _BAR = "•", "─", "│"


def time_plot(
    values: Sequence[float], places: Sequence[int], *, shown: Callable[[float], str], width: int
) -> tuple[str, ...]:
    """Return lines at most `width` wide: values from left to right, and a bar where each of `places` begins.

    Of more values than there are columns, neighbours share one and it shows their median. Lines are those of the
    medians between the places.
    """
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.99, high * 1.01
    labels = [shown(high), shown((low + high) / 2), shown(low)]
    margin = max(map(len, labels))
    columns = min(len(values), max(width - margin - 2, _LEAST_COLUMNS))
    edges = [round(column * len(values) / columns) for column in range(columns + 1)]
    grid = [[" "] * columns for _ in range(_HEIGHT)]

    def line_of(value: float) -> int:
        return round((high - value) / (high - low) * (_HEIGHT - 1))

    bounds = [0, *places, len(values)]
    for first, last in pairwise(bounds):
        level = line_of(median(values[first:last]))
        for column in range(columns):
            if first <= edges[column] < last:
                grid[level][column] = _LEVEL
    for place in places:
        column = max(column for column in range(columns) if edges[column] <= place)
        for row in grid:
            row[column] = _BAR
    for column in range(columns):
        grid[line_of(median(values[edges[column] : max(edges[column + 1], edges[column] + 1)]))][column] = _DOT
    at = {0: labels[0], _HEIGHT // 2: labels[1], _HEIGHT - 1: labels[2]}
    return tuple(f"{at.get(number, ''):>{margin}} {''.join(row)}".rstrip() for number, row in enumerate(grid))

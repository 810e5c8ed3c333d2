"""Scaling figures as text for a terminal: the verdict, a table and a plot for each, what can be told, findings."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_rate, format_time, rate_range
from busbw.model.scaling import (
    AXIS_WORDS,
    PredictedPoint,
    Scaling,
    ScalingEstimate,
    ScalingPoint,
    ScalingReport,
    ScalingSeries,
)
from busbw.show.scaling_words import (
    VerdictParts,
    answer_words,
    difference_notes,
    half_interval,
    inside_word,
    interval_cell,
    interval_notes,
    left_out_words,
    meaning_words,
    predicted_at,
    prediction_words,
    verdict_parts,
)
from busbw.show.text.terminal import VERDICT_COLOURS, console, finding_text

_MARKS = "o+x#@%&s"
_LIMIT = "-"
_HEIGHT = 9
_LEAST_WIDTH = 24
_LONGEST_LABEL = 40

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


_NOT_KNOWN = ""
# What the interval of an efficiency is made of, as the heading of its column.
_INTERVALS = {"digits": "by rounding", "launches": "by launches", "samples": "by samples", None: "between"}
_BY = "limit by"
_PREDICTED = "predicted"
_PLOT_WIDTH = 72
# Of a narrow terminal.
_LEFT_OUT_FIRST = ("+-", "serial", *_INTERVALS.values(), _BY, "limit", "time")
_FIRST_COLUMN = 8
_MOST_NOTES = 12


def scaling_text(report: ScalingReport) -> None:
    """Print the verdict, every figure, the findings, and the verdict again."""
    out = console()
    verdict = verdict_parts(report.verdict)
    if verdict is not None:
        out.print(_verdict_line(verdict), soft_wrap=not out.is_terminal)
        out.print()
    for number, view in enumerate(report.views):
        if number:
            out.print()
        _view(out, view)
    for finding in report.findings:
        out.print(finding_text(finding), soft_wrap=not out.is_terminal)
        if finding.fix is not None:
            out.print(Text(printable(f"  fix: {finding.fix}")), soft_wrap=not out.is_terminal)
    if verdict is not None:
        out.print(_verdict_line(verdict), soft_wrap=not out.is_terminal)


def _verdict_line(verdict: VerdictParts) -> Text:
    return Text.assemble((verdict.word, VERDICT_COLOURS[verdict.tone]), printable(f": {verdict.sentence}"))


def _view(out: Console, view: Scaling) -> None:
    def say(words: str, style: str = "") -> None:
        out.print(Text(printable(words), style=style), soft_wrap=not out.is_terminal)

    say(_title(view), "bold")
    for number, series in enumerate(view.series):
        if series.label:
            say(f"{mark(number)} {series.label}")
        out.print(_table(view, series, out.width))
    for line in _plot(view, min(out.width, _PLOT_WIDTH)):
        say(line)
    for words in _told(view):
        say(words)
    for words in prediction_words(view):
        say(words)
    for words in _notes(view):
        say(f"note: {words}", "dim")


def _told(view: Scaling) -> Iterator[str]:
    """Yield what can be told of each line, how lines differ, and which points are not part of it."""
    for number, series in enumerate(view.series):
        for words in _answers(series):
            yield f"{mark(number)} {words}" if len(view.series) > 1 else words
    for difference in view.differences:
        yield difference.words
        for words in difference_notes(difference, view.axis):
            yield f"  {words}"
    yield from left_out_words(view, [mark(number) for number, _ in enumerate(view.series)])


def _notes(view: Scaling) -> list[str]:
    more = len(view.notes) - _MOST_NOTES
    rest = [f"{more} more notes with --json"] if more > 0 else []
    return [*meaning_words(view), *view.notes[:_MOST_NOTES], *rest, *interval_notes(view)]


def _title(view: Scaling) -> str:
    conditions = [
        f"{value} rank{'' if value == '1' else 's'} a node" if name == "ranks of a node" else value
        for name, value in view.conditions
        if name != "collective"
    ]
    where = f", limits of {view.platform}" if view.platform is not None else ""
    return ", ".join([f"{view.title} over {AXIS_WORDS[view.axis][1]}", *conditions]) + where


def _table(view: Scaling, series: ScalingSeries, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    points = series.points
    table.add_column(AXIS_WORDS[view.axis][1], justify="right", no_wrap=True)
    columns = _collective_columns(points) if view.kind == "collective" else _application_columns(view, points)
    columns += _predicted_columns(points, predicted_at(view, series))
    columns = _fitting(columns, width)
    for heading, _ in columns:
        table.add_column(heading, justify="left" if heading == _BY else "right", no_wrap=heading != _BY)
    left_out = dict(series.left_out)
    for row, point in enumerate(points):
        star = "*" if point.at in left_out else ""
        table.add_row(f"{star}{point.at}", *(cells[row] for _, cells in columns))
    return table


def _collective_columns(points: Sequence[ScalingPoint]) -> list[tuple[str, list[str]]]:
    columns = [
        ("time", [_time(point.time_s) for point in points]),
        ("busbw", [format_rate(point.busbw_Bps.value) if point.busbw_Bps else _NOT_KNOWN for point in points]),
        ("+-", [half_interval(point.busbw_Bps) for point in points]),
        ("limit", [format_rate(point.limit_Bps) if point.limit_Bps else _NOT_KNOWN for point in points]),
        ("of it", [_percent(point.of_limit) for point in points]),
        ("n", [str(point.observations) for point in points]),
        (_BY, [printable(_by(point)) for point in points]),
    ]
    return _filled(columns)


def _predicted_columns(
    points: Sequence[ScalingPoint], predicted: Mapping[int, PredictedPoint]
) -> list[tuple[str, list[str]]]:
    """Return what is predicted beside what was measured; no column where nothing was asked for."""
    here = [predicted.get(point.at) for point in points]
    columns = [
        (_PREDICTED, [_predicted(each) for each in here]),
        ("90 %", [rate_range(each.call.low_Bps, each.call.high_Bps) if each and each.call else "" for each in here]),
        ("measured", [inside_word(each, point.busbw_Bps) for each, point in zip(here, points, strict=True)]),
    ]
    return _filled(columns)


def _predicted(point: PredictedPoint | None) -> str:
    if point is None:
        return _NOT_KNOWN
    return format_rate(point.call.busbw_Bps) if point.call is not None else "cannot tell"


def _application_columns(view: Scaling, points: Sequence[ScalingPoint]) -> list[tuple[str, list[str]]]:
    columns = [
        ("time", [_time(point.time_s) for point in points]),
        (view.rate_unit or "rate", [_number(point.rate) for point in points]),
        ("+-", [half_interval(point.time_s or point.rate) for point in points]),
        ("speed-up", [_number(point.speedup) for point in points]),
        ("efficiency", [_percent(point.efficiency) for point in points]),
        (_interval_heading(points), [interval_cell(point.efficiency) for point in points]),
        ("serial", [_serial(point) for point in points]),
        ("n", [str(point.observations) for point in points]),
    ]
    return _filled(columns)


def _fitting(columns: list[tuple[str, list[str]]], width: int) -> list[tuple[str, list[str]]]:
    """Return the columns that fit beside each other; what is left out first is in --json all the same."""
    kept = list(columns)
    for name in _LEFT_OUT_FIRST:
        wide = _FIRST_COLUMN + sum(max(len(heading), *map(len, cells)) + 2 for heading, cells in kept)
        if wide > width:
            kept = [column for column in kept if column[0] != name]
    return kept


def _filled(columns: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Return the columns that say anything."""
    return [(heading, cells) for heading, cells in columns if any(cells)]


def _by(point: ScalingPoint) -> str:
    return (point.limit_words or "").removeprefix("by ")


def _time(estimate: ScalingEstimate | None) -> str:
    return format_time(estimate.value) if estimate is not None else _NOT_KNOWN


def _number(estimate: ScalingEstimate | None) -> str:
    if estimate is None:
        return _NOT_KNOWN
    value = estimate.value
    return f"{value:.0f}" if value >= 10_000 else f"{value:.4g}"


def _percent(estimate: ScalingEstimate | None) -> str:
    return f"{100 * estimate.value:.1f} %" if estimate is not None else _NOT_KNOWN


def _interval_heading(points: Sequence[ScalingPoint]) -> str:
    found = {point.efficiency.basis for point in points if point.efficiency is not None and point.efficiency.low}
    return _INTERVALS[next(iter(found))] if len(found) == 1 else _INTERVALS[None]


def _serial(point: ScalingPoint) -> str:
    if point.serial_share is None:
        return _NOT_KNOWN
    # Faster than the base allows: there is no such share.
    return f"{100 * point.serial_share:.3g} %" if point.serial_share >= 0 else "none"


def _plot(view: Scaling, width: int) -> list[str]:
    words = legend(view.series, with_limit=False)
    if view.kind != "collective":
        what, lines = "efficiency", plot_lines(view, _efficiency, _axis_share, width=width)
    elif all(series.judged_by == "time" for series in view.series):
        what, lines = "time", plot_lines(view, _seconds, _axis_time, width=width)
    else:
        what, lines = "bus bandwidth", plot_lines(view, _busbw, _axis_rate, limit=_limit, width=width)
        has_limit = any(point.limit_Bps for series in view.series for point in series.points)
        words = legend(view.series, with_limit=has_limit)
    if not lines:
        return []
    return ["", *lines, f"  {AXIS_WORDS[view.axis][1]}, {what} upwards{': ' if words else ''}{words}", ""]


def _efficiency(point: ScalingPoint) -> float | None:
    return point.efficiency.value if point.efficiency is not None else None


def _seconds(point: ScalingPoint) -> float | None:
    return point.time_s.value if point.time_s is not None else None


def _busbw(point: ScalingPoint) -> float | None:
    return point.busbw_Bps.value if point.busbw_Bps is not None else None


def _limit(point: ScalingPoint) -> float | None:
    return point.limit_Bps


def _axis_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _axis_time(time_s: float) -> str:
    return format_time(time_s) if time_s else "0"


def _axis_rate(rate_Bps: float) -> str:
    return format_rate(rate_Bps) if rate_Bps else "0"


def _answers(series: ScalingSeries) -> list[str]:
    """Return what can be told of a line, and what not."""
    is_empty = len(series.left_out) == len(series.points)
    return [] if is_empty else [*answer_words(series), *dict.fromkeys(each.words for each in series.beyond)]

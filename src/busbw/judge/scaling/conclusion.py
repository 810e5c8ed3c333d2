"""The verdict on scaling figures: one sentence that says what a reader came for, and what it rests on."""

import math
from collections.abc import Sequence

from busbw.base.text import counted, percent
from busbw.base.units import format_rate, percent_range
from busbw.facts.rules import finding
from busbw.judge.scaling.application import MOST_EFFICIENCY
from busbw.judge.scaling.places import LARGE_EFFECT, LEAST_EFFECT, several, workers
from busbw.model.finding import Finding
from busbw.model.scaling import Scaling, ScalingEstimate, ScalingOutcome, ScalingPoint, ScalingSeries, ScalingVerdict

# What leads, the gravest first.
_WARNINGS: tuple[tuple[tuple[str, ...], ScalingOutcome], ...] = (
    (("SCAL003",), "above_limit"),
    (("SCAL001", "SCAL002"), "slower"),
)
_SMALL = "SCAL004"
# So many sentences make a verdict; the others stand below the figures.
_MOST_SENTENCES = 2


def verdict_of(views: Sequence[Scaling], findings: Sequence[Finding]) -> ScalingVerdict:
    """Return the verdict on all figures together: what warns first, then differences of lines, then each line."""
    for codes, outcome in _WARNINGS:
        if warned := [each for each in findings if each.code in codes]:
            return _of_findings(outcome, warned)
    lines = [(view, series) for view in views for series in view.series]
    differences = [each.words for view in views for each in view.differences if each.answer != "cannot_tell"]
    falls = [f"{_name(*each)}: {each[1].bend.words}" for each in lines if each[1].bend and _bends(each[1])]
    level = [words for view, series in lines if (words := _level(view, series)) is not None]
    if differences:
        return _several("measured", differences)
    if falls:
        return _several("small_fall", falls, because=tuple(each.code for each in findings if each.code == _SMALL))
    if level:
        untold = len(lines) - len(level)
        return _several("level", level, f"; cannot tell of {counted(untold, 'other line')}" if untold else "")
    return _measured_or_untold(views, lines)


def _measured_or_untold(views: Sequence[Scaling], lines: Sequence[tuple[Scaling, ScalingSeries]]) -> ScalingVerdict:
    """Return what was reached on the largest machine; where no trend follows, that it cannot be told."""
    reached = [words for view, series in lines if (words := _measured(view, series)) is not None]
    if reached and any(_is_told(series) for _, series in lines):
        return _several("measured", reached)
    untold = [each.words for view in views for each in view.differences]
    untold += [
        answer.words
        for _, series in lines
        for answer in (series.bend, series.trend, series.serial)
        if answer is not None and len(series.left_out) < len(series.points)
    ]
    answers = [*reached, *dict.fromkeys(each.removeprefix("cannot tell ") for each in untold)]
    return _several("cannot_tell", answers or ["no trend from single points"])


def _of_findings(outcome: ScalingOutcome, findings: Sequence[Finding]) -> ScalingVerdict:
    first, *others = findings
    words = f"{first.title}: {first.evidence.split('; ')[0]}"
    return _several(outcome, [words, *(each.title for each in others)], because=tuple(each.code for each in findings))


def _several(
    outcome: ScalingOutcome, words: Sequence[str], rest: str = "", *, because: tuple[str, ...] = ()
) -> ScalingVerdict:
    left = len(words) - _MOST_SENTENCES
    more = f"; {counted(left, 'more answer')} below" if left > 0 else ""
    sentence = ". ".join(words[:_MOST_SENTENCES])
    return ScalingVerdict(outcome=outcome, sentence=sentence + more + rest, because=tuple(dict.fromkeys(because)))


def _bends(series: ScalingSeries) -> bool:
    return series.bend is not None and series.bend.answer == "bends"


def _is_told(series: ScalingSeries) -> bool:
    answers = (series.trend, series.bend, series.serial)
    return any(answer is not None and answer.answer != "cannot_tell" for answer in answers)


def _level(view: Scaling, series: ScalingSeries) -> str | None:
    """Return that the bus bandwidth of a line does not fall; None where it does, and where it cannot be told."""
    if view.kind != "collective" or series.judged_by != "busbw":
        return None
    bend, trend = series.bend, series.trend
    if bend is not None and bend.answer == "straight" and (trend is None or trend.answer != "falls"):
        return f"{_name(view, series)}: {bend.words}"
    if trend is not None and trend.answer in ("level", "rises"):
        return f"{_name(view, series)}: {trend.words}"
    return None


def _measured(view: Scaling, series: ScalingSeries) -> str | None:
    """Return what was reached on the largest machine; None where nothing follows from it."""
    if view.kind == "collective":
        return f"{_name(view, series)}: {series.trend.words}" if series.trend and _is_told(series) else None
    left_out = dict(series.left_out)
    kept = [point for point in series.points if point.at not in left_out and point.efficiency is not None]
    if not kept or kept[-1].efficiency is None or series.base in (None, kept[-1].at):
        return None
    share = kept[-1].efficiency
    if share.value > MOST_EFFICIENCY and view.kind == "weak":
        return None
    return (
        f"{_name(view, series)}: {100 * share.value:.1f} % efficiency on {workers(kept[-1].at, view.axis)} against "
        f"{workers(series.base or 0, view.axis)} ({_interval(share)}{counted(len(kept), 'point')})"
    )


def _interval(share: ScalingEstimate) -> str:
    if share.low is None or share.high is None:
        return ""
    basis = {"digits": "by rounding", "launches": "by the launches", "samples": "by the samples", None: ""}[share.basis]
    return f"{percent_range(share.low, share.high)} {basis}, "


def _name(view: Scaling, series: ScalingSeries) -> str:
    return f"{view.title} ({series.label})" if series.label and len(view.series) > 1 else view.title


_LONGEST_LABEL = 40
# Points with several nodes.
_LEAST_NODES = 2


def findings_of(view: Scaling) -> tuple[Finding, ...]:
    """Return the findings of one figure; that the efficiency of an application falls is none: it always does."""
    if view.kind != "collective":
        return _too_efficient(view)
    return tuple(found for series in view.series for found in (*_falling(view, series), *_impossible(view, series)))


def can_tell(view: Scaling) -> bool:
    """Whether a figure answers anything beyond the numbers themselves."""
    return any(
        answer is not None and answer.answer != "cannot_tell"
        for series in view.series
        for answer in (series.trend, series.bend, series.serial)
    ) or any(difference.answer != "cannot_tell" for difference in view.differences)


def _falling(view: Scaling, series: ScalingSeries) -> tuple[Finding, ...]:
    """Return a large drop, else a fall along the whole line, else a small drop, which is a note."""
    # Within one node, and for small messages, bandwidth falls with the ranks by nature.
    if series.judged_by != "busbw" or len({point.nodes for point in series.points} - {None, 1}) < _LEAST_NODES:
        return ()
    bend = series.bend
    bends = bend is not None and bend.answer == "bends"
    is_large = bends and bend is not None and (bend.largest_drop or 0.0) >= LARGE_EFFECT
    steady = () if is_large else _falling_all_along(view, series)
    if steady or bend is None or not bends or bend.at is None:
        return steady
    repeat = f"measure {bend.after} and {workers(bend.at, view.axis)} again with several launches each"
    then = "then pairs of the nodes that were added" if is_large else "and look for a cause only if the fall stays"
    return (
        finding(
            "SCAL001" if is_large else "SCAL004",
            what=_what(view, series),
            at=workers(bend.at, view.axis),
            evidence=f"{bend.words}; {_values(series, bend.at)}",
            fix=f"{repeat}, {then}",
        ),
    )


def _falling_all_along(view: Scaling, series: ScalingSeries) -> tuple[Finding, ...]:
    trend = series.trend
    if trend is None or trend.answer != "falls" or trend.per_doubling is None:
        return ()
    left_out = dict(series.left_out)
    at = [point.at for point in series.points if point.at not in left_out]
    fall = 1 - (1 + trend.per_doubling) ** math.log2(at[-1] / at[0])
    if fall < LARGE_EFFECT:
        return ()
    words = f"{trend.words}; {percent(fall)} from {at[0]} to {workers(at[-1], view.axis)}"
    return (
        finding(
            "SCAL002",
            what=_what(view, series),
            axis=several(view.axis),
            evidence=words,
            fix="measure the same number of nodes under one leaf switch and spread over several: where the spread ones "
            "are slower, look at the links between the switches and at routing",
        ),
    )


def _what(view: Scaling, series: ScalingSeries) -> str:
    label = series.label if len(series.label) <= _LONGEST_LABEL else f"{series.label[: _LONGEST_LABEL - 3]}..."
    return f"{view.title} ({label})" if label else view.title


def _values(series: ScalingSeries, at: int) -> str:
    left_out = dict(series.left_out)
    shown = [point for point in series.points if point.at not in left_out and point.busbw_Bps is not None]
    before = [format_rate(point.busbw_Bps.value) for point in shown if point.at < at and point.busbw_Bps is not None]
    after = [format_rate(point.busbw_Bps.value) for point in shown if point.at >= at and point.busbw_Bps is not None]
    return f"{', '.join(before)} before, {', '.join(after)} from there on"


def _too_efficient(view: Scaling) -> tuple[Finding, ...]:
    """Return one note where even the lower end of efficiencies is above what the base gives."""
    above = [
        (least, point, series)
        for series in view.series
        for point in series.points
        if point.efficiency is not None and (least := _least(point.efficiency)) > 1 + LEAST_EFFECT
    ]
    if not above:
        return ()
    share, point, series = max(above, key=lambda each: each[0])
    lines = len({each.label for _, _, each in above})
    places = counted(len(above), "point") + (f" of {counted(lines, 'line')}" if lines > 1 else "")
    label = f"{series.label}: " if series.label else ""
    return (
        finding(
            "SCAL005",
            what=view.title,
            places=places,
            evidence=f"the most is {label}{percent(share)} or more on {workers(point.at, view.axis)}, "
            f"against {workers(series.base or 0, view.axis)}",
            fix="give what sets the work as columns of the table, such as layers or cells, or choose another base: "
            "--base N",
        ),
    )


def _least(estimate: ScalingEstimate) -> float:
    return estimate.low if estimate.low is not None else estimate.value


def _impossible(view: Scaling, series: ScalingSeries) -> tuple[Finding, ...]:
    above = [point for point in series.points if _is_above(point)]
    if not above:
        return ()
    worst = max(above, key=lambda point: point.of_limit.value if point.of_limit is not None else 0.0)
    busbw_Bps = worst.busbw_Bps.value if worst.busbw_Bps is not None else 0.0
    share = worst.of_limit.value if worst.of_limit is not None else 0.0
    return (
        finding(
            "SCAL003",
            what=_what(view, series),
            places=counted(len(above), "point"),
            evidence=f"{workers(worst.at, view.axis)}: {format_rate(busbw_Bps)} is {percent(share)} of "
            f"{format_rate(worst.limit_Bps or 0.0)} {worst.limit_words}",
            fix="check the platform, the number of nodes and ranks, and with --algorithm what ran",
        ),
    )


def _is_above(point: ScalingPoint) -> bool:
    """Whether even the lower end is above the limit."""
    share = point.of_limit
    return share is not None and (share.low if share.low is not None else share.value) > 1

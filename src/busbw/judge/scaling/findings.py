"""What a scaling figure shows that somebody should look at."""

import math

from busbw.base.units import format_rate
from busbw.facts.findings import finding
from busbw.judge.phrases import counted, percent
from busbw.judge.scaling.places import several, workers
from busbw.judge.scaling.trend import LARGE_EFFECT, LEAST_EFFECT
from busbw.model.finding import Finding
from busbw.model.scaling import Estimate, Scaling, ScalingPoint, ScalingSeries

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


def _least(estimate: Estimate) -> float:
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

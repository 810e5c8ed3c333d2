"""How one line of a figure lies against another, matched by the size of the machine.

The difference is the geometric mean of the ratios at the sizes that both lines have, each size with the same weight,
and its interval Student's t over these sizes: it says how far the difference varies from size to size. How far two
runs of one system lie apart is not in it, unless each size was run several times. It is never narrower than the
rounding of the figures.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import fmean, stdev

from busbw.base.errors import InputError
from busbw.base.text import counted, listed, percent
from busbw.base.units import percent_range
from busbw.judge.scaling.lines import SYSTEM_NAMES, LineGroup
from busbw.judge.scaling.places import (
    CONFIDENCE,
    LEAST_PLACES,
    LinePlace,
    by_place,
    combined,
    half_width,
    ratio,
    several,
    trend_of,
    workers,
)
from busbw.model.scaling import (
    Axis,
    DifferenceAnswer,
    LineDifference,
    Observation,
    PairedPoint,
    ScalingEstimate,
    ScalingTrend,
)
from busbw.stats.distributions import student_quantile

# Of an observation what is compared, larger is better; None where it has none.
Value = Callable[[Observation], ScalingEstimate | None]
_SYSTEMS = 2
_LONGEST_NAME = 48
# Beyond this factor two results are of other things, or in other units.
_MOST_APART = 1e6


def differences_of(
    groups: Sequence[LineGroup],
    axis: Axis,
    value: Value,
    quantity: str,
    *,
    against: str | None = None,
    work_free: Collection[str] | None = None,
) -> tuple[LineDifference, ...]:
    """Return the difference of every line that has a line to be held against.

    `against`: the value of a setting, or the label of a line, that is the reference; None: the first of two lines, or
    the first of two systems. `work_free`: settings that may differ at one size; None: settings do not change the work.
    Raises InputError where no line is called `against`.
    """
    return tuple(
        _difference(line, reference, axis, value, quantity, work_free) for line, reference in _pairs(groups, against)
    )


def _pairs(groups: Sequence[LineGroup], against: str | None) -> Iterator[tuple[LineGroup, LineGroup]]:
    """Yield each line with its reference: the line that differs from it in the system alone."""
    if against is not None and (whole := next((each for each in groups if each.label == against), None)) is not None:
        yield from ((each, whole) for each in groups if each is not whole)
        return
    if against is None and len(groups) == _SYSTEMS:
        yield groups[1], groups[0]
        return
    name = _system_name(groups, against)
    if name is None:
        return
    wanted = against if against is not None else dict(groups[0].settings)[name]
    for each in groups:
        settings = dict(each.settings) | {name: wanted}
        reference = next((other for other in groups if dict(other.settings) == settings), None)
        if reference is not None and reference is not each:
            yield each, reference


def _system_name(groups: Sequence[LineGroup], against: str | None) -> str | None:
    """Return the setting that names the system; None where nobody says and there are not two of them."""
    values = {name: {dict(each.settings)[name] for each in groups} for each in groups for name, _ in each.settings}
    if against is None:
        return next((name for name in SYSTEM_NAMES if len(values.get(name, ())) == _SYSTEMS), None)
    found = next((name for name, known in values.items() if against in known), None)
    if found is None:
        there = sorted({each for known in values.values() for each in known})
        raise InputError(f"no line is called {against!r}", hint=f"there is {listed(there, 8) or 'one line only'}")
    return found


def _difference(
    line: LineGroup, reference: LineGroup, axis: Axis, value: Value, quantity: str, work_free: Collection[str] | None
) -> LineDifference:
    points: list[PairedPoint] = []
    unmatched: list[tuple[int, str]] = []
    shared, *names = _names(line, reference)
    own, other = by_place(line.observations, axis), by_place(reference.observations, axis)
    for at in sorted({*own, *other}):
        if at not in own or at not in other:
            unmatched.append((at, f"measured on {names[at in other]} only"))
        elif (why := _other_work(own[at], other[at], line, work_free)) is not None:
            unmatched.append((at, why))
        elif (change := _change(own[at], other[at], value)) is None:
            unmatched.append((at, "the two numbers cannot be compared"))
        else:
            points.append(
                PairedPoint(at=at, change=change, observations=len(own[at]), reference_observations=len(other[at]))
            )
    change, answer = _average(points)
    trend = _trend(points, axis) if len(points) >= LEAST_PLACES else None
    return LineDifference(
        line=line.label,
        reference=reference.label,
        quantity=quantity,
        answer=answer,
        change=change,
        confidence=CONFIDENCE,
        points=tuple(points),
        trend=trend,
        unmatched=tuple(unmatched),
        words=shared + _words(names, quantity, points, change, answer, axis) + _changing(points, trend, answer, axis),
        meaning=_meaning(points, trend, axis),
    )


def _names(line: LineGroup, reference: LineGroup) -> tuple[str, str, str]:
    """Return what both lines share, as the beginning of a sentence, and the name of each without it."""
    shared = tuple(each for each in line.settings if each in reference.settings)
    own, other = (
        _short(LineGroup(settings=tuple(each for each in side.settings if each not in shared), observations=()).label)
        for side in (line, reference)
    )
    beginning = LineGroup(settings=shared, observations=()).label
    return f"{beginning}: " if beginning else "", own or "this line", other or "the first line"


def _short(label: str) -> str:
    """Return a label for a sentence: conditions as somebody published them may be a paragraph."""
    words = label.rstrip(".")
    return words if len(words) <= _LONGEST_NAME else f"{words[: _LONGEST_NAME - 3].rstrip()}..."


def _other_work(
    own: Sequence[Observation], other: Sequence[Observation], line: LineGroup, free: Collection[str] | None
) -> str | None:
    """Return in what the two results of one size differ besides the system; None: in nothing that both tell."""
    kinds = [[dict(each.conditions) for each in side] for side in (own, other)]
    if free is not None:
        allowed = {*free, *(name for name, _ in line.settings)}
        kinds = [
            [
                {name: text for name, text in each.settings if name not in allowed} | conditions
                for each, conditions in pair
            ]
            for pair in (zip(own, kinds[0], strict=True), zip(other, kinds[1], strict=True))
        ]
    for name in dict.fromkeys(name for each in kinds[0] for name in each):
        sides = [{each[name] for each in side if name in each} for side in kinds]
        if all(sides) and sides[0] != sides[1]:
            return f"{name} {'/'.join(sorted(sides[0]))} against {'/'.join(sorted(sides[1]))}"
    return None


def _change(own: Sequence[Observation], other: Sequence[Observation], value: Value) -> ScalingEstimate | None:
    """Return how far above the reference a result lies, as a share."""
    sides = [[found for each in side if (found := value(each)) is not None] for side in (own, other)]
    if not all(sides):
        return None
    found = ratio(combined(sides[0]), combined(sides[1]))
    if found is None or not 1 / _MOST_APART < found.value < _MOST_APART:
        return None
    return ScalingEstimate(
        value=found.value - 1,
        low=found.low - 1 if found.low is not None else None,
        high=found.high - 1 if found.high is not None else None,
        basis=found.basis,
    )


def _average(points: Sequence[PairedPoint]) -> tuple[ScalingEstimate | None, DifferenceAnswer]:
    """Return the geometric mean with its interval, and what it shows."""
    if len(points) < LEAST_PLACES:
        return None, "cannot_tell"
    logs = [math.log1p(point.change.value) for point in points]
    middle = fmean(logs)
    half = student_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    lows = [point.change.low if point.change.low is not None else point.change.value for point in points]
    highs = [point.change.high if point.change.high is not None else point.change.value for point in points]
    low = min(middle - half, fmean(math.log1p(max(each, -0.999)) for each in lows))
    high = max(middle + half, fmean(math.log1p(each) for each in highs))
    change = ScalingEstimate(value=math.expm1(middle), low=math.expm1(low), high=math.expm1(high))
    if low > 0:
        return change, "above"
    return change, "below" if high < 0 else "none_shown"


def _trend(points: Sequence[PairedPoint], axis: Axis) -> ScalingTrend:
    """Return how the ratio changes with the size of the machine."""
    places = []
    for point in points:
        low = 1 + point.change.low if point.change.low is not None else None
        high = 1 + point.change.high if point.change.high is not None else None
        ratio_here = ScalingEstimate(value=1 + point.change.value, low=low, high=high, basis=point.change.basis)
        places.append(
            LinePlace(at=point.at, values=(ratio_here.value,), estimate=ratio_here, rounding=half_width(ratio_here))
        )
    return trend_of(places, axis, "the ratio")


def _words(
    names: Sequence[str],
    quantity: str,
    points: Sequence[PairedPoint],
    change: ScalingEstimate | None,
    answer: DifferenceAnswer,
    axis: Axis,
) -> str:
    if not points:
        return f"cannot tell how {names[0]} differs from {names[1]}: no size of the machine with the same work in both"
    if change is None or change.low is None or change.high is None:
        each = listed(
            [f"{_side(point.change.value)} at {workers(point.at, axis)}{_rounded(point)}" for point in points]
        )
        few = f"{counted(len(points), 'point')} in common, three are the least for an interval"
        return f"{names[0]} against {names[1]} in {quantity}: {each} ({few})"
    if answer != "none_shown":
        nearer, farther = sorted((abs(change.low), abs(change.high)))
        interval = f"{percent_range(nearer, farther)} {'below' if answer == 'below' else 'above'}"
    else:
        interval = f"{_side(change.low)} to {_side(change.high)}"
    rests = f"{counted(len(points), 'point')}, {points[0].at} to {workers(points[-1].at, axis)}"
    lead = "on average no difference is shown: " if answer == "none_shown" else ""
    return (
        f"{lead}{names[0]} is {_side(change.value)} {names[1]} in {quantity} "
        f"({percent(CONFIDENCE)} interval {interval}, {rests})"
    )


def _rounded(point: PairedPoint) -> str:
    low, high = point.change.low, point.change.high
    if low is None or high is None:
        return ""
    what = "by rounding" if point.change.basis == "digits" else "by its interval"
    return f", {percent_range(low, high)} {what}"


def _changing(points: Sequence[PairedPoint], trend: ScalingTrend | None, answer: DifferenceAnswer, axis: Axis) -> str:
    """Return that the difference is not one number, where that is shown."""
    if trend is None or trend.answer not in ("falls", "rises"):
        return ""
    ends = [f"{_side(point.change.value)} at {point.at}" for point in (points[0], points[-1])]
    but = "but " if answer == "none_shown" else ""
    return f"; {but}it changes with the {several(axis)}: {', '.join(ends)}"


def _meaning(points: Sequence[PairedPoint], trend: ScalingTrend | None, axis: Axis) -> str:
    """Return what the interval is made of, and what it leaves out."""
    is_single = all(point.observations == point.reference_observations == 1 for point in points)
    runs = (
        "every figure is a single result, so how far two runs of one system lie apart is not in it, and the difference "
        "may be one between runs"
        if is_single
        else "of several results at one size the median is taken; their spread is in it only as far as it moves medians"
    )
    if len(points) < LEAST_PLACES:
        return f"no interval over sizes; {runs}"
    changes = trend is not None and trend.answer in ("falls", "rises")
    holds = "; as the difference changes with the size, the average holds for these sizes only" if changes else ""
    return (
        f"the interval is how far the difference varies over these {len(points)} numbers of {several(axis)} (Student's "
        f"t, each with the same weight); {runs}{holds}"
    )


def _side(share: float) -> str:
    return f"{100 * abs(share):.1f} % {'below' if share < 0 else 'above'}"

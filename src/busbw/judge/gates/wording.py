"""What gates came to, in words."""

from collections.abc import Callable, Sequence

from busbw.base.units import format_size
from busbw.judge.gates.expression import RATE_UNITS, TIME_UNITS
from busbw.judge.phrases import counted
from busbw.model.gates import Gate, GateAnswer, GateOutcome, GatePoint
from busbw.model.point_row import PointRow

_MOST_DECIMALS = 9
_ALL: dict[GateOutcome, str] = {"pass": "pass", "fail": "fail", "cannot_tell": "cannot tell"}
# Whether a point is one that a gate is for, by its size.
_Fits = Callable[[Gate, int | None], bool]


def all_words(outcome: GateOutcome, answers: Sequence[GateAnswer]) -> str:
    """Return what all gates came to in one line: `fail: 1 of 4 gates; 1 cannot be told, 2 pass`."""
    counts = {each: sum(answer.outcome == each for answer in answers) for each in _ALL}
    total = counted(len(answers), "gate")
    if counts[outcome] == len(answers):
        return f"{_ALL[outcome]}: {'all ' if len(answers) > 1 else ''}{total}"
    others: dict[GateOutcome, str] = {"cannot_tell": "cannot be told", "pass": "pass"}
    rest = [
        f"{counts[each]} {word if counts[each] > 1 else word.replace('pass', 'passes')}"
        for each, word in others.items()
        if counts[each] and each != outcome
    ]
    return f"{_ALL[outcome]}: {counts[outcome]} of {total}; {', '.join(rest)}"


def answer_words(gate: Gate, outcome: GateOutcome, points: Sequence[GatePoint]) -> str:
    """Return what a gate came to: the point that decides it, with its numbers, and how many there are like it."""
    alike = [point for point in points if point.outcome == outcome]
    worst = min(alike, key=_margin)
    named = _named(gate, worst, points)
    if worst.value is None:
        place = named.removeprefix(", ").removeprefix(" at ")
        said = f"{place}: {worst.why}" if place else f"{worst.why}"
    else:
        said = f"{_numbers(gate, worst)}{named}" + (f": {worst.why}" if worst.why else "")
    if len(points) > 1:
        share = f"all {len(points)}" if len(alike) == len(points) else f"{len(alike)} of {len(points)}"
        said = f"{share} points, {_which(gate)}{said}" if worst.value is not None else f"{share} points: {said}"
    unchecked = sum(not point.checked and point.value is not None for point in points)
    if not unchecked:
        return said
    results = "the result" if len(points) == 1 else f"{unchecked} of {len(points)} results"
    return f"{said}; nobody checked {results}"


def _which(gate: Gate) -> str:
    """Return which of several points is quoted."""
    if gate.requirement == "within":
        return "the worst "
    return "the least " if gate.requirement == "at_least" else "the longest "


def _margin(point: GatePoint) -> float:
    """Return how much better than the bound a point is, as a ratio; wrong results first, then what has no number."""
    if point.value is None or not point.bound:
        return -1.0 if point.outcome == "fail" else 0.0
    return point.value / point.bound if point.unit == "B/s" else point.bound / point.value


def _named(gate: Gate, point: GatePoint, points: Sequence[GatePoint]) -> str:
    """Return what tells a point from the others of its gate, ` at 1 GiB, in place`; "" for one that the gate names."""
    size, *parts = point.name.split(", ")
    sized = [set(each.name.split(", ")) for each in points if each.size_bytes is not None]
    shared = set.intersection(*sized) if sized else set()
    forms = "".join(f", {part}" for part in parts if part not in shared)
    if gate.collective is not None and gate.from_bytes == gate.to_bytes == point.size_bytes:
        return forms
    return f" at {'' if gate.collective is not None else f'{point.collective} '}{size}{forms}"


def _numbers(gate: Gate, point: GatePoint) -> str:
    """Return a value and its interval in the unit of its gate, with as many decimals as tell it from the bound."""
    if point.value is None:
        return "no number"
    unit = gate.unit if gate.unit != "%" else _usual_unit(point)
    scale = (RATE_UNITS | TIME_UNITS)[unit]
    bound = (point.bound or 0.0) / scale
    decimals = _decimals(point.value / scale, bound)
    said = f"{point.value / scale:.{decimals}f} {unit}"
    if point.low is not None and point.high is not None:
        said += f" (95 %: {point.low / scale:.{decimals}f} to {point.high / scale:.{decimals}f})"
    if point.baseline is not None and point.bound is not None:
        share = point.value / point.baseline - 1
        said += f", {100 * share:+.1f} % against {point.baseline / scale:.{decimals}f}"
    return said


def _usual_unit(point: GatePoint) -> str:
    if point.unit == "s":
        return "us"
    return "GB/s" if (point.value or 0.0) >= 1e8 else "MB/s"


def _decimals(value: float, bound: float) -> int:
    """Return enough decimals for three digits of a value, and to tell it from its bound."""
    decimals = 1 if value >= 100 else 2
    while decimals < _MOST_DECIMALS and (
        value < 10 ** (2 - decimals) or (value != bound and f"{value:.{decimals}f}" == f"{bound:.{decimals}f}")
    ):
        decimals += 1
    return decimals


def why_nothing(gate: Gate, rows: Sequence[PointRow], fits: _Fits) -> str:
    """Return why a gate has no point among `rows`: what was measured in its place."""
    own = [row for row in rows if gate.collective in (None, row.collective)]
    if not own:
        names = dict.fromkeys(row.collective for row in rows)
        return f"no {gate.collective or 'point'} was measured" + (f", only {', '.join(names)}" if names else "")
    if any(fits(gate, row.size_bytes) for row in own):
        return f"measured, but not so: {_forms([row for row in own if fits(gate, row.size_bytes)])}"
    sizes = sorted({row.size_bytes for row in own if row.size_bytes is not None})
    if not sizes:
        return "measured without a size"
    below = [size for size in sizes if gate.from_bytes is None or size < gate.from_bytes]
    above = [size for size in sizes if gate.to_bytes is not None and size > gate.to_bytes]
    near = [format_size(size) for size in (*below[-1:], *above[:1])]
    asked = format_size(gate.from_bytes) if gate.from_bytes is not None and gate.from_bytes == gate.to_bytes else None
    return (
        f"{asked or 'no such size'} was not measured; the nearest {'is' if len(near) == 1 else 'are'} "
        + " and ".join(near)
    )


def _forms(rows: Sequence[PointRow]) -> str:
    """Return in which forms points were measured: data types, operations, placements, ranks."""
    places = {True: "in place", False: "out of place", None: ""}
    forms = dict.fromkeys(
        ", ".join(
            part
            for part in (row.dtype, row.op, places[row.in_place], f"{row.ranks} ranks" if row.ranks is not None else "")
            if part
        )
        or "in a form that the tool does not tell"
        for row in rows
    )
    return "; ".join(list(forms)[:3]) + (f"; and {len(forms) - 3} other forms" if len(forms) > 3 else "")

"""Which points a gate holds, whether they pass, and the baseline that percentages are of."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from busbw.base.collectives import COLLECTIVES, collective_named
from busbw.base.errors import InputError
from busbw.base.text import counted, listed, maybe
from busbw.base.units import format_size
from busbw.judge.comparing.fairness import REFUSED, differences
from busbw.judge.comparing.launch import Circumstances
from busbw.judge.gates.expression import RATE_UNITS, TIME_UNITS, format_gate
from busbw.judge.usable import least_samples
from busbw.model.comparison import Side
from busbw.model.finding import Verdict
from busbw.model.gates import (
    Baseline,
    Gate,
    GateAnswer,
    GateAnswers,
    GateOutcome,
    GatePoint,
    PointRow,
    is_missing,
    is_wrong,
    point_name,
    same_point,
)
from busbw.stats.distributions import median

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
    results = "the result was" if len(points) == 1 else f"{unchecked} of {len(points)} results were"
    return f"{said}; {results} not checked"


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


# Collectives that are split over ranks are measured at the next size below that has equal parts.
_ROUNDING = 0.01
# Tables print bandwidths in steps of 0.01 GB/s, which is coarse below this.
_PRINTED_STEP_Bps = 0.01e9
_PRECISE_Bps = 10e9
# Numbers that differ by less differ by how they were computed.
_SAME = 1e-9
_TAILS: dict[str | None, Callable[[PointRow], float | None]] = {
    "p95": lambda row: row.p95_s,
    "p99": lambda row: row.p99_s,
    "slowest": lambda row: row.max_s,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedPoints:
    """The points of a result, or of a baseline, planned ones too, and what may be missing among them."""

    name: str
    rows: tuple[PointRow, ...]
    # Tables that were cut off; and tables with a line that could not be read, and which.
    cut_off: frozenset[int] = frozenset()
    torn: Mapping[int, int] = field(default_factory=dict)
    # Why points that were planned were not measured.
    why_missing: str = "it was not measured"
    # Of rows that cannot be right, by the file and line they were read from: why.
    doubts: Mapping[str | None, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class _GateValue:
    """What is compared, with its interval where it has one."""

    unit: Literal["B/s", "s"]
    value: float
    low: float | None = None
    high: float | None = None
    statistic: str


def answers(
    gates: Sequence[Gate], result: GatedPoints, baseline: GatedPoints | None = None, notes: Sequence[str] = ()
) -> GateAnswers:
    """Return what each gate comes to, in their order. `notes`: how the baseline was measured otherwise.

    Raises InputError for an unknown collective.
    """
    gates = _of_collectives(gates, result, baseline)
    answered = tuple(_answer(gate, result, baseline) for gate in gates)
    outcome = _together(each.outcome for each in answered)
    points = [point for each in answered for point in each.points]
    said = []
    if any(point.value is not None and point.low is None for point in points):
        statistics = dict.fromkeys(point.statistic for point in points if point.value is not None and point.low is None)
        said.append(f"where no interval is shown the one number decides: {', '.join(statistics)}")
    used = None
    if baseline is not None:
        more = _only_in_result(gates, result, baseline)
        used = Baseline(name=baseline.name, notes=(*notes, *((more,) if more is not None else ())))
    return GateAnswers(
        outcome=outcome, sentence=all_words(outcome, answered), answers=answered, baseline=used, notes=tuple(said)
    )


def _of_collectives(gates: Sequence[Gate], *held: GatedPoints | None) -> tuple[Gate, ...]:
    """Return the gates with the collectives that are meant; what a result calls by the same word goes first."""
    known = {*COLLECTIVES, *(row.collective for each in held if each is not None for row in each.rows)}
    found = []
    for gate in gates:
        name = gate.collective
        if name is not None and name not in known:
            name = collective_named(name)
        if name is None and gate.collective is not None:
            raise InputError(
                f"{gate.collective!r} is not a collective, and nothing in the result is called so"
                f"{maybe(gate.collective, known)}",
                where=format_gate(gate),
            )
        found.append(msgspec.structs.replace(gate, collective=name))
    return tuple(found)


def _together(outcomes: Iterable[GateOutcome]) -> GateOutcome:
    found = set(outcomes)
    if "fail" in found:
        return "fail"
    return "pass" if found == {"pass"} else "cannot_tell"


def _answer(gate: Gate, result: GatedPoints, baseline: GatedPoints | None) -> GateAnswer:
    rows = [row for row in result.rows if selects(gate, row)]
    if gate.requirement == "within" and baseline is not None:
        points = tuple(_against(gate, result, rows, baseline))
        searched: Sequence[PointRow] = (*result.rows, *baseline.rows)
    else:
        points = (*(_bounded(gate, row, result) for row in rows), *_gaps(gate, result, rows))
        searched = result.rows
    outcome = _together(point.outcome for point in points)
    sentence = answer_words(gate, outcome, points) if points else why_nothing(gate, searched, fits)
    text = f"{'within ' if gate.requirement == 'within' else ''}{format_gate(gate)}"
    return GateAnswer(gate=gate, text=text, outcome=outcome, sentence=sentence, points=points)


def selects(gate: Gate, row: PointRow) -> bool:
    """Whether a gate is for a point. Where a size is too small to be split over the ranks nothing was sent."""
    collective = COLLECTIVES.get(row.collective)
    return (
        gate.collective in (None, row.collective)
        and not (row.size_bytes == 0 and collective is not None and collective.splits)
        and fits(gate, row.size_bytes)
        and all(
            asked is None or asked == measured
            for asked, measured in (
                (gate.dtype, row.dtype),
                (gate.op, row.op),
                (gate.in_place, row.in_place),
                (gate.ranks, row.ranks),
            )
        )
    )


def fits(gate: Gate, size_bytes: int | None) -> bool:
    """Whether a size is one of a gate's, or differs from its least by rounding only."""
    if size_bytes is None:
        return gate.from_bytes is None and gate.to_bytes is None
    low, high = gate.from_bytes, gate.to_bytes
    return (low is None or size_bytes >= low * (1 - _ROUNDING)) and (high is None or size_bytes <= high)


def _gaps(gate: Gate, result: GatedPoints, rows: Sequence[PointRow]) -> Iterator[GatePoint]:
    """Yield a point that cannot be told for each table that may lack sizes of a range."""
    if gate.from_bytes is not None and gate.from_bytes == gate.to_bytes:
        return
    for table in dict.fromkeys(row.table for row in rows):
        own = [row for row in rows if row.table == table]
        largest = max((row.size_bytes or 0 for row in own), default=0)
        if table in result.torn:
            why = f"line {result.torn[table]} of the table could not be read"
            yield _untold(gate, own[-1], why, name="other sizes, which may be missing")
        elif table in result.cut_off and (gate.to_bytes is None or gate.to_bytes > largest):
            why = "the table was cut off"
            yield _untold(gate, own[-1], why, name="larger sizes, which may be missing")


def _bounded(gate: Gate, row: PointRow, result: GatedPoints) -> GatePoint:
    """Return a point held against the number of a gate."""
    held = _held(gate, row, result)
    if isinstance(held, GatePoint):
        return held
    unit = RATE_UNITS if gate.requirement == "at_least" else TIME_UNITS
    return _compared(gate, row, held, gate.number * unit[gate.unit])


def _held(gate: Gate, row: PointRow, result: GatedPoints, *, by_time: bool | None = None) -> _GateValue | GatePoint:
    """Return what of a point is compared, or the point where nothing can be."""
    if is_wrong(row):
        return _point(gate, row, outcome="fail", why=f"the result is wrong: {row.wrong} elements")
    if is_missing(row):
        return _untold(gate, row, result.why_missing)
    if gate.checked and not row.verified:
        return _untold(gate, row, "the result was not checked")
    if row.read_from in result.doubts:
        return _untold(gate, row, f"it cannot be right: {result.doubts[row.read_from]}")
    value = _value(gate, row, by_time=_is_time(gate) if by_time is None else by_time)
    return _untold(gate, row, value) if isinstance(value, str) else value


def _is_time(gate: Gate) -> bool:
    return gate.requirement == "at_most" or gate.measure in _TAILS


def _value(gate: Gate, row: PointRow, *, by_time: bool) -> _GateValue | str:
    """Return a value of a measured row, or why there is none."""
    if gate.measure in _TAILS:
        time_s = _TAILS[gate.measure](row)
        why = "too few samples for it" if row.kind == "run" else f"{row.backend} does not print it"
        return (
            _GateValue(unit="s", value=time_s, statistic=str(gate.measure))
            if time_s
            else f"no {gate.measure} is known: {why}"
        )
    interval = _interval(row)
    if isinstance(interval, str):
        return interval
    if by_time:
        if not row.time_s:
            return f"{row.backend} prints no time for it"
        low, high = interval or (None, None)
        return _GateValue(unit="s", value=row.time_s, low=low, high=high, statistic=row.statistic)
    rate_Bps = _rate(gate, row)
    if not rate_Bps:
        return f"{row.backend} prints no bandwidth for it: bound its time (--at-most)"
    low, high = (rate_Bps * row.time_s / end for end in reversed(interval)) if interval and row.time_s else (None, None)
    return _GateValue(unit="B/s", value=rate_Bps, low=low, high=high, statistic=row.statistic)


def _rate(gate: Gate, row: PointRow) -> float | None:
    """Return the bandwidth that a gate is for: as it is printed, or what was rounded to that where it is small."""
    printed_Bps = row.algbw_Bps if gate.measure == "algbw" else row.busbw_Bps
    if printed_Bps is None:
        return row.bandwidth_Bps if gate.measure is None else None
    if printed_Bps >= _PRECISE_Bps or not (row.time_s and row.size_bytes and row.ranks):
        return printed_Bps
    collective = COLLECTIVES.get(row.collective)
    if collective is None:
        return printed_Bps
    factor = (collective.algbw_factor if gate.measure == "algbw" else collective.factor)(row.ranks)
    exact_Bps = factor * row.size_bytes / row.time_s
    return exact_Bps if abs(exact_Bps - printed_Bps) <= _PRINTED_STEP_Bps else printed_Bps


def _interval(row: PointRow) -> tuple[float, float] | str | None:
    """Return the interval of the median in seconds; None where one number is all there is, or why there is none.

    A mean that another program printed is one number. Of samples that were taken here there are enough, or nothing is
    told.
    """
    if row.low_s is None or row.high_s is None or row.samples is None:
        return None
    needed = least_samples(row.confidence if row.confidence is not None else 0.95)
    if row.samples >= needed:
        return row.low_s, row.high_s
    if row.backend.startswith("native-"):
        return f"{row.samples} samples, and an interval takes {needed}"
    return None


def _compared(gate: Gate, row: PointRow, held: _GateValue, bound: float, baseline: float | None = None) -> GatePoint:
    ends = [end for end in (held.low, held.high) if end is not None] or [held.value]
    meets = [_meets(end, bound, held.unit) for end in ends]
    outcome: GateOutcome = "pass" if all(meets) else "cannot_tell" if any(meets) else "fail"
    return _point(
        gate,
        row,
        outcome=outcome,
        value=held,
        bound=bound,
        baseline=baseline,
        why="the bound lies within the interval, which more samples narrow" if outcome == "cannot_tell" else None,
    )


def _meets(value: float, bound: float, unit: str) -> bool:
    return value >= bound * (1 - _SAME) if unit == "B/s" else value <= bound * (1 + _SAME)


def _against(gate: Gate, result: GatedPoints, rows: Sequence[PointRow], baseline: GatedPoints) -> Iterator[GatePoint]:
    """Yield the points that a result has in common with a baseline, and those that it lacks."""
    before: dict[object, list[PointRow]] = {}
    for row in baseline.rows:
        if selects(gate, row) and not is_missing(row):
            before.setdefault(same_point(row), []).append(row)
    for row in rows:
        if (known := before.get(same_point(row))) is not None:
            yield _held_against(gate, row, known, result)
    there = {same_point(row) for row in result.rows}
    for key, known in before.items():
        if key not in there:
            yield _untold(gate, known[0], "the baseline has it, the result does not")


def _held_against(gate: Gate, row: PointRow, before: Sequence[PointRow], result: GatedPoints) -> GatePoint:
    """Return a point held against the same of a baseline, of several repetitions against their median."""
    rates = gate.measure == "algbw" or (
        row.collective != "latency" and not _is_time(gate) and all(_rate(gate, each) for each in (row, *before))
    )
    held = _held(gate, row, result, by_time=not rates)
    if isinstance(held, GatePoint):
        return held
    if any(is_wrong(each) for each in before):
        return _untold(gate, row, "the baseline's result is wrong")
    known = [_value(gate, each, by_time=not rates) for each in before]
    missing = next((each for each in known if isinstance(each, str)), None)
    if missing is not None:
        return _untold(gate, row, f"of the baseline: {missing}")
    centre = median(sorted(each.value for each in known if isinstance(each, _GateValue)))
    share = gate.number / 100
    return _compared(gate, row, held, centre * (1 - share if rates else 1 + share), centre)


def _only_in_result(gates: Sequence[Gate], result: GatedPoints, baseline: GatedPoints) -> str | None:
    """Return how many points the baseline does not have, of those that gates are for."""
    before = {same_point(row) for row in baseline.rows if not is_missing(row)}
    relative = [gate for gate in gates if gate.requirement == "within"]
    new = [
        row
        for row in result.rows
        if same_point(row) not in before and not is_missing(row) and any(selects(gate, row) for gate in relative)
    ]
    if not new:
        return None
    first = f"{new[0].collective} {point_name(new[0])}"
    what = f"{counted(len(new), 'point')} of the result, not held against it: {first}"
    return f"it lacks {what}{' and others' if len(new) > 1 else ''}"


def _untold(gate: Gate, row: PointRow, why: str, *, name: str | None = None) -> GatePoint:
    return _point(gate, row, outcome="cannot_tell", why=why, name=name)


def _point(
    gate: Gate,
    row: PointRow,
    *,
    outcome: GateOutcome,
    value: _GateValue | None = None,
    bound: float | None = None,
    baseline: float | None = None,
    why: str | None = None,
    name: str | None = None,
) -> GatePoint:
    unit: Literal["B/s", "s"] = "s" if _is_time(gate) else "B/s"
    return GatePoint(
        collective=row.collective,
        name=name or point_name(row),
        size_bytes=row.size_bytes if name is None else None,
        ranks=row.ranks,
        value=value.value if value is not None else None,
        low=value.low if value is not None else None,
        high=value.high if value is not None else None,
        bound=bound,
        unit=value.unit if value is not None else unit,
        baseline=baseline,
        statistic=value.statistic if value is not None else row.statistic,
        checked=row.verified,
        read_from=row.read_from,
        outcome=outcome,
        why=why,
    )


# Of differences that are refused the one that explains others: programs have modes of their own.
_PROGRAMS = "CMP003"
_RANKS = "CMP002"
_HINT = "measure both the same way, or hold the result against numbers: --at-least 'all_reduce@1G=380GB/s'"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPoints:
    """A result or a baseline: its points, how they were measured, and on what. (), 0 and None: not known."""

    held: GatedPoints
    circumstances: Circumstances
    # Names of the GPUs, or of the processors where there are none.
    devices: tuple[str, ...] = ()
    hosts: int = 0
    platform: str | None = None
    # Of a run.
    verdict: Verdict | None = None


def agreed(circumstances: Sequence[Circumstances], rows: Sequence[PointRow]) -> Circumstances:
    """Return in what all tables of an import were measured alike; ranks are those of its points."""
    first, *others = circumstances or ({},)
    alike = {code: words for code, words in first.items() if all(other.get(code) == words for other in others)}
    alike.pop(_RANKS, None)
    ranks = {row.ranks for row in rows}
    number = ranks.pop() if len(ranks) == 1 else None
    return alike if number is None else alike | {_RANKS: counted(number, "rank")}


def notes_on(baseline: MeasuredPoints, result: MeasuredPoints) -> tuple[str, ...]:
    """Return what to know of a baseline that a result is held against.

    Raises InputError where they are not of the same thing: other machines, numbers of ranks, modes, programs,
    statistics; or not a point in common.
    """
    for what, words in _other_machine(baseline, result):
        raise _not_comparable(what, words)
    sides = tuple(Side(letter=name, name=name, kind="import", launches=()) for name in ("baseline", "result"))
    found = differences(sides, (baseline.circumstances, result.circumstances))
    for each in sorted((each for each in found if each.code in REFUSED), key=lambda each: each.code != _PROGRAMS):
        raise _not_comparable(each.title, each.evidence)
    common = _keys(baseline.held) & _keys(result.held)
    if not common:
        raise _not_comparable(
            "no point in common", f"baseline: {_points(baseline.held)}; result: {_points(result.held)}"
        )
    return (*_judged(baseline), *(f"{each.title}: {each.evidence}" for each in found))


def _not_comparable(what: str, words: str) -> InputError:
    return InputError(f"the baseline is not comparable: {what}: {words}", hint=_HINT)


def _other_machine(baseline: MeasuredPoints, result: MeasuredPoints) -> Iterator[tuple[str, str]]:
    """Yield in what two machines differ, where both are known."""
    pairs: Mapping[str, tuple[str, str]] = {
        "measured on different devices": (_named_baseline(baseline.devices), _named_baseline(result.devices)),
        "measured on different platforms": (baseline.platform or "", result.platform or ""),
        "measured over different numbers of hosts": tuple(
            counted(each.hosts, "host") if each.hosts else "" for each in (baseline, result)
        ),  # type: ignore[dict-item]
    }
    for what, (before, now) in pairs.items():
        if before and now and before != now:
            yield what, f"baseline: {before}; result: {now}"


def _named_baseline(devices: Iterable[str]) -> str:
    return listed(sorted(set(devices)))


def _keys(held: GatedPoints) -> set[object]:
    return {same_point(row) for row in held.rows if not is_missing(row)}


def _points(held: GatedPoints) -> str:
    """Return which points there are, the first in words."""
    measured = [row for row in held.rows if not is_missing(row)]
    if not measured:
        return "nothing was measured"
    return listed((f"{row.collective} {point_name(row)}" for row in measured), 1)


def _judged(baseline: MeasuredPoints) -> tuple[str, ...]:
    verdict = baseline.verdict
    if verdict is None or verdict.outcome not in ("slow", "wrong", "failed"):
        return ()
    return (f"it was itself judged {verdict.outcome}: busbw judge {shlex.quote(baseline.held.name)}",)

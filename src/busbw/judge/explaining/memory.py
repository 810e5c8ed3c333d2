"""MPI within one host: held against what busbw measured of this host's memory, in the same form as everything else."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from busbw.base.text import counted
from busbw.base.units import format_rate, format_time
from busbw.judge.expectation import SLOW_TIMES, TOLERANCE, MpiExpectation, advice, expectation_of
from busbw.judge.explaining.budgeting import limiter
from busbw.judge.explaining.outcome import label
from busbw.judge.explaining.references import WINDOWED
from busbw.judge.explaining.series import Series, SizeSample
from busbw.model.finding import Ceiling, Verdict
from busbw.model.finding import Outcome as Answer
from busbw.model.run import Run
from busbw.model.verdict import BudgetStep, Expected, FittedLine, Hill, Regime, SizeExplanation, StepName, SweepCurve
from busbw.stats.curves import LEAST_FOR_LINE, hill, line

# Time is latency where at least this part of it does not depend on the size; bandwidth decides from this part of the
# fitted bandwidth on.
_LATENCY_SHARE = 2 / 3
_BANDWIDTH_SHARE = 0.9
# So many of the smallest sizes tell the time of an empty call.
_SMALLEST = 3
# A line that its points lie so far off does not tell where bandwidth begins: the sweep has a step, or a second plateau.
_LOOSE = 0.25
# Below this part of the highest bandwidth the curve is a straight line of latency, which no Hill curve is.
_HILL_FROM = 0.05
# Between two processes: many large messages under way at once, and single ones of a few bytes.
_LARGE_MESSAGE_BYTES = 2**20
_FEW_BYTES = 128
# Messages of this size last milliseconds, and no latency does: with or without a sweep that shows it.
_ALWAYS_LARGE_BYTES = 2**30


def curve_of(series: Series) -> SweepCurve:
    """Return what the sweep of a series looks like, with the reasons where it does not tell."""
    samples = _one_a_size(series)
    times = [(sample.size_bytes, sample.time_s) for sample in samples]
    most_Bps = max((sample.busbw_Bps for sample in samples), default=0.0)
    rates = [(sample.size_bytes, sample.busbw_Bps) for sample in samples if sample.busbw_Bps >= _HILL_FROM * most_Bps]
    whole, bent = line(times), hill(rates)
    missing = []
    if whole is None:
        missing.append(f"latency: {_why_no_line(times)}")
    elif whole.algbw_Bps is None:
        missing.append("bandwidth: the time of the largest size is mostly latency still")
    if bent is None:
        missing.append("the bandwidth curve: too few sizes between a twentieth and all of the bandwidth, or no plateau")
    return SweepCurve(
        whole=whole,
        segments=_segments(samples),
        hill=bent,
        latency_to_bytes=_latency_to(samples, whole),
        bandwidth_from_bytes=_bandwidth_from(samples, whole, bent),
        missing=tuple(missing),
    )


def _one_a_size(series: Series) -> tuple[SizeSample, ...]:
    """Return a sample a size, ascending: of several, one of a median time; none whose time says nothing."""
    sound = [sample for sample in series.samples if sample.spoiled is None]
    found = []
    for _, group in groupby(sound, key=lambda sample: sample.size_bytes):
        same = tuple(group)
        middle = median(sample.time_s for sample in same)
        found.append(min(same, key=lambda sample: abs(sample.time_s - middle)))
    return tuple(found)


def _why_no_line(points: Sequence[tuple[int, float]]) -> str:
    if len(points) < LEAST_FOR_LINE:
        return f"{counted(len(points), 'size')}, and a line takes {LEAST_FOR_LINE}"
    return "no size is so small that its time is latency"


def _segments(samples: Sequence[SizeSample]) -> tuple[FittedLine, ...]:
    found = []
    for (algorithm, protocol), group in groupby(samples, key=lambda sample: (sample.algorithm, sample.protocol)):
        if algorithm is None:
            continue
        fitted = line([(each.size_bytes, each.time_s) for each in group], algorithm=algorithm, protocol=protocol)
        if fitted is not None:
            found.append(fitted)
    return tuple(found)


def _latency_to(samples: Sequence[SizeSample], whole: FittedLine | None) -> int | None:
    """Return up to which size the time is that of the smallest ones and half of it more, at most.

    Of the sizes, not of the line: a line that has to follow a wide knee lies too high where messages are small.
    """
    if whole is None:
        return None
    smallest_s = median(sample.time_s for sample in samples[:_SMALLEST])
    reached = None
    for sample in samples:
        if sample.time_s > smallest_s / _LATENCY_SHARE:
            break
        reached = sample.size_bytes
    return reached


def _bandwidth_from(samples: Sequence[SizeSample], whole: FittedLine | None, bent: Hill | None) -> int | None:
    if bent is not None:
        odds = (1 / _BANDWIDTH_SHARE - 1) ** (1 / bent.steepness.value)
        border = bent.half_bytes.value / odds
    elif whole is not None and whole.half_bytes is not None and whole.spread <= _LOOSE:
        border = whole.half_bytes.value / (1 / _BANDWIDTH_SHARE - 1)
    else:
        return None
    return min((sample.size_bytes for sample in samples if sample.size_bytes >= border), default=None)


def regime(curve: SweepCurve, collective: str, size_bytes: int) -> Regime | None:
    """Return what decides the time of a size; None: it cannot be told."""
    if collective == "latency" and size_bytes <= _FEW_BYTES:
        return "latency"
    if size_bytes >= (_LARGE_MESSAGE_BYTES if collective in WINDOWED else _ALWAYS_LARGE_BYTES):
        return "bandwidth"
    if curve.bandwidth_from_bytes is not None and size_bytes >= curve.bandwidth_from_bytes:
        return "bandwidth"
    if curve.latency_to_bytes is not None and size_bytes <= curve.latency_to_bytes:
        return "latency"
    is_known = curve.latency_to_bytes is not None or curve.bandwidth_from_bytes is not None
    return "knee" if is_known else None


def latency_at(curve: SweepCurve, size_bytes: int) -> tuple[float, str] | None:
    """Return the fitted latency that holds at a size, and of which line; None where none was fitted."""
    for segment in curve.segments:
        if segment.from_bytes <= size_bytes <= segment.to_bytes:
            return segment.latency_s.value, f"fitted to {segment.points} sizes of {segment.algorithm}"
    if curve.whole is not None and curve.whole.spread <= _LOOSE:
        return curve.whole.latency_s.value, f"fitted to all {curve.whole.points} sizes"
    return None


_OVER = {"memory": "copying through shared memory", "loopback": "TCP over the loopback interface"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredHost:
    """What a run measured of its host for one of its sizes. None: nothing that applies."""

    ceiling: Ceiling | None
    expectation: MpiExpectation | None
    # What to try where it is slow.
    advice: str | None


def measured_of(run: Run, point: int | None) -> MeasuredHost:
    """Return what the run measured that one of its points can be held against."""
    ceiling = next((each for each in run.ceilings if each.point == point), None)
    item = next((each for each in run.measurements if each.point == point), None)
    expectation = expectation_of(run.plan, run.rates, item) if item is not None else None
    tried = advice(run.plan, item) if item is not None else None
    return MeasuredHost(ceiling=ceiling, expectation=expectation, advice=tried)


def explain_in_memory(
    series: Series, sample: SizeSample, found: MeasuredHost, curve: SweepCurve, regime: Regime | None
) -> SizeExplanation:
    """Return one size explained by the rates of this host."""
    expectation, ceiling = found.expectation, found.ceiling
    taken = _budget(series, sample, found, curve)
    return SizeExplanation(
        point=sample.point,
        line=sample.line,
        size_bytes=sample.size_bytes,
        time_s=sample.time_s,
        low_s=sample.low_s,
        high_s=sample.high_s,
        busbw_Bps=sample.busbw_Bps,
        algbw_Bps=sample.algbw_Bps,
        regime=regime,
        ceiling_Bps=ceiling.busbw_Bps if ceiling is not None else None,
        ceiling_words=ceiling.formula if ceiling is not None else None,
        limited_by=limiter(taken),
        band_low_Bps=expectation.busbw_Bps / TOLERANCE if expectation is not None else None,
        band_high_Bps=expectation.busbw_Bps if expectation is not None else None,
        expected=_expected(found),
        budget=taken,
        verdict=_verdict(series, sample, expectation),
        next_step=found.advice if expectation is not None and expectation.is_slow else None,
    )


def _expected(found: MeasuredHost) -> tuple[Expected, ...]:
    rows = []
    if found.expectation is not None:
        each = found.expectation
        rows.append(
            Expected(
                title=f"{each.words}, at {format_rate(each.rate_Bps)} for all ranks together",
                basis="here",
                busbw_Bps=each.busbw_Bps,
                least_Bps=each.busbw_Bps / TOLERANCE,
                applies="yes",
                source=("measured in this run; docs/method-judging.md, section 4",),
            )
        )
    if found.ceiling is not None:
        ceiling = found.ceiling
        rows.append(
            Expected(
                title=f"ceiling of this host: {ceiling.formula}",
                basis="here",
                busbw_Bps=ceiling.busbw_Bps,
                applies="yes",
                source=(ceiling.source,),
            )
        )
    return tuple(rows)


def _budget(series: Series, sample: SizeSample, found: MeasuredHost, curve: SweepCurve) -> tuple[BudgetStep, ...]:
    ceiling, expectation = found.ceiling, found.expectation
    if ceiling is None:
        return ()
    where = "memory of the host" if ceiling.basis == "memory" else "loopback interface"
    left_Bps = ceiling.rate_Bps
    steps = [BudgetStep(name="wire", title=where, busbw_Bps=left_Bps, change_Bps=0.0, words=ceiling.source)]
    steps.append(_step("algorithm", "what must be moved", ceiling.busbw_Bps, left_Bps, ceiling.formula))
    left_Bps = ceiling.busbw_Bps
    if expectation is not None:
        steps.append(_step("seen", "the usual way", expectation.busbw_Bps, left_Bps, expectation.words))
        left_Bps = expectation.busbw_Bps
    fitted = latency_at(curve, sample.size_bytes)
    if fitted is not None and left_Bps > 0:
        moved = series.factor * sample.size_bytes
        after_Bps = moved / (moved / left_Bps + fitted[0])
        steps.append(_step("latency", "latency", after_Bps, left_Bps, f"{format_time(fitted[0])} a call, {fitted[1]}"))
        left_Bps = after_Bps
    words = "nothing is left" if sample.busbw_Bps >= left_Bps else "what none of this explains"
    steps.append(_step("unexplained", "measured", sample.busbw_Bps, left_Bps, words))
    return tuple(steps)


def _step(name: StepName, title: str, busbw_Bps: float, before_Bps: float, words: str) -> BudgetStep:
    return BudgetStep(name=name, title=title, busbw_Bps=busbw_Bps, change_Bps=busbw_Bps - before_Bps, words=words)


def _verdict(series: Series, sample: SizeSample, expectation: MpiExpectation | None) -> Verdict:
    what = label(series, sample)
    if sample.is_wrong:
        return Verdict(outcome="wrong", sentence=f"wrong: {what} gives wrong results; its time means nothing.")
    if sample.spoiled is not None:
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {what}: {sample.spoiled}.")
    if expectation is None:
        why = "nothing that the run measured of its host bounds so small a message, or this kind of sum"
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {what}: {why}.")
    times = sample.time_s / expectation.time_s
    outcome: Answer = "slow" if expectation.is_slow else "cannot_tell" if expectation.is_missed else "ok"
    over = _OVER.get(expectation.path, expectation.path)
    return Verdict(
        outcome=outcome,
        sentence=f"{outcome.replace('_', ' ')}: {what}: {format_time(sample.time_s)}, {times:.1f} times what {over} "
        f"needs here; up to {TOLERANCE:g} is sound, from {SLOW_TIMES:g} on it is slow.",
        because=() if outcome == "ok" else ("PERF002" if expectation.path == "loopback" else "PERF001",),
    )

"""MPI within one host: held against what busbw measured of this host's memory, in the same form as everything else."""

from dataclasses import dataclass

from busbw.base.units import format_rate, format_time
from busbw.judge.expectation import SLOW_TIMES, TOLERANCE, MpiExpectation, advice, expectation_of
from busbw.judge.explaining.budgeting import limiter
from busbw.judge.explaining.outcome import label
from busbw.judge.explaining.regimes import latency_at
from busbw.judge.explaining.series import Series, SizeSample
from busbw.model.finding import Ceiling, Verdict
from busbw.model.finding import Outcome as Answer
from busbw.model.run import Run
from busbw.model.verdict import BudgetStep, Expected, Regime, SizeExplanation, StepName, SweepCurve

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

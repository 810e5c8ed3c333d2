"""How good the samples are: warnings that travel with the numbers, one for each kind whatever the number of points."""

from collections.abc import Callable

from busbw.base.text import counted, listed, percent
from busbw.facts.rules import finding
from busbw.judge.failures import ended_words, more_samples
from busbw.judge.usable import LEAST_SAMPLES, core_losses, half_width, is_disturbed, missed_share
from busbw.model.finding import Finding
from busbw.model.plan import Plan
from busbw.model.run import Measurement, Outcome, label

# A shift of the median between the halves of a point that is worth a word, when the interval does not cover it.
DRIFT_NOTED = 0.05
# Lag-1 autocorrelation from which the interval is noticeably too narrow (1.4 times at 0.3).
AUTOCORRELATION_NOTED = 0.3
MISSED_NOTED = 0.05
# Share of the measured time that the clocks of two ranks may be apart.
CLOCK_NOTED = 0.10

Measure = Callable[[Measurement], float]


def sampling_findings(
    plan: Plan, measurements: tuple[Measurement, ...], outcome: Outcome | None = None
) -> tuple[Finding, ...]:
    """Return what a reader must know about the samples. A wrong point is not looked at: its time counts for nothing."""
    points = tuple(point for point in measurements if point.wrong is None)
    found = (
        _few(plan, points, outcome),
        _wide(plan, points),
        _drifting(points),
        _correlated(points),
        _unstable(points),
        _missed(points),
        _clock(points),
        _unverified(points),
        None if plan.placement.oversubscribed else _disturbed(points),
    )
    return tuple(one for one in found if one is not None)


def effective_samples(measurement: Measurement) -> float:
    """Return how many independent samples say as much: n (1 - r) / (1 + r) for lag-1 autocorrelation r.

    Exact for the mean of a first-order autoregressive series (Bayley, Hammersley, 1946); for a median it is a guide.
    """
    correlation = max(0.0, min(measurement.autocorrelation or 0.0, 0.999))
    return measurement.samples * (1 - correlation) / (1 + correlation)


def _report(
    code: str,
    points: list[Measurement],
    worst: Measure,
    say: Callable[[Measurement], str],
    fix: str | None = None,
    why: str | None = None,
) -> Finding | None:
    """Return one finding about `points`, told by the one that is `worst`; None without points."""
    if not points:
        return None
    first = max(points, key=worst)
    others = [label(point) for point in points if point is not first]
    return finding(
        code,
        points=counted(len(points), "point"),
        evidence=f"{label(first)}: {say(first)}"
        + (f"; also {listed(others)}" if others else "")
        + (f"; {why}" if why is not None else ""),
        fix=fix,
        point=first.point if len(points) == 1 else None,
    )


def _few(plan: Plan, points: tuple[Measurement, ...], outcome: Outcome | None) -> Finding | None:
    few = [point for point in points if point.samples < LEAST_SAMPLES]
    is_cut = outcome is not None and outcome.ended in ("time", "stopped")
    return _report(
        "RUN004",
        few,
        lambda point: -point.samples,
        lambda point: counted(point.samples, "sample"),
        more_samples(plan, few) or "give the run more time, or measure fewer sizes",
        ended_words(outcome) if is_cut else None,
    )


def _wide(plan: Plan, points: tuple[Measurement, ...]) -> Finding | None:
    asked = plan.sampling.half_width
    wide = [point for point in points if point.samples >= LEAST_SAMPLES and half_width(point) > asked]
    return _report(
        "RUN005",
        wide,
        half_width,
        lambda point: (
            f"interval +-{percent(half_width(point))} after {counted(point.samples, 'sample')} "
            f"(asked: {percent(asked)}; ended by {point.ended})"
        ),
        "give the run more time if the difference matters",
    )


def _drifting(points: tuple[Measurement, ...]) -> Finding | None:
    drifting = [
        point
        for point in points
        if point.drift is not None and abs(point.drift) > max(DRIFT_NOTED, 2 * half_width(point))
    ]
    return _report(
        "RUN011",
        drifting,
        lambda point: abs(point.drift or 0.0),
        lambda point: f"{(point.drift or 0.0) * 100:+.1f} % from the first to the second half",
        "measure again: a number that moves while it is taken may be another tomorrow",
    )


def _correlated(points: tuple[Measurement, ...]) -> Finding | None:
    correlated = [point for point in points if (point.autocorrelation or 0.0) > AUTOCORRELATION_NOTED]
    return _report(
        "RUN012",
        correlated,
        lambda point: point.autocorrelation or 0.0,
        lambda point: (
            f"lag-1 autocorrelation {point.autocorrelation:.2f}: {counted(point.samples, 'sample')} say as "
            f"much as {effective_samples(point):.0f} independent ones"
        ),
    )


def _unstable(points: tuple[Measurement, ...]) -> Finding | None:
    # The first sample alone is taken after one call; that it is alone is said already.
    unstable = [point for point in points if not point.warmup_stable and point.turns > 0]
    return _report(
        "RUN013",
        unstable,
        lambda point: point.warmup_calls,
        lambda point: f"{counted(point.warmup_calls, 'warm-up call')} and the time still moved",
    )


def _missed(points: tuple[Measurement, ...]) -> Finding | None:
    missed = [point for point in points if missed_share(point) > MISSED_NOTED]
    return _report(
        "RUN014",
        missed,
        missed_share,
        lambda point: f"{point.missed} of {counted(point.samples + point.missed, 'start')} left out",
    )


def clock_share(measurement: Measurement) -> float:
    """Return how far the clocks may be apart, as a share of the time measured; 0 where no common clock is needed."""
    if measurement.mode != "isolated" or measurement.clock_error_s is None or measurement.median_s <= 0:
        return 0.0
    return measurement.clock_error_s / measurement.median_s


def _clock(points: tuple[Measurement, ...]) -> Finding | None:
    coarse = [point for point in points if clock_share(point) > CLOCK_NOTED]
    return _report(
        "RUN019",
        coarse,
        clock_share,
        lambda point: f"clocks may differ by {percent(clock_share(point))} of the time measured",
        "measure short messages in stream mode",
    )


def _unverified(points: tuple[Measurement, ...]) -> Finding | None:
    unverified = [point for point in points if not point.verified]
    return _report("RUN020", unverified, lambda point: point.size_bytes, lambda _point: "no element was checked")


def _disturbed(points: tuple[Measurement, ...]) -> Finding | None:
    disturbed = [point for point in points if is_disturbed(point)]
    return _report(
        "RUN022",
        disturbed,
        lambda point: core_losses(point) / max(point.samples, 1),
        lambda point: (
            f"a rank lost its core {counted(core_losses(point), 'time')} in {counted(point.samples, 'sample')}"
        ),
        "measure again when it is quiet, or with fewer ranks; what runs: `ps -eLo psr,pid,pcpu,comm --sort=-pcpu`",
    )

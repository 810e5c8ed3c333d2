"""One size explained: what is possible, what applies, what it came to."""

from dataclasses import dataclass

from msgspec import structs

from busbw.judge.explaining.advising import next_step
from busbw.judge.explaining.budgeting import budget, limiter
from busbw.judge.explaining.candidates import Candidates, candidates
from busbw.judge.explaining.expecting import LEAST_SHARE, expectations, targets
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.latency import EmptyCall
from busbw.judge.explaining.outcome import Held, expected_times, verdict_of
from busbw.judge.explaining.regimes import latency_at, regime, saturation
from busbw.judge.explaining.resembling import Suspect, suspect
from busbw.judge.explaining.series import Sample, Series
from busbw.model.budget import BudgetStep, Expected, SizeExplanation
from busbw.model.curve import SweepCurve
from busbw.model.finding import Verdict
from busbw.model.limit import Bound, NodeRates
from busbw.model.platform import Published


@dataclass(frozen=True, kw_only=True, slots=True)
class Against:
    """One series, and everything its sizes are held against."""

    series: Series
    grounds: Grounds
    rates: NodeRates | None
    bounds: tuple[Bound, ...]
    # Why there is none.
    no_bound: str | None
    curve: SweepCurve
    # With what is doubtful about each figure.
    published: tuple[tuple[Published, str | None], ...]
    empty: EmptyCall | None

    @property
    def figures(self) -> tuple[Published, ...]:
        """The published figures that nothing speaks against."""
        return tuple(figure for figure, doubt in self.published if doubt is None)


def explain_size(against: Against, sample: Sample) -> tuple[SizeExplanation, Suspect | None]:
    """Return one size explained, and the network it seems to have used if that is why it is slow."""
    possible = candidates(against.series, sample, against.rates, against.bounds)
    decides = regime(against.curve, against.series.collective, sample.size_bytes)
    # Between latency and bandwidth the time of an empty call is counted apart.
    part = saturation(against.curve, sample.size_bytes) if decides == "bandwidth" else 1.0
    aims = targets(against.series, sample, possible, against.figures, part)
    held = Held(
        series=against.series,
        sample=sample,
        regime="bandwidth" if any(aim is not None and aim.is_of_size for aim in aims) else decides,
        possible=possible,
        targets=aims,
        empty=against.empty,
        no_bound=_no_bound(against, sample) if possible.highest is None else None,
    )
    verdict = verdict_of(held)
    seems = suspect(held, against.figures) if verdict.outcome == "slow" else None
    if verdict.outcome == "slow":
        code = "PERF012" if seems is not None else "PERF011" if held.regime == "bandwidth" else "PERF014"
        cause = f"; as fast as {seems.words}" if seems is not None else ""
        verdict = structs.replace(verdict, sentence=f"{verdict.sentence[:-1]}{cause}.", because=(code,))
    return _explanation(against, held, verdict, next_step(held, verdict, against.grounds, seems)), seems


def _no_bound(against: Against, sample: Sample) -> str:
    """Return why a size has no bound."""
    return against.no_bound or f"no bound is known for {sample.algorithm or 'what was used'} on such nodes"


def _explanation(against: Against, held: Held, verdict: Verdict, step: str | None) -> SizeExplanation:
    sample, possible = held.sample, held.possible
    taken = _budget(against, held)
    lows = [aim.low_Bps for aim in held.targets if aim is not None]
    highs = [aim.high_Bps for aim in held.targets if aim is not None]
    is_large = held.regime == "bandwidth"
    times = () if is_large else expected_times(held)
    return SizeExplanation(
        point=sample.point,
        line=sample.line,
        size_bytes=sample.size_bytes,
        time_s=sample.time_s,
        low_s=sample.low_s,
        high_s=sample.high_s,
        busbw_Bps=sample.busbw_Bps,
        algbw_Bps=sample.algbw_Bps,
        algorithm=sample.algorithm or (possible.bounds[0].algorithm if len(possible.bounds) == 1 else None),
        protocol=sample.protocol,
        algorithm_from="nccl" if sample.algorithm is not None else possible.known_from,
        candidates=tuple(bound.algorithm for bound in possible.bounds),
        regime=held.regime,
        ceiling_Bps=possible.highest.busbw_Bps if possible.highest is not None else None,
        ceiling_words=_ceiling_words(possible),
        limited_by="latency" if held.regime == "latency" else limiter(taken),
        band_low_Bps=LEAST_SHARE * min(lows) if lows and is_large else None,
        band_high_Bps=max(highs) if highs and is_large else None,
        band_time_s=min((time_s for time_s, _ in times), default=None),
        expected=_expected(against, held),
        budget=taken,
        verdict=verdict,
        next_step=step,
    )


def _expected(against: Against, held: Held) -> tuple[Expected, ...]:
    empty = held.empty if held.regime != "bandwidth" else None
    attained = against.rates.attained if against.rates is not None else ()
    return expectations(against.series, held.sample, held.possible, against.published, empty, attained)


def _ceiling_words(possible: Candidates) -> str | None:
    highest = possible.highest
    if highest is None:
        return None
    line = next((line for line in highest.lines if line.limits), None)
    return f"{highest.algorithm}: {line.formula}" if line is not None else f"{highest.algorithm}: {highest.why}"


def _budget(against: Against, held: Held) -> tuple[BudgetStep, ...]:
    """Return the budget, if it was the algorithm that comes nearest to the result from above."""
    lowest = min(held.possible.bounds, key=lambda bound: bound.busbw_Bps or 0.0, default=None)
    if lowest is None or against.rates is None:
        return ()
    fitted = latency_at(against.curve, held.sample.size_bytes)
    return budget(against.series, held.sample, lowest, against.rates, fitted, against.empty)

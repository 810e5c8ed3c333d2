"""One size explained: what is possible, what is expected and by whom, where the rest went, and the verdict."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from busbw.judge.explaining.advising import next_step
from busbw.judge.explaining.budgeting import budget, limiter
from busbw.judge.explaining.expecting import Expectation, Knowledge, expectation
from busbw.judge.explaining.matching import Applies, applies, conditions
from busbw.judge.explaining.outcome import OF_BAND, Judged, band_of, bands_of, verdict_of
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.resembling import Suspect, suspect
from busbw.judge.explaining.scenarios import ABOVE, From, Scenario, scenarios
from busbw.judge.explaining.series import Sample
from busbw.model.budget import BudgetStep, Condition, Expected, SizeExplanation
from busbw.model.finding import Verdict
from busbw.model.limit import Bound
from busbw.model.platform import Published

_ORDER: dict[Applies, int] = {"yes": 0, "if": 1, "no": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Against:
    """One series, and everything its sizes are held against."""

    known: Knowledge
    bounds: tuple[Bound, ...]
    # Why there is none.
    no_bound: str | None
    published: tuple[Published, ...]


def explain_size(against: Against, sample: Sample) -> tuple[SizeExplanation, Suspect | None]:
    """Return one size explained, and the way it seems to have taken if that is why it is slow."""
    known = against.known
    possible = scenarios(known.series, sample, known.rates, against.bounds)
    judged = Judged(
        series=known.series,
        sample=sample,
        scenarios=possible,
        expected=[expectation(known, sample, scenario) for scenario in possible],
        published=against.published,
        no_bound=against.no_bound or f"no bound is known for {sample.algorithm or 'what was used'} on such nodes",
    )
    verdict = verdict_of(judged)
    seems = suspect(judged, known.references) if verdict.outcome == "slow" else None
    if verdict.outcome == "slow":
        likely = judged.likely
        is_large = likely is not None and likely.regime == "bandwidth"
        code = "PERF012" if seems is not None else "PERF011" if is_large else "PERF014"
        cause = f"; as fast as {seems.words}" if seems is not None else ""
        verdict = structs.replace(verdict, sentence=f"{verdict.sentence[:-1]}{cause}.", because=(code,))
    return _explanation(against, judged, verdict, next_step(judged, verdict, known.grounds, seems)), seems


def _explanation(against: Against, judged: Judged, verdict: Verdict, step: str | None) -> SizeExplanation:
    sample, likely, highest = judged.sample, judged.likely, judged.highest
    bounds = _bounds(judged)
    taken = _budget(against, judged, bounds)
    by_time = likely is not None and likely.regime == "latency"
    band = band_of(judged)
    one = judged.possible[0] if len(judged.possible) == 1 else None
    algorithm = sample.algorithm or (bounds[0].algorithm if len(bounds) == 1 else None)
    return SizeExplanation(
        point=sample.point,
        line=sample.line,
        size_bytes=sample.size_bytes,
        time_s=sample.time_s,
        low_s=sample.low_s,
        high_s=sample.high_s,
        busbw_Bps=sample.busbw_Bps,
        algbw_Bps=sample.algbw_Bps,
        algorithm=algorithm,
        protocol=sample.protocol,
        algorithm_from=_known_from(judged, one),
        candidates=tuple(bound.algorithm for bound in bounds),
        regime=likely.regime if likely is not None else "latency" if band is not None else None,
        ceiling_Bps=highest.busbw_Bps if highest is not None else None,
        ceiling_words=_ceiling_words(highest),
        limited_by="latency" if by_time or band is not None else limiter(taken),
        band_low_Bps=likely.sound_Bps if likely is not None and not by_time else None,
        band_high_Bps=likely.busbw_Bps if likely is not None and not by_time else None,
        band_time_s=band[0] if band is not None else likely.time_s if likely is not None and by_time else None,
        expected=tuple(sorted(_expected(against, judged), key=lambda each: _ORDER[each.applies])),
        budget=taken,
        verdict=verdict,
        next_step=step,
    )


def _known_from(judged: Judged, one: Scenario | None) -> From | None:
    if judged.sample.algorithm is not None:
        return "nccl"
    if one is None:
        return None
    if len(judged.scenarios) > 1 and len(one.bounds) == 1:
        return "physics"
    return one.known_from or ("physics" if len(_carrying(judged, one)) == 1 < len(one.bounds) else None)


def _carrying(judged: Judged, scenario: Scenario) -> tuple[Bound, ...]:
    """Return the algorithms of a scenario that can carry what was measured."""
    least_Bps = judged.sample.busbw_Bps
    return tuple(bound for bound in scenario.bounds if (bound.busbw_Bps or 0.0) * ABOVE >= least_Bps)


def _bounds(judged: Judged) -> tuple[Bound, ...]:
    """Return the algorithms that it may have been, the one with the highest bound first."""
    found = {bound.algorithm: bound for each in judged.possible for bound in _carrying(judged, each)}
    return tuple(sorted(found.values(), key=lambda bound: -(bound.busbw_Bps or 0.0)))


def _ceiling_words(highest: Bound | None) -> str | None:
    if highest is None:
        return None
    line = next((line for line in highest.lines if line.limits), None)
    return f"{highest.algorithm}: {line.formula}" if line is not None else f"{highest.algorithm}: {highest.why}"


def _budget(against: Against, judged: Judged, bounds: tuple[Bound, ...]) -> tuple[BudgetStep, ...]:
    """Return the budget, if it was the algorithm that comes nearest to the result from above."""
    lowest = min(bounds, key=lambda bound: bound.busbw_Bps or 0.0, default=None)
    if lowest is None or against.known.rates is None:
        return ()
    curve = against.known.curve(lowest.algorithm)
    return budget(against.known.series, judged.sample, lowest, against.known.rates, curve)


def _expected(against: Against, judged: Judged) -> Iterator[Expected]:
    alone = len(judged.scenarios) == 1
    least_Bps: dict[Reference, float] = {}
    for scenario, expected in zip(judged.scenarios, judged.expected, strict=True):
        for bound in scenario.bounds:
            yield _of_bound(bound, alone=alone and len(scenario.bounds) == 1)
        if expected is not None and expected.is_exact:
            # The references say it themselves, each with its conditions.
            least_Bps.update(dict.fromkeys(expected.references, expected.sound_Bps))
        elif expected is not None:
            yield _of_expectation(expected, alone=alone)
    yield from _of_bands(judged)
    for reference in against.known.references:
        if reference.collective == judged.series.collective:
            yield _of_reference(reference, judged, least_Bps.get(reference))


def _of_bound(bound: Bound, *, alone: bool) -> Expected:
    line = next((line for line in bound.lines if line.limits), None)
    figures = f": {line.formula}, {line.figures}" if line is not None else ""
    return Expected(
        title=f"ceiling of {bound.algorithm}{figures}",
        basis="physical",
        busbw_Bps=bound.busbw_Bps,
        applies="yes" if alone else "if",
        conditions=() if alone else (_unknown("algorithm", bound.algorithm),),
        source=bound.source,
    )


def _of_expectation(expected: Expectation, *, alone: bool) -> Expected:
    by_time = expected.regime == "latency"
    return Expected(
        title=expected.words,
        basis=expected.basis,
        busbw_Bps=None if by_time else expected.busbw_Bps,
        time_s=expected.time_s if by_time else None,
        least_Bps=None if by_time else expected.sound_Bps,
        most_s=expected.time_s * expected.busbw_Bps / expected.sound_Bps if by_time else None,
        applies="yes" if alone else "if",
        conditions=() if alone else (_unknown("scenario", expected.scenario.title),),
        source=expected.source,
    )


def _of_bands(judged: Judged) -> Iterator[Expected]:
    own = band_of(judged)
    for band_s, figure in bands_of(judged):
        is_own = own is not None and figure == own[1]
        yield Expected(
            title=figure.conditions or "small messages",
            basis=figure.kind,
            time_s=band_s,
            most_s=OF_BAND * band_s,
            applies="yes" if is_own else "if",
            conditions=() if is_own else (_unknown("pairs", "as far apart"),),
            source=figure.source,
        )


def _unknown(name: str, asked: str) -> Condition:
    return Condition(name=name, asked=asked, here=None, outcome="unknown")


def _of_reference(reference: Reference, judged: Judged, least_Bps: float | None) -> Expected:
    series, sample = judged.series, judged.sample
    held = [conditions(reference, series, sample, scenario) for scenario in judged.possible or judged.scenarios]
    held = held or [conditions(reference, series, sample, None)]
    ways = [applies(each) for each in held]
    best = min(range(len(ways)), key=lambda place: (_ORDER[ways[place]], _differing(held[place])))
    way: Applies = "if" if ways[best] == "yes" and any(each != "yes" for each in ways) else ways[best]
    nearest = min(reference.points, key=lambda point: abs(point[0] - sample.size_bytes))
    return Expected(
        title=reference.words,
        basis=reference.kind,
        busbw_Bps=nearest[1],
        least_Bps=nearest[1] if reference.kind == "threshold" else least_Bps,
        applies=way,
        conditions=held[best],
        doubt=reference.doubt,
        source=reference.source,
    )


def _differing(held: tuple[Condition, ...]) -> int:
    return sum(condition.outcome == "differs" for condition in held)

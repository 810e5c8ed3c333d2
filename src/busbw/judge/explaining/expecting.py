"""The expectations of one size: what is published, what was seen of the machine's parts, what NCCL counts on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.judge.explaining.candidates import ABOVE, Candidates
from busbw.judge.explaining.latency import EmptyCall
from busbw.judge.explaining.matching import conditions, is_of, value_Bps
from busbw.judge.explaining.series import Sample, Series
from busbw.judge.phrases import percent
from busbw.model.budget import Condition, Expected
from busbw.model.limit import Attained, Bound
from busbw.model.platform import Published
from busbw.units import format_rate

# Of what is expected of a large message this part must be reached. Sound rings on InfiniBand are seen at 0.80 to 0.86
# or at 0.92 to 0.98 of line, and what is expected is 0.96 to 0.98 of it.
LEAST_SHARE = 0.85
# How a bound marks what was taken from the result it explains.
_FITTED = ", fitted"
# Of a curve that is this near its highest bandwidth nothing needs to be said.
_WHOLE = 0.99
# A small message may take this many times what NCCL counts on; from SLOW_TIMES on it is slow.
MOST_TIMES = 2.0
SLOW_TIMES = 3.0
Applies = Literal["yes", "if", "no"]
_ORDER: dict[Applies, int] = {"yes": 0, "if": 1, "no": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What one algorithm is expected to reach: the least and the most of what applies, and who says so."""

    algorithm: str
    low_Bps: float
    high_Bps: float
    words: str
    # Whether it is a figure of this very size, which says what to expect whatever decides the time.
    is_of_size: bool = False


def targets(
    series: Series, sample: Sample, possible: Candidates, published: Sequence[Published], saturation: float
) -> tuple[Target | None, ...]:
    """Return what is expected of each candidate; None where nobody has measured anything of the kind.

    `saturation`: what part of its highest bandwidth the sweep's own curve has at this size. What is expected of very
    large messages is that much less here; a figure that is published for this very size is not.
    """
    return tuple(_target(series, sample, bound, published, saturation) for bound in possible.bounds)


def _target(
    series: Series, sample: Sample, bound: Bound, published: Sequence[Published], saturation: float
) -> Target | None:
    applying = [
        figure
        for figure in published
        if is_of(figure, series)
        and figure.kind != "threshold"
        and applies(_conditions(figure, series, sample, bound)) == "yes"
    ]
    best = [figure for figure in applying if figure.kind == "measured"] or applying
    if best:
        is_of_size = all(figure.size_bytes is not None for figure in best)
        part = 1.0 if is_of_size else saturation
        values = [value_Bps(figure) * part for figure in best]
        return Target(
            algorithm=bound.algorithm,
            low_Bps=min(values),
            high_Bps=max(values),
            words=f"{_published_words(best)}{_part_words(part)}",
            is_of_size=is_of_size,
        )
    if bound.attained_Bps is None or series.network == "fallback":
        # What was seen of the fabric says nothing of what takes its place.
        return None
    return Target(
        algorithm=bound.algorithm,
        low_Bps=bound.attained_Bps * saturation,
        high_Bps=bound.attained_Bps * saturation,
        words=f"as seen: {_seen_words(bound)}{_part_words(saturation)}",
    )


def _conditions(figure: Published, series: Series, sample: Sample, bound: Bound | None) -> tuple[Condition, ...]:
    """Return the conditions of a figure, and that the algorithm can carry it at all."""
    held = conditions(figure, series, sample, bound.algorithm if bound is not None else None)
    if bound is None or bound.busbw_Bps is None or value_Bps(figure) <= ABOVE * bound.busbw_Bps:
        return held
    most = f"{bound.algorithm}, {format_rate(bound.busbw_Bps)} at most"
    return (*held, Condition(name="algorithm", asked="one that carries as much", here=most, outcome="differs"))


def _published_words(figures: list[Published]) -> str:
    values = ", ".join(f"{figure.value:g} {figure.unit}" for figure in figures)
    return f"published: {values}, {figures[0].kind}"


def _part_words(saturation: float) -> str:
    return f"; {percent(saturation)} of it at this size, by the sweep's own curve" if saturation < _WHOLE else ""


def _seen_words(bound: Bound) -> str:
    seen = [line.attained_words for line in bound.lines if line.limits and line.attained_words]
    return seen[0] if seen else bound.why


def applies(held: Sequence[Condition]) -> Applies:
    """Return whether an expectation applies under these conditions."""
    outcomes = {condition.outcome for condition in held}
    return "no" if "differs" in outcomes else "if" if "unknown" in outcomes else "yes"


def expectations(
    series: Series,
    sample: Sample,
    possible: Candidates,
    published: Sequence[tuple[Published, str | None]],
    empty: EmptyCall | None,
    attained: Sequence[Attained],
) -> tuple[Expected, ...]:
    """Return every expectation, those that apply first; `published` with what is doubtful about each figure.

    `attained`: what was seen of the machine's parts, with its sources.
    """
    sources = {seen.words: seen.source for seen in attained}
    found = [
        *(_of_bound(bound, alone=len(possible.bounds) == 1) for bound in possible.bounds),
        *(_of_seen(bound, sources, alone=len(possible.bounds) == 1) for bound in possible.bounds if bound.attained_Bps),
        *(
            _of_published(figure, doubt, series, sample, possible)
            for figure, doubt in published
            if is_of(figure, series)
        ),
    ]
    if empty is not None:
        found.append(_of_model(empty))
    return tuple(sorted(found, key=lambda each: _ORDER[each.applies]))


def _of_bound(bound: Bound, *, alone: bool) -> Expected:
    line = next((line for line in bound.lines if line.limits), None)
    figures = f": {line.formula}, {line.figures}" if line is not None else ""
    return Expected(
        title=f"ceiling of {bound.algorithm}{figures}",
        basis="physical",
        busbw_Bps=bound.busbw_Bps,
        applies="yes" if alone else "if",
        conditions=() if alone else (_is_used(bound),),
        source=bound.source,
    )


def _of_seen(bound: Bound, sources: Mapping[str, tuple[str, ...]], *, alone: bool) -> Expected:
    attained_Bps = bound.attained_Bps or 0.0
    words = [line.attained_words for line in bound.lines if line.limits and line.attained_words]
    return Expected(
        title=f"{bound.algorithm} at what was seen of the line rate: {_seen_words(bound)}",
        basis="seen",
        busbw_Bps=attained_Bps,
        least_Bps=LEAST_SHARE * attained_Bps,
        applies="yes" if alone else "if",
        conditions=() if alone else (_is_used(bound),),
        source=sources.get(words[0].removesuffix(_FITTED), bound.source) if words else bound.source,
    )


def _is_used(bound: Bound) -> Condition:
    return Condition(name="algorithm", asked=bound.algorithm, here=None, outcome="unknown")


def _of_published(
    figure: Published, doubt: str | None, series: Series, sample: Sample, possible: Candidates
) -> Expected:
    held = [_conditions(figure, series, sample, bound) for bound in possible.bounds]
    held = held or [_conditions(figure, series, sample, None)]
    ways = [applies(each) for each in held]
    best = min(range(len(ways)), key=lambda place: (_ORDER[ways[place]], _differing(held[place])))
    way: Applies = "if" if ways[best] == "yes" and any(each != "yes" for each in ways) else ways[best]
    value = value_Bps(figure)
    floor_Bps = value if figure.kind == "threshold" else LEAST_SHARE * value
    note = f": {figure.conditions}" if figure.conditions else ""
    return Expected(
        title=f"{format_rate(value)} {figure.metric}{note}",
        basis=figure.kind,
        busbw_Bps=value,
        least_Bps=floor_Bps,
        applies=way,
        conditions=held[best],
        doubt=doubt,
        source=figure.source,
    )


def _differing(held: Sequence[Condition]) -> int:
    return sum(condition.outcome == "differs" for condition in held)


def _of_model(empty: EmptyCall) -> Expected:
    return Expected(
        title=f"a call of a few bytes, {empty.by}: {empty.words}",
        basis=empty.basis,
        time_s=empty.time_s,
        most_s=MOST_TIMES * empty.time_s,
        applies="yes",
        source=empty.source,
    )

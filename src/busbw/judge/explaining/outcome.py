"""The verdict on one size: every scenario answers by itself, and the verdict is what they agree on.

A scenario's answer follows from the bandwidth alone: slow below one threshold, sound from another, and neither depends
on what was measured. So a lower bandwidth never gets a better verdict, and `ok` needs an answer of every scenario.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.text import percent
from busbw.base.units import format_rate, format_size, format_time
from busbw.judge.explaining.expecting import Expectation, unseen_words, why_no_call
from busbw.judge.explaining.references import latencies
from busbw.judge.explaining.scenarios import Scenario
from busbw.judge.explaining.series import Series, SizeSample
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.model.finding import Outcome, Verdict
from busbw.model.limit import Bound
from busbw.model.platform import Published

# The rule of a result above every ceiling.
ABOVE_CEILING = "PERF010"
# This near to a ceiling a result is sound, though no measurement says what others reach.
_NEAR_CEILING = 0.85
# Latencies of pairs with one number of hops lie within some 5 % of each other; the bands are 0.6 us apart.
OF_BAND = 1.15
_SLOW_PAIR = 1.5
_FEW_BYTES = 128
Answer = Literal["ok", "slow", "cannot_tell", "unjudged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """One size, the scenarios it may have been measured in, and what is expected in each."""

    series: Series
    sample: SizeSample
    scenarios: Sequence[Scenario]
    expected: Sequence[Expectation | None]
    published: Sequence[Published]
    # Why there is no bound, where there is none.
    no_bound: str | None

    @property
    def highest(self) -> Bound | None:
        """The bound that no result may pass."""
        every = [bound for scenario in self.scenarios for bound in scenario.bounds]
        return max(every, key=lambda bound: bound.busbw_Bps or 0.0, default=None)

    @property
    def likely(self) -> Expectation | None:
        """The expectation that is shown first: of several the highest, as sound machines reach it."""
        known = [each for each in self.expected if each is not None]
        return max(known, key=lambda each: each.busbw_Bps, default=None)

    @property
    def possible(self) -> tuple[Scenario, ...]:
        """The scenarios that can carry what was measured."""
        return tuple(each for each in self.scenarios if each.carries(self.sample.busbw_Bps))


def label(series: Series, sample: SizeSample) -> str:
    """Return how a size is called in a sentence: `all_reduce 8 GiB`."""
    return f"{series.collective} {format_size(sample.size_bytes)}"


def verdict_of(judged: Judged) -> Verdict:
    """Return the verdict on a size."""
    series, sample, what = judged.series, judged.sample, label(judged.series, judged.sample)
    if sample.is_wrong:
        return Verdict(outcome="wrong", sentence=f"wrong: {what} gives wrong results; its time means nothing.")
    if sample.spoiled is not None:
        return _cannot(f"{what}: {sample.spoiled}")
    if series.collective == "latency" and sample.size_bytes <= _FEW_BYTES:
        return _of_pair(judged, what)
    highest = judged.highest
    if highest is not None and not judged.possible:
        return Verdict(
            outcome="cannot_tell", sentence=f"cannot tell: {_impossible(judged, highest)}.", because=(ABOVE_CEILING,)
        )
    if not judged.scenarios:
        return _cannot(f"{what}: {judged.no_bound or 'nothing is known to hold it against'}")
    return _together(judged, what)


def _cannot(words: str) -> Verdict:
    return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {words}.")


def _impossible(judged: Judged, highest: Bound) -> str:
    series = judged.series
    return (
        f"{label(series, judged.sample)} reads {format_rate(judged.sample.busbw_Bps)}, above the "
        f"{format_rate(highest.busbw_Bps or 0.0)} that {series.ranks} ranks on {series.nodes} such nodes can "
        f"carry with any algorithm ({highest.algorithm}): the nodes, the ranks or the rates are others, or the result "
        "is wrong"
    )


def _together(judged: Judged, what: str) -> Verdict:
    answers = [_answer(judged, *each) for each in zip(judged.scenarios, judged.expected, strict=True)]
    kinds = set(answers)
    if kinds in ({"ok"}, {"slow"}):
        outcome: Outcome = "ok" if "ok" in kinds else "slow"
        return Verdict(outcome=outcome, sentence=f"{outcome}: {what}: {_one_scenario(judged, outcome)}.")
    if "unjudged" in kinds and len(judged.scenarios) == 1:
        shown = "" if judged.series.collective == MESSAGE_RATE else f"{format_rate(judged.sample.busbw_Bps)}; "
        return _cannot(f"{what}: {shown}{_unjudged(judged)}")
    words = [
        _scenario_words(judged, scenario, expected)
        for scenario, expected in zip(judged.scenarios, judged.expected, strict=True)
        if scenario in judged.possible
    ]
    return _cannot(f"{what}: {'; '.join(words)}")


def _answer(judged: Judged, scenario: Scenario, expected: Expectation | None) -> Answer:
    if not scenario.carries(judged.sample.busbw_Bps):
        # More than it can carry: whatever it was, it was no less than what is expected here.
        return "ok"
    best_Bps = _best_Bps(judged.sample)
    is_near = best_Bps >= _NEAR_CEILING * scenario.ceiling_Bps > 0
    if is_near and (expected is None or expected.is_predicted):
        # Nothing that was measured applies.
        return "ok"
    if expected is None:
        return "unjudged"
    if best_Bps >= expected.sound_Bps:
        others = expected.elsewhere
        # As always on these hosts, and yet slow for such a machine: the site's own runs do not excuse it.
        is_excused = others is None or others.slow_Bps is None or best_Bps >= others.slow_Bps
        return "ok" if is_excused else "cannot_tell"
    # Where NCCL's log or its settings show another way than the links or the fabric, the cause is known.
    slow_Bps = expected.sound_Bps if judged.series.took_detour is not None else expected.slow_Bps
    return "slow" if slow_Bps is not None and best_Bps < slow_Bps else "cannot_tell"


def is_below_model(judged: Judged) -> bool:
    """Whether a size is less than a model expects in every scenario that can carry it."""
    pairs = zip(judged.scenarios, judged.expected, strict=True)
    found = [(scenario, expected) for scenario, expected in pairs if scenario in judged.possible]
    return bool(found) and all(
        expected is not None and expected.is_predicted and _answer(judged, scenario, expected) == "cannot_tell"
        for scenario, expected in found
    )


def _best_Bps(sample: SizeSample) -> float:
    """Return the bandwidth at the favourable end of the interval."""
    return sample.busbw_Bps * sample.time_s / sample.low_s if sample.low_s else sample.busbw_Bps


def _is_below_interval(sample: SizeSample, expected: Expectation) -> bool:
    return expected.is_predicted and _best_Bps(sample) < expected.sound_Bps


def _messages_words(judged: Judged, ceiling_Bps: float) -> tuple[str, str]:
    """Return what was measured, and what is possible, as the messages a second of all pairs: `250.1 M messages/s`."""
    pairs, size_bytes = judged.series.ranks // 2, judged.sample.size_bytes
    each = pairs / size_bytes / 1e6
    seen, possible = (f"{each * rate_Bps:.4g} M messages/s" for rate_Bps in (judged.sample.busbw_Bps, ceiling_Bps))
    return seen, possible


def _one_scenario(judged: Judged, outcome: Outcome) -> str:
    """Return the evidence where all scenarios agree: by the one that asks for most, of those that can carry it."""
    known = [
        each
        for each in judged.expected
        if each is not None and each.scenario in judged.possible and not _is_below_interval(judged.sample, each)
    ]
    if not known:
        # Sound by its ceiling.
        ceiling_Bps = max(scenario.ceiling_Bps for scenario in judged.possible)
        share = percent(judged.sample.busbw_Bps / ceiling_Bps)
        if judged.series.collective == MESSAGE_RATE:
            seen, possible = _messages_words(judged, ceiling_Bps)
            return f"{seen}, {share} of the {possible} that the NICs can send"
        return f"{format_rate(judged.sample.busbw_Bps)}, {share} of the {format_rate(ceiling_Bps)} that is possible"
    most = max(known, key=lambda each: each.busbw_Bps)
    words = comparison_words(judged.sample, most)
    lost = _lost_words(judged, most) if outcome == "slow" else f"; {unseen_words(most)}"
    return f"{words}{lost}"


def comparison_words(sample: SizeSample, expected: Expectation) -> str:
    """Return a size beside what is expected of it: as a time where latency decides, else as a bandwidth."""
    who = f"({expected.words})"
    if expected.regime == "latency":
        times = sample.time_s / expected.time_s
        return f"{format_time(sample.time_s)}, {times:.1f} times the {format_time(expected.time_s)} expected {who}"
    share = percent(sample.busbw_Bps / expected.busbw_Bps)
    return f"{format_rate(sample.busbw_Bps)}, {share} of the {format_rate(expected.busbw_Bps)} expected {who}"


def _scenario_words(judged: Judged, scenario: Scenario, expected: Expectation | None) -> str:
    sample = judged.sample
    title = f"with {scenario.title} " if scenario.title else ""
    if expected is None:
        return f"{title}no measurement says what {' or '.join(scenario.algorithms)} should reach"
    if expected.elsewhere is not None:
        others = comparison_words(sample, expected.elsewhere)
        return f"{title}{comparison_words(sample, expected)}; but of such machines elsewhere: {others}"
    if expected.is_predicted:
        compared = f"{title}{comparison_words(sample, expected)}"
        if not _is_below_interval(sample, expected):
            return compared
        return f"less than the model expects: {compared}; {_no_measurement(judged.series, expected)}"
    between = f"; from {format_rate(expected.sound_Bps)} on it is sound"
    slow = f", below {format_rate(expected.slow_Bps)} slow" if expected.slow_Bps is not None else ""
    return f"{title}{comparison_words(sample, expected)}{between if not title else ''}{slow if not title else ''}"


def _no_measurement(series: Series, expected: Expectation) -> str:
    is_small = expected.regime == "latency"
    return why_no_call(series) if is_small else "no measurement says what this should reach"


def _unjudged(judged: Judged) -> str:
    series = judged.series
    if series.collective == "latency":
        return why_no_call(series)
    ceiling_Bps = max(scenario.ceiling_Bps for scenario in judged.scenarios)
    if series.collective == MESSAGE_RATE:
        seen, possible = _messages_words(judged, ceiling_Bps)
        return f"{seen}; the NICs could send {possible} at most, and what so many pairs should reach is not published"
    names = " or ".join(judged.scenarios[0].algorithms)
    most = f"{names} could carry {format_rate(ceiling_Bps)} at most"
    small = judged.sample.busbw_Bps < ceiling_Bps / 10
    return f"{why_no_call(series) if small else 'no measurement says what this should reach'}; {most}"


# A loss this near to that of whole NICs is named as one.
_NEAR_NICS = 0.02


def _lost_words(judged: Judged, expected: Expectation) -> str:
    """Return which number of lost NICs the loss is like, where bandwidth between nodes is lost."""
    series, share = judged.series, judged.sample.busbw_Bps / expected.busbw_Bps
    each = series.gpus_per_node
    if expected.regime != "bandwidth" or not each or each < 2 or (series.nodes or 1) < 2:
        return ""
    lost = round((1 - share) * each)
    if 1 <= lost <= each // 2 and abs(1 - share - lost / each) <= _NEAR_NICS:
        return f", as if {lost} of {each} NICs were lost"
    return ""


def bands_of(judged: Judged) -> tuple[tuple[float, Published], ...]:
    """Return the latencies in seconds that a message of a few bytes between two ranks may have, ascending."""
    if judged.series.collective != "latency" or judged.sample.size_bytes > _FEW_BYTES:
        return ()
    return latencies(judged.published, judged.series.nodes)


def band_of(judged: Judged) -> tuple[float, Published] | None:
    """Return the band that a latency falls into, else the longest; None where none is published."""
    bands = bands_of(judged)
    time_s = judged.sample.low_s or judged.sample.time_s
    inside = ((band_s, figure) for band_s, figure in bands if time_s <= OF_BAND * band_s)
    return next(inside, bands[-1] if bands else None)


def _of_pair(judged: Judged, what: str) -> Verdict:
    """Return the verdict on a latency between two ranks: of the band that it falls into."""
    band = band_of(judged)
    if band is None:
        return _cannot(f"{what}: {format_time(judged.sample.time_s)}; {why_no_call(judged.series)}")
    band_s, figure = band
    time_s = judged.sample.low_s or judged.sample.time_s
    shown = (
        f"{format_time(judged.sample.time_s)}, {judged.sample.time_s / band_s:.2f} times the {format_time(band_s)} "
        f"expected ({figure.kind}: {(figure.conditions or 'small messages').rstrip('.')})"
    )
    if time_s <= OF_BAND * band_s:
        return Verdict(outcome="ok", sentence=f"ok: {what}: {shown}.")
    if figure.kind == "measured" and time_s > _SLOW_PAIR * band_s:
        return Verdict(outcome="slow", sentence=f"slow: {what}: {shown}.")
    return _cannot(f"{what}: {shown}")

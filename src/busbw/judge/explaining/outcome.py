"""The verdict on one size, with its evidence and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.judge.explaining.candidates import Candidates
from busbw.judge.explaining.expecting import LEAST_SHARE, MOST_TIMES, SLOW_TIMES, Target
from busbw.judge.explaining.latency import EmptyCall, why_no_call
from busbw.judge.explaining.series import Sample, Series
from busbw.judge.phrases import percent
from busbw.model.curve import Regime
from busbw.model.finding import Outcome, Verdict
from busbw.model.limit import Bound
from busbw.units import format_rate, format_size, format_time

# Where nobody has measured what an algorithm reaches there is its ceiling alone: near it a result is sound, and far
# below it is not, whatever is lost on the way.
_NEAR_CEILING = 0.7
_FAR_BELOW = 1 / 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """One size and what it is held against."""

    series: Series
    sample: Sample
    regime: Regime | None
    possible: Candidates
    targets: Sequence[Target | None]
    empty: EmptyCall | None
    # Why there is no bound, where there is none.
    no_bound: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    outcome: Outcome
    words: str


def verdict_of(held: Held) -> Verdict:
    """Return the verdict on a size."""
    sample, what = held.sample, label(held.series, held.sample)
    if sample.is_wrong:
        return Verdict(outcome="wrong", sentence=f"wrong: {what} gives wrong results; its time means nothing.")
    if sample.spoiled is not None:
        return _cannot(f"{what}: {sample.spoiled}")
    highest = held.possible.highest
    if not held.possible.bounds and highest is not None:
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {_impossible(held, highest)}.", because=(ABOVE,))
    answers = _answers(held)
    if not answers:
        return _cannot(f"{what}: {_nothing_to_hold(held)}")
    outcomes = {answer.outcome for answer in answers}
    sentence = "; ".join(dict.fromkeys(answer.words for answer in answers))
    outcome: Outcome = outcomes.pop() if len(outcomes) == 1 else "cannot_tell"
    return Verdict(outcome=outcome, sentence=f"{outcome.replace('_', ' ')}: {what}: {sentence}.")


# The rule of a result above every ceiling.
ABOVE = "PERF010"


def _cannot(words: str) -> Verdict:
    return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {words}.")


def label(series: Series, sample: Sample) -> str:
    """Return how a size is called in a sentence: `all_reduce 8 GiB`."""
    return f"{series.collective} {format_size(sample.size_bytes)}"


def _impossible(held: Held, highest: Bound) -> str:
    return (
        f"{label(held.series, held.sample)} reads {format_rate(held.sample.busbw_Bps)}, above the "
        f"{format_rate(highest.busbw_Bps or 0.0)} that {held.series.ranks} ranks on {held.series.nodes} such nodes can "
        f"carry with any algorithm ({highest.algorithm}): the nodes, the ranks or the rates are others, or the result "
        "is wrong"
    )


def _nothing_to_hold(held: Held) -> str:
    if held.no_bound is not None:
        return held.no_bound
    if held.empty is None and held.regime != "bandwidth":
        return why_no_call(held.series)
    return "nobody has measured what this should reach, and it is neither near its ceiling nor far below"


def _answers(held: Held) -> list[_Answer]:
    if held.regime == "bandwidth":
        alike = _alike([aim for aim in held.targets if aim is not None])
        found = [_by_bandwidth(held, low_Bps, why, names) for (low_Bps, why), names in alike.items()]
        pairs = zip(held.possible.bounds, held.targets, strict=True)
        bare = [_by_ceiling(held, bound) for bound, target in pairs if target is None]
        return [*found, *(answer for answer in bare if answer is not None)]
    return [_by_time(held, *expected) for expected in expected_times(held)]


def expected_times(held: Held) -> tuple[tuple[float, str], ...]:
    """Return what a size that is no bandwidth alone should take, for each candidate, and how that comes about.

    An empty call, and the bytes at what is expected of large messages. Without the latter the former alone, which says
    something only where latency decides.
    """
    if held.empty is None:
        return ()
    empty_s = held.empty.time_s
    aims = [aim for aim in held.targets if aim is not None]
    if not aims:
        only = f"{format_time(empty_s)} of a few bytes, {held.empty.by}"
        return ((empty_s, only),) if held.regime == "latency" else ()
    moved = held.series.factor * held.sample.size_bytes
    return tuple(
        (empty_s + moved / low_Bps, _of_both(empty_s + moved / low_Bps, held.empty.by, low_Bps, names))
        for (low_Bps, _), names in _alike(aims).items()
    )


def _of_both(expected_s: float, by: str, rate_Bps: float, names: str) -> str:
    return f"{format_time(expected_s)} of an empty call, {by}, and of the bytes at {format_rate(rate_Bps)} ({names})"


def _alike(aims: Sequence[Target]) -> dict[tuple[float, str], str]:
    """Return the algorithms of which the same is expected, by what and why."""
    names: dict[tuple[float, str], list[str]] = {}
    for aim in aims:
        names.setdefault((aim.low_Bps, aim.words), []).append(aim.algorithm)
    return {key: " or ".join(same) for key, same in names.items()}


def _by_time(held: Held, expected_s: float, words: str) -> _Answer:
    times = held.sample.time_s / expected_s
    outcome: Outcome = "ok" if times <= MOST_TIMES else "slow" if _surely(held, expected_s) else "cannot_tell"
    return _Answer(outcome=outcome, words=f"{format_time(held.sample.time_s)}, {times:.1f} times the {words}")


def _surely(held: Held, expected_s: float) -> bool:
    """Whether even the favourable end of the interval is too long.

    Between nodes the knee is wide, and how wide nobody has published: there only what latency decides is surely slow.
    """
    if held.regime != "latency" and held.series.nodes != 1:
        return False
    return (held.sample.low_s or held.sample.time_s) > SLOW_TIMES * expected_s


def _by_bandwidth(held: Held, low_Bps: float, why: str, names: str) -> _Answer:
    outcome: Outcome = "ok" if _best_Bps(held) >= LEAST_SHARE * low_Bps else "slow"
    return _Answer(
        outcome=outcome,
        words=f"{format_rate(held.sample.busbw_Bps)}, {percent(held.sample.busbw_Bps / low_Bps)} of the "
        f"{format_rate(low_Bps)} to expect of {names} ({why})",
    )


def _best_Bps(held: Held) -> float:
    """Return the bandwidth at the favourable end of the interval."""
    sample = held.sample
    return sample.busbw_Bps * sample.time_s / sample.low_s if sample.low_s else sample.busbw_Bps


def _by_ceiling(held: Held, bound: Bound) -> _Answer | None:
    ceiling_Bps = bound.busbw_Bps or 0.0
    share = _best_Bps(held) / ceiling_Bps if ceiling_Bps else 0.0
    if _FAR_BELOW <= share < _NEAR_CEILING:
        return None
    return _Answer(
        outcome="ok" if share >= _NEAR_CEILING else "slow",
        words=f"{format_rate(held.sample.busbw_Bps)}, {percent(share)} of the {format_rate(ceiling_Bps)} that "
        f"{bound.algorithm} could reach at most; nobody has measured what it does reach",
    )

"""Whether a reference holds for one measured size: its conditions, one by one, as a reader is shown them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.units import format_rate, format_size
from busbw.judge.explaining.outcome import Judged
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.scenarios import Scenario
from busbw.judge.explaining.series import Detour, Series, SizeSample
from busbw.model.verdict import Condition

Outcome = Literal["matches", "differs", "unknown"]
Applies = Literal["yes", "if", "no"]


def conditions(
    reference: Reference, series: Series, sample: SizeSample, scenario: Scenario | None
) -> tuple[Condition, ...]:
    """Return the conditions of a reference, held against a size measured in `scenario` (None: nothing is known)."""
    return tuple(_conditions(reference, series, sample, scenario))


def applies(held: Sequence[Condition]) -> Applies:
    """Return whether an expectation applies under these conditions."""
    outcomes = {condition.outcome for condition in held}
    return "no" if "differs" in outcomes else "if" if "unknown" in outcomes else "yes"


def _conditions(
    reference: Reference, series: Series, sample: SizeSample, scenario: Scenario | None
) -> Iterator[Condition]:
    yield from _nodes(reference, series)
    if reference.gpus is not None:
        yield _compared("GPUs", reference.gpus, series.ranks)
    yield _size(reference, sample)
    if reference.algorithm is not None:
        yield _algorithm(reference.algorithm, scenario)
    if reference.nvls is not None:
        here = scenario.nvls if scenario is not None else series.nvls
        yield _switched("NVLS", asked=reference.nvls, here=here)
    if reference.sharp is not None:
        yield _switched("SHARP", asked=reference.sharp, here=series.sharp)
    if reference.network is not None or series.network is not None:
        yield _network(reference.network or "fabric", series)
    if scenario is not None and not scenario.carries(_rate(reference)):
        most = f"{' or '.join(scenario.algorithms)}, {format_rate(scenario.ceiling_Bps)} at most"
        yield _condition("algorithm", "one that carries as much", most, "differs")


def _rate(reference: Reference) -> float:
    return reference.points[-1][1] if len(reference.points) == 1 else 0.0


def _algorithm(asked: str, scenario: Scenario | None) -> Condition:
    if scenario is None:
        return _condition("algorithm", asked, None, "unknown")
    here = " or ".join(scenario.algorithms)
    if asked not in scenario.algorithms:
        return _condition("algorithm", asked, here, "differs")
    is_one = len(scenario.algorithms) == 1
    return _condition("algorithm", asked, here if is_one else None, "matches" if is_one else "unknown")


def _nodes(reference: Reference, series: Series) -> Iterator[Condition]:
    if reference.nodes is not None:
        yield _compared("nodes", reference.nodes, series.nodes)
    elif reference.is_several:
        several = None if series.nodes is None else series.nodes > 1
        outcome: Outcome = "unknown" if several is None else "matches" if several else "differs"
        yield _condition("nodes", "several", None if series.nodes is None else str(series.nodes), outcome)


def _size(reference: Reference, sample: SizeSample) -> Condition:
    here = format_size(sample.size_bytes)
    if reference.is_average:
        return _condition("statistic", "average over several sizes", f"{here} alone", "differs")
    covers = reference.covers(sample.size_bytes)
    if not reference.has_size:
        return _condition("size", "large messages", here, "matches" if covers else "differs")
    first, last = reference.points[0][0], reference.points[-1][0]
    asked = format_size(first) if first == last else f"{format_size(first)} to {format_size(last)}"
    return _condition("size", asked, here, "matches" if covers else "differs")


def _network(asked: str, series: Series) -> Condition:
    """Hold networks against each other: whoever says nothing means the one that the machine has for this."""
    words = {"fabric": "the platform's own", "fallback": "TCP in its place", "loopback": "loopback through the NICs"}
    here = series.network or "fabric"
    said = words[here] if series.network is not None else None
    return _condition("network", words[asked], said, "matches" if here == asked else "differs")


def _compared(name: str, asked: int | str, here: int | str | None) -> Condition:
    outcome: Outcome = "unknown" if here is None else "matches" if asked == here else "differs"
    return _condition(name, str(asked), None if here is None else str(here), outcome)


def _switched(name: str, *, asked: bool, here: bool | None) -> Condition:
    words = {True: "on", False: "off"}
    outcome: Outcome = "unknown" if here is None else "matches" if asked is here else "differs"
    return _condition(name, words[asked], None if here is None else words[here], outcome)


def _condition(name: str, asked: str, here: str | None, outcome: Outcome) -> Condition:
    return Condition(name=name, asked=asked, here=here, outcome=outcome)


# Within this a result equals a figure of the platform's own loopback; of its fall-back network, whose speed depends on
# hosts and interfaces, within this many times.
_EQUAL = 0.15
_TIMES = 3.0
# Of what is expected between nodes: less is seldom reached by anything but TCP.
_TCP_SHARE = 0.15
Way = Literal["fallback", "loopback", "shm"]
_WORDS: dict[Way, str] = {
    "fallback": "TCP in place of the fabric",
    "loopback": "a node that sends to itself through its NICs",
    "shm": "the memory of the host in place of its links",
}
_DETOURS: dict[Detour, Way] = {"sockets": "fallback", "shm": "shm"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """The way that a slow result seems to have taken, and why."""

    way: Way
    words: str


def suspect(judged: Judged, references: Sequence[Reference]) -> Suspect | None:
    """Return the way that a slow result took by the log, or that it resembles; None where it resembles none."""
    series = judged.series
    if series.took_detour is not None:
        way = _DETOURS[series.took_detour]
        return Suspect(way=way, words=f"{_WORDS[way]}, as NCCL's log or its settings say")
    likely = judged.likely
    if likely is None or likely.regime == "latency":
        return None
    like = next((each for each in references if _resembles(judged, each)), None)
    if like is not None:
        other: Way = "loopback" if like.network == "loopback" else "fallback"
        return Suspect(way=other, words=f"{_WORDS[other]} ({like.best_Bps / 1e9:g} GB/s as published)")
    is_far = judged.sample.busbw_Bps < _TCP_SHARE * likely.busbw_Bps
    if likely.regime == "bandwidth" and (series.nodes or 1) > 1 and is_far:
        return Suspect(way="fallback", words=_WORDS["fallback"])
    return None


def _resembles(judged: Judged, reference: Reference) -> bool:
    """Whether a reference differs from this size in its network alone, and equals it."""
    series, sample = judged.series, judged.sample
    if reference.network in (None, "fabric", series.network) or reference.collective != series.collective:
        return False
    held = conditions(reference, series, sample, None)
    # NVLS is off wherever NCCL sends through NICs; size does not matter to a rate so far below.
    others = [each for each in held if each.name not in ("network", "NVLS", "size") and each.outcome != "matches"]
    ratio = sample.busbw_Bps / reference.best_Bps
    is_equal = abs(ratio - 1) <= _EQUAL if reference.network == "loopback" else 1 / _TIMES <= ratio <= _TIMES
    return not others and is_equal

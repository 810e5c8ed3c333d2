"""From the verdicts on sizes to that on a series, and to findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.text import listed, percent
from busbw.base.units import format_rate, format_size
from busbw.facts.rules import finding
from busbw.judge.explaining.expecting import MOST_TIMES
from busbw.judge.explaining.outcome import ABOVE_CEILING, OF_BAND, Judged, label
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.scenarios import Scenario
from busbw.judge.explaining.series import Detour, Series, SizeSample
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.model.finding import Finding, Verdict
from busbw.model.limit import NodeRates
from busbw.model.verdict import Condition, SizeExplanation

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """A size as it was measured, as it is explained, and the network it seems to have used where that is why."""

    sample: SizeSample
    size: SizeExplanation
    suspect: Suspect | None = None


def verdict_of_series(series: Series, explained: Sequence[Sized]) -> Verdict:
    """Return the verdict on all sizes: wrong or slow if one is, else that of the largest, which leads.

    Of a test of latency only the sizes that latency decides count; of one of messages the size leads of which most were
    sent.
    """
    sizes = [each.size for each in explained]
    if not sizes:
        return Verdict(outcome="cannot_tell", sentence="cannot tell: nothing was measured.")
    for outcome in ("wrong", "slow"):
        found = [size for size in sizes if size.verdict.outcome == outcome]
        if found:
            return _bad(found, sizes)
    if series.collective == "latency":
        sizes = [size for size in sizes if size.size_bytes <= _FEW_BYTES] or sizes
    above = [size for size in sizes if ABOVE_CEILING in size.verdict.because]
    usual = min(sizes, key=lambda size: size.time_s) if series.collective == MESSAGE_RATE else sizes[-1]
    leading = above[-1] if above else usual
    sentence = f"{leading.verdict.sentence[:-1]}{_counts(sizes)}."
    return Verdict(outcome=leading.verdict.outcome, sentence=sentence, because=leading.verdict.because)


# A test of latency measures these.
_FEW_BYTES = 128


def _bad(found: Sequence[SizeExplanation], sizes: Sequence[SizeExplanation]) -> Verdict:
    """Return the verdict that the worst of the large sizes decides, else the worst of the others."""
    large = [size for size in found if size.regime == "bandwidth"]
    worst = max(large or found, key=_shortfall)
    largest = sizes[-1]
    sound = ""
    if not large and largest.verdict.outcome == "ok":
        sound = (
            f"; large messages are sound: {format_size(largest.size_bytes)} reaches {format_rate(largest.busbw_Bps)}"
        )
    return Verdict(
        outcome=worst.verdict.outcome,
        sentence=f"{worst.verdict.sentence[:-1]}{sound}{_counts(sizes)}.",
        because=tuple(dict.fromkeys(code for size in found for code in size.verdict.because)),
    )


def _counts(sizes: Sequence[SizeExplanation]) -> str:
    """Return how many sizes got which verdict, where there are several."""
    if len(sizes) == 1:
        return ""
    words = {"wrong": "wrong", "slow": "slow", "ok": "ok", "cannot_tell": "cannot be told"}
    counts = [
        f"{number} {said}"
        for outcome, said in words.items()
        if (number := sum(size.verdict.outcome == outcome for size in sizes))
    ]
    return f". Of {len(sizes)} sizes: {', '.join(counts)}"


def _evidence(size: SizeExplanation) -> str:
    """Return what the sentence of a verdict says after the verdict and the size."""
    return size.verdict.sentence.split(": ", 2)[-1].rstrip(".")


def _shortfall(size: SizeExplanation) -> float:
    """Return how far a size stays below what is expected; for sizes judged by time, by how much they exceed it."""
    if size.band_high_Bps:
        return size.band_high_Bps / size.busbw_Bps
    return size.time_s / size.band_time_s if size.band_time_s else 1.0


def findings_of_series(series: Series, explained: Sequence[Sized], rates: NodeRates | None) -> tuple[Finding, ...]:
    """Return one finding of each kind about a series."""
    found = [
        _above(series, explained),
        _slow_network(series, explained),
        _slow_bandwidth(series, explained),
        _slow_latency(series, explained),
        _more_than_nics(series, explained, rates),
    ]
    return tuple(each for each in found if each is not None)


def _above(series: Series, explained: Sequence[Sized]) -> Finding | None:
    above = [each for each in explained if ABOVE_CEILING in each.size.verdict.because]
    if not above:
        return None
    highest = max(above, key=lambda each: each.size.busbw_Bps)
    sample, size = highest.sample, highest.size
    return finding(
        ABOVE_CEILING,
        what=label(series, sample),
        evidence=size.verdict.sentence.removeprefix("cannot tell: ").rstrip("."),
        fix="say how many nodes and ranks it was (--nodes, --gpus-per-node), or what machine; if they are right, check "
        "results with -c 1",
        point=size.point,
    )


def _slow(explained: Sequence[Sized], *, by_time: bool) -> list[Sized]:
    return [
        each
        for each in explained
        if each.size.verdict.outcome == "slow" and (each.size.regime != "bandwidth") is by_time
    ]


def _slow_network(series: Series, explained: Sequence[Sized]) -> Finding | None:
    slow = [each for each in explained if each.suspect is not None]
    if not slow:
        return None
    largest = max(slow, key=lambda each: each.size.size_bytes)
    sample, size = largest.sample, largest.size
    words = largest.suspect.words if largest.suspect is not None else ""
    return finding(
        "PERF012",
        what=label(series, sample),
        network=words,
        # The title says the rest.
        evidence=_evidence(size).removesuffix(f"; as fast as {words}"),
        fix=size.next_step,
        point=size.point,
        confidence="likely",
    )


def _slow_bandwidth(series: Series, explained: Sequence[Sized]) -> Finding | None:
    slow = _slow(explained, by_time=False)
    if not slow or any(each.suspect is not None for each in explained):
        return None
    worst = max(slow, key=lambda each: _shortfall(each.size))
    sample, size = worst.sample, worst.size
    others = [format_size(each.size.size_bytes) for each in slow if each is not worst]
    also = f"; also {listed(others)}" if others else ""
    return finding(
        "PERF011",
        what=label(series, sample),
        share=percent(1 / _shortfall(size)),
        evidence=f"{_evidence(size)}{also}",
        fix=size.next_step,
        point=size.point,
    )


def _slow_latency(series: Series, explained: Sequence[Sized]) -> Finding | None:
    slow = _slow(explained, by_time=True)
    if not slow or series.took_detour is not None:
        return None
    worst = max(slow, key=lambda each: _shortfall(each.size))
    sample, size = worst.sample, worst.size
    return finding(
        "PERF014",
        what=label(series, sample),
        times=f"{_shortfall(size):.1f}",
        evidence=f"{_evidence(size)}{_sound_words(series, size)}",
        fix=size.next_step,
        point=size.point,
    )


def _sound_words(series: Series, size: SizeExplanation) -> str:
    """Return up to how many times the expected time is sound, where it was judged by time."""
    if size.band_time_s is None:
        return ""
    return f"; up to {OF_BAND if series.collective == 'latency' else MOST_TIMES:g} times is sound"


def _more_than_nics(series: Series, explained: Sequence[Sized], rates: NodeRates | None) -> Finding | None:
    if rates is None or rates.nic is None or not rates.ports or (series.nodes or 1) < 2 or rates.domain_gpus:
        return None
    if series.collective == "bibw":
        # It counts both directions, and is twice the rate of the NICs by definition.
        return None
    total_Bps = rates.nic.rate_Bps * rates.ports
    above = [each for each in explained if each.size.busbw_Bps > total_Bps and not each.size.verdict.because]
    if not above:
        return None
    highest = max(above, key=lambda each: each.size.busbw_Bps)
    sample, size = highest.sample, highest.size
    used = ", ".join(size.candidates) or size.algorithm or "a tree"
    return finding(
        "PERF015",
        what=label(series, sample),
        evidence=f"{format_rate(size.busbw_Bps)} bus bandwidth over {rates.ports} x {rates.nic.figures} = "
        f"{format_rate(total_Bps)} a node; what passes the NICs is the algorithm bandwidth, "
        f"{format_rate(size.algbw_Bps)}, {percent(size.algbw_Bps / total_Bps)} of them ({used}, {series.nodes} nodes)",
        fix="to measure the network of two nodes alone, set NCCL_ALGO=Ring",
        point=size.point,
    )

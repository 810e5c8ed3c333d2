"""Published figures that cannot be right, or say less than they seem to, by what the machine's parts carry."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.base.units import format_rate
from busbw.facts.findings import finding
from busbw.judge.phrases import percent
from busbw.limits.ceiling import ceiling
from busbw.limits.from_platform import rates_of_platform
from busbw.model.finding import Finding
from busbw.model.limit import Bound, NodeRates
from busbw.model.platform import Platform, Published, Threshold

# A threshold below this part of what sound machines reach misses a lost link.
_LENIENT = 0.85
# More than what was published by this much is out of reach, not noise.
_BEYOND = 1.02
_NODES = re.compile(r"(\d{1,6}) nodes?(?: or more)?\b")
_COPIES = ("H2D", "HtoD")
_SEVERAL_SIZES = re.compile(r"\d+[A-Z]?B?-\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """One figure in the units of a bound."""

    name: str
    value_Bps: float
    words: str
    source: tuple[str, ...]


def doubts(platform: Platform) -> tuple[Finding, ...]:
    """Return what is wrong with the thresholds that are in use for a platform, each by name."""
    try:
        rates = rates_of_platform(platform)
    except InputError:
        return ()
    return tuple(each for threshold in platform.thresholds for each in _of_threshold(threshold, platform, rates))


def doubt_of(published: Published, platform: Platform) -> str | None:
    """Return in words what is wrong with one published figure; None: nothing that is known."""
    if published.metric == "avg busbw" and published.size_bytes is None:
        return "an average over several sizes, which holds for no single one"
    if published.unit != "GB/s" or published.test not in COLLECTIVES or published.network == "loopback":
        return None
    try:
        each = published.gpus // published.nodes if published.gpus and published.nodes else None
        highest = _highest(rates_of_platform(platform, gpus=each), published.nodes or 2, published.test)
    except InputError:
        return None
    if highest is None or highest.busbw_Bps is None or published.value * 1e9 <= highest.busbw_Bps:
        return None
    return f"impossible: {format_rate(highest.busbw_Bps)} is the most that {highest.algorithm} can carry"


def _of_threshold(threshold: Threshold, platform: Platform, rates: NodeRates) -> Iterator[Finding]:
    unit = {"GB/s": 1e9, "Gb/s": 1e9 / 8}.get(threshold.unit)
    if unit is None or threshold.passes not in (">=", "expect"):
        return
    asked = _Asked(
        name=f"{threshold.check} ({threshold.test}{f', {threshold.scope}' if threshold.scope else ''})",
        value_Bps=threshold.value * unit,
        words=f"{threshold.value:g} {threshold.unit}{_in_bytes(threshold.value * unit, threshold.unit)}",
        source=threshold.source,
    )
    collective = re.split(r"[ ,]", threshold.test)[0]
    if collective in COLLECTIVES:
        yield from _of_collective(threshold, asked, collective, platform, rates)
    elif any(word in threshold.test for word in _COPIES):
        yield from _against_part(asked, rates.slot.rate_Bps if rates.slot else None, "a GPU's slot", lenient=False)
    elif threshold.test.startswith(("ib_write_bw", "EFA loopback")) and threshold.scope != "node":
        yield from _against_part(asked, rates.nic.rate_Bps if rates.nic else None, "one port", lenient=True)


def _in_bytes(value_Bps: float, unit: str) -> str:
    return "" if unit == "GB/s" else f" ({format_rate(value_Bps)})"


def _against_part(asked: _Asked, rate_Bps: float | None, part: str, *, lenient: bool) -> Iterator[Finding]:
    if rate_Bps is None:
        return
    if asked.value_Bps > rate_Bps:
        yield _impossible(asked, f"{part} carries {format_rate(rate_Bps)} at most")
    elif lenient and asked.value_Bps < _LENIENT * rate_Bps:
        yield _lenient(asked, rate_Bps, f"{part} carries {format_rate(rate_Bps)}")


def _of_collective(
    threshold: Threshold, asked: _Asked, collective: str, platform: Platform, rates: NodeRates
) -> Iterator[Finding]:
    if "average" in threshold.test and _SEVERAL_SIZES.match(threshold.size or ""):
        yield finding(
            "PUB003",
            check=asked.name,
            evidence=f"{asked.words} over {threshold.size}; {_sources(asked)}",
            fix="measure the same sizes and compare their averages, or judge sizes one by one as busbw judge does",
        )
    nodes = _nodes(threshold)
    if nodes is None or "loopback" in threshold.test or " over " in threshold.test:
        return
    highest = _highest(rates, nodes, collective)
    if highest is None or highest.busbw_Bps is None:
        return
    where = f"{nodes} node{'s' if nodes > 1 else ''}"
    if asked.value_Bps > highest.busbw_Bps:
        yield _impossible(
            asked,
            f"on {where} {highest.algorithm} carries {format_rate(highest.busbw_Bps)} at most, and no other algorithm "
            f"more: {highest.why}",
        )
        return
    best = _best_published(platform, collective, nodes)
    seen_Bps = max([*([best.value * 1e9] if best is not None else []), highest.attained_Bps or 0.0])
    if seen_Bps and asked.value_Bps > _BEYOND * seen_Bps:
        by = (
            f"{best.value:g} GB/s is published"
            if best is not None
            else f"{format_rate(seen_Bps)} was seen of such parts"
        )
        yield finding("PUB002", check=asked.name, value=asked.words, evidence=f"on {where} {by}; {_sources(asked)}")
    yield from _of_two_nodes(asked, nodes, rates)
    # Between nodes a check may name its algorithm in words alone, so only what was published for them counts.
    sound_Bps = seen_Bps if nodes == 1 else best.value * 1e9 if best is not None else 0.0
    if _is_of_large(threshold) and asked.value_Bps < _LENIENT * sound_Bps:
        yield _lenient(asked, sound_Bps, f"{format_rate(sound_Bps)} was published or seen for {where}")


def _is_of_large(threshold: Threshold) -> bool:
    """Whether a check measures nothing but large messages: an average over small ones is lower."""
    return "average" not in threshold.test or (threshold.size or "").startswith(("1G", "4G", "8G", "16G"))


def _of_two_nodes(asked: _Asked, nodes: int, rates: NodeRates) -> Iterator[Finding]:
    total_Bps = rates.nic.rate_Bps * rates.ports if rates.nic is not None and rates.ports else None
    if nodes == 2 and rates.domain_gpus is None and total_Bps is not None and asked.value_Bps > total_Bps:
        yield finding(
            "PUB005",
            check=asked.name,
            evidence=f"{asked.words}; the NICs of a node carry {format_rate(total_Bps)}; {_sources(asked)}",
            fix="on other numbers of nodes see: `busbw limit --platform "
            f"{rates.name or 'ID'} --nodes N --collective all_reduce`",
        )


def _highest(rates: NodeRates, nodes: int, collective: str) -> Bound | None:
    found = ceiling(rates, nodes=nodes, collective=collective).bounds
    return max((each for each in found if each.busbw_Bps is not None), key=_height, default=None)


def _height(bound: Bound) -> float:
    return bound.busbw_Bps or 0.0


def _best_published(platform: Platform, collective: str, nodes: int) -> Published | None:
    """Return the highest result that is published for these nodes; a health check's limit is none."""
    found = [
        each
        for each in platform.published
        if each.test == collective
        and each.metric == "busbw"
        and each.nodes == nodes
        and each.kind in ("measured", "reference")
        and each.network in (None, "fabric")
    ]
    return max(found, key=lambda each: each.value, default=None)


def _nodes(threshold: Threshold) -> int | None:
    """Return the nodes a check runs on; of `2 nodes or more` the fewest, where bounds are highest."""
    found = _NODES.match(threshold.scope or "")
    return int(found.group(1)) if found else None


def _impossible(asked: _Asked, why: str) -> Finding:
    return finding(
        "PUB001",
        check=asked.name,
        value=asked.words,
        evidence=f"{why}; {_sources(asked)}",
        fix="judge by what applies instead, as busbw judge does",
    )


def _lenient(asked: _Asked, sound_Bps: float, why: str) -> Finding:
    lost = percent(1 - asked.value_Bps / sound_Bps)
    return finding("PUB004", check=asked.name, lost=lost, evidence=f"{asked.words}; {why}; {_sources(asked)}")


def _sources(asked: _Asked) -> str:
    return f"source: {', '.join(asked.source)}" if asked.source else "no source is given"

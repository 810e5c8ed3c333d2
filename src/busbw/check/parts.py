"""GPUs and NICs of a node, each by itself: against what is asked for, its PCIe link, and others of its kind."""

from collections.abc import Sequence

from busbw.base.units import format_rate
from busbw.check.measures import made, measure_words, samples_words, words_of
from busbw.check.peers import worse_than_peers
from busbw.check.profiles import NodeThreshold
from busbw.limits.rates import narrowest
from busbw.model.check.screening import NodeReading, ScreenedNode, SlotLink
from busbw.model.finding import Finding
from busbw.model.limit import Rate

# A measure that is above its limit by more than rounding went another way: NVLink between GPU and processor.
_ABOVE = 1.02


def parts_held(
    threshold: NodeThreshold, node: ScreenedNode, alike: Sequence[ScreenedNode]
) -> tuple[list[Finding], list[str]]:
    """Return what a threshold finds at the parts of a node, and what it cannot tell. `alike`: of the same kind."""
    readings = _of(node, threshold)
    found: list[Finding] = []
    unclear: list[str] = []
    elsewhere = [max(each.samples) for other in alike for each in _of(other, threshold)]
    for reading in readings:
        value, part = max(reading.samples), reading.partner or ""
        found += _absolute(threshold, node, reading)
        found += _link(threshold, node, reading)
        others = [*(max(each.samples) for each in readings if each is not reading), *elsewhere]
        made_, why = _beside(threshold, node, part, value, others)
        found += made_
        unclear += why
    return found, unclear


def _of(node: ScreenedNode, threshold: NodeThreshold) -> list[NodeReading]:
    return [each for each in node.readings if each.measure == threshold.measure and each.samples]


def _absolute(threshold: NodeThreshold, node: ScreenedNode, reading: NodeReading) -> list[Finding]:
    value, least = max(reading.samples), threshold.at_least_Bps
    if least is None or value >= least:
        return []
    measure = threshold.measure
    return [
        made("CHK001", threshold, node, part=reading.partner, confidence="likely",
             evidence=f"{words_of(measure, value)}, {samples_words(measure, reading.samples)}; the profile asks for "
             f"{words_of(measure, least)} ({threshold.source})")
    ]  # fmt: skip


def link_limit(way: Sequence[SlotLink]) -> Rate | None:
    """Return what the narrowest link of a way could carry; None where the upper end of the first is not shown.

    A link has two ends, and its functions say what each could: without the upper one the slot may be the lesser.
    """
    shown = [(each.most_speed, each.most_width) for each in way if each.most_speed or each.most_width]
    return narrowest(shown) if len(shown) > 1 and way[0].most_width and way[1].most_width else None


def _link(threshold: NodeThreshold, node: ScreenedNode, reading: NodeReading) -> list[Finding]:
    limit = link_limit(reading.way)
    if threshold.below_link_percent is None or limit is None:
        return []
    value = max(reading.samples)
    below = 1 - value / limit.rate_Bps
    if below <= threshold.below_link_percent / 100 or value > _ABOVE * limit.rate_Bps:
        return []
    first = reading.way[0]
    runs = f"; its link runs at {first.speed} x{first.width}" if first.speed and first.width else ""
    return [
        made("CHK006", threshold, node, part=reading.partner, confidence="likely",
             evidence=f"{format_rate(value)}, {samples_words(threshold.measure, reading.samples)}: {100 * below:.0f} % "
             f"below {format_rate(limit.rate_Bps)} ({limit.figures}){runs}")
    ]  # fmt: skip


def _beside(
    threshold: NodeThreshold, node: ScreenedNode, part: str, value: float, others: Sequence[float]
) -> tuple[list[Finding], list[str]]:
    if threshold.below_peers_percent is None:
        return [], []
    worse = worse_than_peers(value, others, threshold.below_peers_percent / 100, is_lower_better=False)
    if worse is None:
        return [], []
    measure = threshold.measure
    said = f"{words_of(measure, value)} against {words_of(measure, worse.middle)}"
    if not worse.is_clear:
        themselves = f"which differ by {100 * worse.scatter:.0f} % themselves"
        return [], [f"{measure_words(measure, part)}: {said} in the median of {worse.others} others, {themselves}"]
    return [
        made("CHK002", threshold, node, part=part, confidence="likely",
             evidence=f"{said}, the median of {worse.others} others of its kind: {100 * worse.worse:.0f} % less; they "
             f"differ by {100 * worse.scatter:.1f} %")
    ], []  # fmt: skip

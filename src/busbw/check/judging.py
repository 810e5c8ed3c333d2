"""Each node judged: by its health, against what a profile asks for, against nodes alike, against its own past."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from busbw.base.text import counted, listed
from busbw.base.units import format_rate
from busbw.check.profiles import HealthTable, NodeThreshold, Profile
from busbw.facts.rules import finding
from busbw.model.check.report import NodeAnswer, NodeOutcome, NodePast
from busbw.model.check.screening import Measure, NodeReading, ScreenedNode, ScreenedNodes
from busbw.model.finding import Confidence, Finding

# Other nodes of the same kind, and earlier checks, that a median needs before a node is held against it.
LEAST_PEERS = 3
LEAST_PAST = 5
# A node must lie this many times the others' typical deviation from their median.
_DEVIATIONS = 4.0
# Of a normal distribution, the standard deviation over the median deviation (1 / 0.6745).
_OF_MEDIAN_DEVIATION = 1.4826
# Partners of a transfer that must all be slow before it is this node's.
LEAST_PARTNERS = 2
MEASURES: dict[Measure, str] = {
    "memory_copy": "copying memory on all cores",
    "noise": "time lost to noise",
    "send": "sending",
    "receive": "receiving",
    "gpu_pair": "copying between GPUs",
}


def judge_nodes(
    screened: ScreenedNodes, profile: Profile, past: Mapping[str, Sequence[NodePast]]
) -> tuple[NodeAnswer, ...]:
    """Return the answer for every node, in their order; `past`: earlier checks of each, the oldest first."""
    answers = [_judged(node, screened.nodes, profile, past.get(node.host, ())) for node in screened.nodes]
    answers += [
        NodeAnswer(
            host=each.host,
            outcome="error",
            because="no answer",
            findings=(
                finding("CHK005", host=each.host, confidence="possible",
                        evidence=each.words or "nothing was printed before the time was over",
                        fix=f"ssh {each.host} true; where it answers, is busbw installed there at the same path?"),
            ),
        )
        for each in screened.silent
    ]  # fmt: skip
    return tuple(answers)


def values_of(readings: Sequence[NodeReading]) -> dict[Measure, float]:
    """Return the one value of each measure that a node is judged by: the best sample, of noise the median of CPUs.

    The best, because everything else that happens on a node makes a sample worse and nothing makes it better. Of
    several partners or pairs of GPUs the best partner, and the slowest pair.
    """
    found: dict[Measure, float] = {}
    for each in readings:
        if not each.samples:
            continue
        value = median(each.samples) if each.measure == "noise" else max(each.samples)
        if each.measure in found:
            value = min(found[each.measure], value) if each.measure == "gpu_pair" else max(found[each.measure], value)
        found[each.measure] = value
    return found


def words_of(measure: Measure, value: float) -> str:
    """Return a value of a measure in its unit: transfers in bits, as links are sold."""
    if measure == "noise":
        return f"{100 * value:.2g} %"
    return f"{value * 8 / 1e9:.3g} Gb/s" if measure in ("send", "receive") else format_rate(value)


def _judged(
    node: ScreenedNode, every: Sequence[ScreenedNode], profile: Profile, past: Sequence[NodePast]
) -> NodeAnswer:
    findings = [each for check in node.checks for each in _weighed(check.findings, profile.health)]
    still_open = [f"{each.part}: {each.because}" for each in node.unscreened if not each.absent]
    alike = [other for other in every if other.host != node.host and other.kind == node.kind]
    for threshold in profile.threshold:
        more, unclear = _held(threshold, node, alike, past)
        findings += more
        still_open += unclear
    findings = list(dict.fromkeys(findings))
    serious = {each.severity for each in findings}
    outcome: NodeOutcome = (
        "error" if "error" in serious else "warn" if "warn" in serious else "cannot_tell" if still_open else "ok"
    )
    return NodeAnswer(
        host=node.host,
        outcome=outcome,
        because=_because(node, outcome, findings, still_open),
        findings=tuple(findings),
        open=tuple(dict.fromkeys(still_open)),
        readings=node.readings,
    )


def _because(node: ScreenedNode, outcome: NodeOutcome, findings: Sequence[Finding], still_open: Sequence[str]) -> str:
    if outcome in ("error", "warn"):
        return listed([f"{each.code} {each.title}" for each in findings if each.severity == outcome], 2, between="; ")
    if outcome == "cannot_tell":
        return listed(still_open, 1, between="; ")
    said = [f"{MEASURES[measure]} {words_of(measure, value)}" for measure, value in values_of(node.readings).items()]
    return ", ".join(said) or "nothing found"


def _weighed(findings: Sequence[Finding], health: HealthTable) -> list[Finding]:
    """Return what a host's own checks found, as much of an error as the site says; without notes."""
    made = []
    for each in findings:
        if each.code in health.ignore or (each.severity == "note" and each.code not in health.error + health.warn):
            continue
        severity = "error" if each.code in health.error else "warn" if each.code in health.warn else each.severity
        made.append(msgspec.structs.replace(each, severity=severity))
    return made


def _held(
    threshold: NodeThreshold, node: ScreenedNode, alike: Sequence[ScreenedNode], past: Sequence[NodePast]
) -> tuple[list[Finding], list[str]]:
    """Return what a threshold finds at a node, and what it cannot tell."""
    if threshold.measure in ("send", "receive"):
        return _transfers(threshold, node)
    value = values_of(node.readings).get(threshold.measure)
    if value is None:
        # Why it was not measured is said once, by its part.
        return [], []
    found: list[Finding] = []
    unclear: list[str] = []
    least = threshold.at_least_Bps
    if least is not None and value < least:
        found.append(_absolute(threshold, node, value, words_of(threshold.measure, least)))
    if threshold.at_most_percent is not None and value > threshold.at_most_percent / 100:
        found.append(_absolute(threshold, node, value, f"at most {threshold.at_most_percent:g} %"))
    if threshold.below_peers_percent is not None:
        made, why = _beside(threshold, node, value, alike, threshold.below_peers_percent / 100)
        found += made
        unclear += why
    if threshold.below_own_past_percent is not None:
        found += _before(threshold, node, value, past, threshold.below_own_past_percent / 100)
    return found, unclear


def _absolute(threshold: NodeThreshold, node: ScreenedNode, value: float, bound: str) -> Finding:
    return _made(
        "CHK001", threshold, node,
        evidence=f"{words_of(threshold.measure, value)}, {_from(node, threshold.measure)}; the profile asks for "
        f"{bound} ({threshold.source})",
        confidence="likely",
    )  # fmt: skip


def _beside(
    threshold: NodeThreshold, node: ScreenedNode, value: float, alike: Sequence[ScreenedNode], share: float
) -> tuple[list[Finding], list[str]]:
    """Hold a value against nodes of the same kind: beyond the share, and beyond what these differ by themselves."""
    others = [at for other in alike if (at := values_of(other.readings).get(threshold.measure)) is not None]
    if len(others) < LEAST_PEERS:
        return [], []
    middle = median(others)
    spread = _OF_MEDIAN_DEVIATION * median(abs(each - middle) for each in others)
    worse = (value - middle) if threshold.measure == "noise" else (middle - value)
    if worse <= share * middle:
        return [], []
    said = f"{words_of(threshold.measure, value)} against {words_of(threshold.measure, middle)}"
    if worse <= _DEVIATIONS * spread:
        themselves = f"which differ by {100 * spread / middle:.0f} % themselves"
        return [], [f"{MEASURES[threshold.measure]}: {said} in the median of {len(others)} nodes alike, {themselves}"]
    direction = "more" if threshold.measure == "noise" else "less"
    return [
        _made(
            "CHK002", threshold, node,
            evidence=f"{said}, the median of {len(others)} other nodes of its kind: {100 * worse / middle:.0f} % "
            f"{direction}; they differ by {100 * spread / middle:.1f} %",
            confidence="likely",
        )
    ], []  # fmt: skip


def _before(
    threshold: NodeThreshold, node: ScreenedNode, value: float, past: Sequence[NodePast], share: float
) -> list[Finding]:
    """Hold a value against those of the node's earlier checks in which nothing was wrong with it."""
    sound = [dict(each.values) for each in past if each.outcome == "ok"]
    earlier = [each[threshold.measure] for each in sound if threshold.measure in each]
    if len(earlier) < LEAST_PAST:
        return []
    middle = median(earlier)
    is_noise = threshold.measure == "noise"
    worse = (value - middle) if is_noise else (middle - value)
    # What has been seen before, when the node was sound, is no finding.
    if worse <= share * middle or (value <= max(earlier) if is_noise else value >= min(earlier)):
        return []
    return [
        _made(
            "CHK003", threshold, node,
            evidence=f"{words_of(threshold.measure, value)} against {words_of(threshold.measure, middle)}, the median "
            f"of {counted(len(earlier), 'earlier check')} of this node ({words_of(threshold.measure, min(earlier))} to "
            f"{words_of(threshold.measure, max(earlier))})",
            confidence="likely",
        )
    ]  # fmt: skip


def _transfers(threshold: NodeThreshold, node: ScreenedNode) -> tuple[list[Finding], list[str]]:
    """Hold transfers against the least rate: one partner that reaches it clears this node's end of the link."""
    least = threshold.at_least_Bps
    reached: dict[str, float] = defaultdict(float)
    for each in node.readings:
        if each.measure == threshold.measure and each.partner is not None and each.samples:
            reached[each.partner] = max(reached[each.partner], *each.samples)
    if least is None or not reached or any(value >= least for value in reached.values()):
        return [], []
    said = ", ".join(
        f"{words_of(threshold.measure, value)} {'to' if threshold.measure == 'send' else 'from'} {partner}"
        for partner, value in reached.items()
    )
    if len(reached) < LEAST_PARTNERS:
        asked = f"and {threshold.at_least} is asked for"
        return [], [f"{MEASURES[threshold.measure]}: {said}, {asked}; one partner does not tell which end is slow"]
    return [
        _made(
            "CHK004", threshold, node,
            evidence=f"{said}: none of {len(reached)} partners reaches {threshold.at_least} ({threshold.source})",
            confidence="likely",
        )
    ], []  # fmt: skip


_FIXES: dict[Measure, str] = {
    "memory_copy": "are all DIMMs there and at their rate (sudo dmidecode -t memory), is the NUMA setting (NPS, SNC) "
    "that of the other nodes, does anything else run there?",
    "noise": "busbw probe --noise on it tells the period of what disturbs",
    "send": "busbw fabric over these hosts tells the NIC from the cable and the switch's port",
    "receive": "busbw fabric over these hosts tells the NIC from the cable and the switch's port",
    "gpu_pair": "busbw run sendrecv --backend nccl --pairs all on it; nvidia-smi nvlink -s",
}  # fmt: skip


def _made(code: str, threshold: NodeThreshold, node: ScreenedNode, *, evidence: str, confidence: Confidence) -> Finding:
    made = finding(
        code,
        evidence=evidence,
        fix=_FIXES[threshold.measure],
        confidence=confidence,
        host=node.host,
        what=MEASURES[threshold.measure],
    )
    return msgspec.structs.replace(made, severity=threshold.severity, source=threshold.source)


def _from(node: ScreenedNode, measure: Measure) -> str:
    samples = [sample for each in node.readings if each.measure == measure for sample in each.samples]
    if measure == "noise":
        return f"the median of {counted(len(samples), 'CPU')}"
    return f"the best of {counted(len(samples), 'sample')}, the worst {words_of(measure, min(samples))}"


def past_of(answer: NodeAnswer, *, profile: str, unix_s: float) -> NodePast:
    """Return what the history keeps of a node."""
    return NodePast(
        host=answer.host,
        unix_s=unix_s,
        profile=profile,
        outcome=answer.outcome,
        codes=tuple(dict.fromkeys(each.code for each in answer.findings if each.is_serious)),
        values=tuple(values_of(answer.readings).items()),
    )

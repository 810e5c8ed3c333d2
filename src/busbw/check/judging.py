"""Each node judged: by its health, against a profile, nodes of the same kind, and its own past."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from busbw.base.text import counted, listed
from busbw.check.measures import MEASURES, OF_PARTS, made, measure_words, samples_words, values_of, words_of
from busbw.check.parts import parts_held
from busbw.check.peers import worse_than_peers
from busbw.check.profiles import HealthTable, NodeThreshold, Profile
from busbw.facts.rules import finding
from busbw.model.check.report import NodeAnswer, NodeOutcome, NodePast
from busbw.model.check.screening import NotScreened, ScreenedNode, ScreenedNodes
from busbw.model.finding import Finding

# Earlier checks that a median needs before a node is held against it.
LEAST_PAST = 5
# Partners of a transfer that must all be slow before it is this node's.
LEAST_PARTNERS = 2


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


def _judged(
    node: ScreenedNode, every: Sequence[ScreenedNode], profile: Profile, past: Sequence[NodePast]
) -> NodeAnswer:
    findings = [each for check in node.checks for each in _weighed(check.findings, profile.health)]
    findings += [
        finding("CHK007", host=node.host, what=each, evidence="64 MiB of a known pattern, to the GPU and back",
                confidence="likely", fix="nvidia-smi -q -d ECC,ROW_REMAPPER,PCI on it; take it out of service")
        for each in node.changed
    ]  # fmt: skip
    still_open, notes = _unscreened(node.unscreened, profile.screening.required)
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
        notes=notes,
        readings=node.readings,
    )


def _unscreened(unscreened: Sequence[NotScreened], required: Sequence[str] | None) -> tuple[list[str], tuple[str, ...]]:
    """Return what was not screened and leaves a node open, and what is only noted.

    What has to be screened is what the profile requires; where it says nothing, whatever the node has.
    """
    still_open: list[str] = []
    notes: list[str] = []
    for each in unscreened:
        has_to = each.part in required if required is not None else not each.absent
        (still_open if has_to else notes).append(f"{each.part}: {each.because}")
    return still_open, tuple(dict.fromkeys(notes))


def _because(node: ScreenedNode, outcome: NodeOutcome, findings: Sequence[Finding], still_open: Sequence[str]) -> str:
    if outcome in ("error", "warn"):
        return listed([f"{each.code} {each.title}" for each in findings if each.severity == outcome], 2, between="; ")
    if outcome == "cannot_tell":
        return listed(still_open, 1, between="; ")
    said = [
        f"{measure_words(measure)} {words_of(measure, value)}" for measure, value in values_of(node.readings).items()
    ]
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
    if threshold.measure in OF_PARTS:
        made_of_parts, unclear_parts = parts_held(threshold, node, alike)
        return [*made_of_parts, *_past_of_parts(threshold, node, past)], unclear_parts
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
        more, why = _beside(threshold, node, value, alike, threshold.below_peers_percent / 100)
        found += more
        unclear += why
    if threshold.below_own_past_percent is not None:
        found += _before(threshold, node, value, past, threshold.below_own_past_percent / 100)
    return found, unclear


def _absolute(threshold: NodeThreshold, node: ScreenedNode, value: float, bound: str) -> Finding:
    samples = [sample for each in node.readings if each.measure == threshold.measure for sample in each.samples]
    return made(
        "CHK001", threshold, node,
        evidence=f"{words_of(threshold.measure, value)}, {samples_words(threshold.measure, samples)}; the profile "
        f"asks for {bound} ({threshold.source})",
        confidence="likely",
    )  # fmt: skip


def _beside(
    threshold: NodeThreshold, node: ScreenedNode, value: float, alike: Sequence[ScreenedNode], share: float
) -> tuple[list[Finding], list[str]]:
    """Hold a value against nodes of the same kind."""
    others = [at for other in alike if (at := values_of(other.readings).get(threshold.measure)) is not None]
    is_noise = threshold.measure == "noise"
    worse = worse_than_peers(value, others, share, is_lower_better=is_noise)
    if worse is None:
        return [], []
    said = f"{words_of(threshold.measure, value)} against {words_of(threshold.measure, worse.middle)}"
    if not worse.is_clear:
        themselves = f"which differ by {100 * worse.scatter:.0f} % themselves"
        what = MEASURES[threshold.measure]
        return [], [f"{what}: {said} in the median of {worse.others} nodes of the same kind, {themselves}"]
    return [
        made(
            "CHK002", threshold, node,
            evidence=f"{said}, the median of {worse.others} other nodes of its kind: {100 * worse.worse:.0f} % "
            f"{'more' if is_noise else 'less'}; they differ by {100 * worse.scatter:.1f} %",
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
        made(
            "CHK003", threshold, node,
            evidence=f"{words_of(threshold.measure, value)} against {words_of(threshold.measure, middle)}, the median "
            f"of {counted(len(earlier), 'earlier check')} of this node ({words_of(threshold.measure, min(earlier))} to "
            f"{words_of(threshold.measure, max(earlier))})",
            confidence="likely",
        )
    ]  # fmt: skip


def _past_of_parts(threshold: NodeThreshold, node: ScreenedNode, past: Sequence[NodePast]) -> list[Finding]:
    """Hold the slowest part against the slowest of earlier checks: the history keeps one value of a measure."""
    value = values_of(node.readings).get(threshold.measure)
    if value is None or threshold.below_own_past_percent is None:
        return []
    return _before(threshold, node, value, past, threshold.below_own_past_percent / 100)


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
        made(
            "CHK004", threshold, node,
            evidence=f"{said}: none of {len(reached)} partners reaches {threshold.at_least} ({threshold.source})",
            confidence="likely",
        )
    ], []  # fmt: skip


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

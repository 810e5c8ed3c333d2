"""The answer in one sentence: wrong, failed, slow, cannot tell, or ok; the first of these that applies."""

from dataclasses import dataclass

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_rate, format_size, format_time
from busbw.base.value import Value
from busbw.facts.rules import finding
from busbw.judge.ceiling import ceilings, path_of
from busbw.judge.conditions import condition_findings, mixture_words, node_findings, sampling_findings, spoilers
from busbw.judge.expectation import LARGE_BYTES, MpiExpectation, cache_findings, expectations, slow_findings
from busbw.judge.failures import (
    Failures,
    ended_words,
    failure_findings,
    failure_words,
    unreached,
    wrong_results,
    wrong_words,
)
from busbw.judge.guidelines import Violation, guideline_findings, violations
from busbw.judge.launching import BusyGpu, busy_findings, busy_gpus, busy_words, launch_findings
from busbw.judge.stragglers import Straggler, host_of, slow_share, straggler_findings, stragglers, tail_findings
from busbw.judge.usable import LEAST_SAMPLES, has_interval, is_disturbed, is_solid
from busbw.model.finding import Ceiling, Finding, Verdict
from busbw.model.plan import Plan
from busbw.model.record import Hello, Node
from busbw.model.run import EmptyLaunch, Measurement, Outcome, Rates, label

# A time up to this size is called latency.
SMALL_BYTES = 4096
# A sentence names no more collectives than this.
_MOST_NAMED = 6

_BASIS = {"memory": "copying memory once allows", "loopback": "TCP over the loopback interface carries"}


def best_words(measurements: tuple[Measurement, ...], ceilings: tuple[Ceiling, ...]) -> str:
    """Return the best point of each collective and its share of the ceiling, where points have one.

    Without ceilings the best large points alone; "" when there are none of either.
    """
    by_point = {ceiling.point: ceiling for ceiling in ceilings}
    best: dict[tuple[str, bool], Measurement] = {}
    for measurement in measurements:
        if not is_solid(measurement) or measurement.point not in by_point:
            continue
        key = (measurement.collective, measurement.in_place)
        if key not in best or measurement.busbw_Bps > best[key].busbw_Bps:
            best[key] = measurement
    found = [(measurement, by_point[measurement.point]) for measurement in best.values()]
    if not found:
        return _bare(measurements)
    return _one(*found[0]) if len(found) == 1 else _several(found)


def _bare(measurements: tuple[Measurement, ...]) -> str:
    """Return the best large point of each collective, held against nothing."""
    best: dict[str, Measurement] = {}
    for measurement in measurements:
        if is_solid(measurement) and measurement.size_bytes >= LARGE_BYTES:
            name = _name(measurement)
            if name not in best or measurement.busbw_Bps > best[name].busbw_Bps:
                best[name] = measurement
    return ", ".join(
        f"{name} {format_rate(point.busbw_Bps)} bus bandwidth at {format_size(point.size_bytes)}"
        for name, point in list(best.items())[:_MOST_NAMED]
    )


def _one(measurement: Measurement, ceiling: Ceiling) -> str:
    share = measurement.busbw_Bps / ceiling.busbw_Bps
    cached = " (the working set stays in cache)" if share > 1 and ceiling.basis == "memory" else ""
    return (
        f"{_name(measurement)} reaches {format_rate(measurement.busbw_Bps)} bus bandwidth at "
        f"{format_size(measurement.size_bytes)} over {measurement.ranks} ranks, {percent(share)} of the "
        f"{format_rate(ceiling.busbw_Bps)} that {_BASIS[ceiling.basis]}{cached}"
    )


def _several(found: list[tuple[Measurement, Ceiling]]) -> str:
    ranks = found[0][0].ranks
    bases = " or ".join(dict.fromkeys(_BASIS[ceiling.basis] for _, ceiling in found))
    each = ", ".join(
        f"{_name(measurement)} {format_rate(measurement.busbw_Bps)} at {format_size(measurement.size_bytes)} "
        f"({percent(measurement.busbw_Bps / ceiling.busbw_Bps)})"
        for measurement, ceiling in found
    )
    return f"best bus bandwidth over {ranks} ranks, and its share of what {bases}: {each}"


def latency_words(measurements: tuple[Measurement, ...]) -> str:
    """Return the time of the smallest point; "" when none is small."""
    small = [point for point in measurements if is_solid(point) and point.size_bytes <= SMALL_BYTES]
    if not small:
        return ""
    # A ping-pong is what latency means to most; else the exchange that was measured first.
    first = min(small, key=lambda point: (point.collective != "latency", point.size_bytes, point.point))
    several = len({point.collective for point in measurements}) > 1
    of = f" of {first.collective}" if several and first.collective != "latency" else ""
    return f"latency{of} {format_time(first.median_s)} at {format_size(first.size_bytes)}"


def _name(measurement: Measurement) -> str:
    return measurement.collective + (" in place" if measurement.in_place else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictEvidence:
    """Everything a verdict rests on."""

    plan: Plan
    outcome: Outcome | None
    hellos: tuple[Hello, ...]
    nodes: tuple[Node, ...] = ()
    measurements: tuple[Measurement, ...]
    ceilings: tuple[Ceiling, ...]
    expectations: tuple[MpiExpectation, ...]
    violations: tuple[Violation, ...]
    stragglers: tuple[Straggler, ...]
    busy: tuple[BusyGpu, ...] = ()
    findings: tuple[Finding, ...]


# (code of the finding it rests on, words)
Reason = tuple[str, str]


def verdict_of(case: VerdictEvidence) -> Verdict:
    """Return the verdict on a run."""
    return _wrong(case) or _failed(case) or _slow(case) or _cannot_tell(case) or _ok(case)


def _wrong(case: VerdictEvidence) -> Verdict | None:
    wrong = wrong_results(case.measurements)
    if not wrong:
        return None
    measurement, first = wrong[0]
    more = f"; {counted(len(wrong) - 1, 'other point')} wrong too" if len(wrong) > 1 else ""
    return Verdict(
        outcome="wrong",
        sentence=f"wrong: {label(measurement)} gives wrong results: {wrong_words(first)}{more}.",
        because=("RUN001",),
    )


def _failed(case: VerdictEvidence) -> Verdict | None:
    if case.outcome is None or case.outcome.ended != "failed":
        return None
    return Verdict(outcome="failed", sentence=f"failed: {failure_words(case.outcome)}.", because=("RUN002",))


def _slow(case: VerdictEvidence) -> Verdict | None:
    reasons = slow_reasons(case)
    if not reasons or case.busy or spoilers(case.plan, case.outcome):
        return None
    sentence = "slow: " + "; ".join(words for _, words in reasons) + "."
    return Verdict(outcome="slow", sentence=sentence, because=_codes(reasons))


def slow_reasons(case: VerdictEvidence) -> tuple[Reason, ...]:
    """Return the evidence that the machine is slow, the strongest of each kind."""
    reasons = []
    slow = [expectation for expectation in case.expectations if expectation.is_slow]
    if slow:
        reasons.append(_missed_reason(max(slow, key=lambda expectation: expectation.excess)))
    material = [straggler for straggler in case.stragglers if straggler.is_material]
    reasons.extend(_straggler_reason(straggler, case.hellos) for straggler in material[:1])
    large = [violation for violation in case.violations if violation.is_large]
    if large:
        reasons.append(_violation_reason(max(large, key=lambda violation: violation.certain_ratio)))
    return tuple(reasons)


def _missed_reason(worst: MpiExpectation) -> Reason:
    measurement = worst.measurement
    over = "TCP over the loopback interface" if worst.path == "loopback" else "copying through shared memory"
    code = "PERF002" if worst.path == "loopback" else "PERF001"
    words = (
        f"{label(measurement)} over {measurement.ranks} ranks takes {format_time(measurement.median_s)}, "
        f"{worst.excess:.1f} times what {over} allows here: {format_rate(measurement.busbw_Bps)} of "
        f"{format_rate(worst.busbw_Bps)} bus bandwidth"
    )
    return code, words


def _straggler_reason(straggler: Straggler, hellos: tuple[Hello, ...]) -> Reason:
    worst = straggler.worst
    words = (
        f"rank {straggler.rank} on {host_of(straggler, hellos)} delays {slow_share(worst) * 100:.1f} % of the calls of "
        f"{label(worst)} by {format_time(worst.slow_excess_s or 0.0)}"
    )
    return "PERF004", words


def _violation_reason(worst: Violation) -> Reason:
    grows = worst.right[0].collective == worst.left.collective
    against = (
        format_size(worst.right[0].size_bytes)
        if grows
        else " and ".join(measurement.collective for measurement in worst.right) + " that do the same work"
    )
    words = (
        f"{label(worst.left)} takes {format_time(worst.left.median_s)}, {worst.ratio:.1f} times as long as {against}"
    )
    return ("PERF007" if grows else "PERF006"), words


def _cannot_tell(case: VerdictEvidence) -> Verdict | None:
    reasons = reasons_to_doubt(case)
    if not reasons:
        return None
    seen = [words for code, words in slow_reasons(case) if code.startswith("PERF")]
    hints = f" (seen, but not to be trusted: {seen[0]})" if seen else ""
    best = best_words(case.measurements, case.ceilings)
    latency = latency_words(case.measurements)
    known = "; measured: " + "; ".join(part for part in (best, latency) if part) if best or latency else ""
    sentence = "cannot tell: " + "; ".join(words for _, words in reasons) + hints + known + "."
    declared = {finding.code for finding in case.findings}
    return Verdict(
        outcome="cannot_tell", sentence=sentence, because=tuple(code for code in _codes(reasons) if code in declared)
    )


def reasons_to_doubt(case: VerdictEvidence) -> tuple[Reason, ...]:
    """Return why speed cannot be judged, or not all of it."""
    reasons: list[Reason] = [("RUN027", words) for words in busy_words(case.busy, case.hellos)]
    reasons.extend(spoilers(case.plan, case.outcome))
    if mixture := mixture_words(case.nodes):
        reasons.append(("RUN023", mixture))
    missing = unreached(case.plan, case.outcome, case.measurements)
    if missing is not None:
        points = f"{counted(len(missing.points), 'point')} not measured ({listed(list(missing.names))})"
        reasons.append(("RUN003", f"{points}, {ended_words(case.outcome)}"))
    elif case.outcome is None:
        reasons.append(("RUN003", ended_words(None)))
    reasons.extend(_cut_short(case))
    reasons.extend(_doubtful_data(case) or _disturbed_collectives(case))
    disturbed = sum(is_disturbed(measurement) for measurement in case.measurements)
    codes = {code for code, _ in reasons}
    if reasons and disturbed and codes.isdisjoint({"RUN006", "RUN022"}):
        # Alone it leaves the other points to judge by; beside another reason it is often the cause of it.
        reasons.append(("RUN022", f"other processes ran on the cores of the ranks at {counted(disturbed, 'point')}"))
    return tuple(reasons)


def _cut_short(case: VerdictEvidence) -> list[Reason]:
    """Return the points that were left without an interval when the run was ended."""
    if case.outcome is None or case.outcome.ended not in ("time", "stopped"):
        return []
    few = [one for one in case.measurements if one.ended in ("time", "stopped") and not has_interval(one)]
    if not few:
        return []
    names = listed([label(one) for one in few])
    points = f"{counted(len(few), 'point')} with too few samples ({names})"
    return [("RUN004", f"{points}, {ended_words(case.outcome)}")]


def _doubtful_data(case: VerdictEvidence) -> list[Reason]:
    """Return why the measurements cannot be judged, as the first reason that covers all of them."""
    if not case.measurements:
        return [("RUN003", "nothing was measured")]
    if all(not measurement.verified for measurement in case.measurements):
        return [("RUN020", "no result was verified")]
    if not any(is_solid(measurement) for measurement in case.measurements):
        return [("RUN004", f"no point has {LEAST_SAMPLES} samples of a verified result")]
    return [] if case.expectations else [_no_expectation(case.plan, case.measurements)]


def _disturbed_collectives(case: VerdictEvidence) -> list[Reason]:
    """Return the collectives whose large messages were all disturbed: they were asked about and have no answer."""
    large: dict[str, list[bool]] = {}
    for measurement in case.measurements:
        if measurement.size_bytes >= LARGE_BYTES:
            large.setdefault(measurement.collective, []).append(is_disturbed(measurement))
    names = [name for name, disturbed in large.items() if all(disturbed)]
    if not names:
        return []
    return [("RUN022", f"other processes ran on the cores of the ranks at every large message of {listed(names)}")]


def _no_expectation(plan: Plan, measurements: tuple[Measurement, ...]) -> Reason:
    large = [measurement for measurement in measurements if measurement.size_bytes >= LARGE_BYTES]
    if not large:
        return "RUN021", f"nothing of {format_size(LARGE_BYTES)} or more was measured, and time alone is not judged"
    if all(is_disturbed(measurement) for measurement in large) and not plan.placement.oversubscribed:
        return "RUN022", "other processes ran on the cores of the ranks"
    return "RUN021", "there is nothing that the large messages could be held against"


def _ok(case: VerdictEvidence) -> Verdict:
    parts = [
        best_words(case.measurements, case.ceilings),
        latency_words(case.measurements),
        _ranks_words(case),
        _unjudged_words(case),
    ]
    warned = tuple(dict.fromkeys(finding.code for finding in case.findings if finding.is_serious))
    with_findings = f" with findings ({', '.join(warned)})" if warned else ""
    return Verdict(
        outcome="ok", sentence=f"ok{with_findings}: " + "; ".join(part for part in parts if part) + ".", because=warned
    )


def _ranks_words(case: VerdictEvidence) -> str:
    if case.stragglers:
        first = case.stragglers[0]
        return f"rank {first.rank} on {host_of(first, case.hellos)} delays some calls, but not by much"
    if any(finding.code == "PERF005" for finding in case.findings):
        return "some calls are slow, and no rank could be named for it"
    seen = any(measurement.mode == "isolated" or measurement.attribution for measurement in case.measurements)
    return "no rank stands out" if seen else ""


def _unjudged_words(case: VerdictEvidence) -> str:
    """Return the collectives of which no point was large and good enough to be judged."""
    judged = {expectation.measurement.collective for expectation in case.expectations}
    names = dict.fromkeys(point.collective for point in case.measurements if point.collective not in judged)
    return f"not judged: {', '.join(names)}" if names else ""


def _codes(reasons: tuple[Reason, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for code, _ in reasons))


_ORDER = {"error": 0, "warn": 1, "note": 2}


class Judgement(Value, frozen=True, kw_only=True):
    """The part of a run that busbw concluded."""

    ceilings: tuple[Ceiling, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict


def judge(
    plan: Plan,
    outcome: Outcome | None,
    hellos: tuple[Hello, ...],
    rates: Rates,
    measurements: tuple[Measurement, ...],
    failures: Failures = (),
    nodes: tuple[Node, ...] = (),
    launches: tuple[EmptyLaunch, ...] = (),
) -> Judgement:
    """Return what the run amounts to: ceilings, findings with the severest first, and the verdict.

    `launches`: of an empty kernel on each rank's GPU, as the run began.
    """
    found_ceilings = ceilings(plan, rates, measurements)
    expected = expectations(plan, rates, measurements)
    violated = violations(measurements)
    delaying = stragglers(measurements)
    busy = busy_gpus(launches, measurements)
    findings = (
        *failure_findings(plan, outcome, measurements, failures),
        *slow_findings(plan, expected),
        *straggler_findings(delaying, hellos),
        *guideline_findings(plan, violated),
        *tail_findings(measurements),
        *condition_findings(plan, outcome, hellos),
        *busy_findings(busy, hellos),
        *node_findings(nodes),
        *sampling_findings(plan, measurements, outcome),
        *launch_findings(plan, measurements),
        *cache_findings(measurements, found_ceilings),
        *_no_ceiling_findings(plan, rates, measurements, expected=bool(expected)),
    )
    ordered = tuple(sorted(findings, key=lambda one: _ORDER[one.severity]))
    case = VerdictEvidence(
        plan=plan,
        outcome=outcome,
        hellos=hellos,
        nodes=nodes,
        measurements=measurements,
        ceilings=found_ceilings,
        expectations=expected,
        violations=violated,
        stragglers=delaying,
        busy=busy,
        findings=ordered,
    )
    return Judgement(ceilings=found_ceilings, findings=ordered, verdict=verdict_of(case))


def _no_ceiling_findings(
    plan: Plan, rates: Rates, measurements: tuple[Measurement, ...], *, expected: bool
) -> tuple[Finding, ...]:
    """Return a note when nothing could be held against anything, with the reason."""
    if expected or not measurements:
        return ()
    largest = max(measurements, key=lambda measurement: measurement.size_bytes)
    if plan.steps:
        why = "programs of others do not measure what this machine can do"
    elif plan.gpu_setup is not None:
        why = "what the links between these GPUs can carry is not known here"
    elif path_of(plan, largest) == "unknown":
        why = "the ranks are on several hosts, or bytes left the host: the memory of one host is not a measure"
    elif not rates.copies and not rates.streams:
        why = "no rate of this machine was measured"
    else:
        why = "messages are too small, samples too few or disturbed, or the sum is one of 16-bit floats"
    return (
        finding(
            "RUN021",
            points=counted(len(measurements), "point"),
            evidence=f"largest: {label(largest)}; {why}",
            fix="measure 1 MiB and more on one host"
            if path_of(plan, largest) != "unknown" and not plan.steps
            else None,
        ),
    )

"""What a run amounts to."""

from busbw.base.value import Value
from busbw.facts.rules import finding
from busbw.judge.ceiling import ceilings, path_of
from busbw.judge.conditions import condition_findings, node_findings
from busbw.judge.expectation import cache_findings, expectations, slow_findings
from busbw.judge.failures import Failures, failure_findings
from busbw.judge.guidelines import guideline_findings, violations
from busbw.judge.launching import busy_findings, busy_gpus, launch_findings
from busbw.judge.phrases import counted, label
from busbw.judge.sampling import sampling_findings
from busbw.judge.stragglers import straggler_findings, stragglers, tail_findings
from busbw.judge.verdict import VerdictEvidence, verdict_of
from busbw.model.finding import Ceiling, Finding, Verdict
from busbw.model.measurement import EmptyLaunch, Measurement
from busbw.model.plan import Plan
from busbw.model.record import Hello, Node
from busbw.model.run import Outcome, Rates

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
        why = "the ranks are on several hosts, or bytes left the host: the memory of one host is no measure"
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

"""What makes numbers void or missing: wrong results, a failed run, points that were not measured."""

from busbw.facts.findings import finding
from busbw.judge.phrases import counted, label
from busbw.judge.unreached import more_time, unreached, unreached_words
from busbw.model.culprit import Culprit
from busbw.model.finding import Finding
from busbw.model.measurement import Measurement, WrongResult
from busbw.model.plan import Plan
from busbw.model.record import Failed
from busbw.model.run import Outcome, Unreached

# (rank, why it gave up).
Failures = tuple[tuple[int, Failed], ...]


def wrong_results(measurements: tuple[Measurement, ...]) -> tuple[tuple[Measurement, WrongResult], ...]:
    """Return the measurements whose result was wrong, with what was wrong."""
    return tuple((point, point.wrong) for point in measurements if point.wrong is not None)


def wrong_words(wrong: WrongResult) -> str:
    """Return the first wrong element in words."""
    if wrong.rank is None:
        return f"the program's own check counted {wrong.mismatch.wrong} wrong"
    return (
        f"rank {wrong.rank} on {wrong.host} got {wrong.mismatch.got} at element {wrong.mismatch.index}, "
        f"expected {wrong.mismatch.expected}"
    )


def failure_findings(
    plan: Plan, outcome: Outcome | None, measurements: tuple[Measurement, ...], failures: Failures = ()
) -> tuple[Finding, ...]:
    """Return what went wrong, the worst first. `failures`: why ranks gave up, in their own words."""
    missing = unreached(plan, outcome, measurements)
    return (
        *(_wrong_finding(point, wrong) for point, wrong in wrong_results(measurements)),
        *((_failed_finding(outcome, failures),) if outcome is not None and outcome.ended == "failed" else ()),
        *((_missing_finding(plan, outcome, missing),) if missing is not None else ()),
    )


def _wrong_finding(measurement: Measurement, wrong: WrongResult) -> Finding:
    return finding(
        "RUN001",
        what=label(measurement),
        evidence=wrong_words(wrong)
        + (f"; {counted(wrong.mismatch.wrong, 'element')} of this rank differ" if wrong.rank is not None else ""),
        fix="do not compute with this library, collective and size until it is understood: try another algorithm or "
        "version, and test the memory of the host and of its GPUs",
        point=measurement.point,
    )


def failure_words(outcome: Outcome) -> str:
    """Return why a run failed: the culprit if there is one, else the cause."""
    if outcome.culprit is None:
        cause = outcome.cause or "the launcher gave no reason"
        return cause + (f" (exit code {outcome.exit_code})" if outcome.exit_code not in (None, 0) else "")
    culprit = outcome.culprit
    verb = "was " if culprit.what.startswith(("killed", "stopped")) else ""
    return f"rank {culprit.rank} on {culprit.host} {verb}{culprit.what} (last seen: {culprit.step})"


def _failed_finding(outcome: Outcome, failures: Failures) -> Finding:
    words = failure_words(outcome)
    cause = "" if outcome.culprit is None or not outcome.cause else _beside(outcome.cause, outcome.culprit)
    return finding(
        "RUN002",
        evidence=words + cause + _last_words(outcome, failures) + _memory_words(outcome),
        fix="the ranks' own last words are in raw/ of the run directory",
    )


def _beside(cause: str, culprit: Culprit) -> str:
    """Return the cause of a failure where it says more than the culprit's end."""
    said = cause.partition(": ")[2]
    return "" if said and said in culprit.what else f"; {cause}"


def _last_words(outcome: Outcome, failures: Failures) -> str:
    """Return what a rank said that the cause does not say already."""
    told = (outcome.cause or "") + failure_words(outcome)
    for rank, failed in failures:
        if failed.cause not in told:
            return f"; rank {rank} says: {failed.cause}"
    return ""


def _memory_words(outcome: Outcome) -> str:
    before, after = outcome.counters_before.memory_kills, outcome.counters_after.memory_kills
    if before is None or after is None or after <= before:
        return ""
    return f"; meanwhile the kernel ended {counted(after - before, 'process')} because memory ran out"


def _missing_finding(plan: Plan, outcome: Outcome | None, missing: Unreached) -> Finding:
    evidence, fix = f"{unreached_words(plan, missing)}; {ended_words(outcome)}", None
    if outcome is not None and outcome.ended == "time":
        fix = "give the run more time, or measure fewer sizes"
        if (more := more_time(plan, missing)) is not None:
            words, option = more
            evidence, fix = f"{evidence}; {words}", f"{option}, or fewer sizes"
    return finding("RUN003", points=counted(len(missing.points), "point"), evidence=evidence, fix=fix)


def ended_words(outcome: Outcome | None) -> str:
    """Return how the run ended, for a sentence about what is missing."""
    if outcome is None:
        return "the run was cut off"
    stopped = "the run was stopped" + (f" ({outcome.cause})" if outcome.cause is not None else "")
    return {
        "complete": "the run came to its end without them",
        "time": "the time limit was reached",
        "stopped": stopped,
        "failed": "the run failed",
    }[outcome.ended]

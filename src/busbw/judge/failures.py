"""What makes numbers void or missing: wrong results, a failed run, points that were not measured."""

from collections.abc import Sequence
from math import ceil

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import counted, listed
from busbw.base.units import format_size
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.model.plan import Plan, Point, points_of
from busbw.model.record import Failed
from busbw.model.run import Measurement, Outcome, Unreached, WrongResult, label
from busbw.model.visit import Culprit

# From so many sizes on a row of them is named by its ends.
_ROW = 3
# An estimate between bounds that lie closer together than this factor is given as one number.
_CLOSE = 1.5


def unreached(plan: Plan, outcome: Outcome | None, measurements: tuple[Measurement, ...]) -> Unreached | None:
    """Return what is missing of the plan; None when nothing is. Only a run that its time limit ended lacks time."""
    measured = {measurement.point for measurement in measurements}
    missing = [(number, point) for number, point in enumerate(points_of(plan.sweeps)) if number not in measured]
    if not missing:
        return None
    names = tuple(_names(plan, [point for _, point in missing]))
    points = tuple(number for number, _ in missing)
    if outcome is None or outcome.ended != "time":
        return Unreached(points=points, names=names)
    bounds = [_bounds_s(plan, point, measurements) for _, point in missing]
    least = [least_s for least_s, _ in bounds if least_s is not None]
    most = [most_s for _, most_s in bounds if most_s is not None]
    return Unreached(
        points=points,
        names=names,
        least_s=sum(least) if least else None,
        most_s=sum(most) if len(most) == len(bounds) else None,
    )


def _names(plan: Plan, missing: Sequence[Point]) -> list[str]:
    """Return the points in words, a row of sizes by its ends: `alltoall 16 MiB to 64 MiB`."""
    found = []
    for index, sweep in enumerate(plan.sweeps):
        gone = {point.size_bytes for point in missing if point.sweep == index}
        rows: list[list[int]] = []
        follows = False
        for size_bytes in sweep.sizes_bytes:
            if size_bytes in gone:
                if not follows:
                    rows.append([])
                rows[-1].append(size_bytes)
            follows = size_bytes in gone
        title = sweep.collective + (f" {sweep.pair[0]}-{sweep.pair[1]}" if sweep.pair is not None else "")
        title += " in place" if sweep.in_place else ""
        for row in rows:
            if len(row) < _ROW:
                found += [f"{title} {format_size(size_bytes)}" for size_bytes in row]
            else:
                found.append(f"{title} {format_size(row[0])} to {format_size(row[-1])}")
    return found


def _bounds_s(plan: Plan, point: Point, measurements: tuple[Measurement, ...]) -> tuple[float | None, float | None]:
    """Return what the first turn of a missing point takes: at least, and at most as far as smaller messages tell.

    A larger message of the same sweep takes no less time, and where bytes decide no more than in proportion. None where
    nothing tells.
    """
    sweep = plan.sweeps[point.sweep]
    alike = [
        one
        for one in measurements
        if (one.collective, one.in_place, one.pair, one.group)
        == (sweep.collective, sweep.in_place, sweep.pair, sweep.group)
        and one.wrong is None
    ]
    first_calls = sorted((one.size_bytes, one.first_s) for one in alike if one.first_s is not None)
    larger = [first_s for size_bytes, first_s in first_calls if size_bytes >= point.size_bytes]
    smaller = [pair for pair in first_calls if pair[0] < point.size_bytes]
    if smaller:
        size_bytes, first_s = smaller[-1]
        most_s = first_s * point.size_bytes / max(size_bytes, 1)
        return first_s, min([most_s, *larger[:1]])
    if larger:
        return 0.0, larger[0]
    # What verifying takes is not known: one sample is the least.
    calls_s = [_sample_s(one) for one in alike if one.size_bytes < point.size_bytes]
    return (max(calls_s), None) if calls_s else (None, None)


def _sample_s(measurement: Measurement) -> float:
    """Return how long one sample takes in the median, all its calls."""
    messages = COLLECTIVES[measurement.collective].messages_per_call
    return measurement.median_s * max(measurement.calls_per_sample, 1) * messages


def unreached_words(plan: Plan, found: Unreached) -> str:
    """Return what is missing in one line: `alltoall 16 MiB to 64 MiB, of 12 points`."""
    return f"{listed(list(found.names))}, of {counted(len(points_of(plan.sweeps)), 'point')}"


def more_time(plan: Plan, found: Unreached) -> tuple[str, str] | None:
    """Return how much more time reaches what is missing, in words, and the option for it; None where nothing tells."""
    limit_s, least_s, most_s = plan.sampling.time_limit_s, found.least_s, found.most_s
    if most_s is not None and least_s is not None:
        words = (
            f"about {_seconds(most_s)}" if most_s <= _CLOSE * least_s else f"{_seconds(least_s)} to {_seconds(most_s)}"
        )
        return f"{words} more would reach the first sample of each", f"--time-limit {ceil(limit_s + most_s)}"
    if least_s is not None:
        return f"at least {_seconds(least_s)} more would be needed", f"--time-limit {ceil(limit_s + least_s)} or more"
    return None


def more_samples(plan: Plan, few: Sequence[Measurement]) -> str | None:
    """Return the option that gives points that time has ended the samples they must have; None for other ends.

    It is what their samples took, without warming up: the least.
    """
    least = plan.sampling.min_samples
    cut = [one for one in few if one.ended == "time" and one.samples < least]
    if not cut:
        return None
    more_s = sum((least - one.samples) * _sample_s(one) for one in cut)
    return (
        f"at least {_seconds(more_s)} more: --time-limit {ceil(plan.sampling.time_limit_s + more_s)} or more, "
        "or fewer sizes"
    )


def _seconds(value_s: float) -> str:
    return f"{value_s:.0f} s" if value_s >= 9.5 else f"{max(value_s, 0.1):.1f} s"


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
    cause = (outcome.cause or "") + failure_words(outcome)
    for rank, failed in failures:
        if failed.cause not in cause:
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

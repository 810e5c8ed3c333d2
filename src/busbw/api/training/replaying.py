"""A step's communication replayed: planned, and put together from what the ranks wrote."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from busbw.api.training.workloads import workload_of
from busbw.base.text import counted, listed, percent
from busbw.base.units import format_size, format_time
from busbw.facts.rules import finding
from busbw.measure.plan.steps import plan_step_run
from busbw.model.finding import Finding, Verdict
from busbw.model.plan import Plan
from busbw.model.record import StepsTaken
from busbw.model.request import Request
from busbw.model.run import Run
from busbw.model.train.replay import ReplayedStep, StepAsked
from busbw.store import directory as directories
from busbw.store.raw import read_records
from busbw.train.replaying import result_of

# Findings about sizes as a curve, and about intervals, which a step's collectives alone are not held to.
_OF_CURVES = re.compile(r"PERF...|RUN0(04|05|11|12|13|14|19|21|26)")
# The number of the start in the name of a records file (busbw.base.layout).
_ATTEMPT = re.compile(r"\.(\d{1,6})\.jsonl:")
_MOST_NAMED = 3
# A step whose computing took so many times what was planned says nothing of its communication.
_MOST_LATE = 2.0


def plan_replay(request: Request, asked: StepAsked, directory: Path | None) -> tuple[Plan, Path]:
    """Return the plan of a step to replay, and its run directory.

    Raises InputError for what there is not, for a job that cannot be, and for what cannot run here.
    """
    workload = workload_of(asked.workload)
    if "/" in asked.workload or asked.workload.endswith(".toml"):
        asked = structs.replace(asked, workload=str(Path(asked.workload).absolute()))
    return plan_step_run(request, asked, workload, directory, directories.root())


def with_step(run: Run, directory: Path) -> Run:
    """Return a run with what its replayed step took, and the verdict that follows."""
    plan = run.plan
    assert plan.step is not None, "looked at by the caller"
    records, _unreadable = read_records(directory)
    steps = {
        rank: [(_attempt(place), record) for place, record in entries if isinstance(record, StepsTaken)]
        for rank, entries in records.items()
    }
    latest = max((attempt for entries in steps.values() for attempt, _ in entries), default=0)
    of_latest = {rank: [record for attempt, record in entries if attempt == latest] for rank, entries in steps.items()}
    found = result_of(plan.step, of_latest, plan.placement.ranks, run.measurements)
    kept = tuple(each for each in run.findings if not _OF_CURVES.fullmatch(each.code))
    return structs.replace(
        run, step=found, findings=(*_wrong_findings(run, found), *kept), verdict=_verdict(run, found)
    )


def _wrong_findings(run: Run, found: ReplayedStep | None) -> Iterator[Finding]:
    """Yield calls that were wrong before the first step, where no collective alone was, which says so itself."""
    if found is None or run.verdict.outcome == "wrong":
        return
    for call in found.calls:
        if call.wrong_rank is not None:
            yield finding(
                "RUN001",
                what=f"{call.collective} within {call.group} groups",
                evidence=f"{call.name}, {format_size(call.size_bytes)}: rank {call.wrong_rank}, before the first step",
            )


def _attempt(place: str) -> int:
    match = _ATTEMPT.search(place)
    return int(match[1]) if match is not None else 0


def _verdict(run: Run, found: ReplayedStep | None) -> Verdict:
    plan = run.plan.step
    assert plan is not None, "looked at by the caller"
    if run.verdict.outcome in ("wrong", "failed"):
        return run.verdict
    wrong = [] if found is None else [each for each in found.calls if each.wrong_rank is not None]
    if wrong:
        where = f"{wrong[0].collective} within {wrong[0].group} groups ({wrong[0].name}) on rank {wrong[0].wrong_rank}"
        return Verdict(outcome="wrong", sentence=f"wrong: {where} gives wrong results.", because=("RUN001",))
    unchecked = [] if found is None else [each.name for each in found.calls if not each.verified]
    if found is None or (unchecked and run.plan.sampling.verify):
        why = "no step was replayed" if found is None else f"results were not checked of {listed(unchecked)}"
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {why}.", because=("RUN003",))
    if found.compute_s > _MOST_LATE * plan.compute_s:
        late = f"computing took {found.compute_s / plan.compute_s:.1f} times what was planned"
        why = "processors were shared" if found.product_s is None else "the host started it late, or the GPU is shared"
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {late}, possibly as {why}.", because=())
    waits = [each for each in sorted(found.calls, key=lambda each: -each.exposed_s) if each.exposed_s > 0]
    named = listed(
        (f"{each.group} {each.collective} {percent(each.exposed_s / found.step_s)}" for each in waits), _MOST_NAMED
    )
    return Verdict(
        outcome="ok",
        sentence=f"ok: a step of {plan.workload} on {counted(run.plan.placement.ranks, 'rank')} takes "
        f"{format_time(found.step_s)}, {percent(found.exposed_s / found.step_s)} of it communication that nothing "
        f"hides{f' ({named})' if named else ''}; nothing is held against it.",
        because=(),
    )

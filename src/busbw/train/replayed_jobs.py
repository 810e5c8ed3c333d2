"""Replayed steps as jobs of a figure, and as what a logged job exposes.

Alone because `scaling` is of printed numbers: a replay says what its communication takes, and nothing of a framework's
computing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from busbw.base.errors import InputError
from busbw.base.text import percent
from busbw.base.units import precise_time
from busbw.model.run import Run
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.replay import ReplayedStep, StepPlan
from busbw.train.scaling import StepResult

_HINT = "busbw train run WORKLOAD --ranks N replays a step"


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """A run in which a whole step was replayed."""

    name: str
    ranks: int
    plan: StepPlan
    step: ReplayedStep
    # The sentence that says why nothing can be told of it; None: something can.
    doubt: str | None


def replay_in(run: Run, name: str) -> Replay:
    """Return the step that a run replayed. Raises InputError where there is none, or one that was scaled down."""
    plan, step = run.plan.step, run.step
    if plan is None or step is None:
        raise InputError("no step was replayed in this run", where=name, hint=_HINT)
    if plan.asked.scale_down != 1:
        raise InputError(
            f"a step scaled down by {plan.asked.scale_down} is no step of the job",
            where=name,
            hint="replay it without --scale-down, on more ranks or with a smaller --layout global_batch=N",
        )
    if run.verdict.outcome in ("wrong", "failed"):
        raise InputError(run.verdict.sentence.rstrip("."), where=name, hint="busbw show says more")
    doubt = run.verdict.sentence if run.verdict.outcome == "cannot_tell" else None
    return Replay(name=name, ranks=run.plan.placement.ranks, plan=plan, step=step, doubt=doubt)


def check_alike(replays: Sequence[Replay]) -> None:
    """Raise InputError for replays that are not of one workload in one data type."""
    kinds = {(each.plan.workload, each.plan.dtype): each.name for each in replays}
    if len(kinds) > 1:
        named = " and ".join(f"{workload} in {dtype} ({name})" for (workload, dtype), name in list(kinds.items())[:2])
        raise InputError(f"steps of different jobs do not scale: {named}", hint="name runs of one workload and --dtype")


def replayed_job(replay: Replay) -> StepResult:
    """Return a replayed step as one job of a figure, with what each collective exposes."""
    step, plan = replay.step, replay.plan
    work = (("seqlen", plan.sequence), ("gbs", plan.global_batch))
    note = (
        f"replayed steps compute at a rate that is {plan.rate_words.split(';')[0]}: their communication is measured, "
    )
    note += "their step is not a framework's"
    return StepResult(
        source=replay.name,
        gpus=replay.ranks,
        nodes=None,
        settings=tuple((name, str(value)) for name, value in work if value is not None),
        step_s=ScalingEstimate(value=step.step_s, low=step.low_s, high=step.high_s, basis="samples"),
        tokens_per_s=None,
        exposed=ScalingEstimate(value=step.exposed_s / step.step_s),
        exposed_by=_by_collective(step, step.step_s),
        notes=(
            note,
            *_doubts(replay),
        ),
    )


def with_replays(jobs: Sequence[StepResult], replays: Sequence[Replay]) -> tuple[StepResult, ...]:
    """Return jobs, each that says nothing of its communication with what a replay of as many ranks exposes.

    Raises InputError for a replay of no such job, and for two of as many ranks.
    """
    by_ranks: dict[int, Replay] = {}
    for each in replays:
        if each.ranks in by_ranks:
            raise InputError(f"two replays of {each.ranks} ranks: {by_ranks[each.ranks].name} and {each.name}")
        by_ranks[each.ranks] = each
    silent = {job.gpus for job in jobs if job.exposed is None and job.step_s is not None}
    for ranks, replay in by_ranks.items():
        if ranks not in silent:
            hint = "one replay for each log, of as many ranks as its job had GPUs"
            raise InputError(f"no job on {ranks} GPUs whose communication is not told", where=replay.name, hint=hint)
    return tuple(_with_replay(job, by_ranks) for job in jobs)


def _with_replay(job: StepResult, by_ranks: Mapping[int, Replay]) -> StepResult:
    replay = by_ranks.get(job.gpus) if job.gpus is not None else None
    if replay is None or job.step_s is None or job.exposed is not None:
        return job
    step_s, step = job.step_s.value, replay.step
    told = dict(job.settings)
    for name, value in (("seqlen", replay.plan.sequence), ("gbs", replay.plan.global_batch)):
        if value is not None and name in told and told[name] != str(value):
            raise InputError(
                f"{job.source} has {name} {told[name]}, and the replay {value}: not the same step",
                where=replay.name,
                hint="busbw train run --layout global_batch=N, or a workload with that sequence",
            )
    if step.exposed_s >= step_s:
        raise InputError(
            f"the replay exposes {precise_time(step.exposed_s)}, and a step of {job.source} takes "
            f"{precise_time(step_s)}: not the same step",
            where=replay.name,
        )
    exposed = replay.step.exposed_s / step_s
    note = (
        f"{job.source}: communication is not told by it; {percent(exposed)} of its step is what the replay "
        f"{replay.name} exposes, {precise_time(replay.step.exposed_s)}"
    )
    return replace(
        job,
        exposed=ScalingEstimate(value=exposed),
        exposed_by=_by_collective(replay.step, step_s),
        notes=(*job.notes, note, *_doubts(replay)),
    )


def _by_collective(step: ReplayedStep, step_s: float) -> tuple[tuple[str, float], ...]:
    shares: dict[str, float] = {}
    for call in step.calls:
        name = f"{call.group} {call.collective}"
        shares[name] = shares.get(name, 0.0) + call.exposed_s / step_s
    return tuple(sorted(shares.items(), key=lambda each: -each[1]))


def _doubts(replay: Replay) -> tuple[str, ...]:
    return (f"{replay.name}: {replay.doubt}",) if replay.doubt is not None else ()

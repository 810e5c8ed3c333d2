"""A replayed step over time: what computes, what is hidden beside it, and what is waited for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_size, format_time
from busbw.model.run import Run
from busbw.model.train.moves import moves_of
from busbw.model.train.replay import CallResult, ReplayedStep, StepPlan
from busbw.show.figures.training import (
    Span,
    StepFigure,
    StepLane,
    StepPart,
    lanes_figure,
    share_figure,
)

# Calls that have a lane of their own; the others share one.
_MOST_LANES = 6
# Of a step: a gap that is shorter is not seen, and not drawn.
_LEAST_GAP = 1 / 1000
_UNITS = ((1.0, "seconds", 1.0), (1e-3, "milliseconds", 1e3), (0.0, "microseconds", 1e6))


@dataclass(slots=True)
class _Spans:
    """When something went on, in seconds from the start of the step."""

    exposed: list[Span] = field(default_factory=list)
    hidden: list[Span] = field(default_factory=list)


def replayed_step_figure(run: Run) -> StepFigure | None:
    """Return a replayed step as it was measured: over time, and its shares; None where no step was replayed.

    Calls stand in the order in which every rank makes them, each as long as the median of its kind.
    """
    plan, step = run.plan.step, run.step
    if plan is None or step is None or len(plan.calls) != len(step.calls):
        return None
    computing, calls, end_s = _walked(plan, step)
    order = sorted(range(len(calls)), key=lambda number: -step.calls[number].busy_s)
    order = [number for number in order if step.calls[number].busy_s > 0]
    most, others = order[:_MOST_LANES], order[_MOST_LANES:]
    axis, factor = next((name, factor) for least, name, factor in _UNITS if step.step_s >= least)
    gap_s = _LEAST_GAP * step.step_s
    lanes = [StepLane(name="computing", spans=_drawn(computing, gap_s, factor))]
    lanes += [_lane(call_name(step.calls[number]), [calls[number]], gap_s, factor) for number in most]
    if others:
        lanes.append(
            _lane(
                f"others, {counted(len(others), 'kind')} of calls", [calls[number] for number in others], gap_s, factor
            )
        )
    lanes.append(StepLane(name="rest", spans=_drawn([(end_s, step.step_s)], gap_s, factor), is_rest=True))
    ranks = run.plan.placement.ranks
    return StepFigure(
        title=f"{format_time(step.step_s)} a step, {percent(step.exposed_s / step.step_s)} communication that nothing "
        "hides",
        subtitle=f"{plan.workload}, {plan.dtype}, {counted(ranks, 'rank')}: replayed, {counted(step.steps, 'step')}",
        figure=lanes_figure(lanes, f"{axis} from the start of the step"),
        share=share_figure(tuple(_parts(step, most, others)), step.step_s),
    )


def call_name(call: CallResult) -> str:
    """Return a kind of call in words: `EP alltoall 128 KiB x16`."""
    return f"{call.group} {call.collective} {format_size(call.size_bytes)} x{call.calls}"


def replay_words(run: Run, step: ReplayedStep) -> str:
    """Return what both figures show, in a sentence for who cannot see them."""
    waits = [each for each in sorted(step.calls, key=lambda each: -each.exposed_s) if each.exposed_s > 0]
    named = listed((f"{call_name(each)} {percent(each.exposed_s / step.step_s)}" for each in waits), 3)
    parts = f"computing {percent(step.compute_s / step.step_s)}"
    return f"a step of {run.plan.placement.ranks} ranks, {format_time(step.step_s)}: {parts}" + (
        f", exposed {named}" if named else ", no communication exposed"
    )


def _parts(step: ReplayedStep, most: Sequence[int], others: Sequence[int]) -> Iterator[StepPart]:
    yield StepPart(name="computing", time_s=step.compute_s)
    for number in most:
        call = step.calls[number]
        yield StepPart(name=call_name(call), time_s=call.exposed_s, hidden_s=max(call.busy_s - call.exposed_s, 0.0))
    if others:
        calls = [step.calls[number] for number in others]
        exposed_s = sum(call.exposed_s for call in calls)
        hidden_s = max(sum(call.busy_s for call in calls) - exposed_s, 0.0)
        yield StepPart(name=f"others, {counted(len(calls), 'kind')} of calls", time_s=exposed_s, hidden_s=hidden_s)
    yield StepPart(name="rest", time_s=step.rest_s, is_rest=True)


def _walked(plan: StepPlan, step: ReplayedStep) -> tuple[list[Span], list[_Spans], float]:
    """Return when computing and each kind of call went on, and when the last of it ended."""
    slower = step.compute_s / plan.compute_s if plan.compute_s > 0 else 0.0
    waits_s = [call.exposed_s / max(call.calls, 1) for call in step.calls]
    computing: list[Span] = []
    calls = [_Spans() for _ in step.calls]
    begun_s = [0.0] * len(calls)
    now_s = 0.0
    for move in moves_of(plan):
        if move.act == "compute":
            computing.append((now_s, now_s := now_s + move.time_ns * 1e-9 * slower))
        elif move.act == "begin":
            begun_s[move.which] = now_s
        else:
            if move.act == "finish":
                hidden_s = max(step.calls[move.which].in_step_s - waits_s[move.which], 0.0)
                ends_s = min(now_s, begun_s[move.which] + hidden_s)
                calls[move.which].hidden.append((begun_s[move.which], ends_s))
            calls[move.which].exposed.append((now_s, now_s := now_s + waits_s[move.which]))
    return computing, calls, now_s


def _lane(name: str, calls: Sequence[_Spans], gap_s: float, factor: float) -> StepLane:
    exposed = [span for each in calls for span in each.exposed]
    hidden = [span for each in calls for span in each.hidden]
    return StepLane(name=name, spans=_drawn(exposed, gap_s, factor), hidden=_drawn(hidden, gap_s, factor))


def _drawn(spans: Sequence[Span], gap_s: float, factor: float) -> tuple[Span, ...]:
    """Return spans in the unit of the axis; those that no gap to be seen is between are one."""
    merged: list[Span] = []
    for begin, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and begin - merged[-1][1] <= gap_s:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return tuple((_rounded(begin * factor), _rounded(end * factor)) for begin, end in merged)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")

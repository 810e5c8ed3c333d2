"""A training step on a page or as a drawing: the figures of a replayed one, and a table of its calls."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from busbw.base.text import counted, percent
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.run import Run
from busbw.model.train.replay import CallResult, ReplayedStep, StepPlan
from busbw.show.figures.axes import Theme
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.replayed_step import replay_words, replayed_step_figure
from busbw.show.figures.series import Explanations, Figure
from busbw.show.figures.training import StepFigure
from busbw.show.page.pictures import svg_address

_HEADINGS = (
    "what", "of", "collective", "groups", "size", "calls", "alone", "expected", "in step", "hidden", "exposed",
    "of step", "busbw alone", "busbw in step",
)  # fmt: skip
# Columns of words.
_TEXTS = (0, 1, 2, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSection:
    """What the template of a step reads, and its figures by the id of their element."""

    values: dict[str, Any]
    figures: dict[str, Figure]


def step_svg(step: StepFigure, theme: Theme) -> str:
    """Return where the time of a training step goes, and the share of each part, as a drawing."""
    panels = [Panel(title=step.title, figure=step.figure), Panel(title="share of a step", figure=step.share)]
    return figures_svg("busbw train", step.subtitle, panels, theme)


def step_section_of(run: Run, explained: Explanations, *, prefix: str) -> StepSection | None:
    """Return the part of a page about the step that a run replayed; None where it replayed none."""
    drawn = replayed_step_figure(run)
    plan, step = run.plan.step, run.step
    if drawn is None or plan is None or step is None:
        return None
    over, share = f"{prefix}step-over", f"{prefix}step-share"
    rows = tuple(_row(step, number, call, explained) for number, call in enumerate(step.calls))
    order = sorted(range(len(rows)), key=lambda number: -step.calls[number].busy_s)
    return StepSection(
        values={
            "title": drawn.title,
            "words": replay_words(run, step),
            "over": over,
            "share": share,
            "still": None if prefix else svg_address(step_svg(drawn, "light")),
            "facts": tuple(_facts(plan, step)),
            "headings": _HEADINGS,
            "texts": _TEXTS,
            "rows": tuple(rows[number] for number in order),
            "has_expected": any(row[_HEADINGS.index("expected")] != "not known" for row in rows),
            "left_out": plan.left_out,
        },
        figures={over: drawn.figure, share: drawn.share},
    )


def _facts(plan: StepPlan, step: ReplayedStep) -> Iterator[tuple[str, str]]:
    yield "job", f"{plan.workload}, {plan.dtype}"
    experts = f"; EP {plan.ep}, so experts have {counted(plan.expert_dp, 'replica')}" if plan.ep > 1 else ""
    yield "layout", f"TP {plan.tp} x PP {plan.pp} x CP {plan.cp} x DP {plan.dp}{experts}; order {plan.order}"
    yield "micro-batches", str(plan.accumulation)
    if plan.asked.scale_down != 1:
        yield "scaled down", f"messages and computing by {plan.asked.scale_down}"
    interval = f"{format_time(step.low_s)} to {format_time(step.high_s)}"
    yield "step", f"{format_time(step.step_s)} ({interval}, {counted(step.steps, 'step')})"
    planned = f"{format_time(plan.compute_s)} planned"
    rate = f"{plan.flops:.3g} FLOPs at {plan.rate_flops / 1e12:.3g} TFLOP/s ({plan.rate_words})"
    yield "computing", f"{format_time(step.compute_s)}, {planned}: {rate}"
    yield "exposed", f"{format_time(step.exposed_s)} ({percent(step.exposed_s / step.step_s)})"
    yield "rest", f"{format_time(step.rest_s)}: starting calls, reading clocks, waiting for the slowest rank"
    if step.product_s is not None:
        yield "one matrix product", f"{format_time(step.product_s)} alone"


def _row(step: ReplayedStep, number: int, call: CallResult, explained: Explanations) -> tuple[str, ...]:
    expected_s = _expected_s(number, call, explained)
    many = f"{call.groups} of {call.ranks}"
    return (
        call.name, call.group, call.collective, many, format_size(call.size_bytes), str(call.calls),
        _time(call.alone_s), _time(expected_s), format_time(call.in_step_s),
        format_time(max(call.busy_s - call.exposed_s, 0.0)), format_time(call.exposed_s),
        percent(call.exposed_s / step.step_s),
        "not known" if call.alone_busbw_Bps is None else format_rate(call.alone_busbw_Bps),
        format_rate(call.in_step_busbw_Bps),
    )  # fmt: skip


def _expected_s(number: int, call: CallResult, explained: Explanations) -> float | None:
    """Return the time that is expected of a call alone; None where nothing is known of it."""
    size = explained.get(number)
    if size is None:
        return None
    if size.band_high_Bps and call.alone_s and call.alone_busbw_Bps:
        # At one size bus bandwidth is the inverse of time.
        return call.alone_s * call.alone_busbw_Bps / size.band_high_Bps
    return size.band_time_s


def _time(time_s: float | None) -> str:
    return "not known" if time_s is None else format_time(time_s)

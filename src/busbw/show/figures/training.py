"""Where the time of a training step goes: what computes, exposed communication, and the pipeline's bubble."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from busbw.base.text import percent, printable
from busbw.base.units import format_time, precise_time
from busbw.model.train.plan import TrainPlan
from busbw.model.train.proxy import ProxyResult
from busbw.show.figures.axes import STYLES, zero_axis
from busbw.show.figures.series import Figure, base_layout

# Lanes of collectives; what is left stands in one.
_MOST_LANES = 6
# Less than this of the largest goes there too.
_LEAST = 0.01
_LANE = 0.7


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPart:
    """One kind of thing that a step spends time on."""

    name: str
    time_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFigure:
    """The figure with its words."""

    title: str
    subtitle: str
    figure: Figure


def planned_step_figure(plan: TrainPlan) -> StepFigure | None:
    """Return where the time of a planned step goes; None where the plan has no time."""
    estimate = plan.estimate
    if estimate is None:
        return None
    exposed_s = estimate.inside_s + estimate.outside_s
    parts = [StepPart(name="computing", time_s=estimate.layers_s - estimate.inside_s)]
    parts += _lanes([(f"{each.collective}, {each.group}", each.exposed_s or 0.0) for each in plan.collectives])
    parts += [StepPart(name="bubble", time_s=estimate.bubble_s)] if estimate.bubble_s else []
    what = f"{plan.workload} on {plan.gpus} GPUs of {plan.platform}, {plan.dtype}: by the plan"
    return _figure(parts, estimate.step_s, exposed_s / estimate.step_s, what)


def measured_step_figure(result: ProxyResult) -> StepFigure:
    """Return where the time of a measured step went."""
    calls = [(f"{each.collective}, {each.group}", each.time_s) for each in result.calls]
    waited_s = sum(time_s for _, time_s in calls)
    computing = StepPart(name="computing", time_s=max(0.0, result.median_step_s - waited_s))
    what = f"{result.plan.workload}, {result.plan.dtype}, {result.plan.ranks} ranks: measured, {result.backend}"
    return _figure([computing, *_lanes(calls)], result.median_step_s, result.communication, what)


def _lanes(calls: Sequence[tuple[str, float]]) -> list[StepPart]:
    """Return collectives by what they expose, those of one name together."""
    sums: dict[str, float] = {}
    for name, time_s in calls:
        sums[name] = sums.get(name, 0.0) + time_s
    ordered = sorted(((name, time_s) for name, time_s in sums.items() if time_s > 0), key=lambda each: -each[1])
    shown = [each for each in ordered[:_MOST_LANES] if each[1] >= _LEAST * ordered[0][1]]
    parts = [StepPart(name=name, time_s=time_s) for name, time_s in shown]
    rest_s = sum(time_s for _, time_s in ordered[len(shown) :])
    return [*parts, StepPart(name="others", time_s=rest_s)] if rest_s else parts


def _figure(parts: Sequence[StepPart], step_s: float, exposed: float, what: str) -> StepFigure:
    """Return lanes one below the other, each beginning where that above it ends."""
    traces: list[dict[str, Any]] = []
    begin_s = 0.0
    for number, part in enumerate(parts):
        end_s, middle = begin_s + part.time_s, len(parts) - number - 0.5
        low, high = middle - _LANE / 2, middle + _LANE / 2
        colour = STYLES[number % len(STYLES)][0]
        name = f"{number + 1} {part.name}: {precise_time(part.time_s)}, {percent(part.time_s / step_s)}"
        traces.append({
            "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": colour, "name": printable(name),
            "hoverinfo": "name", "line": {"color": colour, "width": 1},
            "x": [begin_s, end_s, end_s, begin_s, begin_s], "y": [low, low, high, high, low],
        })  # fmt: skip
        begin_s = end_s
    lanes = {
        "type": "linear", "range": [0.0, float(len(parts))], "tickmode": "array", "showgrid": False,
        "title": {"text": "part", "standoff": 6}, "automargin": True, "zeroline": False,
        "tickvals": [len(parts) - number - 0.5 for number in range(len(parts))],
        "ticktext": [str(number + 1) for number in range(len(parts))],
    }  # fmt: skip
    layout = base_layout(zero_axis("seconds, each kind together", [begin_s]), lanes)
    return StepFigure(
        title=f"{format_time(step_s)} a step, {percent(exposed)} communication that nothing hides",
        subtitle=what,
        figure={"data": traces, "layout": layout},
    )

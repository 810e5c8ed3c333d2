"""Where the time of a training step goes: what computes, exposed and hidden communication, the pipeline's bubble."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from busbw.base.text import percent, printable
from busbw.base.units import format_time, precise_time
from busbw.model.train.plan import StepCollective, TrainPlan
from busbw.model.train.proxy import ProxyResult
from busbw.show.figures.axes import STYLES, zero_axis
from busbw.show.figures.series import Figure, base_layout, plain

# Lanes of collectives; what is left stands in one.
_MOST_LANES = 6
# Less than this of the largest goes there too.
_LEAST = 0.01
_LANE = 0.7
# Of a lane with its line in the legend, and of what stands around all of them.
_LANE_PX, _FRAME_PX = 36, 150

# From and to, in the unit of the axis.
Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPart:
    """One kind of thing that a step spends time on; `hidden_s`: what of it went on beside computing."""

    name: str
    time_s: float
    hidden_s: float = 0.0
    is_rest: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLane:
    """A line of a figure: what counts for the length of the step, and what lies beside computing."""

    name: str
    spans: tuple[Span, ...]
    hidden: tuple[Span, ...] = ()
    # Whether it is neither computing nor communication, and quiet.
    is_rest: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFigure:
    """Where the time goes, and the share of each part, with their words."""

    title: str
    subtitle: str
    figure: Figure
    share: Figure


def planned_step_figure(plan: TrainPlan) -> StepFigure | None:
    """Return where the time of a planned step goes; None where the plan has no time."""
    estimate = plan.estimate
    if estimate is None:
        return None
    exposed_s = estimate.inside_s + estimate.outside_s
    parts = [StepPart(name="computing", time_s=estimate.layers_s - estimate.inside_s)]
    parts += main_parts([_planned_part(each) for each in plan.collectives])
    parts += [StepPart(name="bubble", time_s=estimate.bubble_s)] if estimate.bubble_s else []
    what = f"{plan.workload} on {plan.gpus} GPUs of {plan.platform}, {plan.dtype}: by the plan"
    return _figure(parts, estimate.step_s, exposed_s / estimate.step_s, what)


def _planned_part(each: StepCollective) -> StepPart:
    exposed_s = each.exposed_s or 0.0
    hidden_s = max((each.total_s or 0.0) - exposed_s, 0.0)
    return StepPart(name=f"{each.collective}, {each.group}", time_s=exposed_s, hidden_s=hidden_s)


def measured_step_figure(result: ProxyResult) -> StepFigure:
    """Return where the time of a measured step went."""
    calls = [StepPart(name=f"{each.collective}, {each.group}", time_s=each.time_s) for each in result.calls]
    waited_s = sum(call.time_s for call in calls)
    computing = StepPart(name="computing", time_s=max(0.0, result.median_step_s - waited_s))
    what = f"{result.plan.workload}, {result.plan.dtype}, {result.plan.ranks} ranks: measured, {result.backend}"
    return _figure([computing, *main_parts(calls)], result.median_step_s, result.communication, what)


def main_parts(calls: Sequence[StepPart]) -> list[StepPart]:
    """Return collectives by what they expose, those of one name together, and the small ones as `others`."""
    sums: dict[str, StepPart] = {}
    for call in calls:
        known = sums.get(call.name, StepPart(name=call.name, time_s=0.0))
        sums[call.name] = _added(call.name, known, call)
    ordered = sorted((each for each in sums.values() if _total(each) > 0), key=lambda each: -_total(each))
    shown = [each for each in ordered[:_MOST_LANES] if _total(each) >= _LEAST * _total(ordered[0])]
    rest = StepPart(name="others", time_s=0.0)
    for each in ordered[len(shown) :]:
        rest = _added("others", rest, each)
    parts = sorted(shown, key=lambda each: (-each.time_s, -each.hidden_s))
    return [*parts, rest] if _total(rest) else parts


def _added(name: str, one: StepPart, other: StepPart) -> StepPart:
    return StepPart(name=name, time_s=one.time_s + other.time_s, hidden_s=one.hidden_s + other.hidden_s)


def _total(part: StepPart) -> float:
    return part.time_s + part.hidden_s


def _figure(parts: Sequence[StepPart], step_s: float, exposed: float, what: str) -> StepFigure:
    """Return lanes one below the other, each beginning where that above it ends; hidden parts end with computing."""
    lanes = []
    begin_s, computing_s = 0.0, parts[0].time_s
    for part in parts:
        hidden = ((max(0.0, computing_s - part.hidden_s), computing_s),) if part.hidden_s else ()
        spans = ((begin_s, begin_s + part.time_s),) if part.time_s else ()
        lanes.append(StepLane(name=_named(part, step_s), spans=spans, hidden=hidden))
        begin_s += part.time_s
    return StepFigure(
        title=f"{format_time(step_s)} a step, {percent(exposed)} communication that nothing hides",
        subtitle=what,
        figure=lanes_figure(lanes, "seconds, each kind together"),
        share=share_figure(parts, step_s),
    )


def _named(part: StepPart, step_s: float) -> str:
    if part.hidden_s and not part.time_s:
        return f"{part.name}: {precise_time(part.hidden_s)}, all of it hidden"
    hidden = f", {precise_time(part.hidden_s)} hidden" if part.hidden_s else ""
    return f"{part.name}: {precise_time(part.time_s)}, {percent(part.time_s / step_s)}{hidden}"


def share_figure(parts: Sequence[StepPart], step_s: float) -> Figure:
    """Return the share that each part has of a step, and behind it what of it is hidden, in percent."""
    lanes = []
    for part in parts:
        share, hidden = 100 * part.time_s / step_s, 100 * part.hidden_s / step_s
        lanes.append(
            StepLane(
                name=f"{part.name}: {percent(part.time_s / step_s)}"
                + (f", {percent(part.hidden_s / step_s)} hidden" if part.hidden_s else ""),
                spans=((0.0, share),) if share else (),
                hidden=((share, share + hidden),) if hidden else (),
                is_rest=part.is_rest,
            )
        )
    return lanes_figure(lanes, "% of a step")


def lanes_figure(lanes: Sequence[StepLane], title: str, lane: str = "part") -> Figure:
    """Return lanes one below the other, numbered as in their names; what is hidden is paler. `lane`: what one is."""
    traces: list[dict[str, Any]] = []
    for number, each in enumerate(lanes):
        middle = len(lanes) - number - 0.5
        colour = "--fig-others" if each.is_rest else STYLES[number % len(STYLES)][0]
        name = plain(printable(f"{number + 1} {each.name}"))
        if each.hidden:
            traces.append(_boxes(each.hidden, middle, f"{colour}-band", colour, name) | {"showlegend": False})
        traces.append(_boxes(each.spans, middle, colour, colour, name))
    ends = [end for each in lanes for _, end in (*each.spans, *each.hidden)]
    axis = {
        "type": "linear", "range": [0.0, float(len(lanes))], "tickmode": "array", "showgrid": False,
        "title": {"text": lane, "standoff": 6}, "automargin": True, "zeroline": False,
        "tickvals": [len(lanes) - number - 0.5 for number in range(len(lanes))],
        "ticktext": [str(number + 1) for number in range(len(lanes))],
    }  # fmt: skip
    layout = base_layout(zero_axis(title, ends), axis)
    layout["height"] = max(layout["height"], _FRAME_PX + _LANE_PX * len(lanes))
    return {"data": traces, "layout": layout}


def _boxes(spans: Sequence[Span], middle: float, fill: str, colour: str, name: str) -> dict[str, Any]:
    """Return one trace of a box for each span; without any it only has its name."""
    low, high = middle - _LANE / 2, middle + _LANE / 2
    across: list[float | None] = []
    up: list[float | None] = []
    for begin, end in spans or ((0.0, 0.0),):
        gap = [None] if across else []
        across += [*gap, begin, end, end, begin, begin]
        up += [*gap, low, low, high, high, low]
    return {
        "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": fill, "name": name, "hoverinfo": "name",
        "line": {"color": colour, "width": 1}, "x": across, "y": up, "legendgroup": name,
    }  # fmt: skip

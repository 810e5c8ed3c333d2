"""What a step takes: the time of each collective, and a model of the step with one constant.

The constant is the rate at which one GPU goes through the layers of its stage, their own communication (TP, CP, EP)
included, which is the same in every layer. Added to it are the head, the bubble of the pipeline, and what is exposed of
communication outside layers (PP, DP).
"""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.model.train.plan import CollectiveTime, GroupPlace, StepCollective, StepEstimate
from busbw.model.train.replay import HiddenBy
from busbw.model.train.workload import Configuration, DataType, ModelShape
from busbw.train.layout import RankLayout, Seats, group_of, place_of
from busbw.train.predicting import Asked, pair_place
from busbw.train.shape import BACKWARD_TIMES
from busbw.train.step import Call, slowest, stage_flops, stages_of, step_calls

Answer = Callable[[Asked], CollectiveTime]
_FITTING_STEPS = 60
# Groups whose collectives are part of each layer.
_IN_LAYERS = frozenset({"TP", "CP", "EP"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A job on a machine, ready to be timed."""

    model: ModelShape
    configuration: Configuration
    layout: RankLayout
    dtype: DataType
    seats: Seats
    answer: Answer


def timed_calls(work: Work) -> tuple[StepCollective, ...]:
    """Return the calls of the slowest stage with the time of each; what is hidden is not decided yet."""
    stage = slowest(work.model, work.configuration, work.layout)
    calls = step_calls(work.model, work.configuration, work.layout, work.dtype, stage)
    return tuple(_timed(work, call) for call in calls)


def _timed(work: Work, call: Call) -> StepCollective:
    place = place_of(work.layout, group_of(work.layout, call.group), work.seats)
    ranks, of_call = (call.ranks, place) if call.collective != "sendrecv" else _pair(work, call, place)
    if of_call.links == "NVLink" and ranks <= work.seats.node_gpus:
        # Within an NVLink domain it makes no difference on which of its nodes they are.
        of_call = GroupPlace(nodes=1, ranks_per_node=ranks, links="NVLink")
    time = work.answer(Asked(collective=call.collective, size_bytes=call.size_bytes, ranks=ranks, place=of_call))
    total_s = time.time_s * call.calls if time.time_s is not None else None
    return StepCollective(
        name=call.name, collective=call.collective, size_bytes=call.size_bytes, group=call.group, calls=call.calls,
        phase=call.phase, overlaps=call.overlaps, formula=call.formula, source=call.source, place=place, time=time,
        total_s=total_s, exposed_s=total_s if call.overlaps is None else None,
    )  # fmt: skip


def _pair(work: Work, call: Call, place: GroupPlace) -> tuple[int, GroupPlace]:
    """Return the two ranks of a transfer; neighbours along the pipeline are on one node where their stride is short."""
    if call.group == "PP" and work.layout.stride_of("pp") * 2 > work.seats.node_gpus and place.nodes > 1:
        return pair_place(GroupPlace(nodes=2, ranks_per_node=1, links="rail"))
    return pair_place(place)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepParts:
    """The parts of a step, in seconds."""

    # Of the stage's layers and head, with what layers communicate; the latter apart as far as nothing hides it.
    layers_s: float
    inside_s: float
    outside_s: float
    bubble_s: float
    # Of each collective what is not hidden.
    exposed: tuple[float, ...]

    @property
    def step_s(self) -> float:
        """All of them; what layers communicate is in their time."""
        return self.layers_s + self.outside_s + self.bubble_s


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTerms:
    """A step of the slowest stage, less the constant."""

    # FLOPs of a micro-batch on the slowest stage, and on all others together, which the pipeline fills with.
    flops: float
    filling_flops: float
    calls: tuple[StepCollective, ...]
    hidden_by: tuple[HiddenBy | None, ...]
    accumulation: int
    # Chunks of a stage, which shorten the filling.
    chunks: int
    backward_share: float

    @property
    def step_flops(self) -> float:
        """FLOPs of one GPU of the slowest stage in a step."""
        return self.flops * self.accumulation

    @property
    def bounds(self) -> tuple[str, ...]:
        """Collectives of which only a bound by line rates is known, which then counts."""
        return tuple(call.name for call in self.calls if call.total_s is None)

    def at(self, rate_flops: float) -> StepParts:
        """Return the parts of a step at an attained rate of one GPU."""
        return self.with_layers(self.step_flops / rate_flops)

    def with_layers(self, layers_s: float) -> StepParts:
        """Return the parts of a step whose layers and head take so long, all micro-batches together."""
        micro_s = layers_s / self.accumulation
        each = tuple(zip(self.calls, self.hidden_by, strict=True))
        exposed = tuple(self._exposed(call, how, micro_s) for call, how in each)
        inside = sum(value for value, call in zip(exposed, self.calls, strict=True) if call.group in _IN_LAYERS)
        return StepParts(
            layers_s=layers_s,
            inside_s=inside,
            outside_s=sum(exposed) - inside,
            bubble_s=self.filling_flops / self.flops * micro_s / self.chunks,
            exposed=exposed,
        )

    def _exposed(self, call: StepCollective, how: HiddenBy | None, micro_s: float) -> float:
        total_s = call.total_s if call.total_s is not None else (call.time.least_s or 0.0) * call.calls
        room = {
            "compute": micro_s * self.accumulation, "last backward": micro_s * self.backward_share,
            "first forward": micro_s * (1 - self.backward_share),
        }  # fmt: skip
        return max(0.0, total_s - room[how]) if how is not None else total_s


def terms_of(work: Work, calls: tuple[StepCollective, ...]) -> StepTerms:
    """Return the terms of a step; `calls` as `timed_calls` gives them."""
    model, configuration, layout = work.model, work.configuration, work.layout
    stage = slowest(model, configuration, layout)
    hidden = tuple(call.hidden_by for call in step_calls(model, configuration, layout, work.dtype, stage))
    # The head is of the last stage alone: what fills the pipeline before it are layers.
    others = sum(
        stage_flops(model, configuration, each) for each in stages_of(model, layout) if each.number != stage.number
    )
    passes = 1 + BACKWARD_TIMES + (1 if configuration.parallelism.recompute == "full" else 0)
    return StepTerms(
        flops=stage_flops(model, configuration, stage), filling_flops=others, calls=calls, hidden_by=hidden,
        accumulation=layout.accumulation, chunks=layout.vp, backward_share=(passes - 1) / passes,
    )  # fmt: skip


def fitted_rate(terms: StepTerms, step_s: float) -> float | None:
    """Return the rate in FLOP/s at which the model gives this step; None where no rate does."""
    low, high = 1e6, 1e18
    if terms.at(high).step_s > step_s or terms.at(low).step_s < step_s:
        return None
    for _ in range(_FITTING_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if terms.at(middle).step_s > step_s else (low, middle)
    return float((low * high) ** 0.5)


def changed_step(base: StepTerms, rate_flops: float, changed: StepTerms) -> StepParts:
    """Return a step after a change, by the constant of the step before it.

    What layers communicate unhidden is taken out of the constant and put back as it is after the change.
    """
    before = base.at(rate_flops)
    alone_s = max(0.0, before.layers_s - before.inside_s) * changed.step_flops / base.step_flops
    inside_s = changed.with_layers(alone_s).inside_s
    return changed.with_layers(alone_s + inside_s)


def estimate_of(terms: StepTerms, rate_flops: float, fitted_on: str) -> StepEstimate:
    """Return the model's step, part by part."""
    parts = terms.at(rate_flops)
    return StepEstimate(
        step_s=parts.step_s, layers_s=parts.layers_s, inside_s=parts.inside_s, outside_s=parts.outside_s,
        bubble_s=parts.bubble_s, rate_flops=rate_flops, fitted_on=fitted_on, bounds=terms.bounds,
    )  # fmt: skip

"""What a step takes: the time of each collective, what of it is hidden, and a model of the step with one constant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busbw.facts.workloads import Accelerator
from busbw.model.train.plan import CollectiveTime, GroupPlace, StepCollective, StepEstimate
from busbw.model.train.workload import Configuration, DataType, ModelShape
from busbw.train.layout import Layout, group_of, place_of
from busbw.train.predicting import Asked, pair_place
from busbw.train.shape import BACKWARD_TIMES
from busbw.train.step import Call, element_bytes, slowest, stage_flops, stage_weights, stages_of, step_calls

Answer = Callable[[Asked], CollectiveTime]
# Weights are read forward and backward, gradients are read and written where they are added up.
_READS_OF_WEIGHTS = 2
_PASSES_OF_GRADIENTS = 2
_FITTING_STEPS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A job on a machine, ready to be timed."""

    model: ModelShape
    configuration: Configuration
    layout: Layout
    dtype: DataType
    node_gpus: int
    answer: Answer


def timed_calls(work: Work) -> tuple[StepCollective, ...]:
    """Return the calls of the slowest stage with the time of each; what is hidden is not decided yet."""
    stage = slowest(work.model, work.configuration, work.layout)
    calls = step_calls(work.model, work.configuration, work.layout, work.dtype, stage)
    return tuple(_timed(work, call) for call in calls)


def _timed(work: Work, call: Call) -> StepCollective:
    place = place_of(work.layout, group_of(work.layout, call.group), work.node_gpus)
    ranks, of_call = (call.ranks, place) if call.collective != "sendrecv" else _pair(work, call, place)
    time = work.answer(Asked(collective=call.collective, size_bytes=call.size_bytes, ranks=ranks, place=of_call))
    total_s = time.time_s * call.calls if time.time_s is not None else None
    return StepCollective(
        name=call.name, collective=call.collective, size_bytes=call.size_bytes, group=call.group, calls=call.calls,
        phase=call.phase, overlaps=call.overlaps, formula=call.formula, source=call.source, place=place, time=time,
        total_s=total_s, exposed_s=total_s if call.overlaps is None else None,
    )  # fmt: skip


def _pair(work: Work, call: Call, place: GroupPlace) -> tuple[int, GroupPlace]:
    """Return the two ranks of a transfer; neighbours along the pipeline are on one node where their stride is short."""
    if call.group == "PP" and work.layout.stride_of("pp") * 2 > work.node_gpus and place.nodes > 1:
        return pair_place(GroupPlace(nodes=2, ranks_per_node=1, links="rail"))
    return pair_place(place)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTerms:
    """The terms of the model, less the constant: what a step of the slowest stage does."""

    # FLOPs of a micro-batch on the slowest stage, and of all others together as far as the pipeline fills with them.
    flops: float
    filling_flops: float
    memory_s: float
    calls: tuple[StepCollective, ...]
    hidden_by: tuple[str | None, ...]
    accumulation: int
    # Chunks of a stage, which shorten the filling.
    chunks: int
    backward_share: float
    # Collectives of which only a bound is known, which then counts.
    bounds: tuple[str, ...]

    def at(self, rate_flops: float) -> "StepParts":
        """Return the parts of a step at an attained rate of one GPU."""
        micro_s = self.flops / rate_flops
        compute_s = self.accumulation * micro_s
        exposed = tuple(self._exposed(call, how, micro_s, compute_s) for call, how in self._each())
        during = sum(
            exposed_s for exposed_s, (call, _) in zip(exposed, self._each(), strict=True) if call.phase in _EACH_MICRO
        )
        per_micro_s = (during + self.memory_s) / self.accumulation
        share = self.filling_flops / self.flops
        bubble_s = share * (micro_s + per_micro_s) / self.chunks
        return StepParts(
            compute_s=compute_s, memory_s=self.memory_s, exposed=exposed, exposed_s=sum(exposed), bubble_s=bubble_s
        )

    def _each(self) -> Sequence[tuple[StepCollective, str | None]]:
        return tuple(zip(self.calls, self.hidden_by, strict=True))

    def _exposed(self, call: StepCollective, how: str | None, micro_s: float, compute_s: float) -> float:
        total_s = call.total_s if call.total_s is not None else (call.time.least_s or 0.0) * call.calls
        room = {
            "compute": compute_s, "last backward": micro_s * self.backward_share,
            "first forward": micro_s * (1 - self.backward_share),
        }  # fmt: skip
        return max(0.0, total_s - room.get(how or "", 0.0))


_EACH_MICRO = ("forward", "backward", "forward and backward")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepParts:
    """The parts of a step, in seconds."""

    compute_s: float
    memory_s: float
    exposed: tuple[float, ...]
    exposed_s: float
    bubble_s: float

    @property
    def step_s(self) -> float:
        """All of them."""
        return self.compute_s + self.memory_s + self.exposed_s + self.bubble_s


def terms_of(work: Work, calls: tuple[StepCollective, ...], accelerator: Accelerator) -> StepTerms:
    """Return the terms of a step for the model."""
    model, configuration, layout = work.model, work.configuration, work.layout
    stage = slowest(model, configuration, layout)
    named = {
        (call.name, call.collective): call.hidden_by
        for call in step_calls(model, configuration, layout, work.dtype, stage)
    }
    # The head is of the last stage alone: what fills the pipeline before it are layers.
    others = sum(
        stage_flops(model, configuration, each) for each in stages_of(model, layout) if each.number != stage.number
    )
    passes = 1 + BACKWARD_TIMES + (1 if configuration.parallelism.recompute == "full" else 0)
    weights = stage_weights(model, layout, stage)
    traffic = (weights.shared + weights.experts) * (
        _READS_OF_WEIGHTS * (1 if work.dtype == "fp8" else element_bytes(work.dtype))
        + _PASSES_OF_GRADIENTS * configuration.parallelism.gradient_bytes
    )
    return StepTerms(
        flops=stage_flops(model, configuration, stage),
        filling_flops=others,
        memory_s=layout.accumulation * traffic / accelerator.memory_Bps,
        calls=calls,
        hidden_by=tuple(named[call.name, call.collective] for call in calls),
        accumulation=layout.accumulation,
        chunks=layout.vp,
        backward_share=(passes - 1) / passes,
        bounds=tuple(call.name for call in calls if call.time.time_s is None),
    )


def fitted_rate(terms: StepTerms, step_s: float) -> float | None:
    """Return the rate in FLOP/s at which the model gives this step; None where no rate does."""
    low, high = 1e9, 1e17
    if terms.at(high).step_s > step_s or terms.at(low).step_s < step_s:
        return None
    for _ in range(_FITTING_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if terms.at(middle).step_s > step_s else (low, middle)
    return (low * high) ** 0.5


def estimate_of(terms: StepTerms, rate_flops: float, fitted_on: str, words: tuple[str, ...]) -> StepEstimate:
    """Return the model's step, part by part."""
    parts = terms.at(rate_flops)
    return StepEstimate(
        step_s=parts.step_s, compute_s=parts.compute_s, memory_s=parts.memory_s, exposed_s=parts.exposed_s,
        bubble_s=parts.bubble_s, rate_flops=rate_flops, fitted_on=fitted_on, bounds=terms.bounds, words=words,
    )  # fmt: skip

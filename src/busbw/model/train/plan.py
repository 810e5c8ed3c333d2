"""The plan of a training step: sizes, memory, what is communicated, on which links, and what it takes."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding
from busbw.model.train.workload import Configuration, DataType, Workload

# DP is data parallelism of what is no expert, expert-DP of experts; gradients are reduced over CP as well.
GroupKind = Literal["TP", "CP", "EP", "PP", "DP", "expert-DP", "DP x CP", "expert-DP x CP", "embedding", "all"]
LinkName = Literal["itself", "NVLink", "rail", "NVLink and rails", "NICs, rails crossed"]
Phase = Literal["forward", "backward", "forward and backward", "end of step", "start of step"]
# measured: a stored run or an import; expected: what is expected of the platform; predicted: by a model, nothing of it
# was measured; bound: by line rates, never less.
TimeBasis = Literal["measured", "expected", "predicted", "bound"]


class RankGroup(Value, kw_only=True, frozen=True):
    """The groups of one kind: rank = base + sum of place x stride; no list of ranks, whatever their number."""

    kind: GroupKind
    size: Integer
    groups: Integer
    sizes: tuple[Integer, ...]
    strides: tuple[Integer, ...]
    # The first ranks of the first and of the last group.
    examples: tuple[tuple[Integer, ...], ...]


class GroupPlace(Value, kw_only=True, frozen=True):
    """Where a group lies: over how many nodes (or NVLink domains), and how many of its ranks share one."""

    nodes: Integer
    ranks_per_node: Integer
    links: LinkName
    # Whether its traffic between nodes leaves the leaf switches; None: how many nodes share one is not known.
    spine: bool | None = None


class CollectiveTime(Value, kw_only=True, frozen=True):
    """What one call takes. None: cannot be told, for the reason in `words`."""

    time_s: float | None
    basis: TimeBasis | None
    # By line rates alone no call is faster; None: nothing is known.
    least_s: float | None = None
    words: str
    source: tuple[str, ...] = ()


class StepCollective(Value, kw_only=True, frozen=True):
    """One kind of call that a rank of the slowest stage makes in a step."""

    name: str
    collective: str
    # Counted as nccl-tests counts the size of this collective.
    size_bytes: Integer
    group: GroupKind
    # Calls of a rank in one step.
    calls: Integer
    phase: Phase
    # What may run meanwhile; None: nothing, it is waited for.
    overlaps: str | None
    formula: str
    source: str
    place: GroupPlace
    time: CollectiveTime
    # All calls of a step; what of it is not hidden. None: cannot be told.
    total_s: float | None = None
    exposed_s: float | None = None


class MemoryPart(Value, kw_only=True, frozen=True):
    """One part of a GPU's memory."""

    name: str
    size_bytes: float
    formula: str
    source: str


class OrderCost(Value, kw_only=True, frozen=True):
    """Another order of ranks: where TP and EP lie then, and what communication takes."""

    order: str
    tp_links: LinkName
    ep_links: LinkName
    # Exposed, of all collectives whose time is known, or bound where it is not.
    exposed_s: float
    # Against the order of the plan.
    change_s: float


class StepEstimate(Value, kw_only=True, frozen=True):
    """A step's time by the model: layers, outside and bubble add up to the step."""

    step_s: float
    # Layers and head of the slowest stage, with what they communicate; of it what nothing hides.
    layers_s: float
    inside_s: float
    # Exposed communication outside layers, and the bubble of the pipeline.
    outside_s: float
    bubble_s: float
    # The constant: FLOP/s of one GPU, and where it is from.
    rate_flops: float
    fitted_on: str
    # Collectives of which only a bound is known, so that more may be exposed.
    bounds: tuple[str, ...] = ()


class HeldStep(Value, kw_only=True, frozen=True):
    """A published step beside the model's."""

    machine: str
    step_s: float
    # Model over published, less 1; None: there is no model.
    residual: float | None
    fitted: bool
    source: str


class WhatIf(Value, kw_only=True, frozen=True):
    """One change, and what a step takes then."""

    change: str
    # None: cannot be told.
    step_s: float | None
    # Of the step, less is better; None: cannot be told.
    change_share: float | None
    # Exposed communication before and after, in layers and outside.
    exposed_before_s: float | None
    exposed_s: float | None
    words: str | None = None


class AlltoallChoice(Value, kw_only=True, frozen=True):
    """An all-to-all of the step in one level and in two: times of one call where both were measured, else the shape."""

    name: str
    size_bytes: Integer
    ranks: Integer
    ranks_per_node: Integer
    nodes: Integer
    # none: two levels are the same exchange here.
    basis: Literal["measured", "shape", "none"]
    linear_s: float | None
    two_level_s: float | None
    # Of a step, less is better.
    change_s: float | None
    words: str
    # Why no time is computed.
    refuted: str | None


class TrainPlan(Value, kw_only=True, frozen=True):
    """Everything that is known of a step before it runs."""

    schema: Integer = 1
    workload: str
    title: str
    platform: str
    gpus: Integer
    nodes: Integer
    dtype: DataType
    layers: Integer
    order: str
    configuration: Configuration
    dp: Integer
    expert_dp: Integer
    accumulation: Integer
    stages: tuple[Integer, ...]
    groups: tuple[RankGroup, ...]
    parameters: Integer
    active_parameters: Integer
    # Of one sequence and of a step, forward and backward.
    sequence_flops: float
    step_flops: float
    flops_formula: str
    flops_source: str
    tokens: Integer
    memory: tuple[MemoryPart, ...]
    memory_bytes: float
    gpu_memory_bytes: float | None
    left_out: tuple[str, ...]
    collectives: tuple[StepCollective, ...]
    estimate: StepEstimate | None
    # Why there is none.
    no_estimate: str | None
    published: tuple[HeldStep, ...]
    orders: tuple[OrderCost, ...]
    what_if: tuple[WhatIf, ...]
    alltoalls: tuple[AlltoallChoice, ...] = ()
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


class ShownConfiguration(Value, kw_only=True, frozen=True):
    """A configuration with what follows from it."""

    configuration: Configuration
    layers: Integer
    dp: Integer
    expert_dp: Integer
    accumulation: Integer
    parameters: Integer
    sequence_flops: float
    memory_bytes: float


class ShownWorkload(Value, kw_only=True, frozen=True):
    """A workload with the sizes of each configuration, and what its sources get wrong."""

    workload: Workload
    parameters: Integer
    active_parameters: Integer
    configurations: tuple[ShownConfiguration, ...]
    findings: tuple[Finding, ...]

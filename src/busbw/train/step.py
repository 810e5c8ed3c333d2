"""What one step communicates: every kind of call of a rank, with its size, group, number and formula."""

from collections.abc import Iterator
from dataclasses import dataclass

from busbw.model.train.plan import GroupKind, Phase
from busbw.model.train.replay import HiddenBy
from busbw.model.train.workload import Configuration, DataType, ModelShape
from busbw.train.layout import RankLayout
from busbw.train.shape import (
    BACKWARD_TIMES,
    LAST_NORM,
    embedding_weights,
    head_flops,
    is_dense,
    key_value_width,
    layer_flops,
    layer_weights,
)

MEGATRON = "NVIDIA/Megatron-LM: core/tensor_parallel/layers.py, core/transformer/moe/token_dispatcher.py"
KORTHIKANTI = "Korthikanti et al., arXiv 2205.05198, section 4 (sequence parallelism)"
RING = "NVIDIA/TransformerEngine, context parallelism with point-to-point messages; Liu et al., arXiv 2310.01889"
ZERO = "Rajbhandari et al., arXiv 1910.02054 (ZeRO), section 7"
PIPELINE = "Narayanan et al., arXiv 2104.04473, section 3 (interleaved schedule)"
# Sums over the vocabulary that is split over tensor parallelism: largest logit, sum, the target's logit.
_SUMS_OF_LOSS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One kind of call; `size_bytes` as nccl-tests counts it."""

    name: str
    collective: str
    size_bytes: int
    group: GroupKind
    ranks: int
    calls: int
    phase: Phase
    # What hides it, in words, and which part of the step that is; None: nothing.
    overlaps: str | None
    hidden_by: HiddenBy | None
    formula: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One pipeline stage: its layers, and whether it has the embedding or the head."""

    number: int
    dense_layers: int
    expert_layers: int
    first: bool
    last: bool

    @property
    def layers(self) -> int:
        """All its layers."""
        return self.dense_layers + self.expert_layers


@dataclass(frozen=True, kw_only=True, slots=True)
class StageWeights:
    """Parameters on one GPU of a stage: what data parallelism holds alike, and experts."""

    shared: float
    experts: float


def stages_of(model: ModelShape, layout: RankLayout) -> tuple[Stage, ...]:
    """Return the stages; with a virtual pipeline stage i has chunks i, i + PP, ..."""
    found = []
    begin = 0
    for number, count in enumerate(layout.stages):
        chunk = count // layout.vp
        if layout.vp == 1:
            layers = range(begin, begin + count)
        else:
            starts = ((piece * layout.pp + number) * chunk for piece in range(layout.vp))
            layers = [layer for start in starts for layer in range(start, start + chunk)]  # type: ignore[assignment]
        dense = sum(is_dense(model, layer) for layer in layers)
        found.append(
            Stage(
                number=number,
                dense_layers=dense,
                expert_layers=count - dense,
                first=number == 0,
                last=number == layout.pp - 1,
            )
        )
        begin += count
    return tuple(found)


def stage_flops(model: ModelShape, configuration: Configuration, stage: Stage) -> float:
    """Return the FLOPs of one micro-batch through a stage on one GPU, forward and backward, recomputation included."""
    sequence, p = configuration.sequence, configuration.parallelism
    layers = stage.dense_layers * layer_flops(model, sequence, dense=True)
    layers += stage.expert_layers * layer_flops(model, sequence, dense=False)
    passes = 1 + BACKWARD_TIMES + (1 if p.recompute == "full" else 0)
    head = (1 + BACKWARD_TIMES) * head_flops(model) if stage.last else 0.0
    return configuration.micro_batch * sequence * (passes * layers + head) / (p.tp * p.cp)


def slowest(model: ModelShape, configuration: Configuration, layout: RankLayout) -> Stage:
    """Return the stage with the most FLOPs; of several that with most layers of experts, which communicate more."""

    def weight(stage: Stage) -> tuple[float, int]:
        return stage_flops(model, configuration, stage), stage.expert_layers

    return max(stages_of(model, layout), key=weight)


def stage_weights(model: ModelShape, layout: RankLayout, stage: Stage) -> StageWeights:
    """Return the parameters on one GPU of a stage."""
    shared = experts = 0.0
    for dense, count in ((True, stage.dense_layers), (False, stage.expert_layers)):
        weights = layer_weights(model, dense=dense)
        shared += count * ((weights.attention + weights.dense) / layout.tp + weights.norms)
        split = layout.tp if model.experts is not None and model.experts.tensor_parallel else 1
        experts += count * weights.expert * weights.experts / layout.ep / split
    ends = int(stage.first) + int(stage.last and not (model.tied and stage.first))
    shared += ends * embedding_weights(model) / layout.tp + (LAST_NORM * model.hidden if stage.last else 0)
    return StageWeights(shared=shared, experts=experts)


def element_bytes(dtype: DataType) -> int:
    """Return the bytes of one element of what passes between layers; with FP8 that stays BF16."""
    return 4 if dtype == "fp32" else 2


def tokens_of(configuration: Configuration) -> int:
    """Return the tokens of a micro-batch that one rank of context parallelism has."""
    return configuration.micro_batch * configuration.sequence // configuration.parallelism.cp


def step_calls(
    model: ModelShape, configuration: Configuration, layout: RankLayout, dtype: DataType, stage: Stage
) -> tuple[Call, ...]:
    """Return all calls of a rank of one stage in a step."""
    context = _Context(model=model, configuration=configuration, layout=layout, stage=stage, unit=element_bytes(dtype))
    found = [
        *_tensor_parallel(context), *_context_parallel(context), *_expert_parallel(context), *_pipeline(context),
        *_data_parallel(context), *_rest(context),
    ]  # fmt: skip
    return tuple(call for call in found if call.calls and call.ranks > 1 and call.size_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Context:
    model: ModelShape
    configuration: Configuration
    layout: RankLayout
    stage: Stage
    # Bytes of one element between layers.
    unit: int

    @property
    def activation_bytes(self) -> int:
        """Of all tokens of a rank of context parallelism, one layer to the next."""
        return tokens_of(self.configuration) * self.model.hidden * self.unit

    @property
    def micro_batches(self) -> int:
        """In one step."""
        return self.layout.accumulation


def _tensor_parallel(c: _Context) -> Iterator[Call]:
    p, layout = c.configuration.parallelism, c.layout
    blocks = c.stage.layers + c.stage.dense_layers
    hidden = "tp" in p.overlap
    overlaps = "the matrix product before or behind it" if hidden else None
    by: HiddenBy | None = "compute" if hidden else None
    size, text = c.activation_bytes, "s b / CP x h x bytes"
    m = c.micro_batches
    if not p.sequence_parallel:
        # Parts of experts are summed as those of a block are; with sequence parallelism they are gathered below.
        if c.model.experts is not None and c.model.experts.tensor_parallel:
            blocks += c.stage.expert_layers
        calls = m * (2 * blocks + int(c.stage.first) + int(c.stage.last))
        yield Call(
            name="sums of tensor parallelism", collective="all_reduce", size_bytes=size, calls=calls,
            phase="forward and backward", formula=f"{text}; 1 forward and 1 backward for each block", source=MEGATRON,
            group="TP", ranks=layout.tp, overlaps=overlaps, hidden_by=by,
        )  # fmt: skip
    else:
        gathers = m * (3 * blocks + int(c.stage.first) + 2 * int(c.stage.last))
        scatters = m * (2 * blocks + int(c.stage.first) + int(c.stage.last))
        yield Call(
            name="activations gathered", collective="all_gather", size_bytes=size, calls=gathers,
            phase="forward and backward", formula=f"{text}; 1 forward, 2 backward for each block", source=KORTHIKANTI,
            group="TP", ranks=layout.tp, overlaps=overlaps, hidden_by=by,
        )  # fmt: skip
        yield Call(
            name="sums scattered", collective="reduce_scatter", size_bytes=size, calls=scatters,
            phase="forward and backward", formula=f"{text}; 1 forward, 1 backward for each block", source=KORTHIKANTI,
            group="TP", ranks=layout.tp, overlaps=overlaps, hidden_by=by,
        )  # fmt: skip
    yield from _expert_tensor_parallel(c)
    if c.stage.last:
        yield Call(
            name="sums of the loss", collective="all_reduce", size_bytes=tokens_of(c.configuration) * 4, group="TP",
            ranks=layout.tp, calls=_SUMS_OF_LOSS * m, phase="forward", overlaps=None, hidden_by=None,
            formula="s b / CP x 4 bytes; largest logit, sum, the target's", source=MEGATRON,
        )  # fmt: skip


def _expert_tensor_parallel(c: _Context) -> Iterator[Call]:
    experts, layout = c.model.experts, c.layout
    if experts is None or not experts.tensor_parallel or not c.configuration.parallelism.sequence_parallel:
        return
    for name, collective in (("experts' tokens gathered", "all_gather"), ("experts' sums scattered", "reduce_scatter")):
        yield Call(
            name=name, collective=collective, size_bytes=c.activation_bytes * experts.top_k, group="TP",
            ranks=layout.tp, calls=2 * c.stage.expert_layers * c.micro_batches, phase="forward and backward",
            overlaps=None, hidden_by=None, formula="top-k x s b / CP x h x bytes; 1 forward, 1 backward for each layer",
            source=MEGATRON,
        )  # fmt: skip


def _context_parallel(c: _Context) -> Iterator[Call]:
    layout = c.layout
    split = min(layout.tp, c.model.key_value_heads)
    size = tokens_of(c.configuration) * key_value_width(c.model) * c.unit // split
    yield Call(
        name="keys and values passed on", collective="sendrecv", size_bytes=size, group="CP", ranks=layout.cp,
        calls=3 * (layout.cp - 1) * c.stage.layers * c.micro_batches, phase="forward and backward",
        overlaps="attention over the piece before", hidden_by="compute",
        formula="s b / CP x (key + value width) / TP x bytes; CP - 1 forward, 2 (CP - 1) backward for each layer",
        source=RING,
    )  # fmt: skip


def _expert_parallel(c: _Context) -> Iterator[Call]:
    experts, layout = c.model.experts, c.layout
    if experts is None:
        return
    split = layout.tp if c.configuration.parallelism.sequence_parallel else 1
    yield Call(
        name="tokens to experts and back", collective="alltoall",
        size_bytes=c.activation_bytes * experts.top_k // split, group="EP", ranks=layout.ep,
        calls=4 * c.stage.expert_layers * c.micro_batches, phase="forward and backward", overlaps=None, hidden_by=None,
        formula="top-k x s b / (CP TP) x h x bytes, evenly spread; 2 forward, 2 backward for each layer with experts",
        source=MEGATRON,
    )  # fmt: skip


def _pipeline(c: _Context) -> Iterator[Call]:
    p, layout = c.configuration.parallelism, c.layout
    split = layout.tp if p.sequence_parallel else 1
    hidden = "pp" in p.overlap
    yield Call(
        name="activations to the next stage, gradients back", collective="sendrecv",
        size_bytes=c.activation_bytes // split, group="PP", ranks=layout.pp,
        calls=2 * layout.vp * c.micro_batches, phase="forward and backward",
        overlaps="another micro-batch" if hidden else None, hidden_by="compute" if hidden else None,
        formula="s b / CP x h x bytes / TP; VP forward and VP backward for each micro-batch", source=PIPELINE,
    )  # fmt: skip


def _data_parallel(c: _Context) -> Iterator[Call]:
    p, layout = c.configuration.parallelism, c.layout
    weights = stage_weights(c.model, layout, c.stage)
    shares: tuple[tuple[str, float, GroupKind, int], ...] = (
        ("", weights.shared, "DP x CP" if layout.cp > 1 else "DP", layout.dp * layout.cp),
        (
            " of experts",
            weights.experts,
            "expert-DP x CP" if layout.cp > 1 else "expert-DP",
            layout.expert_dp * layout.cp,
        ),
    )
    hidden = "dp" in p.overlap
    m = c.micro_batches
    for what, number, group, ranks in shares:
        gradients, values = int(number * p.gradient_bytes), int(number * c.unit)
        if p.zero == 0:
            yield Call(
                name=f"gradients{what}", collective="all_reduce", size_bytes=gradients, group=group, ranks=ranks,
                calls=1,
                phase="end of step", overlaps="backward of the last micro-batch" if hidden else None,
                hidden_by="last backward" if hidden else None,
                formula="parameters on a GPU x bytes of a gradient", source=ZERO,
            )  # fmt: skip
            continue
        yield Call(
            name=f"gradients{what}", collective="reduce_scatter", size_bytes=gradients, group=group, ranks=ranks,
            calls=m if p.zero >= 2 else 1, phase="end of step" if p.zero == 1 else "backward",
            overlaps=("backward" if p.zero >= 2 else "backward of the last micro-batch") if hidden else None,
            hidden_by=("compute" if p.zero >= 2 else "last backward") if hidden else None,
            formula="parameters on a GPU x bytes of a gradient", source=ZERO,
        )  # fmt: skip
        yield Call(
            name=f"weights{what}", collective="all_gather", size_bytes=values, group=group, ranks=ranks,
            calls=2 * m if p.zero == 3 else 1, phase="forward and backward" if p.zero == 3 else "start of step",
            overlaps=("the layer before" if p.zero == 3 else "forward of the first micro-batch") if hidden else None,
            hidden_by=("compute" if p.zero == 3 else "first forward") if hidden else None,
            formula="parameters on a GPU x bytes of a weight", source=ZERO,
        )  # fmt: skip


def _rest(c: _Context) -> Iterator[Call]:
    layout, p = c.layout, c.configuration.parallelism
    if c.model.tied and (c.stage.first or c.stage.last):
        yield Call(
            name="gradient of the shared embedding", collective="all_reduce",
            size_bytes=embedding_weights(c.model) * p.gradient_bytes // layout.tp, group="embedding",
            ranks=min(2, layout.pp), calls=1, phase="end of step", overlaps=None, hidden_by=None,
            formula="vocabulary x h / TP x bytes of a gradient", source=MEGATRON,
        )  # fmt: skip
    yield Call(
        name="norm of the gradient", collective="all_reduce", size_bytes=4, group="all", ranks=layout.gpus, calls=1,
        phase="end of step", overlaps=None, hidden_by=None, formula="one float", source=MEGATRON,
    )  # fmt: skip


LEFT_OUT = (
    "gradients of norms that sequence parallelism sums over TP: 2 h floats for each layer",
    "the router's own sums, drop and padding of tokens, and experts that are not evenly loaded",
    "reading data, checkpoints, and the time of the optimizer beyond its collectives",
    "collectives that share NICs or links at the same moment: each is counted as if it were alone",
)

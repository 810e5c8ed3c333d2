"""Memory of one GPU, by part, and what is left out."""

from busbw.model.train.plan import MemoryPart
from busbw.model.train.workload import Configuration, DataType, ModelShape, Recompute
from busbw.train.layout import RankLayout
from busbw.train.shape import head_width, query_width, value_width
from busbw.train.step import Stage, element_bytes, stage_weights, stages_of, tokens_of

_ZERO = "Rajbhandari et al., arXiv 1910.02054 (ZeRO), section 3"
_ACTIVATIONS = "Korthikanti et al., arXiv 2205.05198, section 4, for gated blocks, grouped queries and experts"
# Adam: a float32 copy of the weight and two moments.
_STATE_BYTES = 12

LEFT_OUT = (
    "fragmentation, the framework's own buffers and CUDA's context: some GB",
    "NCCL's buffers: about 4 MiB x channels x peers for each communicator",
    "copies of weights in FP8, and buffers of overlapped collectives",
)


def memory_parts(
    model: ModelShape, configuration: Configuration, layout: RankLayout, dtype: DataType
) -> tuple[MemoryPart, ...]:
    """Return the parts of the fullest stage, the largest of all."""
    each = (_parts(model, configuration, layout, dtype, stage) for stage in stages_of(model, layout))
    return max(each, key=lambda parts: sum(part.size_bytes for part in parts))


def _parts(
    model: ModelShape, configuration: Configuration, layout: RankLayout, dtype: DataType, stage: Stage
) -> tuple[MemoryPart, ...]:
    p, unit = configuration.parallelism, element_bytes(dtype)
    weights = stage_weights(model, layout, stage)
    number = weights.shared + weights.experts
    replicas, expert_replicas = layout.dp * layout.cp, layout.expert_dp * layout.cp
    split = weights.shared / replicas + weights.experts / expert_replicas

    def kept(stage_from: int) -> tuple[float, str]:
        if p.zero >= stage_from:
            return split, f"/ (DP CP) = {replicas}, of experts {expert_replicas} (ZeRO {p.zero})"
        return number, ""

    held, of_weights = kept(3)
    grads, of_gradients = kept(2)
    state, of_state = kept(1)
    activations, formula = activation_bytes(model, configuration, layout, unit, stage)
    parts = (
        ("weights", held * unit, f"{number / 1e9:.3f}e9 parameters on a GPU x {unit} bytes {of_weights}", _ZERO),
        (
            "gradients", grads * p.gradient_bytes,
            f"{number / 1e9:.3f}e9 x {p.gradient_bytes} bytes {of_gradients}", _ZERO,
        ),
        (
            "optimizer", state * _STATE_BYTES,
            f"{number / 1e9:.3f}e9 x {_STATE_BYTES} bytes (Adam, a float32 copy) {of_state}", _ZERO,
        ),
        ("activations", activations, formula, _ACTIVATIONS),
    )  # fmt: skip
    return tuple(
        MemoryPart(name=name, size_bytes=size, formula=text.rstrip(), source=source)
        for name, size, text, source in parts
    )


def activation_bytes(
    model: ModelShape, configuration: Configuration, layout: RankLayout, unit: int, stage: Stage
) -> tuple[float, str]:
    """Return the bytes that forward keeps for backward on one GPU, and the formula.

    A dense layer with a plain block of 4 h gives 32 bytes for each token and column in BF16: the 34 of the source less
    its dropout masks; scores are recomputed (flash attention) unless nothing is.
    """
    p, tokens = configuration.parallelism, tokens_of(configuration)
    dense, experts = (_layer_elements(model, p.recompute, dense=each) for each in (True, False))
    split = layout.tp if p.sequence_parallel else 1
    if p.recompute == "full":
        layers = stage.layers * model.hidden / split + max(dense, experts) / layout.tp
        text = "h for each layer, and one layer whole (recompute full)"
    else:
        inner = stage.dense_layers * dense + stage.expert_layers * experts
        layers = inner / layout.tp
        if not p.sequence_parallel:
            # Inputs of norms and of blocks are whole on every rank of tensor parallelism.
            layers += stage.layers * 4 * model.hidden * (1 - 1 / layout.tp)
        text = "h x (inputs 4) + queries, keys, values, result + block (3 x ffn gated, of experts x top-k), / TP"
    flight = _in_flight(layout, stage)
    head = tokens * model.vocabulary / layout.tp * 4 if stage.last else 0.0
    size = tokens * unit * layers * flight + head
    said = f"s b / CP = {tokens} tokens x {unit} bytes x ({text}) x {flight:.3g} micro-batches in flight"
    return size, said + ("; logits in float32" if stage.last else "")


def _layer_elements(model: ModelShape, recompute: Recompute, *, dense: bool) -> float:
    """Return the elements of one token that a layer keeps."""
    hidden = model.hidden
    keys = 2 * model.key_value_heads * head_width(model)
    if model.latent is not None:
        keys = query_width(model) + value_width(model)
    queries = query_width(model)
    if model.latent is not None and recompute != "none":
        # Selective: what opens the compressed queries, keys and values is computed again.
        queries, keys = model.latent.query_rank, model.latent.key_value_rank + model.latent.rotary_width
    kept = 4.0 * hidden + queries + keys + value_width(model)
    wide = 3 if model.gated else 2
    experts = model.experts
    if dense or experts is None:
        return kept + wide * model.ffn
    # Each chosen expert keeps its own copy of the token, and its result.
    return kept + wide * experts.shared_ffn + experts.top_k * (wide * experts.ffn + 2 * hidden)


def _in_flight(layout: RankLayout, stage: Stage) -> float:
    """Return how many micro-batches' activations of a whole stage are kept at once (1F1B, interleaved)."""
    interleaved = layout.pp * (1 + (layout.pp - 1) / (layout.pp * layout.vp))
    most = interleaved if layout.vp > 1 else layout.pp - stage.number
    return float(min(most, layout.accumulation))

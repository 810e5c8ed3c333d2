"""How large a model is: parameters and FLOPs, by part, each with its formula."""

from dataclasses import dataclass

from busbw.model.train.workload import ModelShape

# Forward is one pass, backward two: by inputs and by weights.
BACKWARD_TIMES = 2
# Norms behind the last layer, of as many weights as the hidden size.
LAST_NORM = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerWeights:
    """Parameters of one layer: what all ranks of data parallelism hold alike, and one expert's."""

    attention: int
    # The dense block, or the router and the experts that every token passes.
    dense: int
    norms: int
    expert: int = 0
    experts: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.dense + self.norms + self.expert * self.experts


def head_width(model: ModelShape) -> int:
    """Return the width of one attention head."""
    return model.head_width if model.head_width is not None else model.hidden // model.heads


def query_width(model: ModelShape) -> int:
    """Return the width of all queries together, of which scores are made."""
    if model.latent is not None:
        return model.heads * (model.latent.plain_width + model.latent.rotary_width)
    return model.heads * head_width(model)


def value_width(model: ModelShape) -> int:
    """Return the width of all heads' results together."""
    return model.heads * (model.latent.value_width if model.latent is not None else head_width(model))


def key_value_width(model: ModelShape) -> int:
    """Return the width of keys and values together, as context parallelism passes them on."""
    if model.latent is not None:
        return query_width(model) + value_width(model)
    return 2 * model.key_value_heads * head_width(model)


def attention_weights(model: ModelShape) -> int:
    """Return the parameters of one layer's attention: queries, keys, values and the projection out."""
    hidden, latent = model.hidden, model.latent
    out = value_width(model) * hidden
    if latent is None:
        return hidden * (query_width(model) + key_value_width(model)) + out
    queries = hidden * latent.query_rank + latent.query_rank * query_width(model)
    compressed = hidden * (latent.key_value_rank + latent.rotary_width)
    opened = latent.key_value_rank * model.heads * (latent.plain_width + latent.value_width)
    return queries + compressed + opened + out


def _block(model: ModelShape, width: int) -> int:
    return (3 if model.gated else 2) * model.hidden * width


def is_dense(model: ModelShape, layer: int) -> bool:
    """Whether a layer, counted from 0, has one block in place of experts."""
    return model.experts is None or layer < model.experts.dense_layers


def layer_weights(model: ModelShape, *, dense: bool) -> LayerWeights:
    """Return the parameters of a layer with experts, or of a dense one.

    Norms are one before attention and one before the block, and with latent attention one of each compressed part
    (DeepSeek-V3's modeling_deepseek.py: q_a_layernorm, kv_a_layernorm).
    """
    norms = 2 * model.hidden
    if model.latent is not None:
        norms += model.latent.query_rank + model.latent.key_value_rank
    experts = model.experts
    if dense or experts is None:
        return LayerWeights(attention=attention_weights(model), dense=_block(model, model.ffn), norms=norms)
    return LayerWeights(
        attention=attention_weights(model),
        dense=_block(model, experts.shared_ffn) + model.hidden * experts.number,
        norms=norms,
        expert=_block(model, experts.ffn),
        experts=experts.number,
    )


def embedding_weights(model: ModelShape) -> int:
    """Return the parameters of the embedding, or of the head."""
    return model.vocabulary * model.hidden


def parameters(model: ModelShape, layers: int) -> int:
    """Return all parameters of the model with so many layers."""
    ends = embedding_weights(model) * (1 if model.tied else 2) + LAST_NORM * model.hidden
    return ends + sum(layer_weights(model, dense=is_dense(model, layer)).total for layer in range(layers))


def active_parameters(model: ModelShape, layers: int) -> int:
    """Return the parameters that one token passes, the embedding's table left out."""
    top_k = model.experts.top_k if model.experts is not None else 0
    found = embedding_weights(model) + LAST_NORM * model.hidden
    for layer in range(layers):
        weights = layer_weights(model, dense=is_dense(model, layer))
        found += weights.total - weights.expert * max(0, weights.experts - top_k)
    return found


def layer_flops(model: ModelShape, sequence: int, *, dense: bool) -> float:
    """Return the FLOPs of one token through one layer, forward.

    Two for each weight of a matrix that it passes, and two for each score and each value that is added up; a token sees
    half of its sequence on average (causal). The router is left out, as in the figures of NVIDIA's benchmarks.
    """
    experts = model.experts
    passed = attention_weights(model)
    if dense or experts is None:
        passed += _block(model, model.ffn)
    else:
        passed += _block(model, experts.shared_ffn) + experts.top_k * _block(model, experts.ffn)
    return 2.0 * passed + sequence * float(query_width(model) + value_width(model))


def head_flops(model: ModelShape) -> float:
    """Return the FLOPs of one token through the head, forward."""
    return 2.0 * embedding_weights(model)


def sequence_flops(model: ModelShape, layers: int, sequence: int) -> float:
    """Return the FLOPs of one sequence, forward and backward: what model FLOP/s utilisation counts."""
    each = sum(layer_flops(model, sequence, dense=is_dense(model, layer)) for layer in range(layers))
    return (1 + BACKWARD_TIMES) * sequence * (each + head_flops(model))


FLOPS_FORMULA = (
    "3 x s x (sum over layers of (2 x weights passed + s x (query + value width)) + 2 x vocabulary x hidden): forward "
    "1, backward 2; scores counted causally, the router and everything that is no matrix product left out"
)
FLOPS_SOURCE = (
    "counted as NVIDIA/dgxc-benchmarking does (llama3.1/README_70b.md, Notes), which counts scores in full for "
    "Llama; its 4.27E+15 for Grok-1 is the causal count"
)

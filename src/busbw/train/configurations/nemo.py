"""NeMo's values: a YAML file, Hydra's `model.key=value`, or a recipe in Python. Nothing is run.

Names: NVIDIA/NeMo, examples/nlp/language_modeling/conf, and nemo/collections/llm/recipes. A key counts by its
last part, wherever it stands.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from busbw.base.errors import InputError
from busbw.train.configurations.said import SaidConfiguration, SaidValue, value_of

PROGRAM = "NeMo"
_KEYS = {
    "num_layers": "layers", "hidden_size": "hidden", "num_attention_heads": "heads", "ffn_hidden_size": "ffn",
    "kv_channels": "head_width", "num_query_groups": "key_value_heads", "override_vocab_size": "vocabulary",
    "vocab_size": "vocabulary", "num_moe_experts": "experts", "moe_router_topk": "top_k",
    "moe_ffn_hidden_size": "expert_ffn", "moe_shared_expert_intermediate_size": "shared_ffn",
    "expert_tensor_parallel_size": "expert_tensor_parallel", "encoder_seq_length": "sequence",
    "seq_length": "sequence", "micro_batch_size": "micro_batch", "global_batch_size": "global_batch",
    "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep", "virtual_pipeline_model_parallel_size": "vp",
    "sequence_parallel": "sequence_parallel", "ub_tp_comm_overlap": "overlap_tp", "tp_comm_overlap": "overlap_tp",
    "overlap_p2p_comm": "overlap_pp", "overlap_grad_sync": "overlap_dp", "overlap_grad_reduce": "overlap_dp",
    "share_embeddings_and_output_weights": "tied", "gated_linear_unit": "gated",
}  # fmt: skip
_DEFAULTS: dict[str, int | bool | str] = {
    "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vp": 1, "sequence_parallel": False, "zero": 0, "gradient_bytes": 4,
    "recompute": "none", "gated": False, "tied": True,
}  # fmt: skip
_NOTHING = frozenset({"null", "None", "~", ""})
_RECOMPUTED = frozenset({"activations_checkpoint_granularity", "recompute_granularity"})
_TRUE, _FALSE = ("true", "True"), ("false", "False")
# Keys whose values are other words than ours, or not all of which say something.
_TRANSLATED: dict[str, tuple[str, dict[str, str]]] = {
    "activation": (
        "gated",
        dict.fromkeys(("fast-swiglu", "fast-geglu", "fast-reglu", "swiglu", "geglu", "reglu"), "true")
        | dict.fromkeys(("gelu", "relu", "squared-relu"), "false"),
    ),
    "fp8": ("dtype", dict.fromkeys((*_TRUE, "hybrid", "e4m3"), "fp8")),
    "precision": ("dtype", {name: name for name in ("bf16", "bf16-mixed", "16", "16-mixed", "32")}),
    "grad_sync_dtype": ("gradient_bytes", {"bf16": "2", "16": "2", "fp32": "4", "32": "4"}),
    "grad_reduce_in_fp32": ("gradient_bytes", dict.fromkeys(_TRUE, "4") | dict.fromkeys(_FALSE, "2")),
    "name": ("zero", {"mcore_distributed_optim": "1", "distributed_fused_adam": "1"}),
    "use_distributed_optimizer": ("zero", dict.fromkeys(_TRUE, "1") | dict.fromkeys(_FALSE, "0")),
}
_MOST_DEPTH = 40
_MOST_ALIASES = 100
_OVERRIDE = re.compile(r"(?:^|\s)\+{0,2}(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)=([^\s\\]+)")
_KEY = re.compile(r"\b(?:num_layers|tensor_model_parallel_size|num_moe_experts)\b")
Pair = tuple[int, str, str]


def looks_like(text: str) -> bool:
    """Whether a text has names of NeMo's model configuration."""
    return _KEY.search(text) is not None


def read(text: str, where: str) -> SaidConfiguration:
    """Return what the text says. Raises InputError for YAML or Python that is none, and for two values of one key."""
    if where.endswith((".yaml", ".yml")):
        pairs = tuple(_of_yaml(text, where))
    elif where.endswith(".py"):
        pairs = tuple(_of_python(text, where))
    else:
        pairs = tuple(_of_overrides(text))
    found: dict[str, SaidValue] = {}
    counts: dict[str, int] = {}
    notes: list[str] = []
    for number, key, word in pairs:
        place = f"{where}:{number}"
        if key in ("num_nodes", "devices", "num_gpus_per_node") and word.isascii() and word.isdigit() and len(word) < 8:
            counts["nodes" if key == "num_nodes" else "each"] = int(word)
            continue
        known = _known(key, word)
        if known is None or known[1] in _NOTHING:
            continue
        if "$" in known[1] or "{" in known[1]:
            notes.append(f"{key}={word[:40]} ({place}): not a plain value in this text")
            continue
        _put(found, known[0], value_of(known[0], known[1], place), key)
    _finish(found, counts, where)
    names = {field: name for name, field in reversed(_KEYS.items())} | {"gpus": "trainer.num_nodes x trainer.devices"}
    return SaidConfiguration(program=PROGRAM, values=found, names=names, notes=tuple(notes))


def _put(found: dict[str, SaidValue], field: str, value: SaidValue, key: str) -> None:
    before = found.get(field)
    if before is not None and before.value != value.value:
        if field == "dtype":
            found[field] = value if value.value == "fp8" else before
            return
        raise InputError(
            f"{key} is {value.value} here and {before.value} at {before.place}",
            where=value.place,
            hint=f"say which holds: --say {field}=..., with the other taken out",
        )
    found[field] = value


def _known(key: str, word: str) -> tuple[str, str] | None:
    """Return the field of a key and the word for it; None: it has no part in a workload."""
    if key in _KEYS:
        return _KEYS[key], word
    if key in _RECOMPUTED:
        return "recompute", word
    if key in _TRANSLATED:
        field, words = _TRANSLATED[key]
        return (field, words[word]) if word in words else None
    return None


def _finish(found: dict[str, SaidValue], counts: dict[str, int], where: str) -> None:
    default = f"{PROGRAM}'s default"
    for field, value in _DEFAULTS.items():
        found.setdefault(field, SaidValue(value=value, place=default))
    if "heads" in found:
        found.setdefault("key_value_heads", SaidValue(value=found["heads"].value, place=default))
    if "experts" in found and "ffn" in found:
        found.setdefault("expert_ffn", SaidValue(value=found["ffn"].value, place=default))
    if {"nodes", "each"} <= set(counts):
        found.setdefault("gpus", SaidValue(value=counts["nodes"] * counts["each"], place=where))


def _of_overrides(text: str) -> Iterator[Pair]:
    for number, line in enumerate(text.split("\n"), 1):
        for match in _OVERRIDE.finditer(line):
            yield number, match[1], match[2].strip("\"'")


def _of_yaml(text: str, where: str) -> Iterator[Pair]:
    """Yield scalars with their keys; anchors are not followed, so that a small file stays small."""
    import yaml  # noqa: PLC0415 - for NeMo's files alone

    depth = aliases = 0
    key: list[str | None] = []
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                aliases += 1
                _advance(key, None)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                depth += 1
                key.append(None if isinstance(event, yaml.MappingStartEvent) else "")
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                depth -= 1
                key.pop()
                _advance(key, None)
            elif isinstance(event, yaml.ScalarEvent) and key:
                name = key[-1]
                if name:
                    yield event.start_mark.line + 1, name, str(event.value)
                _advance(key, str(event.value))
            if depth > _MOST_DEPTH or aliases > _MOST_ALIASES:
                raise InputError(f"nested more than {_MOST_DEPTH} deep, or full of aliases", where=where)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(
            f"not valid YAML: {str(error).splitlines()[0][:200] if str(error) else 'unreadable'}", where=where
        ) from error


def _advance(key: list[str | None], word: str | None) -> None:
    """Note that a node of the innermost collection has ended: in a mapping a key, or the value of one."""
    if key and key[-1] != "":
        key[-1] = word if key[-1] is None else None


def _of_python(text: str, where: str) -> Iterator[Pair]:
    """Yield keyword arguments and assigned attributes whose values are plain."""
    try:
        with warnings.catch_warnings():
            # What Python would warn of in somebody's file is not ours to print.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError("not valid Python", where=where) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg is not None and isinstance(node.value, ast.Constant):
            yield node.value.lineno, node.arg, str(node.value.value)[:100]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
                yield node.lineno, name, str(node.value.value)[:100]

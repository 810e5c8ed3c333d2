"""Megatron-LM's arguments, in a script or on a line: `--num-layers 32 --tensor-model-parallel-size 4`.

Names and defaults: NVIDIA/Megatron-LM, megatron/training/arguments.py. Nothing is run: a variable counts where the text
gives it one plain value.
"""

import re
from collections.abc import Iterator

from busbw.base.errors import InputError
from busbw.train.configurations.said import SaidConfiguration, SaidValue, value_of

PROGRAM = "Megatron-LM"
_NUMBERS = {
    "--num-layers": "layers", "--hidden-size": "hidden", "--num-attention-heads": "heads",
    "--ffn-hidden-size": "ffn", "--kv-channels": "head_width", "--num-query-groups": "key_value_heads",
    "--vocab-size": "vocabulary", "--num-experts": "experts", "--moe-router-topk": "top_k",
    "--moe-ffn-hidden-size": "expert_ffn", "--moe-shared-expert-intermediate-size": "shared_ffn",
    "--expert-tensor-parallel-size": "expert_tensor_parallel", "--seq-length": "sequence",
    "--micro-batch-size": "micro_batch", "--global-batch-size": "global_batch",
    "--tensor-model-parallel-size": "tp", "--pipeline-model-parallel-size": "pp", "--context-parallel-size": "cp",
    "--expert-model-parallel-size": "ep", "--world-size": "gpus",
}  # fmt: skip
_SWITCHES: dict[str, tuple[str, str]] = {
    "--swiglu": ("gated", "true"), "--sequence-parallel": ("sequence_parallel", "true"),
    "--use-distributed-optimizer": ("zero", "1"), "--use-torch-fsdp2": ("zero", "3"),
    "--use-megatron-fsdp": ("zero", "3"), "--untie-embeddings-and-output-weights": ("tied", "false"),
    "--bf16": ("dtype", "bf16"), "--fp16": ("dtype", "fp16"), "--tp-comm-overlap": ("overlap_tp", "true"),
    "--overlap-grad-reduce": ("overlap_dp", "true"), "--recompute-activations": ("recompute", "selective"),
    "--grad-reduce-in-bf16": ("gradient_bytes", "2"),
}  # fmt: skip
# With a value that is no number.
_WORDS = {"--recompute-granularity": "recompute"}
_OF_LAYERS = "--num-layers-per-virtual-pipeline-stage"
_STAGES = "--num-virtual-stages-per-pipeline-rank"
_NODES = {"--nproc_per_node": "each", "--nproc-per-node": "each", "--nnodes": "nodes"}
_DEFAULTS: dict[str, int | bool | str] = {
    "tp": 1, "pp": 1, "cp": 1, "ep": 1, "tied": True, "gated": False, "sequence_parallel": False, "zero": 0,
    "gradient_bytes": 4, "recompute": "none", "dtype": "fp32",
}  # fmt: skip
_TOKEN = re.compile(r"""--[A-Za-z0-9][A-Za-z0-9_-]*|=|(?:"[^"\n]*"|'[^'\n]*'|[^\s=])+""")
_ASSIGNED = re.compile(r"^\s*(?:export\s+|local\s+)?([A-Za-z_][A-Za-z0-9_]*)=[\"']?([A-Za-z0-9_.]+)[\"']?\s*(?:#.*)?$")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::-[A-Za-z0-9_.]*)?\}?")
_SWIGLU_MULTIPLE = 64


def looks_like(text: str) -> bool:
    """Whether a text has arguments of Megatron-LM."""
    return "--num-layers" in text or "--tensor-model-parallel-size" in text


def read(text: str, where: str) -> SaidConfiguration:
    """Return what the arguments say. Raises InputError for two values of one, and for what is no value."""
    variables = _variables(text)
    found: dict[str, SaidValue] = {}
    apart: dict[str, int] = {}
    unknown: list[str] = []
    for number, name, value in _arguments(text):
        place = f"{where}:{number}"
        known = _field(name, value)
        if known is None and name not in (_OF_LAYERS, _STAGES, *_NODES):
            continue
        word = _plain(known[1] if known is not None else value or "", variables)
        if word is None:
            unknown.append(f"{name} {(value or '')[:40]} ({place}): not a plain value in this text")
            continue
        if known is None:
            apart[name] = int(value_of("layers", word, place).value)
            continue
        _put(found, known[0], value_of(known[0], word, place), name)
    _derive(found, apart, where)
    names = {field: name for name, field in _NUMBERS.items()} | {"gpus": "nnodes x nproc_per_node"}
    return SaidConfiguration(program=PROGRAM, values=found, names=names, notes=tuple(unknown))


def _put(found: dict[str, SaidValue], field: str, value: SaidValue, name: str) -> None:
    before = found.get(field)
    if field == "dtype" and before is not None:
        # Matrices in FP8 are an addition to --bf16.
        found[field] = value if value.value == "fp8" else before
        return
    if before is not None and before.value != value.value:
        raise InputError(
            f"{name} is {value.value} here and {before.value} at {before.place}",
            where=value.place,
            hint="leave the arguments of one job in the text",
        )
    found[field] = value


def _field(name: str, value: str | None) -> tuple[str, str] | None:
    """Return the field of an argument, and the word that is its value."""
    if name in _SWITCHES:
        return _SWITCHES[name]
    if value is None:
        return None
    if name in _NUMBERS:
        return _NUMBERS[name], value
    if name == "--fp8-format":
        return "dtype", "fp8"
    return (_WORDS[name], value) if name in _WORDS else None


def _arguments(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, name and value of each argument; None: it has no value."""
    waiting: tuple[int, str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        code = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].rstrip("\\")
        for match in _TOKEN.finditer(code):
            word = match[0].strip("\"'(),\\")
            if word in ("=", ""):
                continue
            if word.startswith("--"):
                if waiting is not None:
                    yield *waiting, None
                waiting = (number, word)
            elif waiting is not None:
                yield *waiting, word
                waiting = None
    if waiting is not None:
        yield *waiting, None


def _variables(text: str) -> dict[str, str | None]:
    """Return the plain values of variables; None where a text gives several."""
    found: dict[str, str | None] = {}
    for line in text.split("\n"):
        match = _ASSIGNED.match(line)
        if match is not None:
            value = match[2]
            found[match[1]] = value if found.get(match[1], value) == value else None
    return found


def _plain(word: str, variables: dict[str, str | None]) -> str | None:
    match = _VARIABLE.fullmatch(word)
    if match is not None:
        return variables.get(match[1])
    return word if "$" not in word else None


def _derive(found: dict[str, SaidValue], apart: dict[str, int], where: str) -> None:
    """Fill in what follows from others by Megatron's own rules, and its defaults, marked as such."""
    for field, value in _DEFAULTS.items():
        found.setdefault(field, SaidValue(value=value, place=f"{PROGRAM}'s default"))
    hidden, heads = found.get("hidden"), found.get("heads")
    if heads is not None:
        found.setdefault("key_value_heads", SaidValue(value=heads.value, place=f"{PROGRAM}'s default"))
    if hidden is not None and "ffn" not in found:
        width = 4 * int(hidden.value)
        if found["gated"].value:
            width = int(4 * int(hidden.value) * 2 / 3 / _SWIGLU_MULTIPLE) * _SWIGLU_MULTIPLE
        found["ffn"] = SaidValue(value=width, place=f"{PROGRAM}'s default")
    if "experts" in found:
        found.setdefault("top_k", SaidValue(value=2, place=f"{PROGRAM}'s default"))
        if "ffn" in found:
            found.setdefault("expert_ffn", SaidValue(value=found["ffn"].value, place=f"{PROGRAM}'s default"))
    counts = {_NODES[name]: number for name, number in apart.items() if name in _NODES}
    if {"each", "nodes"} <= set(counts):
        found.setdefault("gpus", SaidValue(value=counts["each"] * counts["nodes"], place=where))
    _virtual(found, apart, where)


def _virtual(found: dict[str, SaidValue], apart: dict[str, int], where: str) -> None:
    if _STAGES in apart:
        found["vp"] = SaidValue(value=apart[_STAGES], place=where)
    elif _OF_LAYERS in apart and "layers" in found:
        layers, pp = int(found["layers"].value), int(found["pp"].value)
        whole, rest = divmod(layers, pp * apart[_OF_LAYERS]) if apart[_OF_LAYERS] * pp else (0, 1)
        if rest or whole < 1:
            raise InputError(
                f"{layers} layers do not divide by {pp} stages x {apart[_OF_LAYERS]} layers",
                where=f"{where}: {_OF_LAYERS}",
            )
        found["vp"] = SaidValue(value=whole, place=where)
    if int(found["pp"].value) > 1 and "vp" in found:
        found.setdefault("overlap_pp", SaidValue(value=True, place=f"{PROGRAM}'s default"))

"""What a configuration says, value by value with its place, and the workload that it makes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import listed, maybe
from busbw.model.train.workload import Configuration, DataType, Experts, ModelShape, Overlap, Parallelism, Workload

Kind = Literal["number", "switch", "dtype", "recompute"]
# What a workload needs, in the words of its file, and of which kind each is.
FIELDS: dict[str, Kind] = {
    "gpus": "number", "layers": "number", "hidden": "number", "heads": "number", "key_value_heads": "number",
    "head_width": "number", "ffn": "number", "gated": "switch", "vocabulary": "number", "tied": "switch",
    "experts": "number", "top_k": "number", "expert_ffn": "number", "shared_ffn": "number", "dense_layers": "number",
    "expert_tensor_parallel": "number", "sequence": "number", "micro_batch": "number", "global_batch": "number",
    "tp": "number", "pp": "number", "cp": "number", "ep": "number", "vp": "number", "sequence_parallel": "switch",
    "zero": "number", "gradient_bytes": "number", "overlap_tp": "switch", "overlap_pp": "switch",
    "overlap_dp": "switch", "recompute": "recompute", "dtype": "dtype",
}  # fmt: skip
# Without these there is no workload, and nobody's default is a guess that would do.
_NEEDED = ("gpus", "layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "micro_batch", "global_batch", "dtype")
_MOST = 2**40
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_YES, _NO = frozenset({"true", "True", "1", "yes"}), frozenset({"false", "False", "0", "no"})
_DTYPES: dict[str, DataType] = {
    "bf16": "bf16", "bfloat16": "bf16", "bf16-mixed": "bf16", "fp16": "fp16", "16": "fp16", "16-mixed": "fp16",
    "float16": "fp16", "fp32": "fp32", "float32": "fp32", "32": "fp32", "fp8": "fp8",
}  # fmt: skip
_RECOMPUTES = ("none", "selective", "full")
Value = int | bool | str


@dataclass(frozen=True, kw_only=True, slots=True)
class SaidValue:
    """One value, and where it stands: `train.sh:14`, or whose default it is."""

    value: Value
    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SaidConfiguration:
    """What a text says, in the words of a workload's file, and what to know of how it was read."""

    program: str
    values: Mapping[str, SaidValue]
    # How the program itself calls a field, for what is asked.
    names: Mapping[str, str]
    notes: tuple[str, ...] = ()


def value_of(field: str, text: str, place: str) -> SaidValue:
    """Return a value as its field needs it. Raises InputError for what is none, with the place."""
    kind, word = FIELDS[field], text.strip()
    if kind == "number":
        if _NUMBER.fullmatch(word) is None or int(word) > _MOST:
            raise InputError(
                f"{word[:40]!r} is no number for {field}", where=place, hint=f"a whole number up to {_MOST}"
            )
        return SaidValue(value=int(word), place=place)
    if kind == "switch":
        if word not in _YES | _NO:
            raise InputError(f"{word[:40]!r} is neither true nor false for {field}", where=place)
        return SaidValue(value=word in _YES, place=place)
    known = _DTYPES if kind == "dtype" else {name: name for name in _RECOMPUTES}
    if word not in known:
        raise InputError(f"{word[:40]!r} is no {field}", where=place, hint=f"one of: {', '.join(known)}")
    return SaidValue(value=known[word], place=place)


def stated(texts: tuple[str, ...]) -> dict[str, SaidValue]:
    """Return what a reader says with --say KEY=VALUE. Raises InputError for what is no such thing."""
    found: dict[str, SaidValue] = {}
    for text in texts:
        key, equals, word = text.partition("=")
        if not equals or key not in FIELDS:
            raise InputError(
                f"{text[:60]!r} says nothing that a workload has{maybe(key, FIELDS)}",
                where="--say",
                hint=f"--say gpus=64; keys: {', '.join(FIELDS)}",
            )
        if key in found:
            raise InputError(f"{key} is said twice", where="--say")
        found[key] = value_of(key, word, "--say")
    return found


def workload_from(
    said: SaidConfiguration, says: Mapping[str, SaidValue], name: str
) -> tuple[Workload, tuple[str, ...]]:
    """Return the workload of a configuration with what a reader says on top, and notes on what was not said.

    Raises InputError that names what is missing.
    """
    values = {key: each.value for key, each in (*said.values.items(), *says.items())}
    missing = [key for key in _NEEDED if key not in values]
    if values.get("experts"):
        missing += [key for key in ("top_k", "expert_ffn") if key not in values]
    if missing:
        called = [f"{key} ({said.names[key]})" if key in said.names else key for key in missing]
        raise InputError(
            f"{said.program}: not said: {listed(called, 12)}",
            where=name,
            hint=" ".join(f"--say {key}=..." for key in missing),
        )
    taken = tuple(
        f"{key} {each.value}: {each.place}" for key, each in said.values.items() if _is_default(each, key, says)
    )
    return _checked(_workload(values, name, said), name), (*said.notes, *taken)


def _checked(made: Workload, name: str) -> Workload:
    """Return a workload whose values are within the bounds of its file. Raises InputError for one that is not."""
    try:
        return msgspec.convert(msgspec.to_builtins(made), Workload)
    except msgspec.ValidationError as error:
        cause = str(error).replace("`", "")
        raise InputError(
            f"{cause[:1].lower()}{cause[1:]}", where=name, hint="busbw train show has such values"
        ) from error


def _is_default(each: SaidValue, key: str, says: Mapping[str, SaidValue]) -> bool:
    return each.place.endswith("default") and key not in says


def _workload(values: Mapping[str, Value], name: str, said: SaidConfiguration) -> Workload:
    def number(key: str, otherwise: int) -> int:
        return int(values.get(key, otherwise))

    heads = number("heads", 1)
    experts = None
    if number("experts", 0):
        experts = Experts(
            number=number("experts", 1), top_k=number("top_k", 1), ffn=number("expert_ffn", 1),
            shared_ffn=number("shared_ffn", 0), dense_layers=number("dense_layers", 0),
            tensor_parallel=number("expert_tensor_parallel", number("tp", 1)) > 1,
        )  # fmt: skip
    model = ModelShape(
        layers=number("layers", 1), hidden=number("hidden", 1), heads=heads,
        key_value_heads=number("key_value_heads", heads),
        head_width=number("head_width", 1) if "head_width" in values else None, ffn=number("ffn", 1),
        gated=bool(values.get("gated", False)), vocabulary=number("vocabulary", 1),
        tied=bool(values.get("tied", False)), experts=experts,
    )  # fmt: skip
    hides: tuple[Overlap, ...] = tuple(each for each in ("tp", "pp", "dp") if values.get(f"overlap_{each}"))
    recompute = str(values.get("recompute", "none"))
    parallelism = Parallelism(
        tp=number("tp", 1), pp=number("pp", 1), cp=number("cp", 1), ep=number("ep", 1), vp=number("vp", 1),
        sequence_parallel=bool(values.get("sequence_parallel", False)),
        zero=_zero(number("zero", 0)), overlap=hides,
        recompute="full" if recompute == "full" else "selective" if recompute == "selective" else "none",
        gradient_bytes=2 if number("gradient_bytes", 4) == 2 else 4,
    )  # fmt: skip
    configuration = Configuration(
        gpus=number("gpus", 1), sequence=number("sequence", 1), micro_batch=number("micro_batch", 1),
        global_batch=number("global_batch", 1), parallelism=parallelism,
    )  # fmt: skip
    dtype = _DTYPES[str(values["dtype"])]
    title = f"read from {said.program}"
    return Workload(id=_id(name), title=title, model=model, dtypes=(dtype,), configuration=(configuration,))


def _zero(stage: int) -> Literal[0, 1, 2, 3]:
    stages: dict[int, Literal[0, 1, 2, 3]] = {0: 0, 1: 1, 2: 2, 3: 3}
    if stage not in stages:
        raise InputError(f"zero {stage}", hint="a stage from 0 to 3")
    return stages[stage]


def _id(name: str) -> str:
    stem = name.rpartition("/")[2].rpartition(".")[0] or name.rpartition("/")[2]
    plain = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._")[:60]
    return plain or "mine"

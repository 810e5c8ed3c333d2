"""torchtitan's TOML file: parallelism, training and the flavour of the model.

Names and defaults: pytorch/torchtitan, torchtitan/config/job_config.py. A flavour that busbw has a workload of gives
the model; of others its sizes are asked for.
"""

import tomllib
from typing import Any

from busbw.base.errors import InputError
from busbw.model.train.workload import ModelShape
from busbw.train.configurations.said import SaidConfiguration, SaidValue, value_of
from busbw.train.workloads import workload_named

PROGRAM = "torchtitan"
# Flavours of torchtitan's models whose shape a shipped workload has.
_FLAVOURS = {("llama3", "70b"): "llama3-70b", ("llama3", "405b"): "llama3-405b"}
_DEGREES = {
    "tensor_parallel_degree": "tp", "pipeline_parallel_degree": "pp", "context_parallel_degree": "cp",
    "expert_parallel_degree": "ep",
}  # fmt: skip
_TRAINING = {
    "local_batch_size": "local_batch", "batch_size": "local_batch", "seq_len": "sequence",
    "global_batch_size": "global_batch",
}  # fmt: skip
_SHARDED = "data_parallel_shard_degree"
_REPLICATED = "data_parallel_replicate_degree"


def looks_like(text: str) -> bool:
    """Whether a text is a file of torchtitan's."""
    return "[training]" in text and ("[parallelism]" in text or "[experimental]" in text or "flavor" in text)


def read(text: str, where: str) -> SaidConfiguration:
    """Return what the file says. Raises InputError for what is no TOML, and for tables that are none."""
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", where=where) from error
    found: dict[str, SaidValue] = {}
    parallelism = {**_table(raw, "training", where), **_table(raw, "parallelism", where)}
    for name, field in _DEGREES.items():
        found[field] = _number(parallelism, name, field, where) or SaidValue(value=1, place=f"{PROGRAM}'s default")
    training = _table(raw, "training", where)
    read_training = {field: _number(training, name, "sequence", where) for name, field in reversed(_TRAINING.items())}
    notes = _batches(found, read_training, parallelism, where)
    _model(found, _table(raw, "model", where))
    _rest(found, raw, parallelism, where)
    names = {
        "gpus": f"{_REPLICATED} x {_SHARDED} x the other degrees", "sequence": "training.seq_len",
        "micro_batch": "training.local_batch_size", "global_batch": "training.global_batch_size",
    }  # fmt: skip
    return SaidConfiguration(program=PROGRAM, values=found, names=names, notes=notes)


def _table(raw: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{name} is no table", where=where)
    return table


def _number(table: dict[str, Any], name: str, field: str, where: str) -> SaidValue | None:
    """Return a whole number; None where it is not there, or -1, which means: whatever is left."""
    value = table.get(name)
    if value is None or value == -1:
        return None
    return value_of(field, str(value)[:40] if not isinstance(value, bool) else "", f"{where}: {name}")


def _batches(
    found: dict[str, SaidValue], training: dict[str, SaidValue | None], parallelism: dict[str, Any], where: str
) -> tuple[str, ...]:
    sequence, local, whole = (training.get(name) for name in ("sequence", "local_batch", "global_batch"))
    if sequence is not None:
        found["sequence"] = sequence
    if local is not None:
        found["micro_batch"] = local
    sharded = _number(parallelism, _SHARDED, "tp", where)
    replicated = _number(parallelism, _REPLICATED, "tp", where)
    if sharded is None:
        return (f"{_SHARDED} is -1 or not said: it takes the GPUs that are left, so their number is not told",)
    degrees = [int(found[each].value) for each in ("tp", "pp", "cp")]
    replicas = int(sharded.value) * (int(replicated.value) if replicated is not None else 1)
    found["gpus"] = SaidValue(value=replicas * degrees[0] * degrees[1] * degrees[2], place=where)
    if whole is not None:
        found["global_batch"] = whole
    elif local is not None:
        # Its own rule where no global batch is given: one pass of every rank.
        found["global_batch"] = SaidValue(value=int(local.value) * replicas, place=f"{PROGRAM}'s default")
    return ()


def _model(found: dict[str, SaidValue], model: dict[str, Any]) -> None:
    key = (str(model.get("name", "")).lower(), str(model.get("flavor", "")).lower())
    if key not in _FLAVOURS:
        return
    name = _FLAVOURS[key]
    for field, value in _shape(workload_named(name).model).items():
        found[field] = SaidValue(value=value, place=f"{name}, a workload of busbw's")


def _shape(model: ModelShape) -> dict[str, int | bool]:
    return {
        "layers": model.layers, "hidden": model.hidden, "heads": model.heads,
        "key_value_heads": model.key_value_heads, "ffn": model.ffn, "gated": model.gated,
        "vocabulary": model.vocabulary, "tied": model.tied,
    }  # fmt: skip


def _rest(found: dict[str, SaidValue], raw: dict[str, Any], parallelism: dict[str, Any], where: str) -> None:
    sharded = parallelism.get(_SHARDED, -1)
    found["zero"] = SaidValue(value=3 if sharded != 1 else 0, place=f"{where}: {_SHARDED}")
    found["sequence_parallel"] = SaidValue(value=int(found["tp"].value) > 1, place=f"{PROGRAM}'s default")
    found["overlap_dp"] = SaidValue(value=True, place=f"{PROGRAM}'s default")
    if parallelism.get("enable_async_tensor_parallel") is True:
        found["overlap_tp"] = SaidValue(value=True, place=f"{where}: enable_async_tensor_parallel")
    mode = _table(raw, "activation_checkpoint", where).get("mode")
    if mode in ("none", "selective", "full"):
        found["recompute"] = SaidValue(value=str(mode), place=f"{where}: mode")
    converters = _table(raw, "model", where).get("converters", [])
    is_fp8 = isinstance(converters, list) and any("float8" in str(each)[:100] for each in converters[:20])
    found["dtype"] = SaidValue(
        value="fp8" if is_fp8 else "bf16", place=f"{where}: converters" if is_fp8 else f"{PROGRAM}'s default"
    )

"""The training workloads that are shipped, as text, and what is published of GPUs for training."""

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Integer, Value

_ENDING = ".toml"


@cache
def shipped_workloads() -> dict[str, str]:
    """Return the text of each shipped workload by its name."""
    folder = files("busbw").joinpath("data", "workloads")
    found = sorted((each for each in folder.iterdir() if each.name.endswith(_ENDING)), key=lambda each: each.name)
    return {each.name.removesuffix(_ENDING): each.read_text(encoding="utf-8") for each in found}


class Accelerator(Value, frozen=True, kw_only=True):
    """What a GPU computes at best, in dense FLOP/s by data type, and its memory. None: not published."""

    # Globs of the model as platforms name it.
    models: tuple[str, ...]
    peak_bf16: float
    peak_fp8: float | None = None
    memory_bytes: Integer
    source: str


class _Accelerators(Value, frozen=True, kw_only=True):
    accelerator: tuple[Accelerator, ...]


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """Return every row, in the order of the file."""
    raw = files("busbw").joinpath("data", "accelerators.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Accelerators).accelerator


def accelerator_of(model: str | None) -> Accelerator | None:
    """Return what is published of the GPU that a platform names so; None where nothing is."""
    if model is None:
        return None
    return next((each for each in accelerators() if any(fnmatchcase(model, glob) for glob in each.models)), None)

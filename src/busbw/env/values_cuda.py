"""What CUDA makes of a text: CUDA_VISIBLE_DEVICES up to the first entry that names no GPU, and words in capitals."""

import re

from busbw.env.given import Given
from busbw.env.values_c import read_c_number
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood

_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F/-]+", re.ASCII)


def read_cuda(given: Given) -> Understood:
    """Return what CUDA makes of a text."""
    if given.var.name == "CUDA_VISIBLE_DEVICES":
        return _visible(given.text)
    if given.var.name == "CUDA_LAUNCH_BLOCKING":
        return Understood(value="0" if given.text in ("", "0") else "1")
    if given.var.kind == "enum" and given.var.choices:
        return _word(given.var, given.text)
    return read_c_number(given)


def _visible(text: str) -> Understood:
    if text in ("", "-1", "NoDevFiles"):
        return Understood(value="no GPU")
    items = [item.strip() for item in text.split(",")]
    taken: list[str] = []
    for item in items:
        if not re.fullmatch(r"\d{1,4}", item, re.ASCII) and not _UUID.fullmatch(item):
            break
        if item in taken:
            problem = f"GPU {item} is named twice: CUDA then shows no GPU at all"
            return Understood(value="no GPU", problem=problem, kind="other value")
        taken.append(item)
    if len(taken) == len(items):
        return Understood(value=",".join(taken))
    shown = ",".join(taken) or "no GPU"
    wrong = items[len(taken)]
    if wrong == "-1" or (wrong == "" and len(taken) == len(items) - 1):
        return Understood(value=shown)
    problem = f"{wrong[:40]!r} names no GPU: it and all behind it are hidden"
    return Understood(value=shown, problem=problem, kind="other value")


def _word(var: EnvVar, text: str) -> Understood:
    if text in var.choices or not text:
        return Understood(value=text or var.default)
    meant = text.strip().upper()
    return Understood(
        value=var.default,
        problem=f"CUDA knows {', '.join(var.choices)}: {text[:40]!r} is ignored",
        kind="ignored",
        instead=meant if meant in var.choices else None,
    )

"""What aws-ofi-nccl makes of a text: it reads all of it or refuses to start, and NCCL then goes on without it.

include/nccl_ofi_param_impl.h.
"""

import re

from busbw.env.given import Given
from busbw.env.sizes import meant_bytes
from busbw.env.values_c import OFF_WORDS, ON_WORDS, in_bounds
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood

_FLOAT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_EFFECT = "the plug-in does not start, and NCCL goes on over sockets"
_REMOVED = ("OFI_NCCL_RDMA_MIN_POSTED_BOUNCE_BUFFERS", "OFI_NCCL_RDMA_MAX_POSTED_BOUNCE_BUFFERS")


def read_ofi_nccl(given: Given) -> Understood:
    """Return what aws-ofi-nccl makes of a text."""
    if given.var.name in _REMOVED:
        return _refused(f"it was removed; set at all, {_EFFECT}")
    if given.var.kind == "bool":
        return _switch(given.text)
    if given.var.kind == "enum" and given.var.choices:
        return _word(given.var, given.text)
    if given.var.kind in ("int", "size"):
        return _integer(given.var, given.text)
    if given.var.kind == "float" and not _FLOAT.fullmatch(given.text):
        return _refused(f"{given.shown} is no number: {_EFFECT}")
    return Understood(value=given.text)


def _refused(problem: str, *, instead: str | None = None) -> Understood:
    return Understood(value=None, problem=problem, kind="fails", instead=instead)


def _switch(text: str) -> Understood:
    word = text.lower()
    if word in ("true", "false"):
        return Understood(value="1" if word == "true" else "0")
    if re.fullmatch(r"\s*[+-]?\d{1,9}", text, re.ASCII):
        return Understood(value="1" if int(text) else "0")
    meant = word.strip()
    instead = "1" if meant in ON_WORDS else "0" if meant in OFF_WORDS else None
    return _refused(f"it takes 0, 1, true and false: with {text[:40]!r} {_EFFECT}", instead=instead)


def _word(var: EnvVar, text: str) -> Understood:
    folded = {choice.lower(): choice for choice in var.choices}
    if text.lower() in folded:
        return Understood(value=folded[text.lower()])
    known = ", ".join(var.choices)
    return _refused(f"it takes {known}: with {text[:40]!r} {_EFFECT}", instead=folded.get(text.strip().lower()))


def _integer(var: EnvVar, text: str) -> Understood:
    if not re.fullmatch(r"\s*[+-]?\d{1,18}", text, re.ASCII):
        meant = meant_bytes(text)
        problem = f"it takes a plain decimal number: with {text[:40]!r} {_EFFECT}"
        return _refused(problem, instead=None if meant is None else str(meant))
    value = int(text)
    if value < 0 and var.least is not None and var.least >= 0:
        return _refused(f"it takes no negative number: with {value} {_EFFECT}")
    return in_bounds(var, value)

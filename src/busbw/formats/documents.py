"""Decoded JSON documents against the shape a tool gives them: every field that is read has its type checked."""

import math
from typing import Annotated, TypeVar

import msgspec

from busbw.base.errors import InputError
from busbw.formats.cells import LARGEST_NUMBER

T = TypeVar("T")
# A count, a size or an index: 63 bits and never below zero.
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def shaped(document: object, kind: type[T], *, tool: str, line: int) -> T:
    """Return `document` as a value of `kind`. Raises InputError with the path of the first field that differs."""
    try:
        return msgspec.convert(document, kind, strict=True)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"not a document of {tool}: {error}", where=f"line {line}") from error


def amount(value: float | None, *, path: str, tool: str, line: int) -> float | None:
    """Return `value`, None for NaN and infinity. Raises InputError when it is below zero or too large for any rate."""
    if value is None or not math.isfinite(value):
        return None
    if not 0 <= value <= LARGEST_NUMBER:
        wrong = "is below zero" if value < 0 else "is too large"
        raise InputError(f"not a document of {tool}: {value:g} {wrong} - at `{path}`", where=f"line {line}")
    return float(value)

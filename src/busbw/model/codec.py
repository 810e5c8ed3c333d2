"""JSON in and out: strict, bounded, the same for files and for --json."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from busbw.base.errors import InputError
from busbw.model.record import AnyEvent

T = TypeVar("T")
MAX_DOCUMENT_BYTES = 2**30
_EVENTS: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode(value: msgspec.Struct) -> bytes:
    """Return `value` as one line of JSON."""
    return msgspec.json.encode(value)


def encode_pretty(value: msgspec.Struct | Sequence[msgspec.Struct]) -> bytes:
    """Return `value` as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def decode(raw: bytes, kind: type[T], *, where: str) -> T:
    """Return the value that `raw` spells. `where` is the file or line it came from.

    Raises InputError for malformed JSON, unknown or missing fields, wrong types, and documents over 1 GiB.
    """
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise InputError(f"document of {len(raw)} bytes is over the limit of {MAX_DOCUMENT_BYTES}", where=where)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a valid {_name(kind)}: {error}", where=where) from error


def decode_event(raw: bytes) -> AnyEvent:
    """Return the event that one line of a rank's standard output spells. Raises InputError."""
    try:
        return _EVENTS.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a valid event: {error}", where="launcher output") from error


class _Schema(msgspec.Struct):
    schema: int = 0


def check_schema(raw: bytes, known: int, *, where: str) -> None:
    """Raise InputError when `raw` says it is of a newer schema than `known`; a damaged document passes here."""
    try:
        found = msgspec.json.decode(raw, type=_Schema).schema
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if found > known:
        raise InputError(
            f"written by a newer busbw: schema {found}, and this one reads up to {known}",
            where=where,
            hint="upgrade with: pip install --upgrade busbw",
        )


def _name(kind: object) -> str:
    return getattr(kind, "__name__", "document").lower().lstrip("_")

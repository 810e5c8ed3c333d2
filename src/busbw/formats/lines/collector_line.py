"""A line as collectors of logs keep it, one JSON object each: the line that the program wrote, taken out of it."""

import re
from collections.abc import Mapping
from typing import cast

import msgspec

# Docker and Fluentd; Elastic, Kubernetes and structured loggers; journalctl -o json; Loki; Google's and AWS's.
_TEXTS = ("log", "message", "MESSAGE", "line", "msg", "textPayload", "Message", "@message")
_TIMES = ("time", "@timestamp", "timestamp", "ts", "Timestamp")
# Where a record keeps what it is about.
_INSIDE = ("_source", "jsonPayload", "fields", "record", "result", "kubernetes")
# One member of a record that was written over several lines.
_MEMBER = re.compile(rb'\s*"(?:log|message|MESSAGE|line|msg|textPayload)"\s*:\s*("(?:[^"\\]|\\.)*")\s*,?\s*')
_DATED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.ASCII)
_decode = msgspec.json.Decoder(type=dict[str, msgspec.Raw]).decode


def as_written(line: bytes) -> bytes:
    """Return what a program wrote in one line, after its time; the line itself where that is not to be found."""
    start = line.lstrip()[:1]
    if start == b'"':
        member = _MEMBER.fullmatch(line)
        found = _string(member[1]) if member is not None else None
        return _on_one_line(found) if found is not None else line
    if start != b"{":
        return line
    try:
        record = _decode(line.strip().rstrip(b","))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return line
    found, time = _first(record, _TEXTS), _first(record, _TIMES)
    if found is None:
        for name in _INSIDE:
            inner = _record(record.get(name))
            found = _first(inner, _TEXTS)
            time = time or _first(inner, _TIMES)
            if found is not None:
                break
    if found is None:
        return line
    return _on_one_line(f"{time} {found}" if time is not None and _DATED.match(time) else found)


def _first(record: Mapping[str, msgspec.Raw], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if name in record and (text := _string(record[name])) is not None), None)


def _string(raw: bytes | msgspec.Raw) -> str | None:
    try:
        value: object = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # journalctl writes a line with colours as the numbers of its bytes.
    if isinstance(value, list) and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
        return bytes(cast("list[int]", value)).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _record(raw: msgspec.Raw | None) -> Mapping[str, msgspec.Raw]:
    if raw is None or not bytes(raw).startswith(b"{"):
        return {}
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _on_one_line(text: str) -> bytes:
    return text.strip("\r\n").replace("\n", " ").encode("utf-8", "replace")

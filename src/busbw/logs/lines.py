"""A line as it stands in a log, taken apart: what a launcher wrote before it, when, and who says what."""

import re
from typing import NamedTuple

from busbw.formats.lines import prefix

_HEAD = re.compile(
    # Only DIAG prints no thread; `file.cc:12 NCCL WARN` is no host.
    r"(?P<host>[\w.-]{1,253}):(?P<pid>\d{1,10})(?::\d{1,10}|(?= NCCL DIAG )) "
    r"(?:\[(?P<device>-?\d{1,6})\] )?"
    # `file.cc:12`, `file.cc:12 (function)`; plug-ins in C++ print a function with its types.
    r"(?:(?P<file>\S{1,200}|[\w:*&<>~ ]{1,200}\([^\n]{0,300}?\)(?: const)?(?: \[with [^\]\n]{0,200}\])?)"
    r":\d{1,6} (?:\([^)\n]{0,200}\) )?)?"
    r"NCCL (?P<level>INFO|WARN|ATTN|TRACE|CALL|DIAG)(?: (?P<message>.*))?$",
    re.ASCII,
)
# A line of NCCL whose host, or host and process, somebody took off, or put a mark of his own in its place.
_NAMELESS = re.compile(
    r"(?P<when>\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}Z?\]? {1,2})?"
    r"(?:(?:<[^<>\s]{1,80}>|\[[^][\s]{1,80}\]|\*{1,80})(?=:)|[\w.-]{1,80}(?::[Xx*]{1,20}){0,2} (?=\[\d))?"
    r"(?::(?P<pid>\d{1,10}):\d{1,10} )?"
    r"(?:\[(?P<device>\d{1,3})\] )?"
    r"(?P<rest>(?:[\w./-]{1,120}:\d{1,6} (?:\([^)\n]{0,200}\) )?)?NCCL (?:INFO|WARN|ATTN) .*)",
    re.ASCII | re.DOTALL,
)
NAMELESS_HOST = "unnamed"
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|(?<!\d)\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?!\d)", re.ASCII
)
# The best first: a bare number may be anything.
_TAG_RANKS = tuple(
    re.compile(regex, re.ASCII)
    for regex in (r"\[rank(\d{1,7})\]", r"\[\d{1,7},(\d{1,7})\]", r"^(\d{1,7}):", r"^\[(\d{1,7})\]:?$")
)
_SAYS_RANK = re.compile(r"\[?[Rr]ank ?(\d{1,7})\]", re.ASCII)
# Where a time may stand before the text.
_FRONT = 200


class WholeLine(NamedTuple):
    """Who says what. Without a head of NCCL `host` is None and `message` the line without its prefixes."""

    host: str | None
    pid: str | None
    device: str | None
    level: str | None
    # NCCL's source file that says it; None: it is not printed.
    file: str | None
    message: str
    # As written; two of them compare as text when both have a date.
    time: str | None
    rank: int | None


def whole_line(text: str) -> WholeLine:
    """Return the parts of a line."""
    tag, rest = prefix.split(text)
    front = text[: min(len(text) - len(rest), _FRONT)]
    head = _HEAD.search(rest)
    if head is not None:
        front += rest[: min(head.start(), _FRONT)]
        message = head["message"] or ""
        return WholeLine(
            head["host"], head["pid"], head["device"], head["level"], head["file"], message, _time(front), _rank(tag)
        )
    # Frameworks write the time into the line, after a mark of their own.
    return WholeLine(None, None, None, None, None, rest, _time(text[:_FRONT]), _rank(tag) if tag else _said_rank(rest))


def named(text: str) -> str | None:
    """Return a line of NCCL that has lost its host and process with a name in their place; None: it is no such line."""
    match = _NAMELESS.fullmatch(text.strip())
    if match is None:
        return None
    process = match["pid"] or "0"
    return f"{match['when'] or ''}{NAMELESS_HOST}:{process}:{process} [{match['device'] or '-1'}] {match['rest']}"


def _time(text: str) -> str | None:
    match = _TIME.search(text)
    return match[0].replace("T", " ").replace(",", ".") if match is not None else None


def _rank(tag: str) -> int | None:
    matches = (regex.search(tag) for regex in _TAG_RANKS)
    return next((int(match[1]) for match in matches if match is not None), None)


def _said_rank(text: str) -> int | None:
    match = _SAYS_RANK.search(text)
    return int(match[1]) if match is not None else None

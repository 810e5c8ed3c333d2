"""A report of nccl-tests that was not finished: what was whole of its results.

Before 2.18.5 a program that ended early, after an error for example, left its report without an end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from busbw.formats.lines import collecting

_KEY = '"results"'
FAILURE = "its report has no end: possibly the program failed, or was ended"


class Salvaged(NamedTuple):
    """The document as far as it goes, and how many of its lines that takes."""

    document: object
    lines: int


def salvaged(lines: Sequence[tuple[int, str]]) -> Salvaged | None:
    """Return the document that `lines` begin, closed after its last whole result; None when it has no results."""
    if sum(len(content) for _, content in lines) > collecting.MOST_BYTES:
        return None
    text = "\n".join(content for _, content in lines)
    results = text.find(_KEY)
    end = _end_of_results(text, results) if results >= 0 else None
    if end is None:
        return None
    try:
        document: object = msgspec.json.decode(text[:end] + "]}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return Salvaged(document, text.count("\n", 0, end) + 1)


def _end_of_results(text: str, results: int) -> int | None:
    """Return where the last whole element of the list ends that `results` is the name of."""
    opened: list[str] = []
    end = None
    for found in collecting.TOKEN.finditer(text):
        mark = found[0]
        if mark in "{[":
            opened.append(mark)
        elif mark in "}]":
            if not opened:
                return end
            opened.pop()
            if found.start() > results and len(opened) < 2:
                return end
            end = found.end() if found.start() > results and opened == ["{", "["] else end
        elif mark == '"':
            return end
    return end

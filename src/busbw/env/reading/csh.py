"""Reads scripts of csh and tcsh: what they say in words of their own is put into those of a shell, in its place."""

import re
from collections.abc import Iterator

from busbw.env.reading.context import Context
from busbw.env.reading.shell import read_shell
from busbw.env.reading.spelled import Spelled, joined

_WORD = re.compile(
    r"[ \t]*((?:else[ \t]+if|if|else|endif|foreach|while|end|switch|case|default|breaksw|endsw|set)(?![\w./=-])|@)"
)
_ENDS = {"endif": "fi", "end": "done", "breaksw": ":", "else": "else"}
_THEN = re.compile(r"[ \t]*then[ \t\r]*(?:#.*)?")
_SET = re.compile(r"set[ \t]+([A-Za-z_]\w*)[ \t]*=[ \t]*")
_FOREACH = re.compile(r"[ \t]+([A-Za-z_]\w*)[ \t]*")
_CASE = re.compile(r"(?:case[ \t]+([^:\n]*)|default[ \t]*):")
_LABEL = re.compile(r"[A-Za-z_]\w*:[ \t\r]*")


def read_csh(piece: Spelled, context: Context) -> None:
    """Take down what a script sets and starts. What decides about a branch is not looked at."""
    read_shell(joined(_as_shell(piece)), context)


def _as_shell(piece: Spelled) -> Iterator[Spelled]:
    # For each `switch` that is open, whether it has had a case.
    switches: list[bool] = []
    at = 0
    for line in piece.text.split("\n"):
        yield from _line(piece, at, at + len(line), switches)
        at += len(line) + 1
        if at <= len(piece.text):
            yield piece.part(at - 1, at)


def _line(piece: Spelled, start: int, end: int, switches: list[bool]) -> Iterator[Spelled]:
    """Yield one line as a shell has it."""
    line = piece.text[start:end]
    found = _WORD.match(line)
    word = " ".join(found[1].split()) if found is not None else ""
    place = start + (found.start(1) if found is not None else 0)

    def written(text: str) -> Spelled:
        return Spelled(text, ((0, piece.origin(place)),))

    if word in {"if", "else if", "while", "switch", "foreach"}:
        yield from _head(piece, word, place, end, switches)
    elif word in _ENDS:
        yield written(_ENDS[word])
    elif word in {"case", "default"} and (label := _CASE.match(piece.text, place, end)) is not None:
        yield written(";; " if switches and switches[-1] else "")
        switches[-1:] = [True]
        yield piece.part(label.start(1), label.end(1)) if label[1] else written("*")
        yield written(") ")
        yield piece.part(label.end(), end)
    elif word == "endsw":
        switches[-1:] = []
        yield written("esac")
    elif word == "set" and (setting := _SET.match(piece.text, place, end)) is not None:
        yield piece.part(setting.start(1), setting.end(1))
        yield written("=")
        yield piece.part(setting.end(), end)
    elif word == "@" or _LABEL.fullmatch(line) is not None:
        yield written(":")
    else:
        yield piece.part(start, end)


def _head(piece: Spelled, word: str, place: int, end: int, switches: list[bool]) -> Iterator[Spelled]:
    """Yield the head of a branch or a loop; `place` is where its word begins."""

    def written(text: str, at: int = place) -> Spelled:
        return Spelled(text, ((0, piece.origin(at)),))

    opening = piece.text.find("(", place, end)
    closing = _closing(piece.text, opening, end) if opening >= 0 else None
    if closing is None:
        yield piece.part(place, end)
    elif word == "switch":
        switches.append(False)
        yield written("case x in")
    elif word == "while":
        yield written("while true; do")
    elif word == "foreach" and (name := _FOREACH.match(piece.text, place + len(word), opening)) is not None:
        yield written("for ")
        yield piece.part(name.start(1), name.end(1))
        yield written(" in ")
        yield piece.part(opening + 1, closing)
        yield written("; do", closing)
    elif _THEN.fullmatch(piece.text, closing + 1, end) is not None:
        yield written("elif true; then" if word == "else if" else "if true; then")
    else:
        yield written("if true; then ")
        yield piece.part(closing + 1, end)
        yield written("; fi", end)


def _closing(text: str, opening: int, end: int) -> int | None:
    depth = 0
    for at in range(opening, end):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return None

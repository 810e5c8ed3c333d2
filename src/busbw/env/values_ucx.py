"""What UCX makes of a text: y and n, sizes with suffixes, words from a list. A text it cannot read ends its start.

src/ucs/config/parser.c and src/ucs/sys/string.c.
"""

import re

from busbw.env.given import Given
from busbw.env.sizes import leading_integer, suffixed_bytes
from busbw.env.values_c import in_bounds
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood

_ON = ("y", "yes", "on", "1")
_OFF = ("n", "no", "off", "0")
_TRY = ("try", "maybe")
_MEANT = {"true": "y", "t": "y", "enable": "y", "enabled": "y", "false": "n", "f": "n", "disable": "n", "disabled": "n"}


def read_ucx(given: Given) -> Understood:
    """Return what UCX makes of a text."""
    if given.var.kind == "bool":
        return _word(given.text, ("y", "n"))
    if given.var.kind == "enum" and given.var.choices:
        return _word(given.text, given.var.choices)
    if given.var.kind == "size":
        return _size(given.text)
    return _integer(given.var, given.text) if given.var.kind == "int" else Understood(value=given.text)


def _word(text: str, choices: tuple[str, ...]) -> Understood:
    word = text.lower()
    same = {choice.lower(): choice for choice in choices}
    if word in same:
        return Understood(value=same[word])
    switch = next((mark for mark in ("y", "on") if mark in choices), None)
    if switch is not None:
        off = "n" if switch == "y" else "off"
        if word in _ON or word in _OFF:
            return Understood(value=switch if word in _ON else off)
        if word in _TRY and ("try" in choices or "auto" in choices):
            return Understood(value="try" if "try" in choices else "auto")
        meant = {"y": switch, "n": off}.get(_MEANT.get(word.strip(), ""))
        return _refused(text, ", ".join(choices), instead=meant)
    return _refused(text, ", ".join(choices))


def _refused(text: str, known: str, *, instead: str | None = None) -> Understood:
    problem = f"UCX takes {known}: it does not start with {text[:40]!r}"
    return Understood(value=None, problem=problem, kind="fails", instead=instead)


def _size(text: str) -> Understood:
    if text.lower() in ("inf", "auto"):
        return Understood(value=text.lower())
    size_bytes = suffixed_bytes(text)
    if size_bytes is not None:
        return Understood(value=str(size_bytes))
    match = re.match(r"-?\d{1,18}", text, re.ASCII)
    bare = suffixed_bytes(re.sub(r"i?[bB]$", "", "".join(text.split())))
    if match is None or bare is not None or not re.fullmatch(r"\d+[kmgtKMGT][bB].+", text, re.ASCII):
        return _refused(text, "bytes, or a number with k, m, g or t", instead=None if bare is None else str(bare))
    return Understood(value=str(suffixed_bytes(text[: match.end() + 2])), problem="the rest is not read", kind="odd")


def _integer(var: EnvVar, text: str) -> Understood:
    if text.lower() in ("inf", "auto"):
        return Understood(value=text.lower())
    number = leading_integer(text)
    if number is None or number.value is None:
        return _refused(text, "a number")
    if number.rest:
        problem = f"only the number at its beginning counts: {text[:40]!r} is read as {number.value}"
        return Understood(value=str(number.value), problem=problem, kind="other value")
    return in_bounds(var, number.value)

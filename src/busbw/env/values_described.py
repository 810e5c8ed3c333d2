"""What a text is for readers whose code is not known: a word of their manuals, of the kind they say, or neither."""

import re

from busbw.env.misspelled import letters_off
from busbw.env.values_c import OFF_WORDS, ON_WORDS, Given, in_bounds, leading_integer
from busbw.model.envvar import ValueReading

# Two letters off in a word of fewer letters make another word.
_LONG_WORD = 8
_SHORT_WORD = 3
_WORD = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
# Words in capitals alone stand for what is filled in later: PORT, NUM_GPUS.
_SMALL = re.compile(r"=?[a-z]+", re.ASCII)
_UNSAID = {"auto", "default", "none", "inf", "infinite", "infinity", "unlimited", "unset", "undef", "all", "max", "min"}
_NUMBER = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|\d+)\s*", re.ASCII)
# Digits and then no number: a unit that nothing says is read, a decimal, an O for a 0. `8(x2)` and `0-3` are Slurm's.
_NEARLY = re.compile(r"\d+(?:\.\d*|[A-Za-z]{1,4}|[,;]\d+)|=\d+", re.ASCII)
_SIZE = re.compile(r"\s*\d+(?:\.\d+)?\s*(?:[kKmMgGtT](?:i?[bB])?|[bB])?\s*", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
# A number for each level of nesting; a number and words that say what to leave out.
_WITH_MORE = {"OMP_NUM_THREADS": r"\d+(?:,\d+)*", "I_MPI_DEBUG": r"\d+(?:,\w+)*"}
# Owners that take the beginning of a word for it, and what stands behind a colon with it.
_BY_BEGINNING = {"Open MPI", "PRRTE"}


def read_described(given: Given) -> ValueReading:
    """Return a text as it is, with a problem where it is none of what is written of the variable."""
    if given.text.strip() and given.text.isascii():
        if given.var.choices:
            return _word(given)
        if given.var.kind == "bool":
            return _switch(given)
        if given.var.kind in ("int", "size", "float"):
            return _number(given)
    return ValueReading(value=given.text)


def _word(given: Given) -> ValueReading:
    folded = {choice.lower(): choice for choice in given.var.choices}
    parts = given.text.lstrip("^").split(",") if given.var.kind == "list" else [given.text]
    found = (_one_word(given, part.strip(), folded) for part in parts)
    return next((each for each in found if each is not None), ValueReading(value=given.text))


def _one_word(given: Given, text: str, folded: dict[str, str]) -> ValueReading | None:
    """Return what is wrong with one word; None where it is one of the choices, or may be one."""
    word = text.lower()
    if word in folded or word in _UNSAID or _NUMBER.fullmatch(word):
        return None
    if given.var.owner in _BY_BEGINNING:
        word = word.partition(":")[0]
        if any(choice.startswith(word) for choice in folded):
            return None
    near = _nearest(word, tuple(folded))
    if near is not None:
        return _not_known(given, ", ".join(given.var.choices), folded[near] if given.var.kind != "list" else None)
    is_complete = given.var.checked == "source" and _WORD.fullmatch(text) and not text.isupper()
    return _not_known(given, ", ".join(given.var.choices), None) if is_complete else None


def _nearest(word: str, choices: tuple[str, ...]) -> str | None:
    """Return the choice that a word is a slip away from; another number in it makes another word."""
    if len(word) < _SHORT_WORD:
        return None
    limit = 2 if len(word) >= _LONG_WORD else 1
    found = sorted((letters_off(word, choice, limit), choice) for choice in choices if len(choice) >= _SHORT_WORD)
    near = [choice for off, choice in found if off <= limit and _DIGITS.sub("", choice) != _DIGITS.sub("", word)]
    return near[0] if near else None


def _switch(given: Given) -> ValueReading:
    word = given.text.strip().lower()
    is_known = word in ON_WORDS or word in OFF_WORDS or word in _UNSAID or word == (given.var.default or "").lower()
    if is_known or _NUMBER.fullmatch(word):
        return ValueReading(value=given.text)
    near = _nearest(word, (*ON_WORDS, *OFF_WORDS))
    if near is None and not _SMALL.fullmatch(given.text.strip()) and not _NEARLY.fullmatch(word):
        return ValueReading(value=given.text)
    return _not_known(given, "a switch, 0 or 1", None if near is None else "1" if near in ON_WORDS else "0")


def _number(given: Given) -> ValueReading:
    text, kind = given.text.strip(), given.var.kind
    shape = {"int": _NUMBER, "size": _SIZE, "float": _FLOAT}[kind]
    more = _WITH_MORE.get(given.var.name)
    number = leading_integer(text) if kind == "int" and shape.fullmatch(text) else None
    if number is not None and number.value is not None:
        return in_bounds(given.var, number.value)
    has_more = more is not None and re.fullmatch(more, text, re.ASCII) is not None
    if shape.fullmatch(text) or has_more or text.lower() in _UNSAID or text == given.var.default:
        return ValueReading(value=given.text)
    is_slip = _SMALL.fullmatch(text) or _NEARLY.fullmatch(text)
    wanted = "a number of bytes" if kind == "size" else "a number"
    return _not_known(given, wanted, None) if is_slip else ValueReading(value=given.text)


def _not_known(given: Given, known: str, instead: str | None) -> ValueReading:
    problem = f"{given.var.owner} takes {known}: {given.shown} is none of that"
    return ValueReading(value=None, problem=problem, kind="not known", instead=instead)

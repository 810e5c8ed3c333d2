"""Which patterns can match a message at all, by the words that each asks for.

There are some hundreds of patterns, and most lines are matched by none. Of what a pattern must find one piece of four
letters is looked up in the message; only where it is there the pattern is tried. What cannot be worked out is tried
always, so that the answer is the same as without.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

from busbw.facts.logs import log_patterns

_GRAM = 4
# Longer messages are tried with every pattern: their pieces take more memory than they save time.
_LONGEST = 4096
# More alternatives than this tell little.
_MOST_WORDS = 64


def possible_patterns(message: str, among: Sequence[int]) -> Iterable[int]:
    """Return those of the numbers of `log_patterns` that may match a message, in their order."""
    if len(message) > _LONGEST:
        return among
    by_gram, always = _index()
    text = message.lower()
    found = set(always)
    for gram in {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)} & by_gram.keys():
        found |= by_gram[gram]
    return sorted(found.intersection(among))


@cache
def _index() -> tuple[dict[str, frozenset[int]], frozenset[int]]:
    """Return the patterns by one piece of each word that they may ask for, and those that ask for none."""
    words = [words_of(pattern.regex) for pattern in log_patterns()]
    common = Counter(gram for each in words if each is not None for word in each for gram in _grams(word))
    by_gram: dict[str, set[int]] = {}
    for number, each in enumerate(words):
        for word in each or ():
            by_gram.setdefault(min(_grams(word), key=lambda gram: (common[gram], gram)), set()).add(number)
    always = frozenset(number for number, each in enumerate(words) if each is None)
    return {gram: frozenset(numbers) for gram, numbers in by_gram.items()}, always


def _grams(word: str) -> list[str]:
    return [word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)]


def words_of(regex: str) -> frozenset[str] | None:
    """Return words in small letters of which every match holds one at least; None: none can be told."""
    return _of_sequence(parser.parse(regex, re.ASCII))


def _of_sequence(sequence: Iterable[tuple[object, object]]) -> frozenset[str] | None:
    """Return the best of what the parts ask for: all of them must be there."""
    found: list[frozenset[str]] = []
    run = ""
    for op, argument in sequence:
        if op is ops.LITERAL and isinstance(argument, int) and argument < 128:
            run += chr(argument).lower()
            continue
        found.append(frozenset({run}))
        run = ""
        of_part = _of_part(op, argument)
        if of_part is not None:
            found.append(of_part)
    found.append(frozenset({run}))
    good = [each for each in found if len(each) <= _MOST_WORDS and all(len(word) >= _GRAM for word in each)]
    return max(good, key=lambda each: (min(map(len, each)), -len(each)), default=None)


def _of_part(op: object, argument: object) -> frozenset[str] | None:
    """Return the words of one part that is no letter; None: it may do without any."""
    if op is ops.SUBPATTERN:
        return _of_sequence(argument[3])  # type: ignore[index]
    if op is ops.ATOMIC_GROUP:
        return _of_sequence(argument)  # type: ignore[arg-type]
    if op in {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}:
        return _of_sequence(argument[2]) if argument[0] else None  # type: ignore[index]
    if op is ops.BRANCH:
        branches = [_of_sequence(branch) for branch in argument[1]]  # type: ignore[index]
        known = [each for each in branches if each is not None]
        return frozenset[str]().union(*known) if len(known) == len(branches) else None
    return None

"""How programs say that something is wrong: the closed set of what they say, and what it mostly comes from."""

import re
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.value import Value
from busbw.facts.logs import LogPattern

# Where the words are kept: the source of a pattern that is made of them.
WORDS = "data/failure_words.toml"

SubjectKind = Literal[
    "address", "amount", "command", "device", "file", "host", "interface", "library", "name", "option", "package",
    "part", "quoted", "symbol", "user", "variable", "version",
]  # fmt: skip


class SubjectWords(Value, kw_only=True, frozen=True):
    """What words mean that are said of one kind of subject."""

    kind: SubjectKind
    cause: str
    fix: str


class Predicate(Value, kw_only=True, frozen=True):
    """One of the things that programs say: that something is not found, not allowed, too old."""

    id: str
    # Words that say so, in any case.
    words: str
    # What it may be said of, the likeliest first.
    subjects: tuple[SubjectKind, ...]
    says: str
    cause: str
    fix: str
    # Whether the words name a cause even where nothing is found that they are about.
    plain: bool = False
    # Whether whoever says this does not go on, even where it is called no error.
    decisive: bool = False
    of: tuple[SubjectWords, ...] = ()

    def regex(self) -> re.Pattern[str]:
        """Return the words as a regex."""
        return _compiled(self.words)

    def pattern(self, kind: SubjectKind | None) -> LogPattern:
        """Return the pattern of a line that says this of a kind of subject; None: of nothing that is known."""
        return _pattern(self, kind)


class _Predicates(Value, kw_only=True, frozen=True):
    predicate: tuple[Predicate, ...]


@cache
def predicates() -> tuple[Predicate, ...]:
    """Return every predicate, in the order in which they are tried."""
    content = files("busbw").joinpath("data", "failure_words.toml").read_bytes()
    return msgspec.toml.decode(content, type=_Predicates).predicate


@cache
def _compiled(words: str) -> re.Pattern[str]:
    return re.compile(words, re.ASCII | re.IGNORECASE)


@cache
def _pattern(predicate: Predicate, kind: SubjectKind | None) -> LogPattern:
    more = next((each for each in predicate.of if each.kind == kind), None)
    says = predicate.says if kind is not None else predicate.says.removesuffix(": {subject}")
    return LogPattern(
        id=f"says-{predicate.id}",
        regex=predicate.words,
        role="origin",
        what=f"in the words of {{program}}: {{text}} (read as: {says})",
        cause=more.cause if more is not None else predicate.cause,
        fix=more.fix if more is not None else predicate.fix,
        source=WORDS,
        last_resort=True,
    )

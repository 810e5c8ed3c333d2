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


# How far a sentence is understood: `sure`, its words say one thing of what they stand beside; `one`, they say one thing
# but leave open of what or why; `several`, words for more than one thing are in it.
Reading = Literal["sure", "one", "several"]


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
    # Whether the words compare, or fit causes of several kinds, so that they are quoted and not told in others.
    open: bool = False
    of: tuple[SubjectWords, ...] = ()

    def regex(self) -> re.Pattern[str]:
        """Return the words as a regex."""
        return _compiled(self.words)

    def pattern(self, kind: SubjectKind | None, reading: Reading) -> LogPattern:
        """Return the pattern of a line that says this of a kind of subject; None: of nothing that is known."""
        return _pattern(self, kind, reading)


class SubjectPlace(Value, kw_only=True, frozen=True):
    """Where to look at one kind of subject, whatever is said of it."""

    kind: SubjectKind
    look: str


class _Predicates(Value, kw_only=True, frozen=True):
    predicate: tuple[Predicate, ...]
    place: tuple[SubjectPlace, ...]


@cache
def predicates() -> tuple[Predicate, ...]:
    """Return every predicate, in the order in which they are tried."""
    return _words().predicate


@cache
def _words() -> _Predicates:
    content = files("busbw").joinpath("data", "failure_words.toml").read_bytes()
    return msgspec.toml.decode(content, type=_Predicates)


@cache
def _compiled(words: str) -> re.Pattern[str]:
    return re.compile(words, re.ASCII | re.IGNORECASE)


@cache
def _pattern(predicate: Predicate, kind: SubjectKind | None, reading: Reading) -> LogPattern:
    more = next((each for each in predicate.of if each.kind == kind), predicate)
    says = predicate.says if kind is not None else predicate.says.removesuffix(": {subject}")
    names = "; it names {subject}" if kind is not None and kind not in {"name", "amount"} else ""
    cause, fix = more.cause, more.fix
    if reading != "sure":
        cause = "busbw does not know this sentence, and its words leave open what is meant"
    if reading == "several":
        fix = next((each.look for each in _words().place if each.kind == kind), _ANYWHERE)
    return LogPattern(
        id=f"says-{predicate.id}",
        regex=predicate.words,
        role="origin",
        what="in the words of {program}: {text} "
        + (f"(read as: {says})" if reading == "sure" else f"(quoted, not interpreted{names})"),
        cause=cause,
        fix=fix,
        source=WORDS,
        last_resort=True,
    )


_ANYWHERE = "what stands around that line, and what the program's documentation says of it"

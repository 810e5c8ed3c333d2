"""Lines of trouble that come again with other times and addresses: known by their form, and only counted."""

import re
from functools import cache
from typing import NamedTuple

from busbw._core import LogSieve
from busbw.facts.logs import LogPattern, log_patterns, log_regex
from busbw.formats.lines.prefix import tag_spans
from busbw.logs.lines import SAYS_RANK, WholeLine
from busbw.logs.state import Process
from busbw.logs.troubles import TroubleEvent, kind_groups

_MOST = 2**16
_NUMBER = re.compile(r"\d+", re.ASCII)
_NO_LITERAL = re.compile(r"\{\d+(?:,\d*)?\}|\[[^]]*\]")


class Repeat(NamedTuple):
    """What a line adds to when it comes again. `process`, `rank`: who says it, and which rank a launcher calls it."""

    event: TroubleEvent
    process: Process | None
    rank: int | None


class Repeats:
    """What the sieve has learned of lines of trouble."""

    def __init__(self, sieve: LogSieve) -> None:
        self._sieve = sieve
        self._learned: dict[int, Repeat] = {}
        self._next = 0

    def of(self, token: int) -> Repeat | None:
        """Return what a line adds to that the sieve knows again; None where that was forgotten since."""
        return self._learned.get(token)

    def learn(self, text: str, message: str, line: WholeLine, repeat: Repeat) -> None:
        """Have the sieve know lines that add to the same event as `text`, whose end is `message`.

        Nothing is learned of lines that add more than a number: whose death it was stands in lines before, and of some
        kinds the last line counts.
        """
        pattern = repeat.event.pattern
        is_more = pattern is not None and (pattern.deepest or pattern.role == "death")
        if is_more or len(self._learned) >= _MOST or not text.isascii() or not text.endswith(message):
            return
        spans = [*_speaker_spans(text, message, line), *_message_spans(text, message, pattern)]
        self._sieve.learn(text, spans, self._next)
        self._learned[self._next] = repeat
        self._next += 1

    def forget(self) -> None:
        """Forget everything: what is said from now on is said by others."""
        self._sieve.forget()
        self._learned.clear()


def _speaker_spans(text: str, message: str, line: WholeLine) -> list[tuple[int, int]]:
    """Return where a line says who speaks."""
    spans = tag_spans(text)
    if line.host is None:
        return spans + [match.span() for match in SAYS_RANK.finditer(text)]
    name = f"{line.host}:{line.pid}"
    at = text.rfind(name, 0, len(text) - len(message))
    return [*spans, (at, at + len(name))]


def _message_spans(text: str, message: str, pattern: LogPattern | None) -> list[tuple[int, int]]:
    """Return where a message has numbers by which events are told apart, or that the pattern asks for."""
    start = len(text) - len(message)
    match = _regex(pattern.id).search(message) if pattern is not None else None
    if pattern is None or match is None:
        return []
    names = (*kind_groups(pattern), "rank", "ranks")
    spans = [match.span(name) for name in match.re.groupindex if name.rstrip("123456789") in names]
    spans += [
        number.span()
        for number in _NUMBER.finditer(message, match.start(), match.end())
        if number[0] in _literals(pattern)
    ]
    return [(start + begin, start + end) for begin, end in spans if begin >= 0]


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return next(log_regex(each.regex) for each in log_patterns() if each.id == pattern)


@cache
def _literals(pattern: LogPattern) -> frozenset[str]:
    """Return the numbers that stand in a pattern."""
    return frozenset(_NUMBER.findall(_NO_LITERAL.sub("", pattern.regex)))

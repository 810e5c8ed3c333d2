"""Reads units of systemd: `Environment=` and the commands that it starts. Nothing in a value is expanded."""

import re

from busbw.env.reading import commands
from busbw.env.reading.context import NAME, Context
from busbw.env.reading.expansion import Field
from busbw.env.reading.spelled import FILLED, Spelled

_LINE = re.compile(r"^[ \t]*(?P<key>Environment|UnsetEnvironment|EnvironmentFile|Exec\w+)[ \t]*=[ \t]*", re.MULTILINE)
# A backslash at the end of a line lets it go on.
_REST = re.compile(r"(?:[^\\\n]|\\(?:\r?\n|.))*+")
_WORD = re.compile(r"(?:\\\r?\n|\s)*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s\"']\S*))", re.DOTALL)
# What stands before a command and says how it is started.
_PREFIXES = "@-:+!|"
_MOST_WORDS = 10_000


def read_systemd(piece: Spelled, context: Context) -> None:
    """Take down what a unit sets for its processes, and what these set for others."""
    at = 0
    while (found := _LINE.search(piece.text, at)) is not None:
        rest = _REST.match(piece.text, found.end())
        at = rest.end() if rest is not None else found.end()
        words = _words(piece, found.end(), at)
        if found["key"] == "EnvironmentFile":
            reason = "the file of EnvironmentFile is not read: give it to busbw env lint by itself"
            context.ledger.unread(piece.origin(found.start("key")), reason)
        elif found["key"] == "Environment":
            for word in words:
                _set(word, context)
        elif found["key"] == "UnsetEnvironment":
            for word in words:
                if NAME.fullmatch(word.text):
                    context.put(word.text, None, "export", at=word.start)
        elif words:
            first = words[0].behind(len(words[0].text) - len(words[0].text.lstrip(_PREFIXES)))
            commands.run([first, *words[1:]], context)


def _set(word: Field, context: Context) -> None:
    equals = word.text.find("=")
    if equals < 0 or not NAME.fullmatch(word.text[:equals]):
        return
    value = word.spelled.part(equals + 1)
    # Specifiers and escapes are for systemd to replace.
    known = Spelled(FILLED, ((0, value.origin(0)),)) if "%" in value.text or "\\" in value.text else value
    written = (value.origin(0), value.origin(0) + len(value.text))
    context.put(word.text[:equals], known, "export", at=word.spelled.origin(0), written=written)


def _words(piece: Spelled, start: int, end: int) -> list[Field]:
    words: list[Field] = []
    while len(words) < _MOST_WORDS and (found := _WORD.match(piece.text, start, end)):
        group = found.lastindex or 3
        spelled = piece.part(found.start(group), found.end(group))
        quoted = group != 3
        words.append(Field(spelled, spelled.origin(0), spelled.end(), is_quoted=quoted))
        start = found.end()
    return words

"""Reads files of NAME=VALUE: environments as `env` prints them, nccl.conf, units of systemd."""

import re
from collections.abc import Mapping

from busbw.env.layers import split_line
from busbw.env.reading import commands
from busbw.env.reading.context import NAME, Context, Ledger
from busbw.env.reading.spelled import FILLED, Field, Spelled
from busbw.model.settings import SettingsReading

# Names as environments have them; bash exports functions as BASH_FUNC_name%%.
_VARIABLE = re.compile(r"[A-Za-z_][\w.%()-]*=")


def read_environment(piece: Spelled, context: Context) -> None:
    """Take down every variable; a line that begins none goes on with the value before it."""
    text = piece.text
    divider = "\0" if "\0" in text else "\n"
    start: int | None = None
    at = 0
    for line in text.split(divider):
        begins = _VARIABLE.match(line) is not None
        # A file for `docker run --env-file` has comments.
        if begins or line.startswith("#") or not line.strip():
            if start is not None:
                _take(piece, start, at - 1, context)
            start = at if begins else None
        elif start is None:
            context.ledger.unread(piece.origin(at), "no NAME=value")
        at += len(line) + 1
    if start is not None:
        _take(piece, start, len(text), context)


def _take(piece: Spelled, start: int, end: int, context: Context) -> None:
    end = max(start, end - 1 if piece.text[end - 1 : end] == "\n" else end)
    equals = piece.text.index("=", start)
    value = piece.part(equals + 1, max(end, equals + 1))
    context.ledger.assign(
        piece.text[start:equals],
        value,
        "environment",
        at=piece.origin(start),
        written=(piece.origin(equals) + 1, piece.origin(equals) + 1 + len(value.text)),
        launch=context.launch,
        arms=context.arms,
        target=context.target,
    )


# A key of a table of variables, with a text or a number.
_KEY = re.compile(
    rf"^[ \t]*[\"']?(?P<name>{commands.FAMILY_NAME.pattern})[\"']?[ \t]*="
    r"[ \t]*(?:\[(?P<list>[^\]]{0,4000})\]|(?P<quote>[\"']?)(?P<value>[^\"'\n#]*)(?P=quote))",
    re.MULTILINE,
)
_ITEM = re.compile(r"(?P<quote>[\"']?)(?P<value>[^\"'\s,#][^\"'\n,#]*)(?P=quote)")


def read_toml(piece: Spelled, context: Context) -> None:
    """Take down the variables of the interconnect's libraries that are keys of a table; nothing else is read."""
    for found in _KEY.finditer(piece.text):
        at = piece.origin(found.start("name"))
        # A list holds the values of a sweep, one for each run.
        texts = [found] if found["list"] is None else list(_ITEM.finditer(piece.text, *found.span("list")))
        for text in texts:
            value = piece.part(text.start("value"), text.start("value") + len(text["value"].rstrip()))
            context.put(found["name"], value, "environment", at=at, written=(value.origin(0), value.end()))


def names_settings(text: str) -> bool:
    """Whether a file of TOML has such a key."""
    return _KEY.search(text) is not None


def from_environment(variables: Mapping[str, str], file: str = "environment") -> SettingsReading:
    """Return the reading of an environment that is at hand, one line a variable in the order of their names."""
    names = sorted(variables)
    # What would break the lines is shown as an escape there, and stands as it is in the values.
    shown = [f"{name}={variables[name]}".replace("\r", "\\r").replace("\n", "\\n") for name in names]
    ledger = Ledger(file, "\n".join(shown))
    at = 0
    for name, line in zip(names, shown, strict=True):
        value = Spelled(variables[name], ((0, at + len(name) + 1),))
        ledger.assign(name, value, "environment", at=at, written=(at + len(name) + 1, at + len(line)))
        at += len(line) + 1
    return ledger.reading("environment")


def read_nccl_conf(piece: Spelled, context: Context) -> None:
    """Take down every line that NCCL takes for a setting; spaces and quotes are part of names and values."""
    at = 0
    for line in piece.text.split("\n"):
        start, at = at, at + len(line) + 1
        found = split_line(line)
        # Versions before 2.26 know no remarks, and take one with `=` for a setting of a name that nothing reads.
        if found is None or line.startswith("#"):
            continue
        name, rest = found
        begin = start + len(name) + 1
        value = piece.part(begin, begin + len(rest.removesuffix("\r")))
        place = piece.origin(start)
        context.ledger.assign(
            name,
            value,
            "nccl_conf",
            at=place,
            written=(value.origin(0), value.end()),
            launch=context.launch,
            arms=context.arms,
            target=context.target,
        )


# Units of systemd: nothing in a value is expanded.
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

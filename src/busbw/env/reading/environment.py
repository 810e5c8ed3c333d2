"""Reads an environment as `env` and `printenv` print it, with line ends or with NUL between the variables."""

import re
from collections.abc import Mapping

from busbw.env.reading.context import Context
from busbw.env.reading.ledger import Ledger
from busbw.env.reading.spelled import Spelled
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

"""What applications print of their own speed, from data/applications.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Value


class Application(Value, frozen=True, kw_only=True):
    """An application, and templates of the lines of its log that tell its speed."""

    id: str
    name: str
    # Which number it is.
    words: str
    # None: `busbw.formats` has a reader of its own for it.
    templates: tuple[str, ...]
    # The work grows with the machine.
    weak: bool = False
    # Of several results the best counts, not their median.
    best: bool = False
    # A line with this text says that the result before it does not count.
    void: str | None = None
    source: str


class _Applications(Value, frozen=True, kw_only=True):
    application: tuple[Application, ...]


@cache
def applications() -> dict[str, Application]:
    """Return every application by its id."""
    content = files("busbw").joinpath("data", "applications.toml").read_bytes()
    return {each.id: each for each in msgspec.toml.decode(content, type=_Applications).application}


def application(name: str) -> Application:
    """Return the application called `name`. Raises InputError for one whose lines are not known."""
    found = applications().get(name.lower())
    if found is None:
        raise InputError(
            f"what {name!r} prints of its speed is not known",
            hint=f"one of {', '.join(applications())}, or say it with --pattern",
        )
    return found

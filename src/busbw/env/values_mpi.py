"""What Open MPI makes of a text, as far as it is sure: `^` holds for a whole list, switches take words and numbers."""

from busbw.env.given import Given
from busbw.env.sizes import leading_integer
from busbw.model.understood import Understood

_ON = ("1", "true", "t", "yes", "y", "enabled", "on")
_OFF = ("0", "false", "f", "no", "n", "disabled", "off")


def read_mpi(given: Given) -> Understood:
    """Return what Open MPI makes of a text."""
    if given.var.kind == "bool":
        return _switch(given.text)
    if given.var.kind == "list":
        return _components(given.text)
    return Understood(value=given.text)


def _switch(text: str) -> Understood:
    word = text.strip().lower()
    if word in _ON or word in _OFF:
        return Understood(value="1" if word in _ON else "0")
    number = leading_integer(text)
    if number is not None and number.value is not None and not number.rest.strip():
        return Understood(value="1" if number.value else "0")
    return Understood(value=None, problem=f"{text[:40]!r} is neither a number nor true or false", kind="fails")


def _components(text: str) -> Understood:
    """Return a list of components; a `^` excludes all of them, and only at the beginning of the list."""
    items = text.split(",")
    if any(item.strip().startswith("^") for item in items[1:]):
        problem = "`^` counts once, at the beginning, for the whole list: mixed lists are refused"
        return Understood(value=None, problem=problem, kind="fails")
    return Understood(value=text)

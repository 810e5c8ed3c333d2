"""The words of the ranks' program that a launcher would not hand on as they are."""

from busbw.base.errors import InputError
from busbw.model.launch import Start

# They begin another program wherever they stand.
_SEPARATOR = ":"


def check_arguments(start: Start, launcher: str, taken: frozenset[str] = frozenset()) -> None:
    """Raise InputError for words of the program that `launcher` takes for its own: `taken`, and a colon alone."""
    for word in start.program.argv:
        if word == _SEPARATOR or word in taken:
            raise InputError(
                f"{launcher} does not hand {word!r} on to a program",
                where=" ".join(start.program.argv)[:200],
                hint="start a script that has this word in it",
            )
        if "\0" in word:
            raise InputError("a command line cannot contain NUL", where=" ".join(start.program.argv)[:200])

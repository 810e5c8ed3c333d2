"""What was meant by the name of an option that a launcher does not have."""

import re
from collections.abc import Callable
from functools import cache

from busbw.env.misspelled import letters_off
from busbw.env.reading.arguments import letters_of_option
from busbw.facts.launchers import LauncherOptions, concepts

# A word of fewer letters is near too many others.
_FEWEST_LETTERS = 5
_LONG_WORD = 12
_SHORT_WORD = 3
# Words for a number; others in small letters may be names that something is put in for.
NUMERALS = {
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "sixteen"),
    *("all", "auto", "max", "min", "many", "full", "half", "default", "unlimited"),
}


def known_option(vocabulary: LauncherOptions, name: str) -> str | tuple[str, ...] | None:
    """Return the option that a name or its beginning is, several that it may be, None where it is none."""
    if name in vocabulary.names:
        return name
    if vocabulary.reads == "whole":
        return None
    begun = sorted(each for each in vocabulary.names if each.startswith(name))
    common = [each for each in begun if vocabulary.reads == "argparse" or each in vocabulary.common]
    if len(common) > 1:
        return tuple(common)
    return begun[0] if begun else None


def meant_option(vocabulary: LauncherOptions, name: str) -> str | None:
    """Return the option that a name is near, or that other launchers call so; None where none is.

    What stands there instead may be words: `an option of mpirun`.
    """
    spelled = name.replace("-", "_") if vocabulary.dashes_alike else name
    return next((found for guess in _GUESSES if (found := guess(vocabulary, spelled)) is not None), None)


def told_otherwise(vocabulary: LauncherOptions, name: str) -> str | None:
    """Return what this launcher calls what another one calls so; None where no other does."""
    concept = concepts().get(name.replace("_", "-"))
    if concept is None:
        return None
    own = next((each for each in concept.names if each in vocabulary.names), None)
    return own or f"an option of {concept.of}"


def as_written(vocabulary: LauncherOptions, name: str, meant: str) -> str:
    """Return an option with the sign between its words that the line has, where the launcher takes both."""
    has_hyphens = "-" in name and "_" not in name and "-" not in meant
    return meant.replace("_", "-") if has_hyphens and vocabulary.dashes_alike else meant


def _called_so(vocabulary: LauncherOptions, name: str) -> str | None:
    return vocabulary.instead.get(name)


def _one_or_several(vocabulary: LauncherOptions, name: str) -> str | None:
    others = (f"{name}s", name.removesuffix("s")) if len(name) >= _SHORT_WORD else ()
    return next((each for each in others if each != name and each in vocabulary.names), None)


def _before_colon(vocabulary: LauncherOptions, name: str) -> str | None:
    before = name.partition(":")[0]
    return f"{before}=" if before != name and before in vocabulary.names else None


def _of_same_letters(vocabulary: LauncherOptions, name: str) -> str | None:
    return _by_letters(vocabulary.names).get(letters_of_option(name)) if len(name) > _SHORT_WORD else None


def _of_same_words(vocabulary: LauncherOptions, name: str) -> str | None:
    return _by_words(vocabulary.names).get(_words(name))


def _with_number(vocabulary: LauncherOptions, name: str) -> str | None:
    """Return an option with the number that stands behind it without a sign."""
    counted = re.fullmatch(r"([a-z_-]+?)\d+", name)
    if counted is None or counted[1] not in vocabulary.valued or len(counted[1]) < _FEWEST_LETTERS:
        return None
    return f"{counted[1]}={name[len(counted[1]) :]}"


def _near(vocabulary: LauncherOptions, name: str) -> str | None:
    if len(name) < _FEWEST_LETTERS - 1:
        return None
    limit = 2 if len(name) >= _LONG_WORD else 1
    shortest = _FEWEST_LETTERS - 1 if len(name) >= _FEWEST_LETTERS else _FEWEST_LETTERS
    near = [(letters_off(name, each, limit), each) for each in vocabulary.names if len(each) >= shortest]
    return min((each for each in near if each[0] <= limit), default=(0, None))[1]


def _begun(vocabulary: LauncherOptions, name: str) -> str | None:
    """Return the one option that a name begins, where beginnings are not taken."""
    begun = [each for each in vocabulary.names if each.startswith(name)] if vocabulary.reads == "whole" else []
    return begun[0] if len(begun) == 1 and len(name) > _FEWEST_LETTERS else None


_GUESSES: tuple[Callable[[LauncherOptions, str], str | None], ...] = (
    _called_so,
    _one_or_several,
    _before_colon,
    _of_same_letters,
    told_otherwise,
    _of_same_words,
    _with_number,
    _near,
    _begun,
)


@cache
def _by_letters(names: frozenset[str]) -> dict[str, str]:
    return {letters_of_option(each): each for each in sorted(names, reverse=True)}


def _words(name: str) -> tuple[str, ...]:
    return tuple(sorted(name.replace("_", "-").split("-")))


@cache
def _by_words(names: frozenset[str]) -> dict[tuple[str, ...], str]:
    return {_words(each): each for each in sorted(names, reverse=True) if len(_words(each)) > 1}

"""Texts for sentences and terminals: names alike, lists of many, what is safe to print."""

import difflib
import unicodedata
from collections.abc import Iterable


def maybe(word: str, known: Iterable[str]) -> str:
    """Return `; maybe: X` with the nearest of the known names, or "" when none comes close."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; maybe: {near[0]}" if near else ""


def listed(words: Iterable[str], most: int = 4, *, between: str = ", ") -> str:
    """Return the first words as a list for a sentence, and how many more there are: `a, b and 3 more`."""
    every = list(words)
    more = len(every) - most
    before = between.rstrip(", ")
    return between.join(every[:most]) + (f"{before} and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return `1 point`, `3 points`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def percent(share: float) -> str:
    """Return a share in percent, with a decimal only where it says something."""
    value = share * 100
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def printable(text: str) -> str:
    """Return `text` with control and formatting characters shown as escapes, so that none reaches the terminal.

    Line ends stay; a host name, log line or path cannot move the cursor, recolour the screen or reverse the writing.
    """
    return text if text.isprintable() else "".join(one if one == "\n" else _shown(one) for one in text)


def one_line(text: str) -> str:
    """Return `text` as `printable` does, in one line: line ends are escapes too."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    is_safe = not unicodedata.category(character).startswith(("C", "Zl", "Zp"))
    return character if is_safe else character.encode("unicode_escape").decode("ascii")


def one_word(text: str) -> str:
    """Return `text` as one word: printable, and with `_` for blanks."""
    return "_".join(one_line(text).split()) or "unknown"

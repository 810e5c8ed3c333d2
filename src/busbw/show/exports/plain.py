"""Words from outside, made safe for a file of lines."""

import unicodedata


def shown(text: str) -> str:
    """Return `text` with control and formatting characters, line ends too, written as escapes."""
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character).startswith(("C", "Zl", "Zp"))
        else character
        for character in text
    )


def word(text: str) -> str:
    """Return `text` as one word: shown, and with `_` for blanks."""
    return "_".join(shown(text).split()) or "unknown"

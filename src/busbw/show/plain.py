"""Text from outside, made safe for a terminal."""

import unicodedata


def printable(text: str) -> str:
    """Return `text` with control and formatting characters shown as escapes, so that none reaches the terminal.

    Line ends stay; a host name, log line or path cannot move the cursor, recolour the screen or reverse the writing.
    """
    return "".join(
        character if character == "\n" or not unicodedata.category(character).startswith("C") else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

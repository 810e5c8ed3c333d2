"""TOML that somebody else wrote: what Python's reader would take minutes for is refused before it is read."""

from .errors import InputError

# It takes time with the square of a key's parts.
MOST_DOTS = 200


def check_key_lengths(text: str, where: str) -> None:
    """Raise InputError, with the line, where a line may hold a key of more parts than anybody writes."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS:
            raise InputError(f"a line with more than {MOST_DOTS} dots", where=f"{where}:{number}")

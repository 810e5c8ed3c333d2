"""The known names that an unknown one may stand for."""

import difflib
from collections.abc import Iterable


def maybe(word: str, known: Iterable[str]) -> str:
    """Return `; maybe: X` with the nearest of the known names, or "" when none comes close."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; maybe: {near[0]}" if near else ""

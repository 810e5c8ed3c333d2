"""Assignments as every POSIX shell reads them."""

from collections.abc import Iterable, Iterator

from busbw.env.export.page import Entry, comment_lines


def quoted(value: str) -> str:
    """Return a value in single quotes, in which a shell finds nothing to do."""
    return "'" + value.replace("'", "'\\''") + "'"


def export_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield an empty line, the comments and the assignment of each variable."""
    for entry in entries:
        yield ""
        yield from comment_lines(entry.comments)
        yield f"unset {entry.name}" if entry.value is None else f"export {entry.name}={quoted(entry.value)}"

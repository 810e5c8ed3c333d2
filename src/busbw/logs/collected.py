"""Logs that a collector wrote as JSON, given back as the program wrote them."""

import re

from busbw.formats.lines.prefix import as_written

_STARTS = re.compile(rb"\s*(?:\{|\[\s*(?:\{|\n|\r))")
_UNDECIDED = re.compile(rb"\s*\[?[ \t]*")
_MOST_PENDING = 2**20


class CollectedLines:
    """Gives back each block of a source as the program wrote it; a source that holds no JSON unchanged."""

    def __init__(self) -> None:
        # None: nothing but white space has come yet.
        self._is_json: bool | None = None
        self._pending = b""

    def feed(self, block: bytes) -> bytes:
        """Return what can be said of a block so far; line numbers stay as they are."""
        if self._is_json is None:
            block, self._pending = self._pending + block, b""
            if _UNDECIDED.fullmatch(block) and len(block) < _MOST_PENDING:
                self._pending = block
                return b""
            self._is_json = _STARTS.match(block) is not None
        if not self._is_json:
            return block
        *lines, self._pending = (self._pending + block).split(b"\n")
        if len(self._pending) > _MOST_PENDING:
            lines.append(self._pending)
            self._pending = b""
            return b"\n".join(map(as_written, lines))
        return b"".join(as_written(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return what is left, and be ready for another source."""
        left = as_written(self._pending) if self._is_json else self._pending
        self._is_json, self._pending = None, b""
        return left

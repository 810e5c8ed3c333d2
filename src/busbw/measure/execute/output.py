"""The launcher's two output streams: stored as they come, and cut into lines for whoever listens."""

import os
import selectors
from collections.abc import Callable
from typing import IO, BinaryIO

_CHUNK_BYTES = 2**16
_LONGEST_LINE_BYTES = 2**20
# A program that never stops talking must not fill the disk.
_MOST_STORED_BYTES = 256 * 2**20
_KEPT_TAIL_BYTES = 2**16


class Stream:
    """One stream: its bytes go to a file, its lines to `on_line`, its end is kept in memory for messages."""

    def __init__(self, pipe: IO[bytes], file: BinaryIO, on_line: Callable[[bytes], None]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._file = file
        self._on_line = on_line
        self._stored_bytes = 0
        self._rest = b""
        self.tail = b""

    def register(self, selector: selectors.BaseSelector) -> None:
        """Have `selector` wake when there is something to read."""
        selector.register(self._pipe, selectors.EVENT_READ, self)

    def pump(self) -> bool:
        """Read what is there. Returns False at the end of the stream. Raises OSError when it cannot be stored."""
        try:
            chunk = os.read(self._pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            self._pass_on(final=True)
            return False
        if self._stored_bytes < _MOST_STORED_BYTES:
            self._file.write(chunk)
            self._stored_bytes += len(chunk)
        self.tail = (self.tail + chunk)[-_KEPT_TAIL_BYTES:]
        self._rest += chunk
        self._pass_on(final=False)
        return True

    def close(self) -> None:
        """Close the pipe."""
        self._pipe.close()

    def _pass_on(self, *, final: bool) -> None:
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._on_line(line)
        if self._rest and (final or len(self._rest) > _LONGEST_LINE_BYTES):
            self._on_line(self._rest)
            self._rest = b""

"""The file of records this rank appends to: each line on disk before the next step begins."""

import os
from pathlib import Path

from busbw.model import codec
from busbw.model.record import Record


class Journal:
    """Appends records as JSON lines and syncs each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, record: Record) -> None:
        """Append one record and wait until it is on disk. Raises OSError, such as for a full disk."""
        rest = memoryview(codec.encode(record) + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)

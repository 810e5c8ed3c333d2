"""Folders for one input each, of which there are thousands: where memory is a file system, nothing waits for a disk."""

import os
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_USABLE = str(_MEMORY) if os.access(_MEMORY, os.W_OK | os.X_OK) else None


def fresh_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return an empty folder; as a context it yields its path, and removes it."""
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=_USABLE)

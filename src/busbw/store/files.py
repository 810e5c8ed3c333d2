"""Whole files, written so that a reader finds the old or the new one and never half of it."""

import contextlib
import os
from pathlib import Path

from busbw.errors import InputError, RunError


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file at `path`. Raises RunError when the disk is full or refuses."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise RunError(
            f"cannot write {path.name}: {error.strerror or error}",
            where=str(path.parent),
            hint="free space, or choose another folder with -o",
        ) from error


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """Return a file's content. Raises InputError when it is missing, unreadable or over the limit."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes > limit_bytes:
            raise InputError(f"{path.name} has {size_bytes} bytes, over the limit of {limit_bytes}", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error

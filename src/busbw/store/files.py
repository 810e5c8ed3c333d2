"""Whole files, written so that a reader finds the old or the new one and never half of it."""

import contextlib
import os
import stat
from pathlib import Path

from busbw.base.errors import InputError, RunError


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file at `path`.

    Raises InputError when something else than a file is there, RunError when the disk is full or refuses.
    """
    _check_replaceable(path)
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


def _check_replaceable(path: Path) -> None:
    """Refuse a folder, a device, a pipe: a file in its place would take it from everybody."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        # Nothing is there, or writing says better what is wrong.
        return
    if not is_file:
        raise InputError(f"{path} is not a file, and is not replaced by one", hint="choose another name with -o")


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """Return a file's content. Raises InputError when it is missing, unreadable or over the limit."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes > limit_bytes:
            raise InputError(f"{path.name} has {size_bytes} bytes, over the limit of {limit_bytes}", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error

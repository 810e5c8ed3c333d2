"""Files that somebody names, read in bounded memory whatever they turn out to be."""

import stat
import sys
from pathlib import Path
from typing import BinaryIO

from busbw.base.errors import InputError

STANDARD_INPUT = "-"


def read_bounded(path: Path, *, most_bytes: int, kind: str) -> bytes:
    """Return the bytes of a file, or of standard input where it is named `-`. `kind` says what it should be.

    Raises InputError when it is missing, is no regular file, cannot be read, or has more than `most_bytes`.
    """
    if str(path) == STANDARD_INPUT:
        return _read(sys.stdin.buffer, "standard input", most_bytes, kind)
    try:
        # A pipe would wait for its writer, and a device may never end.
        _check_regular(path, path.stat().st_mode)
        with path.open("rb") as file:
            return _read(file, str(path), most_bytes, kind)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {cause}", where=str(path)) from error


def _check_regular(path: Path, mode: int) -> None:
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
    )
    for is_kind, name in kinds:
        if is_kind(mode):
            raise InputError(f"{path} is {name}, not a file", where=str(path), hint="give a file, or pipe it into `-`")


def _read(file: BinaryIO, where: str, most_bytes: int, kind: str) -> bytes:
    """Return what is in the file. Raises InputError once more than the most came out of it."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise InputError(f"{where} is over {most_bytes >> 20} MiB: no {kind} is", where=where)
    return content

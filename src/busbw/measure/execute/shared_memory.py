"""Shared memory that ended ranks left behind: an MPI library removes its files itself, unless it is ended by force."""

import contextlib
import os
import re
from pathlib import Path

_FOLDER = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
# The path is the sixth field of a line, and the only one with a slash.
_MAPPED = re.compile(rb" (" + re.escape(_FOLDER.encode()) + rb".*)")
_MAX_MAPS_BYTES = 8 * 2**20


def mapped_by(process_id: int) -> frozenset[str]:
    """Return the files under /dev/shm that a process has mapped; none when it is gone."""
    try:
        with Path(f"/proc/{process_id}/maps").open("rb") as file:
            content = file.read(_MAX_MAPS_BYTES)
    except OSError:
        return frozenset()
    paths = (found.decode("utf-8", errors="surrogateescape") for found in _MAPPED.findall(content))
    return frozenset(path for path in paths if not path.endswith(" (deleted)"))


def remove(paths: frozenset[str]) -> None:
    """Remove those of `paths` that are this user's and that no process has mapped any more."""
    left = {path for path in paths if _is_own(path)}
    if not left:
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            left -= mapped_by(int(entry.name))
    for path in left:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def _is_own(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False

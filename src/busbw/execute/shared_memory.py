"""Shared memory that ended ranks left behind: an MPI library removes its files itself, unless it is ended by force."""

import contextlib
import os
from pathlib import Path

_FOLDER = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
_MAX_MAPS_BYTES = 8 * 2**20


def mapped_by(process_id: int) -> frozenset[str]:
    """Return the files under /dev/shm that a process has mapped; none when it is gone."""
    try:
        with Path(f"/proc/{process_id}/maps").open("rb") as file:
            lines = file.read(_MAX_MAPS_BYTES).splitlines()
    except OSError:
        return frozenset()
    paths = (line.split(maxsplit=5)[5].decode("utf-8", errors="surrogateescape") for line in lines if line.count(b"/"))
    return frozenset(path for path in paths if path.startswith(_FOLDER) and not path.endswith(" (deleted)"))


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

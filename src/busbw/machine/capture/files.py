"""Small files, links and folders of the machine, collected as they are; what is there and unreadable is recorded so."""

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from busbw.model.host import CapturedFile, CapturedLink

# An attribute of sysfs is one page.
_MOST_BYTES = 64 * 2**10
_MOST_FILES = 40_000
_LONGEST_PATH = 230
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ELOOP}


class Collection:
    """What was read so far. Paths are those of the host; `root` is where the host's tree begins for us."""

    def __init__(self, root: Path, *, timeout_s: float) -> None:
        self._root = root
        self._end_s = time.monotonic() + timeout_s
        self._files: dict[str, CapturedFile] = {}
        self._links: dict[str, CapturedLink] = {}

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        """Return the files, by path."""
        return tuple(self._files[path] for path in sorted(self._files))

    @property
    def links(self) -> tuple[CapturedLink, ...]:
        """Return the links, by path."""
        return tuple(self._links[path] for path in sorted(self._links))

    @property
    def is_full(self) -> bool:
        """Whether no more is taken: too many files, or too much time."""
        return len(self._files) >= _MOST_FILES or time.monotonic() > self._end_s

    def file(
        self, path: str, *, keep: Callable[[str], str | None] | None = None, most_bytes: int = _MOST_BYTES
    ) -> str | None:
        """Take a file, or what `keep` leaves of it; None from `keep` leaves its text out. Returns what was taken.

        A file that is there and was not taken is recorded with the reason.
        """
        raw = self._taken(path, most_bytes)
        if raw is None:
            return None
        text = raw.decode("utf-8", "replace")
        kept = keep(text) if keep is not None else text
        if kept is None:
            self._unread(path, "is not what it should be, and was not taken")
        else:
            self._files[path] = CapturedFile(path=path, text=kept)
        return kept

    def binary(self, path: str, *, keep: Callable[[bytes], str]) -> None:
        """Take what `keep` says of a file that is no text."""
        raw = self._taken(path, _MOST_BYTES)
        if raw is not None:
            self._files[path] = CapturedFile(path=path, text=f"{keep(raw)}\n")

    def _taken(self, path: str, most_bytes: int) -> bytes | None:
        """Return the beginning of a file; None where there is nothing to take, recorded if it is there."""
        if self.is_full or len(path) > _LONGEST_PATH:
            return None
        try:
            raw = self._read(path, most_bytes)
        except OSError as error:
            if error.errno not in _ABSENT:
                self._unread(path, (error.strerror or "cannot be read").lower())
            return None
        if raw is None:
            self._unread(path, "is no file")
        return raw

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        """Return the beginning of a file; None for anything else: a pipe would wait, and a device may act."""
        at = self._at(path)
        if not stat.S_ISREG(at.stat().st_mode):
            return None
        with at.open("rb") as file:
            return file.read(most_bytes)

    def _unread(self, path: str, reason: str) -> None:
        self._files[path] = CapturedFile(path=path, text=None, reason=reason)

    def under(self, folder: str, names: tuple[str, ...]) -> None:
        """Take the files of these names in a folder, as far as they are there."""
        for name in names:
            self.file(f"{folder}/{name}")

    def link(self, path: str) -> str | None:
        """Take a symbolic link; returns its target, None where there is none."""
        if self.is_full or len(path) > _LONGEST_PATH:
            return None
        try:
            target = str(self._at(path).readlink())
        except OSError:
            return None
        self._links[path] = CapturedLink(path=path, target=target)
        return target

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; () where there is none. Nothing is taken."""
        try:
            return tuple(sorted(os.listdir(self._at(folder))))  # noqa: PTH208 - names are all that is wanted
        except OSError:
            return ()

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")

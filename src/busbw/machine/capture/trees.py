"""Trees of files as a loader sees them: this host, a folder that is a root, an image with folders bound into it."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, Protocol

from busbw.machine.read.elf import Read

NodeKind = Literal["file", "folder", "link", "other"]

_MOST_LINKS = 40
_MOST_OPEN = 64


class FileTree(Protocol):
    """Files as a loader sees them: those of this host, of a folder that is a root, or of an image."""

    def kind(self, path: str) -> NodeKind | None:
        """Return what is at a path, without following a last link; None: nothing."""

    def target(self, path: str) -> str:
        """Return what a link says."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, in order."""

    def opened(self, path: str) -> tuple[Read, int] | None:
        """Return what reads a file, and its size in bytes; None where it cannot be read."""


class FolderTree:
    """A folder of this host as the root of a tree; `/` is the host itself."""

    def __init__(self, root: Path, opened: ExitStack) -> None:
        """Take the root, and who closes the files at the end."""
        self._root = root
        self._closing = opened
        self._files: dict[str, BinaryIO] = {}

    def _real(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def kind(self, path: str) -> NodeKind | None:
        """Return what is at a path."""
        try:
            mode = os.lstat(self._real(path)).st_mode
        except (OSError, ValueError):
            return None
        for kind, is_one in (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK)):
            if is_one(mode):
                return kind  # type: ignore[return-value] # the pairs above are its values
        return "other"

    def target(self, path: str) -> str:
        """Return what a link says."""
        return str(self._real(path).readlink())

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder; none where it cannot be read."""
        try:
            return tuple(sorted(each.name for each in self._real(path).iterdir()))
        except OSError:
            return ()

    def opened(self, path: str) -> tuple[Read, int] | None:
        """Return what reads a file; it stays open, unless there are many."""
        try:
            file = self._files.get(path)
            if file is None:
                if len(self._files) >= _MOST_OPEN:
                    self._files.pop(next(iter(self._files))).close()
                file = self._closing.enter_context(self._real(path).open("rb"))
                self._files[path] = file
            size_bytes = os.fstat(file.fileno()).st_size
        except (OSError, ValueError):
            return None
        taken = file

        def read(offset: int, count: int) -> bytes:
            if offset < 0 or offset >= size_bytes or count <= 0:
                return b""
            try:
                return os.pread(taken.fileno(), min(count, size_bytes - offset), offset)
            except (OSError, ValueError, OverflowError):
                return b""

        return read, size_bytes


class BoundTree:
    """A tree with folders of another one put over it, as a container has them."""

    def __init__(self, image: FileTree, host: FileTree, binds: tuple[tuple[str, str], ...]) -> None:
        """Take the image, the host, and pairs of a folder of the host and where it is seen."""
        self._image = image
        self._host = host
        self._binds = sorted(((inside.rstrip("/"), outside) for outside, inside in binds), reverse=True)

    def _at(self, path: str) -> tuple[FileTree, str]:
        for inside, outside in self._binds:
            if path == inside or path.startswith(inside + "/"):
                return self._host, outside.rstrip("/") + path[len(inside) :]
        return self._image, path

    def kind(self, path: str) -> NodeKind | None:
        """Return what is at a path; the folders above what is bound are there too."""
        tree, where = self._at(path)
        found = tree.kind(where)
        if found is None and any(inside.startswith(path.rstrip("/") + "/") for inside, _outside in self._binds):
            return "folder"
        return found

    def target(self, path: str) -> str:
        """Return what a link says."""
        tree, where = self._at(path)
        return tree.target(where)

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, those of folders that are bound into it among them."""
        tree, where = self._at(path)
        above = path.rstrip("/") + "/"
        bound = {inside[len(above) :].split("/")[0] for inside, _outside in self._binds if inside.startswith(above)}
        return tuple(sorted({*tree.names(where), *bound}))

    def opened(self, path: str) -> tuple[Read, int] | None:
        """Return what reads a file."""
        tree, where = self._at(path)
        return tree.opened(where)


def real_path(tree: FileTree, path: str) -> str | None:
    """Return the path of what a path leads to, with every link followed inside the tree; None: nothing."""
    left = [each for each in reversed(PurePosixPath(path).parts) if each != "/"]
    at, links = "", 0
    while left:
        name = left.pop()
        if name == "..":
            at = at.rpartition("/")[0]
            continue
        here = f"{at}/{name}"
        kind = tree.kind(here)
        if kind is None or (kind not in ("folder", "link") and left):
            return None
        if kind != "link":
            at = here
            continue
        links += 1
        try:
            target = tree.target(here)
        except (OSError, ValueError):
            return None
        if links > _MOST_LINKS or not target:
            return None
        left += [each for each in reversed(PurePosixPath(target).parts) if each != "/"]
        at = "" if target.startswith("/") else at
    return at or "/"

"""Whether a library would load here: the dynamic loader's search, walked without running anything."""

import os
from pathlib import Path
from typing import BinaryIO

from busbw.machine.read.elf import Dynamic, dynamic_of

_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_MOST_LIBRARIES = 400
# The loader itself, and names that no file stands for.
_BUILT_IN = ("ld-linux", "linux-vdso", "ld64.")


class Linker:
    """Follows what libraries need; each file is read once."""

    def __init__(self, cache: tuple[tuple[str, Path], ...]) -> None:
        """Take what the loader's cache holds: names and paths, in its order."""
        self._cache: dict[str, list[Path]] = {}
        for name, path in cache:
            self._cache.setdefault(name, []).append(path)
        self._wanted = tuple(Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each)
        self._read: dict[Path, Dynamic | None] = {}

    def unresolved(self, library: Path) -> tuple[str, ...] | None:
        """Return the names that nothing here provides.

        None for what cannot be read or needs too much, and without the loader's cache: some loaders have none, and
        folders of their own. A program that has loaded one of the names already, from wherever, does not miss it.
        """
        first = self._dynamic(library)
        if first is None or not self._cache:
            return None
        missing: list[str] = []
        waiting, seen = [(library, first)], {library}
        while waiting:
            path, dynamic = waiting.pop()
            for name in dynamic.needed:
                found = self._provider(name, path, dynamic)
                if found is None:
                    missing += [name] if not name.startswith(_BUILT_IN) else []
                elif found[0] not in seen:
                    seen.add(found[0])
                    waiting.append(found)
            if len(seen) > _MOST_LIBRARIES:
                return None
        return tuple(dict.fromkeys(missing))

    def _provider(self, name: str, wanted_by: Path, dynamic: Dynamic) -> tuple[Path, Dynamic] | None:
        """Return the library that the loader would take, in its order: RPATH, LD_LIBRARY_PATH, RUNPATH, its cache."""
        origin = wanted_by.parent
        folders = [
            *(_folder(each, origin) for each in dynamic.rpath if not dynamic.runpath),
            *self._wanted,
            *(_folder(each, origin) for each in dynamic.runpath),
        ]
        paths = [folder / name for folder in folders]
        paths += self._cache.get(name, [])
        paths += [Path(folder, name) for folder in _DEFAULT_FOLDERS]
        if "/" in name:
            paths = [Path(name)]
        for path in paths:
            try:
                real = path.resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            found = self._dynamic(real)
            if found is not None and found.machine == dynamic.machine:
                return real, found
        return None

    def _dynamic(self, real: Path) -> Dynamic | None:
        if real not in self._read:
            self._read[real] = _dynamic_in(real)
        return self._read[real]


def _folder(written: str, origin: Path) -> Path:
    return Path(written.replace("${ORIGIN}", str(origin)).replace("$ORIGIN", str(origin)))


def _dynamic_in(real: Path) -> Dynamic | None:
    try:
        if not real.is_file():
            return None
        with real.open("rb") as file:
            return dynamic_of(lambda offset, size_bytes: _part(file, offset, size_bytes))
    except (OSError, ValueError, OverflowError):
        return None


def _part(file: BinaryIO, offset: int, size_bytes: int) -> bytes:
    file.seek(offset)
    return file.read(size_bytes)

"""Where the dynamic loader looks for a library, in its order, and what its cache holds: over any tree of files."""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from busbw.machine.read.elf import Dynamic
from busbw.model.host import FoundBy

# Of a loader without a cache. Debian's, which images without one are mostly made of, adds those of the processor.
_OF_PROCESSORS = ("x86_64-linux-gnu", "aarch64-linux-gnu")
DEFAULT_FOLDERS = (
    *(f"{folder}/{name}" for name in _OF_PROCESSORS for folder in ("/lib", "/usr/lib")),
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)

_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sII4xI12x")
_ENTRY = struct.Struct("<iIIIQ")
_MOST_ENTRIES = 100_000
_LONGEST_PATH = 4096
# The loader itself, and names that no file stands for.
_BUILT_IN = ("ld-linux", "linux-vdso", "ld64.", "ld-musl")


class LoadedBy(NamedTuple):
    """A library, and what it asks for."""

    path: str
    dynamic: Dynamic


class Provider(NamedTuple):
    """The file that the loader takes for a name."""

    path: str
    dynamic: Dynamic
    by: FoundBy


def is_built_in(name: str) -> bool:
    """Whether the loader or the kernel brings a library, so that no folder needs to have it."""
    return name.startswith(_BUILT_IN)


class LibrarySearch:
    """Finds what libraries need as the loader does: RPATH, LD_LIBRARY_PATH, RUNPATH, its cache, default folders."""

    def __init__(
        self,
        *,
        prefixes: tuple[str, ...] = (),
        library_path: tuple[str, ...] = (),
        cache: Mapping[str, tuple[str, ...]],
        located: Callable[[str], str | None],
        dynamic: Callable[[str], Dynamic | None],
    ) -> None:
        """Take the folders of LD_LIBRARY_PATH, of which `prefixes` come first, and the loader's cache.

        `located` returns the real path of a file, None where there is none; `dynamic` what such a file asks for.
        """
        self._prefixes = prefixes
        self._library_path = library_path
        self._cache = cache
        self._located = located
        self._dynamic = dynamic

    def providers(self, name: str, chain: tuple[LoadedBy, ...]) -> Iterator[Provider]:
        """Yield every file that a name may mean, in the order of the search, each once: the first is loaded.

        `chain`: the library that needs it, then what has loaded that one, and so on.
        """
        seen: set[str] = set()
        for path, by in self._places(name, chain):
            real = self._located(path)
            if real is None or real in seen:
                continue
            seen.add(real)
            found = self._dynamic(real)
            if found is not None and found.machine == chain[0].dynamic.machine:
                yield Provider(real, found, by)

    def _places(self, name: str, chain: tuple[LoadedBy, ...]) -> Iterator[tuple[str, FoundBy]]:
        if "/" in name:
            yield name, "path"
            return
        user = chain[0]
        if not user.dynamic.runpath:
            for each in chain:
                if not each.dynamic.runpath:
                    yield from self._in(each.dynamic.rpath, each.path, name, "RPATH")
        yield from self._in(self._prefixes, "", name, "given folder")
        yield from self._in(self._library_path, "", name, "LD_LIBRARY_PATH")
        yield from self._in(user.dynamic.runpath, user.path, name, "RUNPATH")
        for path in self._cache.get(name, ()):
            yield path, "loader's cache"
        yield from self._in(DEFAULT_FOLDERS, "", name, "default folder")

    def _in(self, folders: tuple[str, ...], user: str, name: str, by: FoundBy) -> Iterator[tuple[str, FoundBy]]:
        for written in folders:
            for folder in expanded(written, user):
                yield f"{folder}/{name}", by


def expanded(written: str, user: str) -> tuple[str, ...]:
    """Return the folders that one of RPATH or RUNPATH means for a library."""
    origin = user.rpartition("/")[0]
    for token in ("${ORIGIN}", "$ORIGIN"):
        written = written.replace(token, origin)
    for token in ("${LIB}", "$LIB"):
        if token in written:
            return tuple(written.replace(token, folder) for folder in ("lib64", "lib"))
    return (written,)


def cache_of(raw: bytes) -> dict[str, tuple[str, ...]] | None:
    """Return what /etc/ld.so.cache holds, paths by name in its order; None for what is none."""
    start = raw.find(_MAGIC)
    if start < 0 or len(raw) < start + _HEADER.size:
        return None
    _magic, count, _strings, _extensions = _HEADER.unpack_from(raw, start)
    found: dict[str, list[str]] = {}
    for number in range(min(count, _MOST_ENTRIES)):
        place = start + _HEADER.size + number * _ENTRY.size
        if place + _ENTRY.size > len(raw):
            break
        _flags, name_at, path_at, _version, _hardware = _ENTRY.unpack_from(raw, place)
        name, path = (_text(raw, start + at) for at in (name_at, path_at))
        if name and path:
            found.setdefault(name, []).append(path)
    return {name: tuple(dict.fromkeys(paths)) for name, paths in found.items()}


def _text(raw: bytes, start: int) -> str:
    end = raw.find(b"\0", start, start + _LONGEST_PATH)
    return raw[start:end].decode("utf-8", "backslashreplace") if end > start else ""

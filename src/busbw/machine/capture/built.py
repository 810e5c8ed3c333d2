"""A stack that somebody built, examined as files: on this host, or in the tree of an image. Nothing is loaded."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, NamedTuple, Protocol

import msgspec

from busbw.base.errors import InputError
from busbw.machine.read.built import assigned, easybuild_package, read_binary, spack_package
from busbw.machine.read.elf import Dynamic, Read, dynamic_of
from busbw.machine.read.image import ImageError, squash_tree
from busbw.machine.read.loader import LibrarySearch, LoadedBy, Provider, cache_of, expanded, is_built_in
from busbw.model.host import BuiltFile, BuiltPackage, BuiltStack, Linked

NodeKind = Literal["file", "folder", "link", "other"]

_MOST_LINKS = 40
_MOST_ENTRIES = 60_000
_DEEPEST = 9
_MOST_FOLLOWED = 400
_MOST_OPEN = 64
_MOST_TEXT_BYTES = 8 * 2**20
_CACHE = "/etc/ld.so.cache"
# Folders without libraries to load, and those of sources that are built in place.
_SKIPPED = frozenset(
    ("include", "share", "doc", "man", "src", "obj", "objects", "CMakeFiles", "__pycache__", "cmake", "pkgconfig")
)
_LIBRARY = re.compile(r"lib[\w+.-]+\.so(?:\.\d+)*")
_PROVIDER_FILE = re.compile(r"lib(?P<name>\w+)-fi\.so")
_OF_SYSTEM = re.compile(r"/(?:usr/)?lib(?:64)?(?:/\w+-linux-gnu)?")
_PROGRAM = re.compile(r"\w+_perf(?:_\w+)?")
# In an image, where everything else lies too: names that may be part of a stack.
_OF_STACK = re.compile(r"lib(?:r?nccl|fabric|cxi|efa|mpi|hwloc|cudart|\w+-fi)[\w+.-]*\.so(?:\.\d+)*|\w+_perf(?:_\w+)?")
_IMAGE_FOLDERS = ("/opt", "/usr/local", "/usr/lib", "/usr/lib64", "/workspace", "/nccl-tests", "/root", "/home")


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


class _Found(NamedTuple):
    """One file that was examined, with what the loader follows."""

    file: BuiltFile
    dynamic: Dynamic | None


class _Examiner:
    """Reads each file once, and follows what it needs."""

    def __init__(self, tree: FileTree, library_path: tuple[str, ...]) -> None:
        self._tree = tree
        self._library_path = library_path
        self._dynamics: dict[str, Dynamic | None] = {}
        self._packages: dict[str, BuiltPackage | None] = {}
        self._binaries: dict[str, _Found | None] = {}
        self.unread: list[str] = []
        # By the file that they lead to.
        self.links: dict[str, list[str]] = {}
        self._cache = self._read_cache()

    def _read_cache(self) -> dict[str, tuple[str, ...]]:
        raw = self._bytes(_CACHE)
        return (cache_of(raw) if raw is not None else None) or {}

    def _bytes(self, path: str) -> bytes | None:
        real = self.located(path)
        found = self._tree.opened(real) if real is not None else None
        return found[0](0, min(found[1], _MOST_TEXT_BYTES)) if found is not None else None

    def located(self, path: str) -> str | None:
        """Return the real path of a file; None where there is none."""
        real = real_path(self._tree, path)
        return real if real is not None and self._tree.kind(real) == "file" else None

    def dynamic(self, real: str) -> Dynamic | None:
        """Return what a file asks of the loader."""
        if real not in self._dynamics:
            found = self._tree.opened(real)
            self._dynamics[real] = dynamic_of(found[0]) if found is not None else None
        return self._dynamics[real]

    def binary(self, real: str) -> _Found | None:
        """Return what a file is, without what it needs; None where it is no ELF file or cannot be read."""
        if real not in self._binaries:
            opened = self._tree.opened(real)
            if opened is None:
                self.unread.append(f"{real}: cannot be read")
            read = read_binary(opened[0], opened[1], real) if opened is not None else None
            if read is not None:
                read = msgspec.structs.replace(
                    read,
                    package=self.package(real),
                    absent=self._absent(real, read),
                    providers=(*read.providers, *self._beside(real, read)),
                )
            self._binaries[real] = _Found(read, self.dynamic(real)) if read is not None else None
        return self._binaries[real]

    def _beside(self, real: str, file: BuiltFile) -> Iterator[str]:
        """Yield the providers that libfabric loads from files of their own, in the folder `libfabric` beside it."""
        folder = f"{real.rpartition('/')[0]}/libfabric"
        for name in self._tree.names(folder) if file.role == "libfabric" else ():
            match = _PROVIDER_FILE.fullmatch(name)
            if match is not None and match["name"] not in file.providers:
                yield match["name"]

    def _absent(self, real: str, file: BuiltFile) -> tuple[str, ...]:
        return tuple(
            folder
            for folder in (*file.rpath, *file.runpath)
            if folder.startswith(("/", "$")) and not any(map(self._is_folder, expanded(folder, real)))
        )

    def _is_folder(self, path: str) -> bool:
        real = real_path(self._tree, path)
        return real is not None and self._tree.kind(real) == "folder"

    def _is_plain(self, user: LoadedBy) -> bool:
        """Whether a library says nothing for itself: what it lacks is then said of who needs it."""
        found = self.binary(user.path)
        return found is None or found.file.role == "other"

    def package(self, path: str) -> BuiltPackage | None:
        """Return what a site's package manager says of the folder that a path lies in, or of one above it."""
        folder = path.rpartition("/")[0]
        if folder in ("", "/"):
            return None
        if folder not in self._packages:
            self._packages[folder] = self._package_of(folder) or self.package(folder)
        return self._packages[folder]

    def _package_of(self, folder: str) -> BuiltPackage | None:
        names = self._tree.names(folder)
        if ".spack" in names:
            for name in ("spec.json", "spec.yaml"):
                raw = self._bytes(f"{folder}/.spack/{name}")
                found = spack_package(raw, folder, f"{folder}/.spack/{name}") if raw is not None else None
                if found is not None:
                    return found
        if "easybuild" in names:
            return easybuild_package(self._tree.names(f"{folder}/easybuild"), folder)
        return None

    def candidates(self, places: tuple[str, ...], *, of_stack: bool) -> Iterator[str]:
        """Yield the real paths of what may be a library or a program to look at, each once."""
        seen: set[str] = set()
        for place in places:
            real = real_path(self._tree, place)
            if real is not None:
                for path in self._below(real, of_stack=of_stack):
                    target = self.located(path)
                    if target is None:
                        self.unread.append(f"{path}: it leads to no file")
                        continue
                    if path != target:
                        self.links.setdefault(target, []).append(path)
                    if target not in seen:
                        seen.add(target)
                        yield target

    def _below(self, place: str, *, of_stack: bool) -> Iterator[str]:
        if self._tree.kind(place) == "file":
            yield place
            return
        waiting, count = [(place, 0)], 0
        while waiting:
            folder, depth = waiting.pop()
            for name in self._tree.names(folder):
                count += 1
                if count > _MOST_ENTRIES:
                    self.unread.append(f"{place}: more than {_MOST_ENTRIES} files; name the folders of the stack")
                    return
                path = f"{folder.rstrip('/')}/{name}"
                kind = self._tree.kind(path) if _is_text(name) else None
                if kind == "folder" and depth < _DEEPEST and name not in _SKIPPED and not name.startswith("."):
                    waiting.append((path, depth + 1))
                elif kind in ("file", "link") and _is_candidate(name, of_stack=of_stack):
                    yield path

    def linked(self, first: _Found, prefixes: tuple[str, ...]) -> tuple[BuiltFile, list[str]]:
        """Return a file with what it needs, and the real paths of all that is loaded with it."""
        search = LibrarySearch(
            prefixes=prefixes,
            library_path=self._library_path,
            cache=self._cache,
            located=self.located,
            dynamic=self.dynamic,
        )
        if first.dynamic is None:
            return first.file, []
        waiting: list[tuple[LoadedBy, ...]] = [(LoadedBy(first.file.path, first.dynamic),)]
        seen = {first.file.path}
        needs: list[Linked] = []
        while waiting and len(seen) <= _MOST_FOLLOWED:
            chain = waiting.pop(0)
            for name in chain[0].dynamic.needed:
                found = list(search.providers(name, chain))
                link = _link(name, chain[0].dynamic, found[0] if found else None, [each.path for each in found[1:]])
                is_worth = len(chain) == 1 or (
                    (link.path is None or bool(link.lacking)) and all(map(self._is_plain, chain[:-1]))
                )
                if is_worth and not is_built_in(name) and link not in needs:
                    needs.append(link)
                if found and found[0].path not in seen:
                    seen.add(found[0].path)
                    waiting.append((LoadedBy(found[0].path, found[0].dynamic), *chain))
        return msgspec.structs.replace(first.file, needs=tuple(needs)), sorted(seen - {first.file.path})


def _link(name: str, user: Dynamic, found: Provider | None, others: list[str]) -> Linked:
    if found is None:
        return Linked(name=name)
    wanted = [version for file, version in user.wanted_versions if file == name]
    # A file without versions of its own gives every one that is asked for, with a warning.
    offered = found.dynamic.offered_versions
    lacking = tuple(each for each in wanted if offered and each not in offered)
    return Linked(name=name, path=found.path, by=found.by, lacking=lacking, hidden=tuple(others))


def _is_text(name: str) -> bool:
    """Whether a name can be written down: bytes that are no text cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_candidate(name: str, *, of_stack: bool) -> bool:
    if of_stack:
        return _OF_STACK.fullmatch(name) is not None
    return _LIBRARY.fullmatch(name) is not None or _PROGRAM.fullmatch(name) is not None


def examine_host(places: tuple[Path, ...]) -> BuiltStack:
    """Return what lies in some folders of this host, or in files, with what the loader would make of it here.

    Raises InputError for a place that is not there, and where nothing of a stack is found.
    """
    for place in places:
        if not _is_there(place):
            raise InputError(f"there is no {place}", where="PREFIX")
    with ExitStack() as opened:
        tree = FolderTree(Path("/"), opened)
        return _stack(
            tree, tuple(str(each.absolute()) for each in places), _paths(os.environ.get("LD_LIBRARY_PATH", ""))
        )


def examine_image(
    image: Path, places: tuple[str, ...], binds: tuple[tuple[str, str], ...], usual: tuple[tuple[str, str], ...] = ()
) -> BuiltStack:
    """Return what an image holds, with folders of this host bound into it: pairs of here and inside.

    An image is a file of Apptainer or enroot, or an unpacked folder. One that cannot be read here has no files, and
    says why. `usual`: folders that are bound where this host has them. Raises InputError for an image that is not
    there, and where nothing of a stack is found.
    """
    if not _is_there(image):
        raise InputError(f"there is no {image}", where="--image")
    for here, _inside in binds:
        if not Path(here).is_dir():
            raise InputError(f"there is no folder {here}", where="--bind")
    with ExitStack() as opened:
        try:
            inner = FolderTree(image, opened) if image.is_dir() else _packed(image, opened)
        except ImageError as error:
            unread = (f"{image}: {error}; check.sh looks inside, or unpack it and name the folder",)
            return BuiltStack(places=places or ("/",), image=str(image.absolute()), files=(), unread=unread)
        binds = (*binds, *(each for each in usual if Path(each[0]).is_dir()))
        tree = BoundTree(inner, FolderTree(Path("/"), opened), binds)
        inside = tuple(path for _here, path in binds)
        found = _stack(tree, places or (*inside, *_IMAGE_FOLDERS), _image_path(tree), of_stack=not places)
        return msgspec.structs.replace(found, image=str(image.absolute()), places=places or ("/",))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def _packed(image: Path, opened: ExitStack) -> FileTree:
    found = FolderTree(image.parent, opened).opened(image.name)
    if found is None:
        raise InputError(f"cannot read {image}", where="--image")
    return squash_tree(*found)


def _stack(
    tree: FileTree, places: tuple[str, ...], library_path: tuple[str, ...], *, of_stack: bool = False
) -> BuiltStack:
    examiner = _Examiner(tree, library_path)
    paths = list(examiner.candidates(places, of_stack=of_stack))
    given = [found for path in paths if (found := examiner.binary(path)) and found.file.role != "other"]
    parts = [each._replace(file=_with_links(each.file, examiner.links)) for each in given]
    if not parts:
        raise InputError(
            f"nothing of a stack is in {', '.join(places)}",
            where="PREFIX",
            hint="name the folders that hold libnccl.so, libnccl-net.so, libfabric.so or the programs of nccl-tests",
        )
    prefixes = () if of_stack else _prefixes(parts)
    files: dict[str, BuiltFile] = {}
    behind: dict[str, None] = {}
    for each in parts:
        files[each.file.path], loaded = examiner.linked(each, prefixes)
        behind.update(dict.fromkeys(loaded))
    for path in behind:
        found = examiner.binary(path) if path not in files else None
        if found is not None and found.file.role != "other":
            linked, _loaded = examiner.linked(found, prefixes)
            files[path] = msgspec.structs.replace(linked, given=False)
    packages = {each.package.prefix: each.package for each in files.values() if each.package is not None}
    used = {link.path.rpartition("/")[0] for each in files.values() for link in each.needs if link.path}
    return BuiltStack(
        places=places,
        files=tuple(files.values()),
        packages=tuple(packages.values()),
        library_path=(*prefixes, *(each for each in library_path if each not in prefixes and each in used)),
        unread=tuple(examiner.unread),
    )


def _with_links(file: BuiltFile, links: dict[str, list[str]]) -> BuiltFile:
    return msgspec.structs.replace(file, links=tuple(sorted(links.get(file.path, ()))))


def _prefixes(parts: list[_Found]) -> tuple[str, ...]:
    """Return the folders of libraries that were given, in their order; not those that every loader looks in."""
    libraries = [each.file for each in parts if each.file.role not in ("nccl-tests", "provider")]
    # A link is where the loader finds what it leads to.
    folders = dict.fromkeys(path.rpartition("/")[0] for each in libraries for path in each.links or (each.path,))
    return tuple(each for each in folders if not _OF_SYSTEM.fullmatch(each))


def _paths(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in text.split(":") if each.startswith("/")))


def _image_path(tree: FileTree) -> tuple[str, ...]:
    """Return the LD_LIBRARY_PATH of an image: of enroot's file, or of Apptainer's scripts in their order."""
    folder = "/.singularity.d/env"
    known: dict[str, str] = {}
    for path in ("/etc/environment", *(f"{folder}/{name}" for name in tree.names(folder))):
        opened = tree.opened(path) if tree.kind(path) == "file" else None
        if opened is not None:
            text = opened[0](0, min(opened[1], _MOST_TEXT_BYTES)).decode("utf-8", "replace")
            known = assigned(text, known)
    return _paths(known.get("LD_LIBRARY_PATH", ""))

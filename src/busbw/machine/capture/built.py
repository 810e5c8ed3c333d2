"""A stack that somebody built, examined as files: on this host, or in the tree of an image. Nothing is loaded."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from busbw.base.errors import InputError
from busbw.machine.capture.trees import BoundTree, FileTree, FolderTree, real_path
from busbw.machine.read.built import assigned, read_binary
from busbw.machine.read.elf import Dynamic, dynamic_of
from busbw.machine.read.image import ImageError, NoImageError, squash_tree
from busbw.machine.read.layers import ARCHIVE_HEAD_BYTES, archive_kind, folder_kind, is_in_registry, refused_layers
from busbw.machine.read.loader import LibrarySearch, LoadedBy, Provider, cache_of, expanded, is_built_in
from busbw.machine.read.managers import (
    conda_package,
    easybuild_module,
    easybuild_package,
    module_file,
    spack_package,
    spack_views,
)
from busbw.model.host import BuiltFile, BuiltPackage, BuiltSource, BuiltStack, Linked

_MOST_ENTRIES = 60_000
_DEEPEST = 9
_MOST_FOLLOWED = 400
_MOST_TEXT_BYTES = 8 * 2**20
_MOST_MANIFESTS_BYTES = 64 * 2**20
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
_OF_ENVIRONMENT = ("spack.yaml", "spack.lock")
_TAKEN = "--image takes a .sif of Apptainer, a .sqsh of enroot, or the folder of an unpacked image"
_PULL = "apptainer pull NAME.sif docker://IMAGE, or enroot import -o NAME.sqsh docker://IMAGE; then --image NAME.sif"
_IMAGE_FOLDERS = ("/opt", "/usr/local", "/usr/lib", "/usr/lib64", "/workspace", "/nccl-tests", "/root", "/home")


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
        self._manifests: dict[str, list[tuple[str, bytes]]] = {}
        self.unread: list[str] = []
        self.sources: list[BuiltSource] = []
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
                    package=self.package(real) or self._of_conda(real),
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
            found = easybuild_package(self._tree.names(f"{folder}/easybuild"), folder)
            module = next((name for name, file in easybuild_module(folder) if self.located(file)), None)
            return msgspec.structs.replace(found, module=module) if found is not None else None
        return None

    def _of_conda(self, real: str) -> BuiltPackage | None:
        """Return the package of conda whose list of files has a file: all lie in one prefix."""
        folder, _, name = real.rpartition("/")
        prefix = next((each for each in (folder.rpartition("/")[0], folder) if self._is_conda(each)), None)
        if prefix is None:
            return None
        written = json.dumps(f"{folder[len(prefix) + 1 :]}/{name}".lstrip("/")).encode()
        of = next((each for each in self._conda_manifests(prefix) if written in each[1]), None)
        return conda_package(of[1], prefix, of[0]) if of is not None else None

    def _is_conda(self, prefix: str) -> bool:
        return prefix not in ("", "/") and self._is_folder(f"{prefix}/conda-meta")

    def _conda_manifests(self, prefix: str) -> list[tuple[str, bytes]]:
        if prefix not in self._manifests:
            found, left = [], _MOST_MANIFESTS_BYTES
            for name in self._tree.names(f"{prefix}/conda-meta"):
                file = f"{prefix}/conda-meta/{name}"
                raw = self._bytes(file) if name.endswith(".json") and left > 0 else None
                if raw is not None:
                    left -= len(raw)
                    found.append((file, raw))
            self._manifests[prefix] = found
        return self._manifests[prefix]

    def folders(self, places: tuple[str, ...]) -> tuple[str, ...]:
        """Return places with each module file and each environment of Spack as the folders that it stands for.

        Raises InputError for a module file that names no folder which is there.
        """
        found: dict[str, None] = {}
        for place in places:
            found.update(dict.fromkeys(self._of_module(place) or self._of_environment(place) or (place,)))
        return tuple(found)

    def _of_module(self, place: str) -> tuple[str, ...]:
        raw = self._bytes(place) if place.endswith(".lua") or self._starts(place, b"#%Module") else None
        read = module_file(raw.decode("utf-8", "replace"), place) if raw is not None else None
        if read is None:
            return ()
        there = tuple(filter(self._is_folder, read.libraries)) or tuple(filter(self._is_folder, read.roots))
        if not there:
            named = ", ".join((*read.libraries, *read.roots)[:3])
            raise InputError(
                f"{place} loads nothing that is here{f': there is no {named}' if named else ''}",
                where="PREFIX",
                hint="name the folders that it loads, or examine on a node that has them",
            )
        self.sources.append(read.source)
        return there

    def _starts(self, path: str, mark: bytes) -> bool:
        real = self.located(path)
        opened = self._tree.opened(real) if real is not None else None
        return opened is not None and opened[0](0, len(mark)) == mark

    def _of_environment(self, place: str) -> tuple[str, ...]:
        """Return the views of an environment of Spack, in one of which all that it installed is linked."""
        folder, _, name = place.rstrip("/").rpartition("/")
        folder = folder if name in _OF_ENVIRONMENT else place.rstrip("/")
        names = self._tree.names(folder) if self._is_folder(folder) else ()
        manifest = next((name for name in _OF_ENVIRONMENT if name in names), None)
        if manifest is None:
            return ()
        raw = self._bytes(f"{folder}/{manifest}") if manifest.endswith(".yaml") else None
        text = raw.decode("utf-8", "replace") if raw is not None else ""
        views = tuple(filter(self._is_folder, spack_views(text, folder)))
        if views:
            name = folder.rpartition("/")[2]
            source = BuiltSource(kind="environment", manager="Spack", name=name, file=f"{folder}/{manifest}")
            self.sources.append(source)
        elif name in _OF_ENVIRONMENT or set(names) <= {*_OF_ENVIRONMENT, ".spack-env"}:
            raise InputError(
                f"{folder} is an environment of Spack, and what it would install is not here: it has no view",
                where="PREFIX",
                hint=f"spack -e {folder} install; or name the folders that spack location -i NAME prints",
            )
        return views

    def candidates(self, places: tuple[str, ...], *, of_stack: bool) -> Iterator[str]:
        """Yield the real paths of what may be a library or a program to look at, each once."""
        seen: set[str] = set()
        for place in places:
            real = real_path(self._tree, place)
            if real is not None:
                for below in self._below(real, of_stack=of_stack):
                    # As it was named: what a link leads to may be another folder after the next installation.
                    path = place.rstrip("/") + below[len(real) :] if real != "/" else below
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
        opens = [
            _link(each.name, first.dynamic, found[0] if found else None, [])
            for each in first.file.opens
            for found in [list(search.providers(each.name, (LoadedBy(first.file.path, first.dynamic),)))]
        ]
        file = msgspec.structs.replace(first.file, needs=tuple(needs), opens=tuple(opens))
        return file, sorted(seen - {first.file.path})


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
    there, for what is no image or is cut off, and where nothing of a stack is found.
    """
    if not _is_there(image):
        if is_in_registry(str(image)):
            raise InputError(
                f"{image} names an image in a registry, and only files are read", where="--image", hint=_PULL
            )
        raise InputError(f"there is no {image}", where="--image", hint=_TAKEN)
    for here, _inside in binds:
        if not Path(here).is_dir():
            raise InputError(f"there is no folder {here}", where="--bind")
    _refuse_layers(image)
    with ExitStack() as opened:
        try:
            inner = FolderTree(image, opened) if image.is_dir() else _packed(image, opened)
        except NoImageError as error:
            raise InputError(f"{image} {error}", where="--image", hint=_TAKEN) from error
        except ImageError as error:
            unpack = "apptainer build --sandbox" if image.suffix == ".sif" else "unsquashfs -d"
            unread = (
                f"{image}: {error}; unpack it ({unpack} FOLDER {image}) and name the folder; check.sh looks inside",
            )
            return BuiltStack(places=places or ("/",), image=str(image.absolute()), files=(), unread=unread)
        binds = (*binds, *(each for each in usual if Path(each[0]).is_dir()))
        tree = BoundTree(inner, FolderTree(Path("/"), opened), binds)
        inside = tuple(path for _here, path in binds)
        found = _stack(tree, places or (*inside, *_IMAGE_FOLDERS), _image_path(tree), of_stack=not places)
        return msgspec.structs.replace(found, image=str(image.absolute()), places=places or ("/",))


def _refuse_layers(image: Path) -> None:
    """Raise InputError for an image that is still in layers: which file is on top is known once it is unpacked."""
    if image.is_dir():
        kind = folder_kind([each.name for each in image.iterdir()])
    elif image.is_file():
        with image.open("rb") as file:
            kind = archive_kind(file.read(ARCHIVE_HEAD_BYTES))
    else:
        raise InputError(f"{image} is neither a file nor a folder", where="--image", hint=_TAKEN)
    if kind is not None:
        raise refused_layers(kind, image)


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
    paths = list(examiner.candidates(examiner.folders(places), of_stack=of_stack))
    given = [found for path in paths if (found := examiner.binary(path)) and found.file.role != "other"]
    parts = [each._replace(file=_with_links(each.file, examiner.links)) for each in given]
    if not parts:
        packed = next((each for each in places if each.endswith((".sif", ".sqsh", ".squashfs"))), None)
        raise InputError(
            f"nothing of a stack is in {', '.join(places)}",
            where="PREFIX",
            hint=f"--image {packed}"
            if packed is not None
            else "name the folders that hold libnccl.so, libnccl-net.so, libfabric.so or the programs of nccl-tests",
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
        sources=tuple(examiner.sources),
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
    """Return the LD_LIBRARY_PATH of an image: of enroot's or Charliecloud's file, Apptainer's scripts in order."""
    folder = "/.singularity.d/env"
    known: dict[str, str] = {}
    for path in ("/etc/environment", "/ch/environment", *(f"{folder}/{name}" for name in tree.names(folder))):
        opened = tree.opened(path) if tree.kind(path) == "file" else None
        if opened is not None:
            text = opened[0](0, min(opened[1], _MOST_TEXT_BYTES)).decode("utf-8", "replace")
            known = assigned(text, known)
    return _paths(known.get("LD_LIBRARY_PATH", ""))

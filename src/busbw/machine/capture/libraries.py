"""The libraries that jobs here would load: where they are and which version, without loading any."""

import mmap
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from busbw.machine.capture.host import package_folders
from busbw.machine.read.built import nccl_kind
from busbw.machine.read.elf import Dynamic, dynamic_of
from busbw.machine.read.loader import LibrarySearch, LoadedBy, is_built_in
from busbw.model.host import FoundLibrary, NcclKind

_MOST_LIBRARIES = 400


class Linker:
    """Follows what libraries need; each file is read once."""

    def __init__(self, cache: tuple[tuple[str, Path], ...]) -> None:
        """Take what the loader's cache holds: names and paths, in its order."""
        self._cache: dict[str, tuple[str, ...]] = {}
        for name, path in cache:
            self._cache[name] = (*self._cache.get(name, ()), str(path))
        self._read: dict[Path, Dynamic | None] = {}
        self._search = LibrarySearch(
            library_path=tuple(each for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each),
            cache=self._cache,
            located=_located,
            dynamic=lambda real: self._dynamic(Path(real)),
        )

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
                    missing += [name] if not is_built_in(name) else []
                elif found[0] not in seen:
                    seen.add(found[0])
                    waiting.append(found)
            if len(seen) > _MOST_LIBRARIES:
                return None
        return tuple(dict.fromkeys(missing))

    def _provider(self, name: str, wanted_by: Path, dynamic: Dynamic) -> tuple[Path, Dynamic] | None:
        """Return the library that the loader would take."""
        found = next(self._search.providers(name, (LoadedBy(str(wanted_by), dynamic),)), None)
        return (Path(found.path), found.dynamic) if found is not None else None

    def _dynamic(self, real: Path) -> Dynamic | None:
        if real not in self._read:
            self._read[real] = _dynamic_in(real)
        return self._read[real]


def _located(path: str) -> str | None:
    try:
        return str(Path(path).resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return None


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


# Libraries that may stand where NCCL does.
_IN_ITS_PLACE = {"libnccl", "librccl", "libmscclpp_nccl"}
_NAME = re.compile(
    r"(?P<name>libmscclpp_nccl|libmscclpp_audit_nccl|libmsccl-scheduler|libnccl-net|libnccl-tuner|libnccl-profiler"
    r"|libnccl|librccl-net|librccl|libcuda|libcudart|libnvidia-ml|libmpi|libfabric|libucp|libibverbs|libcxi|libgdrapi|libsharp_coll)(?:[-_]\w{1,40})?\.so(?P<suffix>(?:\.\d+)*)"
)
# Their file is called after the release; the numbers of all others are those of the interface.
_NAMED_AFTER_RELEASE = {"libnccl", "libcuda", "libcudart", "libnvidia-ml"}
# What a library says of itself, in its file.
_SAID = {
    "libnccl": re.compile(rb"NCCL version (\d+\.\d+\.\d+)(?:\.MSCCL\.[\d.]{1,20})?\+"),
    "libnccl-net": re.compile(rb"aws-ofi-nccl (?:git-)?([\w.-]{3,40})"),
    # The last is where its sources lay: wheels of Open MPI 5 say nothing else.
    "libmpi": re.compile(
        rb"Open MPI v(\d+\.\d+\.\d+\w*)|MPICH Version:\s+(\d+\.\d+[\w.]*)|/(?:openmpi|mpich)-(\d+\.\d+\.\d+\w*)/"
    ),
}
# Larger files, such as NCCL with kernels for every GPU, are not searched for it.
_MOST_SEARCHED_BYTES = 64 * 2**20
_WHEEL_FOLDERS = (
    "nvidia/nccl/lib", "nvidia/cuda_runtime/lib", "nvidia/cu12/lib", "nvidia/cu13/lib", "torch/lib", "cupy/.data/lib",
    "mscclpp/lib",
)  # fmt: skip
# Where vendors and clouds put what no loader knows of.
_FOLDERS = (
    "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/local/cuda/lib64",
    "/usr/local/nvidia/lib64", "/opt/amazon/ofi-nccl/lib", "/opt/amazon/ofi-nccl/lib64", "/opt/aws-ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu", "/opt/amazon/efa/lib", "/opt/amazon/efa/lib64",
    "/opt/amazon/openmpi/lib", "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    "/opt/nccl-rdma-sharp-plugins/lib", "/usr/local/nccl-rdma-sharp-plugins/lib",
    "/usr/local/gib/lib64", "/usr/local/fastrak/lib64", "/var/lib/tcpxo/lib64", "/var/lib/tcpx/lib64", "/opt/rocm/lib",
    "/opt/cray/libfabric/lib64", "/usr/local/mscclpp/lib",
)  # fmt: skip
_PATTERNS = (
    ("/opt/cray/libfabric", "*/lib64"),
    ("/opt", "hpcx*/nccl_rdma_sharp_plugin/lib"),
    ("/opt", "hpcx*/ompi/lib"),
)
_MOST_FOLDER_NAMES = 50_000
_LDCONFIG_TIMEOUT_S = 10.0
_LOADED = re.compile(r"^\s*(?P<name>\S+) \(.*\) => (?P<path>/.*)$", re.MULTILINE)


def libraries(*, timeout_s: float) -> tuple[FoundLibrary, ...]:
    """Return every library found, each file once, in the order in which a job would find them."""
    end_s = time.monotonic() + timeout_s
    found: dict[Path, FoundLibrary] = {}
    cache = tuple((match["name"], Path(match["path"])) for match in _LOADED.finditer(_loader_cache()))
    linker = Linker(cache)
    for path, found_by in _candidates(cache):
        if time.monotonic() > end_s:
            break
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        if real not in found and real.is_file() and not _is_linker_script(real):
            found[real] = FoundLibrary(
                name=match["name"],
                path=str(path),
                version=_version(match["name"], real),
                found_by=found_by,
                unresolved=linker.unresolved(real),
                kind=kind_of_nccl(real) if match["name"] in _IN_ITS_PLACE else None,
            )
    return tuple(found.values())


def kind_of_nccl(path: Path) -> NcclKind | None:
    """Return what a file is that stands where NCCL does, by the names it offers; None where it does not tell."""
    try:
        with path.open("rb") as file:
            return nccl_kind(lambda offset, size_bytes: _part(file, offset, size_bytes), path.name)
    except (OSError, ValueError, OverflowError):
        return None


def _is_linker_script(real: Path) -> bool:
    """Whether a file is text that sends the linker to the library: no job loads it."""
    try:
        with real.open("rb") as file:
            return file.read(64).lstrip().startswith((b"INPUT", b"GROUP", b"/* GNU ld script"))
    except OSError:
        return False


def _candidates(cache: tuple[tuple[str, Path], ...]) -> Iterator[tuple[Path, str]]:
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield from _in(Path(folder), "LD_LIBRARY_PATH")
    yield from _beside_mpirun()
    yield from _in(Path(sys.prefix, "lib"), "wheel")
    for packages in package_folders():
        for folder in _WHEEL_FOLDERS:
            yield from _in(packages / folder, "wheel")
    for _name, path in cache:
        yield path, "loader"
    for folder in _FOLDERS:
        yield from _in(Path(folder), "folder")
    for start, pattern in _PATTERNS:
        for found in sorted(Path(start).glob(pattern)):
            yield from _in(found, "folder")


def _beside_mpirun() -> Iterator[tuple[Path, str]]:
    """Yield what lies with the mpirun on PATH, wherever a module or a wheel put both."""
    programs = [Path(found) for name in ("mpirun", "mpiexec") if (found := shutil.which(name)) is not None]
    prefixes = dict.fromkeys(path.parent.parent for program in programs for path in (program, program.resolve()))
    for prefix in prefixes:
        for folder in ("lib", "lib64", "lib/release"):
            yield from _in(prefix / folder, "PATH")


def _in(folder: Path, found_by: str) -> Iterator[tuple[Path, str]]:
    try:
        names = sorted(entry.name for entry, _place in zip(os.scandir(folder), range(_MOST_FOLDER_NAMES), strict=False))
    except OSError:
        return
    for name in names:
        if _NAME.fullmatch(name):
            yield folder / name, found_by


def _loader_cache() -> str:
    """Return what the dynamic loader knows, as `ldconfig -p` lists it."""
    ldconfig = shutil.which("ldconfig", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if ldconfig is None:
        return ""
    try:
        answer = subprocess.run(
            [ldconfig, "-p"], capture_output=True, timeout=_LDCONFIG_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "replace")


def _version(name: str, real: Path) -> str | None:
    suffix = re.search(r"\.so\.(\d+(?:\.\d+)+)$", real.name)
    if suffix is not None and name in _NAMED_AFTER_RELEASE:
        return suffix[1]
    return _wheel_version(name, real) or _said(name, real)


def _wheel_version(name: str, real: Path) -> str | None:
    """Return the version of the wheel that a library lies in: nvidia/nccl/lib belongs to nvidia_nccl_*.dist-info."""
    part = {"libnccl": "nccl", "libcudart": "cuda_runtime"}.get(name)
    packages = next((parent for parent in real.parents if parent.name == "site-packages"), None)
    if packages is None or part is None or "nvidia" not in real.parts:
        return None
    for entry in sorted(packages.glob(f"nvidia_{part}*.dist-info")):
        return entry.name.removesuffix(".dist-info").rpartition("-")[2]
    return None


def _said(name: str, real: Path) -> str | None:
    pattern = _SAID.get(name)
    if pattern is None:
        return None
    try:
        if real.stat().st_size > _MOST_SEARCHED_BYTES:
            return None
        with real.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = pattern.search(content)
            return next(group for group in match.groups() if group).decode("ascii", "replace") if match else None
    except (OSError, ValueError):
        return None

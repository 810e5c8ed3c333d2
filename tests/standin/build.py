"""Builds the stand-ins for libcuda.so.1, libnvrtc.so.13 and libnccl.so.2 with g++: `python build.py FOLDER`."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
# By NCCL's own numbers, and the name of the folder that each lies in.
NCCL_VERSIONS = {21803: "nccl-2.18.3", 22203: "nccl-2.22.3", 22809: "nccl-2.28.9", 23203: "nccl-2.32.3"}
DRIVER = ("device", "event", "graph", "kernel", "memory", "refusals", "stream")
# These parts of NCCL's differ from version to version, the others do not.
NCCL_BY_VERSION = ("collectives", "config", "log", "memory", "profiler")
NCCL_COMMON = ("execute", "faults", "group", "messages", "plugin", "reduce", "rounds", "segment", "world")
FLAGS = (
    "-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread",
    "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
)  # fmt: skip
# What most parts include: read once, and not thirty times, which takes most of the time of building.
HEADERS = (
    "algorithm", "array", "atomic", "charconv", "chrono", "climits", "condition_variable", "cstddef", "cstdint",
    "cstdio", "cstdlib", "cstring", "functional", "map", "memory", "mutex", "optional", "span", "sstream", "string",
    "string_view", "thread", "type_traits", "unordered_map", "utility", "vector",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Where the libraries lie. libnccl.so.2 finds libcuda.so.1 in the folder above its own."""

    folder: Path

    @property
    def cuda(self) -> Path:
        """The driver's stand-in."""
        return self.folder / "libcuda.so.1"

    @property
    def nvrtc(self) -> Path:
        """The run-time compiler's stand-in."""
        return self.folder / "libnvrtc.so.13"

    def nccl(self, version: int = 22809) -> Path:
        """The stand-in for one version of NCCL."""
        return self.folder / NCCL_VERSIONS[version] / "libnccl.so.2"


def build(folder: Path) -> StandIn:
    """Build all libraries in `folder`, unless it has those of the same sources already. One process at a time."""
    stamp = folder / "sources.sha256"
    now = _hash_of_sources()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != now:
            stamp.unlink(missing_ok=True)
            _build_all(folder)
            stamp.write_text(now)
    return StandIn(folder=folder)


def link_against(standin: StandIn, source: Path, program: Path) -> None:
    """Build a program of one file that calls all three libraries."""
    libraries = [standin.cuda, standin.nvrtc, standin.nccl()]
    run_paths = [f"-Wl,-rpath,{each.parent}" for each in libraries]
    _compile([*FLAGS, str(source), "-o", str(program), *map(str, libraries), *run_paths])


def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.[ch]pp"), Path(__file__)]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _build_all(folder: Path) -> None:
    objects = folder / "objects"
    objects.mkdir(exist_ok=True)
    units = {objects / f"driver_{name}.o": (f"driver_{name}.cpp",) for name in DRIVER}
    units |= {objects / f"nccl_{name}.o": (f"nccl_{name}.cpp",) for name in NCCL_COMMON}
    units |= {
        objects / f"nccl_{name}-{version}.o": (f"nccl_{name}.cpp", f"-DVERSION={version}")
        for name in NCCL_BY_VERSION
        for version in NCCL_VERSIONS
    }
    units[objects / "nvrtc.o"] = ("nvrtc.cpp",)
    headers = objects / "headers.hpp"
    headers.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
    _compile([*FLAGS, "-x", "c++-header", str(headers), "-o", f"{headers}.gch"])
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        for done in [workers.submit(_compile_unit, target, *unit) for target, unit in units.items()]:
            done.result()
    standin = StandIn(folder=folder)
    _link(standin.cuda, [objects / f"driver_{name}.o" for name in DRIVER])
    _link(standin.nvrtc, [objects / "nvrtc.o"])
    unversioned = folder / "libnvrtc.so"
    unversioned.unlink(missing_ok=True)
    unversioned.symlink_to(standin.nvrtc.name)
    shutil.copy(SOURCES / "prelude.hpp", folder)
    for version in NCCL_VERSIONS:
        target = standin.nccl(version)
        target.parent.mkdir(exist_ok=True)
        parts = [objects / f"nccl_{name}.o" for name in NCCL_COMMON]
        parts += [objects / f"nccl_{name}-{version}.o" for name in NCCL_BY_VERSION]
        _link(target, [*parts, standin.cuda], "-Wl,-rpath,$ORIGIN/..")


def _compile_unit(target: Path, source: str, *options: str) -> None:
    headers = target.with_name("headers.hpp")
    _compile([*FLAGS, *options, "-include", str(headers), "-c", str(SOURCES / source), "-o", str(target)])


def _link(target: Path, parts: list[Path], *options: str) -> None:
    # Threads run in these libraries: closing one must not take it away.
    soname = f"-Wl,-soname,{target.name},--no-undefined,-z,nodelete"
    _compile(["-shared", "-pthread", soname, *options, *map(str, parts), "-ldl", "-o", str(target)])


def _compile(arguments: list[str]) -> None:
    done = subprocess.run(["g++", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"g++ {' '.join(arguments)}\n{done.stderr}")


if __name__ == "__main__":
    build(Path(sys.argv[1]))

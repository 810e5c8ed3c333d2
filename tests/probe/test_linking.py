"""What a library needs is read from its ELF file, and looked for as the dynamic loader does."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from busbw.machine.capture.libraries import Linker
from busbw.machine.read.elf import Dynamic, dynamic_of

CC = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler here: libraries to follow cannot be made")
# A cache that has what every library needs, and nothing of ours.
_C = Path("/nowhere/libc.so.6")


def dynamic(raw: bytes) -> Dynamic | None:
    return dynamic_of(lambda offset, size_bytes: raw[offset : offset + size_bytes])


def library(folder: Path, name: str, *options: str) -> Path:
    folder.mkdir(exist_ok=True)
    made = folder / name
    assert CC is not None
    command = [CC, "-shared", "-nostdlib", "-o", str(made), f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-x", "c"]
    subprocess.run([*command, "/dev/null", "-x", "none", *options], check=True, timeout=60)
    return made


def linker() -> Linker:
    return Linker((("libc.so.6", _C),))


@needs_compiler
def test_needed_libraries_and_search_paths_are_read(tmp_path):
    inner = library(tmp_path, "libinner.so.1")

    made = library(tmp_path, "libouter.so", str(inner), "-Wl,-rpath,$ORIGIN:/opt/lib", "-Wl,--enable-new-dtags")

    found = dynamic(made.read_bytes())
    assert found is not None
    assert (found.needed, found.runpath, found.rpath) == (("libinner.so.1",), ("$ORIGIN", "/opt/lib"), ())


@needs_compiler
def test_a_library_beside_its_user_is_found_through_the_origin(tmp_path):
    inner = library(tmp_path, "libinner.so.1")
    made = library(tmp_path, "libouter.so", str(inner), "-Wl,-rpath,$ORIGIN")

    assert linker().unresolved(made) == ()


@needs_compiler
def test_a_library_that_is_gone_is_named_also_behind_another(tmp_path):
    last = library(tmp_path, "liblast.so.2")
    inner = library(tmp_path, "libinner.so.1", str(last), "-Wl,-rpath,$ORIGIN")
    made = library(tmp_path, "libouter.so", str(inner), "-Wl,-rpath,$ORIGIN")

    last.unlink()

    assert linker().unresolved(made) == ("liblast.so.2",)


@needs_compiler
def test_the_environment_is_searched_and_a_library_of_another_machine_is_passed_over(tmp_path, monkeypatch):
    inner = library(tmp_path / "there", "libinner.so.1")
    made = library(tmp_path / "here", "libouter.so", str(inner))
    foreign = bytearray(inner.read_bytes())
    struct.pack_into("<H", foreign, 18, 243 if foreign[18] != 243 else 62)

    assert linker().unresolved(made) == ("libinner.so.1",)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "there"))
    assert linker().unresolved(made) == ()
    inner.write_bytes(foreign)
    assert linker().unresolved(made) == ("libinner.so.1",)


@needs_compiler
def test_libraries_that_need_each_other_come_to_an_end(tmp_path):
    first = library(tmp_path, "libfirst.so")
    second = library(tmp_path, "libsecond.so", str(first), "-Wl,-rpath,$ORIGIN")
    library(tmp_path, "libfirst.so", str(second), "-Wl,-rpath,$ORIGIN")

    assert linker().unresolved(second) == ()


def test_without_the_loaders_cache_nothing_is_said():
    assert Linker(()).unresolved(Path(sys.executable).resolve()) is None


@pytest.mark.parametrize("raw", [b"", b"\x7fELF", b"INPUT(libnccl.so.2)", b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_what_is_no_library_tells_nothing(raw, tmp_path):
    path = tmp_path / "lib.so"
    path.write_bytes(raw)

    assert dynamic(raw) is None
    assert linker().unresolved(path) is None


@needs_compiler
def test_a_library_cut_anywhere_tells_nothing_or_less(tmp_path):
    raw = library(tmp_path, "libouter.so", "-Wl,-rpath,/opt/lib").read_bytes()

    for end in range(0, len(raw), 7):
        dynamic(raw[:end])

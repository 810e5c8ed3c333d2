"""Every variable that an NCCL library reads is in the registry, for its version, and the registry invents none.

`nccl_names.txt` holds what the wheels from 2.18.3 on read, as scripts/nccl_names.py found it; the newest of them is
downloaded and looked at again here. BUSBW_NCCL_WHEELS names others: `cu13` for the newest there is, `cu12==2.21.5`.
"""

import importlib.util
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from busbw.env.versions import known_in, parse_version
from busbw.facts.envvars import owners, variables

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "scripts" / "nccl_names.py"
NAMES = HERE / "nccl_names.txt"
# Known, and in no wheel of the versions that read them.
NOT_IN_WHEELS = {
    "NCCL_PSK": "the manual of 2.32 has it; wheels are built without the TLS backend that reads it",
    "NCCL_PROXY_PROFILE": "compiled out unless ENABLE_PROFILER is set, which wheels do not",
}
# Where a name was read, if it is in no wheel: tags of the source, or the manual.
READ_ELSEWHERE = re.compile(r"NVIDIA/nccl, src of tags? 2\.|NVIDIA's manual of NCCL")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nccl_names", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def table() -> dict[str, set[str]]:
    """Return the names that each wheel reads, by its version."""
    lines = NAMES.read_text(encoding="ascii").splitlines()
    versions = lines[1].removeprefix("# ").split()
    held: dict[str, set[str]] = {version: set() for version in versions}
    for line in lines[2:]:
        name, first, last = line.split()
        for version in versions[versions.index(first) : versions.index(last) + 1]:
            held[version].add(name)
    return held


def wheels() -> list[str]:
    """Return which wheels to download."""
    return os.environ.get("BUSBW_NCCL_WHEELS", f"cu13=={list(table())[-1]}").split()


def known_to(version: str) -> set[str]:
    """Return what the registry says a version reads."""
    read = parse_version(version)
    return {name for name, var in variables().items() if var.owner == "NCCL" and known_in(var, read) == "yes"}


@pytest.fixture(scope="module", params=wheels())
def wheel(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    try:
        return script().wheel_data(request.param)
    except subprocess.CalledProcessError:
        what = f"pip cannot download nvidia-nccl-{request.param}: its names are only compared as they are stored"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(what)


@pytest.mark.parametrize("version", table())
def test_every_name_that_a_wheel_reads_is_in_the_registry_for_its_version(version: str) -> None:
    assert table()[version] - known_to(version) == set()


@pytest.mark.parametrize("version", table())
def test_every_name_that_the_registry_gives_a_version_is_read_by_its_wheel(version: str) -> None:
    assert known_to(version) - table()[version] - NOT_IN_WHEELS.keys() == set()


@pytest.mark.timeout(600)
def test_every_name_in_a_downloaded_library_is_in_the_registry_for_its_version(wheel: tuple[str, bytes]) -> None:
    version, data = wheel
    names = script().read_names(data)
    assert len(names) > 100
    assert names - known_to(version) == set(), "add them to src/busbw/data/envvars/nccl.toml, with what they do"


@pytest.mark.timeout(600)
def test_every_name_that_the_registry_gives_its_version_is_in_a_downloaded_library(wheel: tuple[str, bytes]) -> None:
    version, data = wheel
    assert known_to(version) - script().possible_names(data) - NOT_IN_WHEELS.keys() == set()


def test_names_that_no_wheel_reads_say_where_they_were_read() -> None:
    in_wheels = set().union(*table().values())
    for var in variables().values():
        if var.owner == "NCCL" and var.name not in in_wheels:
            assert READ_ELSEWHERE.match(var.source), var.name
            assert var.checked in {"source", "manual"}, var.name


def test_every_wheel_that_was_looked_at_is_a_version_the_registry_knows() -> None:
    assert set(table()) <= set(owners()["NCCL"].versions)


def test_an_exception_is_still_one() -> None:
    for name in NOT_IN_WHEELS:
        assert name in variables()
        assert all(name not in names for names in table().values())


TEXTS = (
    (b"\0NCCL_DEBUG\0", {"NCCL_DEBUG"}),
    (b"\0NCCL_DEBUG is set\0", set()),
    (b"\0Channels and NCCL_NTHREADS\0", {"NCCL_NTHREADS"}),
    (b"\0BAD_NCCL_SOCKET_MAGIC\0", set()),
    (b"\0please use NCCL_CONFIG_INITIALIZER\0", set()),
    (b"\0NCCL_lower\0\0NCCL_A\0\0NCCL_B", {"NCCL_A"}),
)


@pytest.mark.parametrize(("data", "names"), TEXTS)
def test_a_variable_is_a_text_of_its_own_or_the_end_of_one(data: bytes, names: set[str]) -> None:
    assert script().read_names(data) == names


def test_only_read_only_data_of_a_library_is_looked_at(tmp_path: Path) -> None:
    source, library = tmp_path / "a.c", tmp_path / "liba.so"
    source.write_text('enum kind { NCCL_KIND }; enum kind k; const char *name(void) { return "NCCL_READ"; }\n')
    subprocess.run(["g++", "-x", "c", "-g", "-shared", "-fPIC", "-o", library, source], check=True)
    assert script().read_names(script().read_only_data(library)) == {"NCCL_READ"}
    assert b"NCCL_KIND" in library.read_bytes()

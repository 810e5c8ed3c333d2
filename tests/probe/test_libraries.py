"""Libraries are found where jobs find them, with their versions, and none is loaded."""

import shutil
import subprocess
from pathlib import Path

import pytest

from busbw.machine.capture.libraries import libraries


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib"
    folder.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folder}:/nonexistent::{tmp_path}/none")
    return folder


def found(place: Path) -> list[tuple[str, str | None, str]]:
    here = [one for one in libraries(timeout_s=30) if one.path.startswith(str(place))]
    return [(one.name, one.version, one.found_by) for one in here]


def test_a_library_named_after_its_release_says_its_version(place: Path) -> None:
    (place / "libnccl.so.2.28.9").write_bytes(b"not loaded")
    (place / "libnccl.so.2").symlink_to("libnccl.so.2.28.9")
    (place / "libnccl.so").symlink_to("libnccl.so.2")
    assert found(place) == [("libnccl", "2.28.9", "LD_LIBRARY_PATH")]


def test_numbers_of_an_interface_are_no_version(place: Path) -> None:
    (place / "libfabric.so.1.27.0").write_bytes(b"x")
    assert found(place) == [("libfabric", None, "LD_LIBRARY_PATH")]


def test_a_library_that_says_its_version_inside_is_believed(place: Path) -> None:
    (place / "libnccl.so.2").write_bytes(b"\x7fELF" + bytes(5000) + b"NCCL version 2.27.3+cuda12.4\0")
    (place / "libnccl-net.so").write_bytes(b"NET/OFI Initializing aws-ofi-nccl 1.14.0\0")
    (place / "libmpi.so.40.30.4").write_bytes(b"Open MPI v4.1.4, package: x\0")
    assert found(place) == [
        ("libmpi", "4.1.4", "LD_LIBRARY_PATH"),
        ("libnccl-net", "1.14.0", "LD_LIBRARY_PATH"),
        ("libnccl", "2.27.3", "LD_LIBRARY_PATH"),
    ]


def test_a_wheel_says_the_version_of_its_library(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    (packages / "nvidia" / "nccl" / "lib").mkdir(parents=True)
    (packages / "nvidia" / "nccl" / "lib" / "libnccl.so.2").write_bytes(b"x")
    (packages / "nvidia_nccl_cu12-2.21.5.dist-info").mkdir()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    assert found(packages) == [("libnccl", "2.21.5", "wheel")]


def test_plug_ins_with_names_of_their_own_are_found(place: Path) -> None:
    for name in ("libnccl-net-ofi.so", "libnccl-net_aws.so.0.0.0", "libnccl-tuner.so", "libother.so", "libnccl.txt"):
        (place / name).write_bytes(b"x")
    assert [name for name, _version, _by in found(place)] == ["libnccl-net", "libnccl-net", "libnccl-tuner"]


def test_links_that_lead_nowhere_or_in_circles_are_left_out(place: Path) -> None:
    (place / "libnccl.so.2").symlink_to("gone")
    (place / "libmpi.so").symlink_to("libmpi.so")
    assert found(place) == []


def test_the_library_of_the_mpi_on_the_path_is_found_and_not_the_linkers_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "openmpi"
    for folder in ("bin", "lib"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "bin" / "mpirun").write_text("#!/bin/sh\n")
    (prefix / "bin" / "mpirun").chmod(0o755)
    (prefix / "lib" / "libmpi.so").write_text("INPUT(libmpi.so.40)\n")
    (prefix / "lib" / "libmpi.so.40").write_bytes(
        b"\x7fELF" + bytes(100) + b"/build/openmpi-5.0.11/ompi/communicator/comm.c\0"
    )
    monkeypatch.setenv("PATH", f"{prefix / 'bin'}:/usr/bin:/bin")
    assert found(prefix) == [("libmpi", "5.0.11", "PATH")]


CC = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(CC is None, reason="no C compiler here: libraries that offer names cannot be made")
@pytest.mark.parametrize(
    ("file", "offered", "said", "expected"),
    [
        ("libnccl.so.2", ("ncclCommInitRank",), "NCCL version 2.28.9+cuda12.9", ("libnccl", "2.28.9", "NCCL")),
        (
            "libnccl.so.2",
            ("ncclCommInitRank", "ncclAllToAll", "ncclCustomCollective"),
            "NCCL version 2.12.12.MSCCL.0.7.4+cuda11.8",
            ("libnccl", "2.12.12", "MSCCL"),
        ),
        (
            "libnccl.so.2",
            ("ncclCommInitRank", "ncclAllToAll", "mscclLoadAlgo"),
            "NCCL version 2.23.4+cuda12.6",
            ("libnccl", "2.23.4", "msccl-executor-nccl"),
        ),
        ("librccl.so.1", ("ncclCommInitRank", "mscclLoadAlgo"), "", ("librccl", None, "RCCL")),
        ("libmscclpp_nccl.so.0", ("ncclCommInitRank",), "", ("libmscclpp_nccl", None, "MSCCL++")),
        ("libnccl.so.2", ("ncclCommInitRank", "_ZN7mscclpp3envEv"), "", ("libnccl", None, "MSCCL++")),
        ("libnccl.so.2", ("something",), "", ("libnccl", None, None)),
        ("libmsccl-scheduler.so.1", ("mscclScheduler",), "", ("libmsccl-scheduler", None, None)),
    ],
)
def test_what_stands_in_the_place_of_nccl_is_told_by_the_names_it_offers(
    place: Path, file: str, offered: tuple[str, ...], said: str, expected: tuple[str, str | None, str | None]
) -> None:
    source = place.parent / "made.c"
    names = "\n".join(f"int {name}(void) {{ return 0; }}" for name in offered)
    source.write_text(f'{names}\nconst char* version_text = "{said}";\n')
    assert CC is not None
    subprocess.run([CC, "-shared", "-fPIC", str(source), "-o", str(place / file)], check=True, timeout=60)

    (one,) = [each for each in libraries(timeout_s=30) if each.path.startswith(str(place))]

    assert (one.name, one.version, one.kind) == expected


def test_a_library_that_is_cut_off_is_found_without_its_kind(place: Path) -> None:
    (place / "libnccl.so.2").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57) + b"\xff" * 64)
    (one,) = [each for each in libraries(timeout_s=30) if each.path.startswith(str(place))]
    assert one.kind is None

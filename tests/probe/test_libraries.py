"""Libraries are found where jobs find them, with their versions, and none is loaded."""

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

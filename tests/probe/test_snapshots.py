"""Snapshots are written the same every time and read back as they were; what is none is refused politely."""

import gzip
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.cost import check_cost

from busbw.base.errors import InputError
from busbw.model.host import CapturedFile, Snapshot
from busbw.store.snapshots import is_snapshot, read_snapshot, write_snapshot

from .hosts import snapshot_of
from .machines import MACHINES


def a_snapshot() -> Snapshot:
    return snapshot_of(MACHINES["h200-vm"])


def tar_of(**contents: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def refusal(path: Path, content: bytes) -> InputError:
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_snapshot(path)
    return caught.value


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_what_is_written_is_read_back(name: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"host.{ending}"
    write_snapshot(path, snapshot_of(MACHINES[name]))
    assert read_snapshot(path) == snapshot_of(MACHINES[name])
    assert is_snapshot(path.read_bytes()[:512])


def test_the_same_snapshot_gives_the_same_bytes(tmp_path: Path) -> None:
    for ending in ("tar", "tar.gz"):
        first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
        write_snapshot(first, a_snapshot())
        write_snapshot(second, a_snapshot())
        assert first.read_bytes() == second.read_bytes()


def test_any_tar_can_look_into_it(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "host.tar", a_snapshot())
    listed = subprocess.run(["tar", "tf", tmp_path / "host.tar"], capture_output=True, text=True, check=True)
    names = listed.stdout.splitlines()
    assert names[0] == "manifest.json"
    assert "files/sys/bus/pci/devices/0000:00:06.0/class" in names
    assert "commands/nvidia-smi-xml.out" in names


def test_one_that_was_unpacked_and_packed_again_is_read(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "host.tar", a_snapshot())
    (tmp_path / "in").mkdir()
    subprocess.run(["tar", "xf", tmp_path / "host.tar", "-C", tmp_path / "in"], check=True)
    for form in ("gnu", "pax", "ustar"):
        again = tmp_path / f"{form}.tar"
        subprocess.run(["tar", f"--format={form}", "-cf", again, "-C", tmp_path / "in", "."], check=True)
        assert read_snapshot(again) == a_snapshot()


def test_a_long_path_survives(tmp_path: Path) -> None:
    path = "/opt/" + "/".join(["a-rather-long-folder-name"] * 8) + "/topo.xml"
    snapshot = Snapshot(
        busbw_version="1",
        captured="",
        hostname="h",
        root=True,
        files=tuple(type(file)(path=path, text="x") for file in a_snapshot().files[:1]),
    )
    write_snapshot(tmp_path / "host.tar", snapshot)
    assert read_snapshot(tmp_path / "host.tar") == snapshot


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "not a tar"),
        (b"\x89PNG\r\n" + bytes(2000), "not a tar"),
        (b"<html><body>404</body></html>" * 100, "not a tar"),
        (b"PK\x03\x04" + bytes(600), "a zip archive"),
        (b"\xfd7zXZ\x00" + bytes(600), "compressed with xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), "compressed with zstd"),
        (b"\x1f\x8b" + b"garbage" * 100, "damaged"),
        (gzip.compress(b"text, not a tar\n" * 100, mtime=0), "not a tar"),
        (tar_of(readme=b"hello"), "a tar, but not a snapshot"),
        (tar_of(**{"manifest.json": b"{}"}), "not a valid manifest"),
        (tar_of(**{"manifest.json": b"not json"}), "not a valid"),
        (tar_of(**{"manifest.json": b'{"schema": 99}'}), "written by a newer busbw"),
        (bytes(10240), "a tar, but not a snapshot"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_the_exact_cause(content: bytes, cause: str, tmp_path: Path) -> None:
    error = refusal(tmp_path / "host.tar", content)
    assert cause in error.cause
    assert str(tmp_path / "host.tar") in (error.where or "")


def test_one_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "whole.tar", a_snapshot())
    write_snapshot(tmp_path / "whole.tar.gz", a_snapshot())
    for name in ("whole.tar", "whole.tar.gz"):
        whole = (tmp_path / name).read_bytes()
        # A tar ends in empty blocks; from the first of them on nothing is missing.
        end = len(whole.rstrip(b"\0")) if name.endswith("tar") else len(whole)
        for length in range(0, end - 1, max(end // 40, 1)):
            assert "cut off" in (cause := refusal(tmp_path / "cut.tar", whole[:length]).cause) or "not a tar" in cause


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.CONTTYPE, "no plain file"),
    ],
)
def test_members_that_are_no_files_are_refused(kind: bytes, word: str, tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("manifest.json")
        entry.type = kind
        entry.linkname = "/etc/shadow"
        archive.addfile(entry)
    assert word in refusal(tmp_path / "host.tar", made.getvalue()).cause


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "files/../../x", "files//x", "", "x/./y"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    made = bytearray(tar_of(placeholder=b"x"))
    made[:100] = name.encode().ljust(100, b"\0")
    made[148:156] = b" " * 8
    made[148:156] = f"{sum(made[:512]):06o}\0 ".encode()
    assert "is not a name that a snapshot holds" in refusal(tmp_path / "host.tar", bytes(made)).cause


def test_the_same_member_twice_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for _time in range(2):
            archive.addfile(tarfile.TarInfo("manifest.json"))
    assert "is in it twice" in refusal(tmp_path / "host.tar", made.getvalue()).cause


def test_a_bomb_is_refused_fast_and_in_bounded_memory(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as file:
        for _block in range(300):
            file.write(bytes(2**20))
    refused = check_cost(lambda: refusal(tmp_path / "bomb.tar.gz", bomb.getvalue()), most_s=5)
    assert "larger than 128 MiB" in refused.cause


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    one = tar_of(x=b"")[:512]
    numbered = []
    for place in range(70_000):
        header = bytearray(one)
        header[:10] = f"m{place:08d}\0".encode()
        header[148:156] = b" " * 8
        header[148:156] = f"{sum(header):06o}\0 ".encode()
        numbered.append(bytes(header))
    assert "more than 65536 members" in refusal(tmp_path / "many.tar", b"".join(numbered)).cause


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/nonexistent/host.tar"])
def test_a_path_that_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(InputError):
        read_snapshot(Path(path))


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a file"):
        read_snapshot(tmp_path / "pipe")


def test_one_whose_list_names_something_twice_is_refused(tmp_path: Path) -> None:
    twice = Snapshot(busbw_version="1", captured="", hostname="h", root=True, links=a_snapshot().links[:1] * 2)
    write_snapshot(tmp_path / "host.tar", twice)
    with pytest.raises(InputError, match="twice"):
        read_snapshot(tmp_path / "host.tar")


def test_a_file_that_could_not_be_read_keeps_its_reason(tmp_path: Path) -> None:
    file = CapturedFile(path="/etc/nccl.conf", text=None, reason="permission denied")
    snapshot = Snapshot(busbw_version="1", captured="", hostname="h", root=False, files=(file,))
    write_snapshot(tmp_path / "host.tar", snapshot)
    assert read_snapshot(tmp_path / "host.tar") == snapshot


def test_nothing_is_written_where_a_folder_is(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_snapshot(tmp_path, a_snapshot())
    assert list(tmp_path.iterdir()) == []

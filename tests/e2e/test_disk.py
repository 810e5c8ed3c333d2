"""Disks that are full, refuse, or hold something already."""

import os
import subprocess
from pathlib import Path

import pytest

from .runner import Busbw, left_of, mount_tmpfs, read_run

SIZES = ("-n", 2, "-b", "4K", "-e", "64K", "-i", "4K", "--time-limit", 4, "--min-samples", 10)
BYTES = [4096 * number for number in range(1, 17)]


@pytest.fixture
def small_disk(tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    mount_tmpfs(disk, 8 * 2**20)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take every byte that is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk never got full")


@pytest.mark.root
def test_a_disk_that_fills_up_ends_the_run_and_loses_nothing_measured(busbw: Busbw, small_disk: Path):
    where = small_disk / "run"
    started = busbw.start("run", "all_reduce", *SIZES, "-o", where)
    started.wait_for("ended by")
    filler = fill(small_disk)

    result = started.finish()

    assert result.code == 3, result
    assert "No space left on device" in result.err + result.out
    assert str(where) in result.err + result.out
    assert left_of(busbw.folder) == ()
    shown = busbw("show", where)
    assert "4096" in shown.out, shown
    assert shown.code in {3, 4}
    filler.unlink()
    resumed = busbw.to_the_end(busbw("run", "--resume", where), where=where)
    assert resumed.code in {0, 1, 4}, resumed
    assert [point.size_bytes for point in read_run(where).measurements] == BYTES


@pytest.mark.root
def test_a_disk_that_is_full_from_the_start_is_one_error(busbw: Busbw, small_disk: Path):
    fill(small_disk)

    result = busbw("run", "all_reduce", *SIZES, "-o", small_disk / "run")

    assert result.code in {2, 3}, result
    assert "No space left on device" in result.err
    assert str(small_disk / "run") in result.err
    assert "hint: " in result.err


@pytest.mark.root
def test_a_disk_that_cannot_be_written_is_one_error(busbw: Busbw, small_disk: Path):
    busbw(
        "run",
        "all_reduce",
        "-n",
        2,
        "-b",
        "1K",
        "-e",
        "400K",
        "-i",
        "1K",
        "--time-limit",
        0.5,
        "-o",
        small_disk / "old",
    )
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    fresh = busbw("run", "all_reduce", *SIZES, "-o", small_disk / "new")
    shown = busbw("show", small_disk / "old")
    resumed = busbw("run", "--resume", small_disk / "old")

    assert fresh.code == 2, fresh
    assert "Read-only file system" in fresh.err
    assert len(_error_lines(fresh.err)) <= 4
    assert shown.code in {1, 4}, shown
    assert resumed.code in {2, 3}, resumed
    assert "Read-only file system" in resumed.err
    assert len(_error_lines(resumed.err)) <= 4
    assert left_of(busbw.folder) == ()


def test_a_folder_below_a_file_is_bad_input(busbw: Busbw):
    (busbw.folder / "file").write_text("", encoding="utf-8")

    result = busbw("run", "all_reduce", *SIZES, "-o", busbw.folder / "file" / "run")

    assert result.code == 2, result
    assert "Not a directory" in result.err
    assert str(busbw.folder / "file" / "run") in result.err
    assert len(_error_lines(result.err)) <= 4


def test_a_folder_that_holds_something_is_left_alone(busbw: Busbw):
    (busbw.folder / "mine").mkdir()
    (busbw.folder / "mine" / "thesis.txt").write_text("42", encoding="utf-8")

    result = busbw("run", "all_reduce", *SIZES, "-o", busbw.folder / "mine")

    assert result.code == 2, result
    assert "is not empty" in result.err
    assert [path.name for path in (busbw.folder / "mine").iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_used(busbw: Busbw):
    (busbw.folder / "mine").mkdir()

    result = busbw("run", "all_reduce", "-n", 2, "-b", 8, "-e", 8, "--time-limit", 0.3, "-o", busbw.folder / "mine")

    result = busbw.to_the_end(result, where=busbw.folder / "mine")
    assert result.code in {0, 1, 4}, result
    assert len(read_run(busbw.folder / "mine").measurements) == 1


def _error_lines(err: str) -> list[str]:
    lines = err.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("error: "))
    return lines[start:]

"""Folders of heartbeats in a host's memory that a killed run has left are gone with the next start on that host."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of
from tests.patience import wait_until

from busbw.base import layout
from busbw.rank.heart import remove_left

HOLDS = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH)
print(flush=True)
time.sleep(600)
"""
# A host by its name has its heartbeats in its memory, as each of several does.
HERE = socket.gethostname()


@pytest.fixture
def left() -> Iterator[Path]:
    """A folder as a run leaves it whose processes are all gone."""
    folder = Path(layout.hearts_folder(os.getuid(), f"test-{uuid.uuid4().hex}.0"))
    folder.mkdir(mode=0o700)
    (folder / layout.heartbeat_name(0)).write_bytes(bytes(layout.HEARTBEAT_BYTES))
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def test_what_no_process_holds_is_removed(left: Path) -> None:
    remove_left()

    assert not left.exists()


def test_what_a_process_holds_is_kept_until_it_is_killed(left: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS, left], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        remove_left()
        assert (left / layout.heartbeat_name(0)).exists()
        process.kill()
    remove_left()

    assert not left.exists()


@pytest.mark.root
def test_what_is_another_users_is_kept(left: Path) -> None:
    os.chown(left, 65534, 65534)

    remove_left()

    assert left.exists()


def test_what_is_no_folder_is_kept_and_not_followed(left: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    link, file = (left.with_name(f"{left.name}.{kind}") for kind in ("link", "file"))
    link.symlink_to(tmp_path)
    file.touch()
    try:
        remove_left()
        assert link.is_symlink()
        assert file.exists()
        assert (tmp_path / "mine").read_text() == "kept"
    finally:
        link.unlink()
        file.unlink()


def test_a_killed_busbw_leaves_nothing_after_the_next_run(tmp_path: Path) -> None:
    mpi = environment_of("Open MPI")
    command = [mpi / "bin" / "busbw", "run", "all_reduce", "-b", "8", "--bind-to", "none", "--hosts", HERE, "-n", "2"]
    environment = clean_environment(mpi, tmp_path)

    def ranks(run: str) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if b"busbw.rank" in words and str(tmp_path / run).encode() in words:
                    found.append(int(path.parent.name))
        return found

    def folders(run: str) -> list[Path]:
        return list(Path("/dev/shm").glob(f"busbw-{os.getuid()}-*{run}*"))

    killed = [*command, "-e", "64K", "--time-limit", "40", "--min-samples", "10000", "-o", tmp_path / "killed"]
    with subprocess.Popen(killed, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as busbw:
        wait_until((tmp_path / "killed" / "plan.json").is_file, 60, "the plan")
        tag = json.loads((tmp_path / "killed" / "plan.json").read_text())["run_id"]
        wait_until(lambda: any((each / layout.heartbeat_name(1)).exists() for each in folders(tag)), 60, "the ranks")
        # So that nobody ends well: neither busbw, which would visit the host, nor the ranks, which stop when asked.
        busbw.send_signal(signal.SIGSTOP)
        for rank in ranks("killed"):
            with contextlib.suppress(ProcessLookupError):  # the launcher ends the others when one has ended
                os.kill(rank, signal.SIGKILL)
        busbw.kill()
    # From now on any busbw that starts on this host may remove what they have left.
    wait_until(lambda: ranks("killed") == [], 60, "the ranks to be gone")

    done = subprocess.run(
        [*command, "-e", "64", "--time-limit", "3", "--min-samples", "5", "-o", tmp_path / "next"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (0, 1, 4), done.stderr
    assert not folders(tag)

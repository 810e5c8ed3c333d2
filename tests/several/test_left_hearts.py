"""Folders of heartbeats in a host's memory that a killed run has left are gone with the next start on that host."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import environment_of
from tests.lab.processes import Process
from tests.patience import wait_until

from busbw import layout
from busbw.rank.hearts import remove_left

from .jobs import Jobs

HOLDS = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH)
print(flush=True)
time.sleep(600)
"""
TWO = ("--nodes", "2", "--ranks-per-node", "1", "-b", "8", "--bind-to", "none", "--launcher", "srun")
LONG = ("-e", "64K", "-f", "2", "--time-limit", "14", "--min-samples", "400")
SHORT = ("-e", "64", "--time-limit", "3", "--min-samples", "5")


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


@pytest.mark.root
def test_a_killed_busbw_leaves_nothing_after_the_next_run(jobs: Jobs) -> None:
    def in_memory(host: str) -> list[str]:
        return jobs.cluster.lab.run(host, ["ls", "/dev/shm"]).stdout.split()

    def ranks(host: str) -> list[Process]:
        return [each for each in jobs.cluster.lab.processes(host) if "busbw.rank" in each.argv]

    program = str(environment_of("Open MPI") / "bin" / "busbw")
    salloc = ("salloc", "--quiet", "--nodes=2", "--nodelist=n1,n2")
    process = jobs.start("run", "all_reduce", *TWO, *LONG, "-o", jobs.folder / "killed", within=salloc)
    wait_until(lambda: "ended by" in jobs.err, 60, lambda: jobs.err)
    (busbw,) = (each for each in jobs.cluster.lab.processes("n0") if each.argv[1:3] == (program, "run"))
    os.kill(busbw.id, signal.SIGKILL)
    process.wait(60)
    for host in ("n1", "n2"):
        wait_until(lambda host=host: ranks(host) == [], 30, f"the ranks on {host} to end with busbw")
        assert any(name.startswith("busbw-") for name in in_memory(host))

    done = jobs("run", "all_reduce", *TWO, *SHORT, "-o", jobs.folder / "next", within=salloc)

    assert done.returncode in (0, 1, 4), done
    assert [name for host in ("n1", "n2") for name in in_memory(host) if name.startswith("busbw-")] == []

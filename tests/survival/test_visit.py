"""A visit to this host: it sees and ends what carries the mark of one run, and nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import wait_until

from busbw.base import layout
from busbw.model import codec
from busbw.model.visit import VISIT_PREFIX, Visit

WAITS = "import time; print(flush=True); time.sleep(600)"


@pytest.fixture
def tag() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}.0"


@pytest.fixture
def marked(tag: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process of the run, in the middle of waiting."""
    environment = {**os.environ, layout.RUN_VARIABLE: tag}
    with subprocess.Popen([sys.executable, "-c", WAITS], env=environment, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat")
        wait_until(lambda: stat.read_text().split()[2] == "S", 30, "the process to wait")
        yield process
        process.kill()


def visit(tag: str, asked: str, directory: Path) -> Visit:
    command = [sys.executable, "-P", "-m", "busbw.rank.visit", str(directory), tag, asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    (line,) = done.stdout.splitlines()
    return codec.decode(line.removeprefix(VISIT_PREFIX).encode(), Visit, where="a visit")


def test_a_look_finds_the_process_and_leaves_it(tag: str, marked: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    seen = visit(tag, "look", tmp_path)

    (process,) = seen.processes
    assert (process.process_id, process.rank, process.state) == (marked.pid, None, "S")
    assert process.busy_s == 0
    assert marked.poll() is None


def test_an_end_ends_the_process_and_removes_the_folder(
    tag: str, marked: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    folder = Path(layout.hearts_folder(os.getuid(), tag))
    folder.mkdir(mode=0o700)
    (folder / layout.heartbeat_name(0)).write_bytes(bytes(layout.HEARTBEAT_BYTES))

    ended = visit(tag, "end", tmp_path)

    assert (ended.ended, ended.left) == (1, ())
    assert marked.wait(30) == -9
    assert not folder.exists()


def test_another_run_is_left_alone(tag: str, marked: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    other = tag.removesuffix(".0") + ".1"

    assert visit(other, "look", tmp_path).processes == ()
    assert visit(other, "end", tmp_path).ended == 0
    assert marked.poll() is None


def test_a_tag_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "busbw.rank.visit", str(tmp_path), "../x", "end"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert "not a run and a task" in done.stderr

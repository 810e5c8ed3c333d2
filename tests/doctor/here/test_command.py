"""`busbw doctor --here` as a person runs it."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.warm import warm_busbw

from busbw.cli.command import busbw
from busbw.model.host import Snapshot
from busbw.store.snapshots import write_snapshot

from .nodes import BARE, SUPERCHIP, VIRTUAL, healthy, with_files


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_busbw("doctor", "--here", *arguments, timeout=120)


def told(folder: Path, snapshot: Snapshot) -> Result:
    """Return what is told of a captured host, without a process of its own."""
    return CliRunner().invoke(busbw, ["doctor", "--here", kept(folder, snapshot)])


def kept(folder: Path, snapshot: Snapshot) -> str:
    path = folder / "host.tar"
    write_snapshot(path, snapshot)
    return str(path)


def slow(snapshot: Snapshot) -> Snapshot:
    return with_files(snapshot, {"/sys/class/infiniband/mlx5_ib3/ports/1/rate": "100 Gb/sec (4X HDR)\n"})


def test_this_host_is_examined():
    done = run("--json")

    assert done.returncode in (0, 1, 4), done.stderr
    found = json.loads(done.stdout)
    assert len(found["checks"]) == 32
    assert {check["outcome"] for check in found["checks"]} <= {"ok", "found", "cannot_tell", "skipped"}


def test_a_fault_is_told_with_its_page_and_what_to_do(tmp_path):
    done = told(tmp_path, slow(healthy(VIRTUAL)))

    assert done.exit_code == 1
    head, *rest = done.stdout.splitlines()
    assert head == "error HOST022: mlx5_ib3 runs at 100 of 400 Gb/s"
    assert [line.split(":")[0].strip() for line in rest[:2]] == ["seen", "means"]
    assert any(line.startswith("  fix: ") for line in rest)


def test_a_healthy_host_exits_with_0_and_lists_what_it_cannot_tell(tmp_path):
    done = told(tmp_path, healthy(VIRTUAL))

    assert done.exit_code == 0
    assert "cannot tell" in done.stdout
    assert "nothing found" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", [BARE, VIRTUAL, SUPERCHIP])
def test_prose_fits_eighty_columns(name, tmp_path):
    done = told(tmp_path, slow(healthy(name)))

    prose = [line for line in done.stdout.splitlines() if not line.strip().startswith(("look:", "fix:", "worth:"))]
    assert max(len(line) for line in prose[:-1]) <= 80


def test_a_snapshot_that_holds_nothing_exits_with_4(tmp_path):
    empty = Snapshot(busbw_version="0", captured="", hostname="host", root=False)

    assert told(tmp_path, empty).exit_code == 4


def test_what_is_in_a_snapshot_cannot_write_to_the_terminal(tmp_path):
    node = with_files(healthy(BARE), {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "power\x1b[31msave\n"})

    done = told(tmp_path, node)

    assert "HOST005" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing.tar",), "nothing.tar"),
        ((__file__,), "snapshot"),
        (("one.tar", "two.tar"), "--here takes one host"),
        (("--platform", "no-such-platform"), "no-such-platform"),
    ],
)
def test_bad_input_is_one_error(arguments, says):
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr

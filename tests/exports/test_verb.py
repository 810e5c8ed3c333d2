"""`busbw export` as a process: standard output, files, terminals, mistakes."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click import Choice
from msgspec.structs import replace
from tests.warm import warm_busbw

from busbw.api.reports import judged_points
from busbw.base import layout
from busbw.cli.results import export as verb
from busbw.model import codec
from busbw.show.exports.registry import FORMATS
from busbw.show.exports.rows import export_of_run

from .factories import make_run

PROGRAM = str(Path(sys.executable).with_name("busbw"))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Return the folder of a run."""
    run, folder = make_run(), tmp_path / "a"
    folder.mkdir()
    (folder / layout.PLAN_FILE).write_bytes(codec.encode_pretty(run.plan))
    (folder / layout.RUN_FILE).write_bytes(codec.encode_pretty(run))
    return folder


def export(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    done = warm_busbw("export", *arguments, text=False)
    assert b"Traceback" not in done.stderr
    return done


def test_the_verb_offers_every_format():
    offered = next(each for each in verb.params if each.name == "form").type

    assert isinstance(offered, Choice)
    assert set(offered.choices) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_standard_output_and_file_hold_the_same(name: str, stored: Path, tmp_path: Path):
    printed = warm_busbw("export", stored, "--format", name, text=False)
    written = warm_busbw("export", stored, "--format", name, "-o", tmp_path / "out", text=False)

    assert printed.returncode == written.returncode == 0, printed.stderr
    assert printed.stderr == b""
    assert written.stdout == b""
    assert (tmp_path / "out").read_bytes() == printed.stdout
    if name != "parquet":
        run = export_of_run(make_run())
        judged = replace(run, judged=judged_points(make_run())) if FORMATS[name].has_verdicts else run
        assert printed.stdout == FORMATS[name].write(judged)


def test_a_file_is_replaced_whole_or_not_at_all(stored: Path, tmp_path: Path):
    target = tmp_path / "no" / "such" / "folder.prom"

    done = export(stored, "--format", "prometheus", "-o", target)

    assert done.returncode == 3
    assert re.search(rb"error: cannot write folder.prom: No such file or directory\n  --> ", done.stderr)
    assert sorted(tmp_path.iterdir()) == [stored]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_replaced_by_one(make: Callable[[Path], None], stored: Path, tmp_path: Path):
    make(tmp_path / "there")

    done = export(stored, "--format", "csv", "-o", tmp_path / "there")

    assert done.returncode == 2
    assert "or leave it out" in done.stderr.decode().splitlines()[1]
    assert not (tmp_path / "there").is_file()


def test_a_full_disk_behind_standard_output_is_said(stored: Path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, "export", str(stored), "--format", "csv"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert done.returncode == 3
    assert done.stderr.decode().splitlines() == ["error: cannot write to standard output: No space left on device"]


def test_bytes_are_not_written_to_a_terminal(stored: Path):
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [PROGRAM, "export", str(stored), "--format", "parquet"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
        os.close(ours)

    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "error: parquet is not text, and this is a terminal",
        f"hint: busbw export {stored} --format parquet -o FILE",
    ]


def test_a_format_or_run_that_is_not_there_is_refused(stored: Path):
    assert export(stored, "--format", "xml").returncode == 2
    assert export(stored).returncode == 2
    assert export(stored / "nothing", "--format", "csv").returncode == 2

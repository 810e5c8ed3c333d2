"""An import is found again by every verb that looks at results, and outputs that take nothing are said in a line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.base.errors import InputError, RunError
from busbw.store.files import write_whole

from .reading import SAMPLES

LOG = SAMPLES / "nccl-tests-2.17.3.log"


@pytest.fixture
def busbw(tmp_path):
    environment = {**os.environ, "NO_COLOR": "1", "BUSBW_RUNS": str(tmp_path / "runs"), "PYTHONUNBUFFERED": ""}

    def start(*arguments, **options):
        if options:  # of a start
            command = [Path(sys.executable).with_name("busbw"), *map(str, arguments)]
            given = {"capture_output": True, "text": True, "timeout": 60, **options}
            done = subprocess.run(command, check=False, env=environment, **given)
        else:
            done = warm_busbw(*arguments, env=environment)
        assert "Traceback" not in (done.stderr or "")
        return done

    return start


@pytest.fixture
def stored(busbw, tmp_path):
    assert busbw("import", LOG, "--tag", "night").returncode == 0
    (directory,) = (tmp_path / "runs").iterdir()
    return directory


@pytest.mark.parametrize("how", ["last", "name", "beginning", "path", "file"])
def test_an_import_is_shown_again_as_it_was_when_it_was_made(busbw, tmp_path, stored, how):
    name = {"last": "last", "name": stored.name, "beginning": stored.name[:20], "path": stored}.get(
        how, stored / "import.json"
    )
    made = busbw("import", LOG, "-o", tmp_path / "other")

    shown = busbw("show", name)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == made.stdout.replace(str(tmp_path / "other"), str(stored))
    assert json.loads(busbw("show", name, "--json").stdout)["import_id"] == stored.name


def test_the_list_of_runs_holds_imports_and_says_that_they_are(busbw, stored):
    (row,) = json.loads(busbw("runs", "--json").stdout)
    assert (row["kind"], row["run_id"], row["outcome"], row["tag"]) == ("import", stored.name, "imported", "night")
    assert (row["collectives"], row["measured"]) == (["nccl-tests"], 6)

    listed = busbw("runs").stdout

    assert max(map(len, listed.splitlines())) <= 132
    assert stored.name in listed
    assert "imported from nccl-tests-2.17.3" in " ".join(listed.split())


@pytest.mark.parametrize("columns", ["70", "80", "95", "120"])
def test_a_name_in_the_list_is_whole_on_a_terminal_of_any_width(tmp_path, stored, columns):
    command = f"stty cols {columns}; {Path(sys.executable).with_name('busbw')} runs"
    environment = {**os.environ, "NO_COLOR": "1", "BUSBW_RUNS": str(stored.parent), "TERM": "xterm"}
    environment.pop("COLUMNS", None)

    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"], capture_output=True, timeout=60, check=False, env=environment
    )

    lines = re.sub(r"\x1b\[[0-9;]*m|\r", "", done.stdout.decode()).splitlines()
    assert any(line.startswith(stored.name) and "imported" in line for line in lines)
    assert max(map(len, lines)) <= int(columns)


def test_a_damaged_import_is_listed_and_refused(busbw, stored):
    (stored / "import.json").chmod(0o644)
    (stored / "import.json").write_text("{")

    (row,) = json.loads(busbw("runs", "--json").stdout)
    shown = busbw("show", "last")

    assert (row["kind"], row["outcome"]) == ("import", "unreadable")
    assert (shown.returncode, shown.stdout) == (2, "")


def test_an_import_is_not_rebuilt_and_says_what_can_be_done(busbw, stored):
    done = busbw("load", stored)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: this is an import: ")
    assert "busbw import " in done.stderr.splitlines()[-1]


def test_an_import_is_not_imported_again_but_its_copies_are(busbw, tmp_path, stored):
    for path in (stored, stored / "import.json", tmp_path / "runs"):
        done = busbw("import", path)
        assert done.returncode == 2
        assert f"{stored} is an import already" in done.stderr
        assert f"hint: look at it with: busbw show {stored}" in done.stderr
    assert busbw("import", stored / "raw", "-o", tmp_path / "again").returncode == 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("show",), ("runs",), ("runs", "--json"), ("--help",), ("import", LOG)])
def test_a_full_standard_output_is_one_line(tmp_path, stored, arguments, unbuffered):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [Path(sys.executable).with_name("busbw"), *map(str, arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "BUSBW_RUNS": str(stored.parent), "PYTHONUNBUFFERED": unbuffered},
        )

    assert done.stderr == "error: cannot write to standard output: No space left on device\n"
    assert done.returncode == 3


def test_without_any_standard_output_nothing_fails(busbw, stored):
    done = busbw("runs", capture_output=False, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_file_is_replaced_by_a_file(tmp_path, make):
    make(tmp_path / "there")
    (tmp_path / "link").symlink_to("there")

    for name in ("there", "link"):
        with pytest.raises(InputError, match="is not a file"):
            write_whole(tmp_path / name, b"x")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]
    with pytest.raises(InputError, match="is not a file"):
        write_whole(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()


def test_a_file_is_made_and_replaced(tmp_path):
    write_whole(tmp_path / "file", b"old")
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    with pytest.raises(RunError, match="cannot write"):
        write_whole(tmp_path / "no" / "file", b"x")

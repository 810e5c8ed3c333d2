"""`busbw check` on this host: what it prints, keeps and refuses."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.warm import warm_busbw

PROFILE = """
title = "memory alone"
stages = ["screening"]
time_limit_s = 60
when_cannot_tell = "pass"
[screening]
parts = ["memory", "nics", "gpus", "transfer"]
memory_s = 0.2
[[threshold]]
measure = "memory_copy"
at_least = "{least}"
source = "this test"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sound.toml").write_text(PROFILE.format(least="0.001MB/s"))
    (tmp_path / "slow.toml").write_text(PROFILE.format(least="900TB/s"))
    return tmp_path


def check(*arguments: object) -> tuple[int, str, str]:
    done = warm_busbw("check", *arguments)
    assert "Traceback" not in done.stderr, done
    return done.returncode, str(done.stdout), str(done.stderr)


def test_a_host_that_misses_the_profile_is_listed_and_remembered(folder: Path) -> None:
    code, out, _err = check("--profile", "slow.toml", "--junit", "j.xml", "--html", "p.html", "--drain-list", "drain")

    assert code == 1, out
    assert out.startswith("not fit: 1 node of 1: ")
    assert "CHK001" in out
    assert "asks for 900" in out
    assert "state=drain" in (folder / "drain").read_text()
    assert (folder / "p.html").read_text().startswith("<!DOCTYPE html>")
    assert b"testcase" in (folder / "j.xml").read_bytes()
    # A check of this host alone leaves a line, and no folder.
    assert [path.name for path in (folder / "runs" / "checks").iterdir()] == ["history"]
    code, out, _err = check("--history", "--json")
    assert code == 0
    assert json.loads(out)["nodes"][0]["failures"] == 1


def test_a_folder_that_is_named_holds_the_check_and_is_gone_on_with(folder: Path) -> None:
    code, out, _err = check("--profile", "sound.toml", "--out", "c", "--json")

    report = json.loads(out)
    # What this host has nothing of, or cannot try, is noted and leaves nothing open.
    assert (code, report["outcome"]) == (0, "fit"), out
    assert any(note.startswith("gpus: no GPU") for note in report["nodes"][0]["notes"]), report["nodes"]
    assert {path.name for path in (folder / "c").iterdir()} == {"check.json", "screening.json", "result.json"}
    before = (folder / "c" / "screening.json").read_bytes()
    # As after a stop before the end: the stage that ended is kept.
    (folder / "c" / "result.json").unlink()
    code, out, _err = check("--resume", "c", "--json")
    assert (code, json.loads(out)["nodes"]) == (0, report["nodes"])
    assert (folder / "c" / "screening.json").read_bytes() == before
    stored = json.loads((folder / "c" / "check.json").read_bytes())
    (folder / "c" / "check.json").write_text(json.dumps(stored | {"here": "elsewhere"}))
    code, _out, err = check("--resume", "c")
    assert code == 2
    assert "this check belongs to elsewhere" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--profile", "quik"), "no profile 'quik'; maybe: quick"),
        (("--profile", "runs"), "no profile 'runs'"),
        (("--profile", "bad.toml"), "unknown key 'titel'; maybe: title"),
        (("--hosts", "n[0-2],n1"), "n1 is named twice"),
        (("--resume", "nothing"), "no check 'nothing'"),
        (("--resume", "last", "--profile", "quick"), "leave out --profile"),
        (("--json", "--drain-list", "-"), "both --json and --drain-list - print to standard output"),
        (("--platform", "azure-hbv44"), "azure-hbv4"),
        (("--spares", "n[3-1]"), "a range that runs backwards"),
        (("--partner", "-oProxyCommand=x"), "cannot be the name of a host"),
        (("--html", "runs"), "is not a file"),
        (("--remote-shell", "'"), "this command cannot be read"),
        (("--screen-here", "{"), "not a valid screening"),
        (("--out", "runs", "--profile", "sound.toml"), "runs is not empty"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    (folder / "runs" / "x").mkdir(parents=True)
    (folder / "bad.toml").write_text("titel = 1\n")

    code, out, err = check(*arguments)

    assert (code, out) == (2, ""), err
    assert said in err


def test_ctrl_c_ends_what_is_measured_at_once_and_the_check_can_be_gone_on_with(folder: Path) -> None:
    (folder / "long.toml").write_text(
        'title = "noise"\nstages = ["screening"]\ntime_limit_s = 60\n[screening]\nparts = ["noise"]\nnoise_s = 40\n'
    )
    argv = [sys.executable, "-m", "busbw", "check", "--profile", "long.toml", "--out", "c"]
    process = subprocess.Popen(argv, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("screening: 1 node")
    process.send_signal(signal.SIGINT)
    begun_s = time.monotonic()
    _out, err = process.communicate(timeout=30)

    assert (process.returncode, "Traceback" in err) == (130, False), err
    # Far less than the 40 s that were to be measured.
    assert time.monotonic() - begun_s < 20
    assert [path.name for path in (folder / "c").iterdir()] == ["check.json"]


def test_profiles_are_printed_to_be_copied(folder: Path) -> None:
    code, out, _err = check("--profile", "daily", "--print-profile")
    (folder / "mine.toml").write_text(out)

    assert code == 0
    assert check("--profile", "mine.toml", "--print-profile") == (0, out, "")


def test_without_checks_the_history_cannot_tell(folder: Path) -> None:
    assert folder
    assert check("--history")[:2] == (4, "no check is stored yet\n")


def test_a_damaged_history_keeps_its_other_lines(folder: Path) -> None:
    path = folder / "runs" / "checks" / "history" / "n0.jsonl"
    path.parent.mkdir(parents=True)
    line = '{"host":"n0","unix_s":1.0,"profile":"quick","outcome":"error"}\n'
    path.write_text(line + '{"host":"n0","unix\n' + "\0\n" + line)

    _code, out, _err = check("--history", "--json")

    assert json.loads(out)["nodes"][0]["checks"] == 2

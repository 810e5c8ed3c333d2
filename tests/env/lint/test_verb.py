"""`busbw env lint` as it is called."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from busbw.base.errors import InputError
from busbw.cli.command import busbw

SCRIPT = "#!/bin/bash\nexport NCCL_MIN_CHANNELS=32\nexport NCCL_BUFFSIZE=8M\nsrun ./app\n"


def run(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(busbw, ["env", "lint", *arguments], input=text)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "job.sh"
    file.write_text(SCRIPT)
    return file


def test_findings_are_printed_with_their_line_and_a_caret(script: Path):
    done = run(str(script))

    assert done.exit_code == 1
    assert "  2 | export NCCL_MIN_CHANNELS=32\n    |        ^\n" in done.stdout
    assert f"{script}: 2 settings, 2 warnings; held against NCCL" in done.stdout
    assert "hint: --platform ID" in done.stderr


def test_standard_input_is_read(script: Path):
    assert "stdin:2:8: warn ENV020" in run("-", text=SCRIPT).stdout


def test_a_text_without_faults_ends_with_0():
    done = run("-", "--as", "shell", text="export NCCL_SOCKET_IFNAME=eth0\nsrun ./app\n")

    assert done.exit_code == 0
    assert "1 setting, nothing found" in done.stdout


def test_notes_alone_end_with_0():
    assert run("-", text="export NCCL_DEBUG=INFO\nsrun ./app\n").exit_code == 0


def test_json_has_everything_that_is_printed(script: Path):
    done = run(str(script), "--json", "--platform", "azure-ndv4", "--nccl", "2.28.9")
    told = json.loads(done.stdout)

    assert done.exit_code == 1
    assert told["held_against"]["name"] == "azure-ndv4"
    assert (told["settings"]["nccl"], told["settings"]["nccl_asked"]) == ("2.28.9", True)
    assert [each["code"] for each in told["findings"]] == ["ENV020", "ENV030"]
    assert [each["text"] for each in told["lines"]] == SCRIPT.split("\n")[1:3]
    assert told["counts"] == {"errors": 0, "warnings": 2, "notes": 0}
    assert told["findings"][0]["where"] == {"file": str(script), "line": 2, "column": 8}


def test_a_fix_is_a_diff_and_changes_no_file(script: Path):
    done = run(str(script), "--fix")

    assert done.exit_code == 1
    assert "-export NCCL_MIN_CHANNELS=32\n-export NCCL_BUFFSIZE=8M\n+export NCCL_MIN_NCHANNELS=32\n" in done.stdout
    assert "+export NCCL_BUFFSIZE=8388608\n" in done.stdout
    assert script.read_text() == SCRIPT


def test_a_fix_that_leaves_a_note_for_a_warning_is_worth_it():
    done = run("-", "--fix", text="export NCCL_MIN_CHANNELS=32\nsrun ./app\n")

    assert "+export NCCL_MIN_NCHANNELS=32\n" in done.stdout
    assert "1 of 1 findings are gone" in done.stderr


def test_a_settings_file_that_a_script_writes_is_corrected_line_by_line():
    lines = 'NCCL_DEBUG = "WARN"\nexport NCCL_SOCKET_IFNAME="eth0"\n'
    done = run("-", "--fix", text=f"cat > ~/.nccl.conf <<EOF\n{lines}EOF\necho NCCL_DEBUG = 1 > /etc/nccl.conf\n")

    assert "+NCCL_DEBUG=WARN\n+NCCL_SOCKET_IFNAME=eth0\n EOF\n" in done.stdout
    assert done.stdout.count("\n+") == 3


def test_a_fix_of_what_is_right_is_empty():
    done = run("-", "--fix", text="export NCCL_SOCKET_IFNAME=eth0\nsrun ./app\n")

    assert (done.exit_code, done.stdout) == (0, "")


def test_a_fix_can_be_json(script: Path):
    told = json.loads(run(str(script), "--fix", "--json").stdout)

    assert told["findings"] > told["left"]
    assert told["diff"].startswith("--- ")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ((), "nothing to lint is given"),
        (("a.sh", "--here"), "FILE and --here are given"),
        (("--here", "--fix"), "--fix is for a file"),
        (("--here", "--as", "shell"), "--as is for a file"),
        (("/nowhere/a.sh",), "cannot read /nowhere/a.sh"),
        (("-", "--as", "klingon"), "no such kind of text"),
        (("-", "--platform", "azure-nd-h900"), "no platform is called"),
        (("-", "--nccl", "newest"), "is not a version"),
    ],
)
def test_what_cannot_be_linted_is_refused_in_words(arguments: tuple[str, ...], cause: str):
    done = run(*arguments, text="export A=b\n")

    assert isinstance(done.exception, InputError)
    assert cause in done.exception.cause


def test_text_from_the_file_cannot_move_the_cursor(tmp_path: Path):
    file = tmp_path / "job.sh"
    file.write_text("export NCCL_MIN_CHANNELS='\x1b[2J\u202e'\nsrun ./app\n")

    done = run(str(file))

    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_this_environment_is_linted_where_nccl_reads_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_NVLS_ENABLE=1\nNCCL_BUFFSIZE = 8M\n")
    monkeypatch.setenv("NCCL_CONF_FILE", str(conf))
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("NCCL_TOPO_FILE", "/nowhere/topo.xml")

    told = json.loads(run("--here", "--json", "--platform", "azure-nd-h100-v5").stdout)

    codes = {each["code"] for each in told["findings"]}
    assert {"ENV014", "ENV030", "ENV060", "ENV130"} <= codes
    assert str(conf) in told["files"]

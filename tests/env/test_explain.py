"""`env explain`: what is known of a variable, what is in force, and what is meant by a name that nothing reads."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from busbw.base.errors import BusbwError, ExitCode
from busbw.cli.command import busbw
from busbw.env.layers import explain
from busbw.facts.envvars import misspellings, variables
from busbw.facts.platforms import all_platforms
from busbw.model.settings import JobEnvironment, SettingsFile
from busbw.show.text.envvar import explanation_text


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(busbw, ["env", "explain", *arguments], env=environment)


def surroundings(environment: dict[str, str], *, own: str = "", nccl: str | None = None) -> JobEnvironment:
    files = (SettingsFile(path="/home/u/.nccl.conf", layer="conf", text=own),)
    return JobEnvironment(where="a host", environment=environment, files=files, nccl=nccl)


def test_a_variable_is_explained_for_the_newest_version_that_is_known() -> None:
    told = explain("NCCL_IB_TIMEOUT")
    assert told.variable == variables()["NCCL_IB_TIMEOUT"]
    assert (told.default, told.standing, told.version_note) == ("20", "yes", None)


def test_a_variable_is_explained_for_the_version_asked_for() -> None:
    assert explain("NCCL_IB_TIMEOUT", nccl=(2, 20, 5)).default == "18"
    assert explain("NCCL_MNNVL", nccl=(2, 20, 5)).standing == "yes"
    assert explain("NCCL_NVLS_ENABLE", nccl=(2, 14, 3)).standing == "not yet"


def test_a_version_that_nobody_has_looked_at_is_not_guessed_about() -> None:
    assert "newer than" in (explain("NCCL_DEBUG", nccl=(2, 99)).version_note or "")


def test_the_version_is_that_of_the_surroundings_where_none_is_asked_for() -> None:
    found = surroundings({}, nccl="2.20.5+cuda12.4")
    assert explain("NCCL_IB_TIMEOUT", surroundings=found).version == "2.20.5"
    assert explain("NCCL_IB_TIMEOUT", surroundings=found, nccl=(2, 28, 3)).version == "2.28.3"


def test_a_variable_of_another_reader_is_not_told_by_versions_of_nccl() -> None:
    told = explain("UCX_TLS", nccl=(2, 20, 5))
    assert told.variable is not None
    assert (told.version, told.standing) == (None, None)


def test_the_choice_in_force_comes_first_and_those_that_lost_after_it() -> None:
    found = surroundings({"NCCL_BUFFSIZE": "8M"}, own="NCCL_BUFFSIZE=1048576\n")
    told = explain("NCCL_BUFFSIZE", surroundings=found).in_force
    assert told is not None
    assert [(each.layer, each.value) for each in told.choices] == [("shell", "8M"), ("conf", "1048576")]
    assert told.understood is not None
    assert told.understood.value == "8"
    assert told.understood.problem is not None


def test_nothing_is_in_force_where_nobody_sets_it() -> None:
    told = explain("NCCL_BUFFSIZE", surroundings=surroundings({})).in_force
    assert told is not None
    assert (told.choices, told.understood) == ((), None)


def test_what_platforms_set_it_to_is_told_with_reason_and_source() -> None:
    recipes = explain("NCCL_SOCKET_IFNAME", platforms=all_platforms()).recipes
    (coreweave,) = [each for each in recipes if "coreweave-h100" in each.platforms]
    assert (coreweave.value, coreweave.reason) == ("eth0", "Start-up over the front-end Ethernet.")
    assert "coreweave/nccl-tests" in coreweave.source[0]


def test_platforms_that_agree_are_one_recipe() -> None:
    recipes = explain("NCCL_SOCKET_IFNAME", platforms=all_platforms()).recipes
    told = [(each.value, each.goal, each.reason, each.source) for each in recipes]
    assert len(told) == len(set(told))


def test_what_a_plugin_sets_by_itself_is_told() -> None:
    assert [(each.by, each.value) for each in explain("NCCL_BUFFSIZE").exports] == [("aws-ofi-nccl", "8388608")]


def test_the_names_that_are_mistaken_for_it_are_told() -> None:
    assert "NCCL_MIN_CHANNELS" in {each.seen for each in explain("NCCL_MIN_NCHANNELS").misspellings}


@pytest.mark.parametrize("name", misspellings())
def test_every_known_mistake_is_explained_as_one(name: str) -> None:
    told = explain(name)
    assert told.mistaken == misspellings()[name]
    assert told.variable is not None or told.read.verdict != "known"


def test_every_variable_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, var in variables().items():
        explanation_text(explain(name))
        printed = capsys.readouterr().out
        assert var.meaning in printed
        assert printed.startswith(f"{name}: {var.owner}, ")
        assert "None" not in printed.replace("None of", ""), printed


def test_a_page_fits_into_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    platforms = all_platforms()
    for name in ("NCCL_IB_HCA", "NCCL_IB_TIMEOUT", "NCCL_DEBUG_SUBSYS", "NCCL_ALGO", "UCX_TLS", "NCCL_MIN_CHANNELS"):
        explanation_text(explain(name, platforms=platforms))
        lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
        # A name, an address or a list of devices is never broken.
        assert all(len(line) <= 80 or len(line.split()) <= 3 for line in lines), max(lines, key=len)


def test_a_variable_is_printed_with_what_people_ask_for() -> None:
    done = run("NCCL_IB_TIMEOUT")
    assert done.exit_code == ExitCode.OK
    assert "20 (14 since 2.3.5, 18 since 2.14.3, 20 since 2.23.4)" in done.output
    assert "NCCL_IB_TIME_OUT" in done.output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_MIN_CHANNELS", "NCCL_MIN_NCHANNELS"),
        ("NCCL_NVLS_DISABLE", "says the opposite"),
        ("NCCL_DEBGU", "maybe: NCCL_DEBUG"),
        ("nccl_debug", "maybe: NCCL_DEBUG"),
        ("NCCL_NOBODY_WOULD_MEAN_THIS_ONE", "nothing that busbw knows reads it"),
    ],
)
def test_a_name_that_nothing_reads_is_told_what_was_meant(name: str, words: str) -> None:
    done = run(name)
    assert done.exit_code == ExitCode.FINDINGS
    assert words in done.output


def test_a_name_that_anybody_may_make_up_is_not_called_wrong() -> None:
    assert run("MY_JOB_NAME").exit_code == ExitCode.CANNOT_TELL


def test_a_variable_that_the_version_does_not_read_is_a_finding() -> None:
    done = run("NCCL_TREE_THRESHOLD", "--nccl", "2.28.9")
    assert done.exit_code == ExitCode.FINDINGS
    assert "no longer by 2.28.9" in done.output


def test_json_holds_the_same() -> None:
    done = run("NCCL_DEBUG", "--json")
    told = json.loads(done.output)
    assert (told["name"], told["variable"]["owner"], told["standing"]) == ("NCCL_DEBUG", "NCCL", "yes")


def test_here_tells_who_set_it_and_which_lost(tmp_path: Path) -> None:
    own = tmp_path / "mine.conf"
    own.write_text("NCCL_BUFFSIZE=1048576\n")
    done = run("NCCL_BUFFSIZE", "--here", NCCL_CONF_FILE=str(own), NCCL_BUFFSIZE="8388608")
    assert done.exit_code == ExitCode.OK
    assert 'in force  NCCL_BUFFSIZE = "8388608"  environment' in done.output
    assert f'lost      NCCL_BUFFSIZE = "1048576"  own settings file: {own}:1' in done.output


def test_run_tells_what_a_run_was_started_with(tmp_path: Path) -> None:
    there = tmp_path / "run1"
    started = [
        Path(sys.executable).with_name("busbw"),
        "run",
        "all_reduce",
        "-n",
        "2",
        "-b",
        "8",
        "-e",
        "8",
        "--time-limit",
        "1",
        "-o",
        there,
    ]
    subprocess.run(started, env={**os.environ, "NCCL_CROSS_NIC": "0"}, capture_output=True, timeout=60, check=False)
    done = run("NCCL_CROSS_NIC", "--run", str(there))
    assert done.exit_code == ExitCode.OK
    assert 'in force  NCCL_CROSS_NIC = "0"  environment' in done.output


def test_a_value_cannot_write_on_the_terminal() -> None:
    done = run("NCCL_DEBUG_FILE", "--here", NCCL_DEBUG_FILE="/x\x1b[31m\nNCCL_DEBUG: fine")
    assert "\x1b" not in done.output
    assert "\nNCCL_DEBUG: fine" not in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("NCCL_DEBUG", "--nccl", "newest"), "is not a version"),
        (("NCCL_DEBUG", "--here", "--run", "x"), "name two places"),
        (("NCCL_DEBUG", "--run", "no-such-run"), "no-such-run"),
    ],
)
def test_what_cannot_be_answered_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, BusbwError)
    assert done.exception.exit_code == ExitCode.BAD_INPUT
    assert words in str(done.exception)


@pytest.mark.parametrize(
    "name", ["", "=", "NCCL DEBUG", "NCCL_DEBUG=INFO", "\x1b[31m", "é" * 300, "NCCL_" + "A" * 100_000]
)
def test_any_text_in_place_of_a_name_gets_an_answer(name: str) -> None:
    done = run("--", name)
    assert done.exit_code in (ExitCode.FINDINGS, ExitCode.CANNOT_TELL), done.output
    assert "\x1b" not in done.output

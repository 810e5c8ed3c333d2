"""`busbw runs` and `busbw trend` as commands: what they print, and their exit codes."""

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from busbw.base.errors import BusbwError
from busbw.cli.command import busbw
from busbw.model.history import ListRow

from .stored import keep, make_run

Command = Callable[..., Result]
HOSTILE = "\x1b[31mred\u202e|<b>x</b>`*_\"'&\n# head"


@pytest.fixture
def command(base: Path) -> Command:
    """Return what runs a verb in this process, with an exit code as the command has."""

    def run(*arguments: object) -> Result:
        done = CliRunner().invoke(busbw, [str(each) for each in arguments])
        if isinstance(done.exception, BusbwError):
            done.exit_code = int(done.exception.exit_code)
        elif done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run


def nightly(base: Path, before: int, after: int, **changes: object) -> None:
    rng = random.Random(1)
    for number in range(before + after):
        slower = (1.0 if number < before else 1.06) * rng.gauss(1, 0.003)
        keep(make_run(number, slower=slower, **changes), base)  # type: ignore[arg-type]


def test_the_list_shows_the_last_fifty_and_says_so(base: Path, command: Command):
    for number in range(53):
        keep(make_run(number), base)
    done = command("runs")
    assert len(done.stdout.splitlines()) == 51
    assert done.stderr.splitlines()[-1] == "the last 50 of 53; all of them with: --limit 0"
    assert len(command("runs", "--limit", 0).stdout.splitlines()) == 54
    assert len(json.loads(command("runs", "--json").stdout)) == 53
    assert len(json.loads(command("runs", "--json", "--limit", 2).stdout)) == 2


def test_a_run_that_cannot_be_read_is_listed_with_the_reason_in_place_of_what_it_measured(base: Path, command: Command):
    (keep(make_run(0), base) / "run.json").write_bytes(b"{")

    (_heading, line) = command("runs", "--limit", 0).stdout.splitlines()

    assert "unreadable" in line
    assert "not a valid run" in line


def test_csv_has_a_column_for_each_field(base: Path, command: Command):
    keep(make_run(0, tag="=1+1"), base)
    (heading, line) = csv.reader(io.StringIO(command("runs", "--csv").stdout, newline=""))
    assert tuple(heading) == ListRow.__struct_fields__
    assert line[heading.index("tag")] == "'=1+1"


def test_an_empty_list_says_why_it_is_empty(base: Path, command: Command):
    assert "no runs in" in command("runs").stderr
    keep(make_run(0), base)
    done = command("runs", "--host", "other")
    assert (done.stdout, done.exit_code) == ("", 0)
    assert "no run in" in done.stderr


def test_wrong_options_are_bad_input(base: Path, command: Command):
    assert command("runs", "--since", "yesterday").exit_code == 2
    assert command("runs", "--json", "--csv").exit_code == 2
    assert command("trend", "speed").exit_code == 2
    assert command("trend", "busbw", "--false-alarms", "0").exit_code == 2
    assert command("trend", "busbw", "--least", "-1").exit_code == 2
    assert command("trend", "busbw", "-o", base).exit_code == 2


def test_tags_are_given_and_taken(base: Path, command: Command):
    directory = keep(make_run(0, tag="nightly"), base)
    assert command("runs", "tag", "last", "golden", "b=1").exit_code == 0
    assert "nightly b=1 golden" in command("runs").stdout
    assert command("runs", "untag", directory, "b=1").exit_code == 0
    refused = command("runs", "untag", directory.name, "nightly")
    assert refused.exit_code == 2
    assert "part of it" in str(refused.exception)
    assert command("runs", "untag", directory.name, "other").exit_code == 2
    assert command("runs", "tag", "last", "ok", "not/ok").exit_code == 2
    assert json.loads(command("runs", "--json").stdout)[0]["tags"] == ["nightly", "golden"], "all or none were given"


def test_a_regression_exits_with_one_and_says_why_in_one_line(base: Path, command: Command):
    nightly(base, 25, 12)
    asked = ("trend", "busbw", "--size", "16K", "--in-place", "out")
    assert command(*asked).exit_code == 0
    done = command(*asked, "--fail-on-regression")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("regression: all_reduce 16 KiB on node00 is worse by 5.")
    as_json = command(*asked, "--fail-on-regression", "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["outcome"] == "worse"
    assert as_json.stderr.startswith("regression: ")


def test_steady_exits_with_zero_and_too_few_with_four(base: Path, command: Command):
    nightly(base, 25, 0)
    assert command("trend", "busbw", "--size", "16K", "--in-place", "out", "--fail-on-regression").exit_code == 0
    assert command("trend", "busbw", "--until", "2026-01-05", "--fail-on-regression").exit_code == 4
    assert command("trend", "busbw", "--size", 3, "--fail-on-regression").exit_code == 4


def test_a_trend_is_written_whole_in_every_form(base: Path, command: Command, tmp_path: Path):
    nightly(base, 25, 12)
    for form in ("text", "json", "csv", "markdown", "prometheus"):
        target = tmp_path / f"trend.{form}"
        done = command("trend", "time", "--size", "16K", "--in-place", "out", "--format", form, "-o", target)
        assert (done.exit_code, done.stdout) == (0, "")
        assert target.stat().st_size > 100
    rows = list(csv.DictReader(io.StringIO((tmp_path / "trend.csv").read_text(), newline="")))
    assert [row["run_id"][-4:] for row in rows if row["change_share"]] == ["0025"]
    assert len(rows) == 37
    assert 'busbw_trend_outcome{outcome="worse"' in (tmp_path / "trend.prometheus").read_text()


def test_a_hostile_host_and_tag_reach_no_terminal_and_are_no_markup(base: Path, command: Command):
    nightly(base, 25, 12, host=HOSTILE, tag=HOSTILE)
    asked = ("trend", "busbw", "--size", "16K", "--in-place", "out")
    for arguments in (("runs",), ("runs", "--csv"), asked, (*asked, "--format", "markdown"),
                      (*asked, "--format", "prometheus"), (*asked, "--format", "csv")):  # fmt: skip
        done = command(*arguments)
        assert "\x1b" not in done.output, arguments
        assert "\u202e" not in done.output, arguments
    markdown = command(*asked, "--format", "markdown").stdout
    assert "<b>" not in markdown
    assert "\n# head" not in markdown
    (line,) = [line for line in markdown.splitlines() if "16 KiB" in line and line.startswith("| ")]
    assert line.count("|") == 7


def test_lines_fit_a_narrow_terminal(base: Path, command: Command, monkeypatch: pytest.MonkeyPatch):
    from busbw.show.text.history import listing_lines

    from .asking import listed

    nightly(base, 3, 0, host="a-host-with-a-name-that-is-longer-than-others.example.org", tag="t" * 60)
    for width in (80, 100, 140):
        assert max(map(len, listing_lines(listed(base), width))) <= width

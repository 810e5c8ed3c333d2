"""`busbw report`, `busbw plot` and `busbw show` on stored runs: files, exit codes, errors, and nothing hostile."""

import unicodedata
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.model import codec
from busbw.model.run import Run

from .factories import make_empty_run, make_hostile_run, make_plan_of, make_run
from .valued import make_comparison, make_scaling


def store(base: Path, name: str, run: Run) -> None:
    (base / name / layout.RAW_DIRECTORY).mkdir(parents=True)
    plan = msgspec.structs.replace(run.plan, run_id=name)
    (base / name / layout.PLAN_FILE).write_bytes(codec.encode_pretty(plan))
    (base / name / layout.RUN_FILE).write_bytes(codec.encode_pretty(msgspec.structs.replace(run, plan=plan)))


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what calls busbw in an empty folder beside two stored runs, a hostile one and an empty one."""
    runs = tmp_path / "runs"
    store(runs, "first", make_run(make_plan_of("all_reduce")))
    store(runs, "second", make_run(make_plan_of("all_reduce", "alltoall")))
    store(runs, "third-hostile", make_hostile_run())
    store(runs, "none", make_empty_run())
    monkeypatch.setenv("BUSBW_RUNS", str(runs))
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> Result:
        return CliRunner().invoke(busbw, list(argv))

    return call


def error_of(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.exception
    return str(result.exception)


def test_a_report_of_one_run_and_of_several_is_written(called):
    assert called("report", "first").exit_code == 0
    assert called("report", "first", "second", "first", "-o", "two.html").exit_code == 0

    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
    assert "busbw: 2 runs" in Path("two.html").read_text()


def test_a_report_draws_the_machine_that_is_named(called):
    called("report", "first", "--machine", "azure-nd-h100-v5")

    assert "azure-nd-h100-v5, as named for this report" in Path("report.html").read_text()


@pytest.mark.parametrize("name", ["curves.svg", "curves.png"])
def test_curves_are_drawn_into_the_kind_of_file_that_is_named(called, name: str):
    if name.endswith("png"):
        pytest.importorskip("resvg_py")
    assert called("plot", "first", "second", "-o", name).exit_code == 0

    assert Path(name).read_bytes().startswith(b"<svg" if name.endswith("svg") else b"\x89PNG")


def test_comparison_and_scaling_are_drawn_from_their_json(called):
    Path("c.json").write_bytes(codec.encode(make_comparison()))
    Path("s.json").write_bytes(codec.encode(make_scaling()))

    assert called("plot", "--comparison", "c.json", "-o", "c.svg").exit_code == 0
    assert called("plot", "--scaling", "s.json", "-o", "s.svg").exit_code == 0
    assert called("report", "--comparison", "c.json", "--scaling", "s.json").exit_code == 0

    assert "B faster than A (%)" in Path("c.svg").read_text()
    assert "share of the limit" in Path("s.svg").read_text()
    assert 'id="comparison"' in Path("report.html").read_text()


def test_scaling_of_an_older_busbw_is_a_page_without_a_verdict(called):
    # Schema 1 had neither a verdict nor how many points a bend rests on.
    bend = '{"answer":"bends","at":4,"after":2,"drop":0.2,"words":"from 4 nodes on"}'
    points = '{"at":2,"busbw_Bps":{"value":2e11}},{"at":4,"busbw_Bps":{"value":1.6e11}}'
    view = f'{{"kind":"collective","title":"all_reduce","axis":"nodes","series":[{{"label":"","points":[{points}],'
    Path("old.json").write_text(f'{{"schema":1,"views":[{view}"bend":{bend}}}]}}]}}')

    assert called("report", "--scaling", "old.json").exit_code == 0

    page = Path("report.html").read_text()
    assert "from 4 nodes on" in page
    assert 'class="verdict' not in page


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("plot", "first", "-o", "curves.pdf"), "ends neither in .svg nor in .png"),
        (("plot", "none"), "nothing was measured"),
        (("plot", "first", "second", "--figure", "spread"), "the spread is one run's"),
        (("plot", "--comparison", "absent.json"), "cannot read absent.json"),
        (("plot", "--comparison", "wrong.json"), "this is not a comparison: "),
        (("report", "--scaling", "wrong.json"), "this is not a scaling report: "),
        (("report", "--comparison", "newer.json"), "written by a newer busbw"),
        (("report", "--comparison", "sides.json"), "a side is held against the first that is not there"),
        (("report", "first", "--machine", "no-such-machine"), "no-such-machine"),
        (("report", "fourth"), "no run 'fourth'"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_leaves_no_file(called, argv: tuple[str, ...], said: str):
    Path("wrong.json").write_text('{"schema": 1, "sides": 3}')
    Path("newer.json").write_text('{"schema": 99}')
    sides = make_comparison()
    versus = (msgspec.structs.replace(sides.versus[0], other=7),)
    Path("sides.json").write_bytes(codec.encode(msgspec.structs.replace(sides, versus=versus)))

    assert said in error_of(called(*argv))
    assert not list(Path().glob("*.html")) + list(Path().glob("curves.*"))


def test_a_drawing_is_of_one_thing(called):
    result = called("plot", "first", "--comparison", "c.json")

    assert result.exit_code == 2
    assert "name one of them" in result.output


@pytest.mark.parametrize("argv", [("show", "third"), ("report", "third"), ("plot", "third")])
def test_a_hostile_run_sends_no_control_code_to_the_terminal(called, argv: tuple[str, ...]):
    result = called(*argv)

    shown = result.output
    assert not {
        character for character in shown if unicodedata.category(character) in ("Cc", "Cf") and character != "\n"
    }
    assert argv[0] != "show" or "\\x1b[31m" in shown


def test_show_has_the_curves(called):
    shown = called("show", "second").output

    assert shown.count("# time  ▁") == 2
    assert shown.count("# busbw ▁") == 2

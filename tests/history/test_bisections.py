"""Bisections in the list of runs, shown and reported by name."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.report.valued import make_comparison

from busbw.api.stored import find, find_stored
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.model.comparison import (
    Bisection,
    BisectionPlan,
    BisectionStep,
    Cause,
    Comparison,
    ComparisonPlan,
    PlannedLaunch,
    PlannedSide,
)
from busbw.store import bisections, comparisons

from .stored import keep, make_run

NAME = "20260104T000000-bisect-all_reduce-7"
PLAN = BisectionPlan(
    busbw_version="0",
    good="default",
    bad="<b>NCCL_PROTO=LL</b> NCCL_ALGO=Tree",
    items=("NCCL_PROTO (unset before, LL after)", "NCCL_ALGO (unset before, Tree after)"),
    in_order=False,
    collectives=("all_reduce",),
    blocks=30,
    seed=1,
)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(busbw, arguments)


def listed(*arguments: str) -> list[dict[str, object]]:
    return json.loads(call("runs", "--json", *arguments).stdout)


def answered(ends: Comparison) -> Bisection:
    estimate = ends.versus[0].points[0].estimate
    return Bisection(
        plan=PLAN,
        point="all_reduce 8 B",
        whole=estimate,
        steps=(BisectionStep(folder="step-01", items=(0,), estimate=estimate, answer="shows"),),
        causes=(Cause(items=(0,)),),
        outcome="found",
        sentence="bad is 20 % slower than good at all_reduce 8 B; NCCL_PROTO (unset before, LL after) does it",
    )


def searched(base: Path, *, with_ends: bool = True, with_result: bool = True) -> Path:
    where, ends = base / NAME, make_comparison()
    bisections.create(where, PLAN)
    if with_ends:
        launch = make_run(3, host="node07", platform="aws-p5")
        plan = ComparisonPlan(
            busbw_version="0",
            comparison_id="ends",
            created=launch.plan.created,
            seed=1,
            sides=(PlannedSide(letter="A", name="default"), PlannedSide(letter="B", name="bad")),
            launches=(PlannedLaunch(folder="launch-001-A", side=0, block=0),),
            budget_s=60,
            launch_limit_s=1,
        )
        comparisons.create(plan, (launch.plan,), where / bisections.ENDS)
        comparisons.write(where / bisections.ENDS, ends)
    if with_result:
        bisections.write(where, answered(ends))
    return where


def test_a_bisection_is_listed_selected_and_tagged_with_what_it_found(base: Path):
    keep(make_run(0), base)
    searched(base)
    assert call("runs", "tag", NAME, "golden").exit_code == 0

    for selection in ((), ("--kind", "bisection"), ("--verdict", "found"), ("--tag", "golden"), ("--host", "node07")):
        row = listed(*selection)[-1]
        assert (row["run_id"], row["kind"], row["outcome"], row["ended"]) == (NAME, "bisection", "found", "complete")
    assert "NCCL_PROTO" in str(row["sentence"])
    assert (row["platform"], row["tags"]) == ("aws-p5", ["golden"])
    assert len(listed("--kind", "run")) == 1
    assert NAME in call("runs").stdout


def test_one_that_was_cut_off_is_unfinished_and_is_read_again_when_it_goes_on(base: Path):
    where = searched(base, with_ends=False, with_result=False)
    (row,) = listed()
    assert (row["outcome"], row["ended"]) == ("cannot_tell", "unfinished")
    assert "0 comparisons of it begun" in str(row["sentence"])

    bisections.write(where, answered(make_comparison()))

    assert (listed()[0]["outcome"], listed()[0]["ended"]) == ("found", "complete")


def test_show_prints_it_again(base: Path):
    where = searched(base)

    text, encoded = call("show", NAME[:18]), call("show", str(where / "bisection.json"), "--json")

    assert text.exit_code == encoded.exit_code == 0
    assert "NCCL_PROTO (unset before, LL after) does it" in text.stdout.replace("\n", " ")
    assert json.loads(encoded.stdout)["causes"] == [{"items": [0]}]


def test_show_of_one_that_was_cut_off_says_how_to_go_on(base: Path):
    where = searched(base, with_result=False)

    done = call("show", str(where))

    assert done.exit_code == 4
    assert "1 comparison of it begun" in done.stdout.replace("\n", " ")
    assert f"--out {where}" in done.stdout.replace("\n", "")


@pytest.mark.parametrize("with_ends", [True, False])
def test_a_report_says_what_was_asked_and_answered_above_the_ends(base: Path, tmp_path: Path, with_ends: bool):
    searched(base, with_ends=with_ends)
    page = tmp_path / "page.html"

    assert call("report", NAME, "-o", str(page)).exit_code == 0

    html = page.read_text()
    assert "NCCL_PROTO (unset before, LL after) does it" in html
    assert '<td class="text">does it</td>' in html
    assert "<title>found: busbw bisect</title>" in html
    assert "&lt;b&gt;NCCL_PROTO=LL&lt;/b&gt;" in html
    assert ('id="comparison"' in html) == with_ends


def test_one_page_holds_one_comparison_or_bisection(base: Path):
    where = searched(base)
    error = call("report", NAME, str(where / bisections.ENDS)).exception
    assert isinstance(error, InputError)
    assert "one page holds one comparison" in error.cause


def test_verbs_for_runs_say_that_it_is_a_bisection(base: Path):
    where = searched(base)
    for verb in (("judge", NAME), ("load", NAME), ("export", NAME, "--format", "csv"), ("scaling", NAME)):
        error = call(*verb).exception
        assert isinstance(error, InputError)
        assert "bisection" in error.cause
        assert str(where) in str(error)


@pytest.mark.parametrize(
    "damage", [b"{", b'{"schema": 99}', json.dumps({"plan": {"items": []}}).encode()], ids=["torn", "newer", "short"]
)
def test_a_damaged_one_is_listed_as_unreadable(base: Path, damage: bytes):
    where = searched(base)
    (where / "result.json").write_bytes(damage)

    (row,) = listed()

    assert (row["kind"], row["outcome"]) == ("bisection", "unreadable")
    assert isinstance(call("show", NAME).exception, InputError)


def test_one_that_speaks_of_what_it_does_not_have_is_damaged(base: Path):
    where = searched(base)
    content = json.loads((where / "result.json").read_bytes())
    content["causes"] = [{"items": [5]}]
    (where / "result.json").write_text(json.dumps(content))

    assert isinstance(call("show", NAME).exception, InputError)


def test_an_answer_of_schema_1_is_withdrawn_and_says_how_to_get_another(base: Path):
    where = searched(base)
    content = json.loads((where / "result.json").read_bytes())
    (where / "result.json").write_text(json.dumps({**content, "schema": 1}))

    shown = call("show", NAME, "--json")
    found = json.loads(shown.stdout)

    assert (shown.exit_code, found["outcome"], found["causes"]) == (4, "cannot_tell", [])
    assert found["steps"][0]["answer"] == "unclear"
    assert f"the same command with --out {where}" in found["sentence"]
    assert listed()[0]["outcome"] == "cannot_tell"


def test_last_is_a_bisection_only_where_there_is_nothing_else(base: Path):
    where = searched(base)
    assert find_stored("last") == where

    kept = keep(make_run(0), base)

    assert find_stored("last") == find("last") == kept

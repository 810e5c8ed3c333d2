"""Comparisons in the list of runs, and shown by name."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from tests.report.valued import make_comparison

from busbw.api.reports import comparison
from busbw.api.stored import find, find_stored
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.model import codec
from busbw.model.comparison import Comparison, ComparisonPlan, ComparisonVerdict, PlannedLaunch, PlannedSide
from busbw.store import comparisons
from busbw.store import outcome as outcomes

from .stored import keep, make_run

NAME = "20260103T000000-compare-all_reduce-1"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(busbw, arguments)


def listed(*arguments: str) -> list[dict[str, object]]:
    return json.loads(call("runs", "--json", *arguments).stdout)


def compared(base: Path, result: Comparison | None, *, ended: int = 0) -> Path:
    """Store a comparison of two launches of which some have ended, with its result where there is one."""
    launch = make_run(2, host="node07", platform="aws-p5")
    folders = ("launch-001-A", "launch-002-B")
    plan = ComparisonPlan(
        busbw_version="0",
        comparison_id=NAME,
        created=launch.plan.created,
        seed=1,
        sides=(PlannedSide(letter="A", name="default"), PlannedSide(letter="B", name="NCCL_PROTO=LL")),
        launches=tuple(PlannedLaunch(folder=folder, side=side, block=0) for side, folder in enumerate(folders)),
        budget_s=60,
        launch_limit_s=1,
    )
    where = base / NAME
    comparisons.create(plan, (launch.plan, launch.plan), where)
    for folder in folders[:ended]:
        assert launch.outcome is not None
        outcomes.write(where / folder, launch.outcome)
    if result is not None:
        comparisons.write(where, result)
    return where


def test_a_comparison_is_listed_with_what_it_claims(base: Path):
    keep(make_run(0), base)
    result = make_comparison()
    compared(base, replace(result, blocks_planned=result.blocks))

    (run, row) = listed()

    assert (run["kind"], row["kind"], row["outcome"]) == ("run", "comparison", result.verdict.outcome)
    assert (row["sentence"], row["platform"], row["host"]) == (result.verdict.sentence, "aws-p5", "node07")
    assert row["measured"] == max(len(versus.points) for versus in result.versus)
    text = call("runs").stdout
    assert NAME in text
    assert text.splitlines()[0].split()[:5] == ["run", "ranks", "points", "verdict", "kind"]


def test_comparisons_are_selected_by_kind_and_claim_and_take_tags(base: Path):
    keep(make_run(0), base)
    result = make_comparison()
    compared(base, result)
    assert call("runs", "tag", NAME, "golden").exit_code == 0

    assert [row["run_id"] for row in listed("--kind", "comparison")] == [NAME]
    assert [row["run_id"] for row in listed("--verdict", result.verdict.outcome)] == [NAME]
    assert [row["run_id"] for row in listed("--tag", "golden")] == [NAME]
    assert len(listed("--kind", "run")) == 1


def test_a_comparison_without_a_result_is_unfinished_and_is_read_again_when_a_launch_ends(base: Path):
    where = compared(base, None, ended=1)
    (row,) = listed()
    assert (row["outcome"], row["ended"]) == ("cannot_tell", "unfinished")
    assert "1 of 2 launches have ended" in str(row["sentence"])

    launch = make_run(2)
    assert launch.outcome is not None
    outcomes.write(where / "launch-002-B", launch.outcome)

    assert "2 of 2 launches have ended" in str(listed()[0]["sentence"])


@pytest.mark.parametrize("damage", ["plan", "launch", "result", "no launch"])
def test_a_damaged_comparison_is_listed_as_unreadable(base: Path, damage: str):
    where = compared(base, make_comparison())
    path = where / {"launch": "launch-001-A/plan.json", "result": "result.json"}.get(damage, "comparison.json")
    plan = replace(comparisons.read_plan(where), launches=())
    path.write_bytes(b"{" if damage != "no launch" else json.dumps(plan, default=dict_of).encode())

    (row,) = listed()

    assert (row["kind"], row["outcome"]) == ("comparison", "unreadable")
    assert call("show", NAME).exit_code != 0 or damage == "launch"


def dict_of(value: object) -> object:
    return {name: getattr(value, name) for name in value.__struct_fields__}  # type: ignore[attr-defined]


def test_show_prints_a_comparison_by_the_beginning_of_its_name_and_writes_nothing(base: Path):
    result = make_comparison()
    where = compared(base, result)
    before = sorted(where.rglob("*"))

    done = call("show", NAME[:20])

    assert result.verdict.sentence.split(":")[-1].strip()[:30] in done.stdout.replace("\n", " ")
    assert json.loads(call("show", NAME, "--json").stdout)["sides"][1]["letter"] == "B"
    assert sorted(where.rglob("*")) == before


def test_show_of_an_unfinished_comparison_says_how_to_go_on(base: Path):
    where = compared(base, None)

    done = call("show", str(where))

    assert done.exit_code == 4
    assert "compare --resume" in done.stderr
    assert not (where / "result.json").exists()


def test_verbs_for_runs_say_that_it_is_a_comparison(base: Path):
    where = compared(base, make_comparison())
    for verb in (("judge", NAME), ("load", NAME), ("export", NAME, "--format", "csv"), ("scaling", NAME)):
        error = call(*verb).exception
        assert isinstance(error, InputError)
        assert "comparison" in error.cause
        assert str(where) in str(error)


def test_last_is_a_run_and_a_comparison_only_where_there_is_no_run(base: Path):
    where = compared(base, make_comparison())
    assert find_stored("last") == where

    kept = keep(make_run(0), base)

    assert find_stored("last") == find("last") == kept


def test_a_beginning_of_two_names_says_what_they_are(base: Path):
    keep(make_run(0), base)
    compared(base, make_comparison())

    with pytest.raises(InputError, match="means 2 runs and comparisons: 20260101T000000-0000, 20260103T"):
        find_stored("2026")


def test_other_folders_are_named_as_what_they_are(base: Path):
    (base / "one.job").mkdir()
    (base / "one.job" / "job.sh").touch()
    kept = keep(make_run(0), base / "older")

    for name in ("one.job", str(base / "one.job")):
        with pytest.raises(InputError, match="a job of the queue was submitted with") as refused:
            find_stored(name)
        assert refused.value.hint == f"what it measured is beside it: busbw show {base}/one"
    with pytest.raises(InputError, match="this folder holds runs") as refused:
        find_stored("older")
    assert refused.value.hint == f"what is in it: BUSBW_RUNS={base}/older busbw runs"
    assert find_stored(str(kept)) == kept


def of_schema_1(result: Comparison, comparison_id: str | None) -> dict[str, object]:
    """Return a result as it was stored before the order of the launches was part of it."""
    content = json.loads(codec.encode(replace(result, schema=1, comparison_id=comparison_id)))
    del content["design"]
    return content


def test_a_result_of_schema_1_is_listed_without_its_claims_and_judged_anew_when_it_is_shown(base: Path):
    where = compared(base, None)
    (where / "result.json").write_text(json.dumps(of_schema_1(make_comparison(), NAME)))

    (row,) = listed()
    shown = call("show", NAME, "--json")
    again = call("compare", str(where), "--json")

    assert row["outcome"] == "cannot_tell"
    assert f"busbw compare {NAME}" in str(row["sentence"])
    # Its launches were never started.
    assert shown.exit_code == 4
    assert "no block has a launch of both" in json.loads(shown.stdout)["verdict"]["sentence"]
    assert json.loads(again.stdout)["design"] == "mirrored_pairs"
    assert json.loads((where / "result.json").read_bytes())["schema"] == 2


@pytest.mark.parametrize(("comparison_id", "design"), [(NAME, "mirrored_pairs"), (None, "descriptive")])
def test_a_file_of_schema_1_keeps_what_was_measured_and_loses_what_was_claimed(
    tmp_path: Path, comparison_id: str | None, design: str
):
    old = make_comparison()
    path = tmp_path / "old.json"
    path.write_text(json.dumps(of_schema_1(old, comparison_id)))

    found = comparison(path)

    assert (found.design, found.false_claims, found.verdict.outcome) == (design, None, "cannot_tell")
    estimates = [point.estimate for point in found.versus[0].points]
    assert {each.claim for each in estimates} == {"cannot_tell"}
    assert [each.ratio for each in estimates] == [point.estimate.ratio for point in old.versus[0].points]
    page = tmp_path / "page.html"
    assert call("report", "--comparison", str(path), "-o", str(page)).exit_code == 0
    assert "false claims" not in page.read_text()


def test_wrong_results_of_schema_1_stay_wrong():
    old = make_comparison()
    wrong = ComparisonVerdict(outcome="wrong", sentence="wrong results", because=("CMP005",))
    content = of_schema_1(replace(old, verdict=wrong), NAME)

    assert comparisons.decoded(json.dumps(content).encode(), where="here").verdict == wrong


@pytest.mark.parametrize("verb", ["load", "judge", "export"])
def test_every_verb_for_runs_refuses_a_comparison_in_the_same_words(base: Path, verb: str):
    compared(base, make_comparison())

    refused = call(verb, NAME, *(("--format", "csv") if verb == "export" else ()))

    assert isinstance(refused.exception, InputError)
    assert str(refused.exception).startswith("error: this is a comparison, and a run or an import is asked for\n")
    assert "default" in call("show", NAME).stdout

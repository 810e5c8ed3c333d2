"""What makes a comparison unfair is refused or said."""

import pytest
from tests.report.factories import make_run

from busbw.base.errors import InputError
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.fairness import REFUSED, differences
from busbw.judge.comparing.launch import imported_points, of_run, of_table
from busbw.model.imported import Reading, Table

from .made import launch, point, sides, steady

ONE_EACH = [launch(0, 0, point(1e-6)), launch(1, 0, point(1e-6))]


def codes(first, other, kind="run"):
    return [each.code for each in differences(sides("a", "b", kind=kind), [first, other])]


@pytest.mark.parametrize("code", REFUSED)
def test_what_can_never_be_fair_is_refused_unless_asked_for(code):
    unlike = [{code: "one way"}, {code: "another"}]

    with pytest.raises(InputError, match="no fair comparison") as caught:
        compare(sides("a", "b", kind="run"), ONE_EACH, unlike, design="descriptive")
    found = compare(sides("a", "b", kind="run"), ONE_EACH, unlike, design="descriptive", anyway=True)

    assert "--anyway" in caught.value.hint
    assert found.findings[0].code == code
    assert found.findings[0].evidence == "A: one way; B: another"


@pytest.mark.parametrize("code", ["CMP006", "CMP007", "CMP008", "CMP009", "CMP010", "CMP011", "CMP012", "CMP018"])
def test_what_may_be_unfair_is_said(code):
    assert codes({code: "one way"}, {code: "another"}) == [code]
    assert codes({code: "one way"}, {code: "one way"}) == []


def test_what_one_side_does_not_tell_is_no_difference():
    assert codes({"CMP007": "NCCL 2.28.9"}, {}) == []


def test_between_settings_measured_in_turn_only_what_is_refused_counts():
    unlike = ({"CMP008": "plain", "CMP001": "stream"}, {"CMP008": "symmetric", "CMP001": "graph"})

    assert codes(*unlike, kind="settings") == ["CMP001"]


def test_only_the_settings_that_differ_are_named():
    shared = 'NCCL_DEBUG = "WARN"'
    (found,) = differences(
        sides("a", "b", kind="run"), [{"CMP013": shared}, {"CMP013": f'{shared}\nNCCL_PROTO = "LL,Simple"'}]
    )

    assert found.evidence == 'A: none of these; B: NCCL_PROTO = "LL,Simple"'


def test_single_launches_and_sides_that_were_not_interleaved_are_said():
    single = compare(sides("a", "b", kind="run"), ONE_EACH, [{}, {}], design="descriptive")
    several = compare(sides("a", "b", kind="run"), steady((1e-6, 2e-6)), [{}, {}], design="descriptive")

    assert [each.code for each in single.findings] == ["CMP014", "CMP017"]
    assert [each.code for each in several.findings] == ["CMP014"]
    assert "busbw compare --set default --set 'NAME=VALUE'" in several.findings[0].fix


def test_a_failed_launch_is_said_with_its_cause():
    launches = [*steady((1e-6, 2e-6)), launch(1, 18, ended="failed", cause="rank 1 was killed")]

    found = compare(sides("a", "b"), launches, [{}, {}], design="random_order")

    assert [(each.code, each.evidence) for each in found.findings] == [("CMP015", "B launch-18-1: rank 1 was killed")]


def test_a_run_tells_its_circumstances():
    run = make_run()

    found = of_run(run)

    assert found["CMP001"] == run.plan.sampling.mode
    assert found["CMP002"] == f"{run.plan.placement.ranks} ranks"
    assert found["CMP016"] == "verification on"


def table(**fields):
    lines = {"number": 0, "source": 0, "first_line": 1, "last_line": 9}
    return Table(**{**lines, "tool": "nccl-tests", "statistic": "mean", "complete": True, **fields})


@pytest.mark.parametrize(("version", "calls"), [("2.16.7", "5"), ("2.16.8", "1"), ("2.19.6", "1")])
def test_nccl_tests_warms_up_less_from_2_16_8_on(version, calls):
    assert of_table(table(tool_version=version))["CMP006"].startswith(f"nccl-tests with {calls} warm-up call")


def test_a_table_tells_ranks_library_and_what_its_tool_was_told():
    found = of_table(table(ranks=8, versions=(("NCCL", "2.28.9"),), parameters=(("graph", "4"), ("validation", "0"))))

    assert (found["CMP001"], found["CMP002"], found["CMP007"], found["CMP016"]) == (
        "graph 4", "8 ranks", "NCCL 2.28.9", "validation 0",
    )  # fmt: skip


def test_repeated_rows_of_a_table_are_one_point_of_their_median():
    rows = [
        Reading(table=0, line=line, what="all_reduce", size_bytes=1024, time_s=time_s, busbw_Bps=1024 / time_s)
        for line, time_s in enumerate((3e-6, 1e-6, 2e-6), start=1)
    ]

    (found,) = imported_points([*rows, Reading(table=0, line=9, what="all_reduce", size_bytes=1024)])

    assert found.time_s == 2e-6

"""Whatever launches hold and whatever stands in a comparison's folder, comparing ends in a value or a refusal."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.valued import make_comparison

from busbw.base.errors import InputError
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint, imported_points
from busbw.model import codec
from busbw.model.comparison import Comparison, Side
from busbw.model.imported import Reading
from busbw.store import comparisons

_TIMES = st.floats(min_value=5e-324, max_value=1.7e308)
_KEYS = st.builds(
    PointKey,
    collective=st.sampled_from(["all_reduce", "\x1b[2J", ""]),
    size_bytes=st.sampled_from([0, 8, 2**20, 2**62]),
    dtype=st.just("float32"),
    op=st.just("sum"),
    root=st.just(0),
    in_place=st.booleans(),
)
_POINTS = st.builds(
    TimedPoint,
    key=_KEYS,
    time_s=_TIMES,
    busbw_Bps=st.one_of(st.just(0.0), _TIMES),
    ranks=st.just(2),
    wrong=st.booleans(),
)
_LAUNCHES = st.lists(
    st.builds(
        Launch,
        side=st.integers(0, 2),
        block=st.integers(0, 8),
        name=st.text(max_size=5),
        points=st.lists(_POINTS, max_size=4).map(tuple),
        ended=st.sampled_from(["complete", "failed"]),
    ),
    max_size=24,
)
SIDES = tuple(Side(letter=letter, name=letter, kind="settings", launches=()) for letter in "ABC")


@given(_LAUNCHES, st.sampled_from(["random_order", "mirrored_pairs", "descriptive"]), st.booleans())
@settings(max_examples=60)
def test_any_launches_are_compared_to_something_that_can_be_stored(launches, design, mean):
    found = compare(SIDES, launches, [{}, {}, {}], design=design, geometric_mean=mean)

    assert codec.decode(codec.encode(found), Comparison, where="stored") == found


@given(
    st.lists(
        st.builds(
            Reading,
            table=st.just(0),
            line=st.just(1),
            what=st.just("all_reduce"),
            size_bytes=st.one_of(st.none(), st.just(8)),
            time_s=st.one_of(st.none(), st.floats()),
            busbw_Bps=st.one_of(st.none(), st.floats()),
            wrong=st.one_of(st.none(), st.integers(0, 3)),
        ),
        max_size=9,
    )
)
def test_any_readings_give_points_with_times(readings):
    assert all(0 < point.time_s < float("inf") for point in imported_points(readings))


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
PLAN = {
    "schema": 1, "busbw_version": "0", "comparison_id": "c", "created": "now", "seed": 1,
    "sides": [{"letter": "A", "name": "a"}, {"letter": "B", "name": "b"}],
    "launches": [{"folder": "launch-001-A", "side": 0, "block": 0}], "budget_s": 1.0, "launch_limit_s": 1.0,
}  # fmt: skip


@given(st.sampled_from(sorted(PLAN)), _JSON)
@settings(max_examples=60)
def test_any_plan_is_read_or_refused(tmp_path_factory, name, value):
    folder = tmp_path_factory.mktemp("comparison")
    (folder / comparisons.PLAN_FILE).write_text(json.dumps({**PLAN, name: value}))

    try:
        plan = comparisons.read_plan(folder)
    except InputError:
        return
    assert all(Path(launch.folder).name == launch.folder for launch in plan.launches)


@given(st.sampled_from(sorted(json.loads(codec.encode(make_comparison())))), _JSON, st.sampled_from([None, "it"]))
@settings(max_examples=60)
def test_any_result_of_schema_1_is_read_without_claims_or_refused(name, value, comparison_id):
    stored = json.loads(codec.encode(make_comparison()))
    del stored["design"]
    content = {**stored, "schema": 1, "comparison_id": comparison_id, name: value}

    try:
        found = comparisons.decoded(json.dumps(content).encode(), where="here")
    except InputError:
        return
    assert found.schema != 1 or all(
        point.estimate.claim == "cannot_tell" for versus in found.versus for point in versus.points
    )


@given(st.sampled_from(["..", "/etc", "a/b", "", "."]))
def test_a_launch_lies_within_its_comparison(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("comparison")
    launches = [{"folder": name, "side": 0, "block": 0}]
    (folder / comparisons.PLAN_FILE).write_text(json.dumps({**PLAN, "launches": launches}))

    with pytest.raises(InputError, match="not a launch of this comparison"):
        comparisons.read_plan(folder)

"""A step as ranks replay it: its groups, the order of its calls, and its times put together."""

from collections import Counter
from itertools import product
from pathlib import Path

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.plan import Groups
from busbw.model.record import Mismatch, StepsTaken
from busbw.model.train.moves import moves_of
from busbw.model.train.replay import StepAsked, StepPlan
from busbw.train.layout import layout_of, members
from busbw.train.planning import job_of
from busbw.train.replaying import RankRate, rate_of, result_of, step_of
from busbw.train.step import slowest, step_calls
from busbw.train.workloads import read_workload, workload_named

from .stepping import EIGHT

GOLDEN = Path(__file__).parent / "golden" / "step_of_eight.json"
RATE = RankRate(flops=1e11, words="of the test")
SHIPPED = ("toy-moe", "grok1-314b", "llama3-70b", "llama3-405b", "deepseek-v3-like")


def planned(name: str = "", scale_down: int = 1) -> tuple[StepPlan, tuple[object, ...]]:
    workload = workload_named(name) if name else read_workload(EIGHT, "eight.toml")
    asked = StepAsked(workload=name or "eight.toml", scale_down=scale_down)
    return step_of(job_of(workload, None, None), asked, RATE, 10.0, 16)


def test_the_planned_step_of_eight_ranks_is_as_it_was_read_once() -> None:
    plan, sweeps = planned()
    found = codec.encode_pretty(plan)
    assert found == GOLDEN.read_bytes()
    # What the ranks exchange alone is what they call in the step.
    assert [(each.collective, each.sizes_bytes) for each in sweeps] == [
        (call.collective, (call.size_bytes,)) for call in plan.calls
    ]


@pytest.mark.parametrize("name", ["", *SHIPPED])
def test_every_call_of_a_plan_is_replayed_as_often_in_groups_that_hold_each_rank_once(name: str) -> None:
    workload = workload_named(name) if name else read_workload(EIGHT, "eight.toml")
    job = job_of(workload, None, None)
    layout = layout_of(job.workload.model, job.configuration)
    called = step_calls(
        job.workload.model, job.configuration, layout, job.dtype, slowest(workload.model, job.configuration, layout)
    )
    try:
        plan, sweeps = planned(name)
    except InputError as error:
        assert "calls in a step are more than are replayed" in error.cause  # noqa: PT017 - the only reason there is
        assert 4 * sum(call.calls for call in called) > 2**17
        return
    assert {(call.name, call.calls) for call in plan.calls} <= {(call.name, call.calls) for call in called}
    for sweep in sweeps:
        seats = [sweep.within.seat(rank) for rank in range(layout.gpus)]
        assert len(set(seats)) == layout.gpus
        assert set(Counter(first for first, _place in seats).values()) == {sweep.within.size}
        for first in dict(seats):
            own = [rank for rank in range(layout.gpus) if seats[rank][0] == first]
            assert own == sorted(members(sweep.within.sizes, sweep.within.strides, first))


def test_moves_make_every_call_and_finish_what_they_begin() -> None:
    plan, _sweeps = planned()
    moves = moves_of(plan)
    begun = Counter(one.which for one in moves if one.act in ("call", "begin"))
    assert begun == {number: call.calls for number, call in enumerate(plan.calls)}
    under_way: set[int] = set()
    for one in moves:
        if one.act != "compute":
            assert (one.which in under_way) == (one.act == "finish")
            (under_way.add if one.act == "begin" else under_way.discard)(one.which)
    assert under_way == set()
    assert sum(one.time_ns for one in moves) == round(plan.compute_s * 1e9)


def test_gradients_are_under_way_in_the_last_backward_pass_and_weights_in_the_first_forward() -> None:
    plan, _sweeps = planned()
    moves = moves_of(plan)
    numbers = {call.name: number for number, call in enumerate(plan.calls)}
    passed = {}
    done_ns = 0
    for one in moves:
        done_ns += one.time_ns
        if one.act in ("begin", "finish"):
            passed[one.act, one.which] = done_ns / (plan.compute_s * 1e9) * plan.accumulation
    assert passed["begin", numbers["gradients"]] == pytest.approx(2 - plan.backward_share, abs=1e-3)
    assert passed["finish", numbers["gradients"]] == pytest.approx(2, abs=1e-3)
    assert passed["begin", numbers["weights"]] == 0
    assert passed["finish", numbers["weights"]] == pytest.approx(1 - plan.backward_share, abs=1e-3)


def test_scaled_down_messages_and_computing_shrink_alike_and_a_number_stays_one() -> None:
    whole, _ = planned()
    small, _ = planned(scale_down=4)
    assert small.compute_s == pytest.approx(whole.compute_s / 4)
    sizes = {call.name: (call.planned_bytes, call.size_bytes) for call in small.calls}
    assert sizes["tokens to experts and back"] == (32768, 8192)
    assert sizes["norm of the gradient"] == (4, 4)


def test_a_seat_is_the_place_that_strides_give() -> None:
    groups = Groups(kind="DP", sizes=(2, 3), strides=(4, 8))
    for one, two in product(range(2), range(3)):
        assert groups.seat(3 + 4 * one + 8 * two) == (3, one + 2 * two)


def test_a_rate_is_given_published_or_asked_for() -> None:
    assert rate_of(StepAsked(workload="x", rate_flops=3e14), None, ()).flops == 3e14
    assert "assumed" in rate_of(StepAsked(workload="x"), None, ()).words
    with pytest.raises(InputError, match="not published"):
        rate_of(StepAsked(workload="x"), "A card of the test", ())


def taken(step_ns: int, compute_ns: int, busy_ns: int, exposed_ns: int, calls: int) -> StepsTaken:
    return StepsTaken(
        step_ns=(step_ns,), compute_ns=(compute_ns,), busy_ns=((busy_ns,) * calls,),
        exposed_ns=((exposed_ns,) * calls,), checked=(None,) * calls,
    )  # fmt: skip


def test_a_step_is_the_slowest_ranks_and_its_calls_the_mean_of_all() -> None:
    plan, _sweeps = planned()
    calls = len(plan.calls)
    records = {rank: [taken(1000 + rank, 400, 40, 20 + rank, calls)] * 3 for rank in range(2)}
    found = result_of(plan, records, 2, ())
    assert found is not None
    assert (found.steps, found.step_s, found.compute_s) == (3, 1001e-9, pytest.approx(400e-9))
    assert [call.exposed_s for call in found.calls] == pytest.approx([20.5e-9] * calls)
    first = found.calls[0]
    assert first.in_step_s == pytest.approx(40e-9 / first.calls)
    assert all(call.verified for call in found.calls)


def test_a_result_that_was_wrong_on_any_rank_is_wrong_and_one_that_nobody_checked_is_not_verified() -> None:
    plan, _sweeps = planned()
    right = taken(1000, 400, 40, 20, len(plan.calls))
    bad = Mismatch(wrong=1, index=7, got="1", expected="2")
    wrong = msgspec.structs.replace(right, checked=(None, bad, *right.checked[2:]))
    found = result_of(plan, {0: [right], 1: [wrong]}, 2, ())
    assert found is not None
    assert [(call.verified, call.wrong_rank) for call in found.calls[:3]] == [(True, None), (False, 1), (True, None)]
    unchecked = result_of(plan, {0: [right], 1: [msgspec.structs.replace(right, checked=())]}, 2, ())
    assert unchecked is not None
    assert not any(call.verified for call in unchecked.calls)


def test_records_that_do_not_fit_the_plan_or_lack_a_rank_are_no_result() -> None:
    plan, _sweeps = planned()
    whole = taken(1000, 400, 40, 20, len(plan.calls))
    assert result_of(plan, {0: [whole]}, 2, ()) is None
    assert result_of(plan, {rank: [taken(0, 0, 0, 0, len(plan.calls))] for rank in range(2)}, 2, ()) is None
    short = msgspec.structs.replace(whole, busy_ns=((1,),))
    assert result_of(plan, {0: [short], 1: [short]}, 2, ()) is None

"""All-to-all of experts in one level and in two: the shape, and times where both were measured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.api.training.planning import TrainRequest, named_machine, plan_training
from busbw.model.train.plan import TrainPlan
from busbw.train.planning import job_of, plan_step
from busbw.train.predicting import MeasuredCollective
from busbw.train.workloads import workload_named

DGX = "nvidia-dgx-b200"
ORDER = "dp-ep-cp-pp-tp"


def test_within_a_node_two_levels_are_one() -> None:
    (choice,) = plan_training(TrainRequest(workload="deepseek-v3-like", platform=DGX)).alltoalls
    assert (choice.basis, choice.nodes, choice.refuted) == ("none", 1, None)


def spread(*measured: MeasuredCollective) -> TrainPlan:
    """Return the plan of a job whose experts lie on several nodes, several on each."""
    job = replace(job_of(workload_named("deepseek-v3-like"), None, None), order=ORDER)
    return plan_step(job, named_machine(DGX, measured), None)


def test_across_nodes_the_shape_is_told_and_no_time() -> None:
    (choice,) = spread().alltoalls
    own, nodes, ranks = choice.ranks_per_node, choice.nodes, choice.ranks
    assert (choice.basis, own > 1, nodes > 1) == ("shape", True, True)
    assert (choice.linear_s, choice.two_level_s, choice.change_s) == (None, None, None)
    assert f"{ranks - own} messages" in choice.words
    assert f"{nodes - 1} message" in choice.words
    assert choice.refuted is not None
    assert "6.7 at 256 MiB" in choice.refuted


def test_where_both_were_measured_the_times_count() -> None:
    (shape,) = spread().alltoalls
    calls = next(each.calls for each in spread().collectives if each.collective == "alltoall")
    point = ((shape.size_bytes, 0.003),), ((shape.size_bytes, 0.002),)
    one, two = (
        MeasuredCollective(collective=name, ranks=shape.ranks, nodes=shape.nodes, points=points, name="run")
        for name, points in zip(("alltoall", "alltoall_2dh"), point, strict=True)
    )

    (choice,) = spread(one, two).alltoalls
    (half,) = spread(one).alltoalls

    assert (choice.basis, choice.linear_s, choice.two_level_s) == ("measured", 0.003, 0.002)
    assert choice.change_s == pytest.approx(-0.001 * calls)
    assert half.basis == "shape"


@given(*(st.floats(0, 1e6) for _ in range(4)), st.floats(1e-3, 1e3))
def test_a_gain_that_falls_to_less_than_half_fits_no_latency_and_bandwidth(
    latency: float, per_byte: float, other_latency: float, other_per_byte: float, size: float
) -> None:
    """The bound that the answer states: whatever the four constants, twice the size leaves half of the gain."""

    def gain(at: float) -> float:
        return (latency + per_byte * at) / (other_latency + other_per_byte * at + 1e-9)

    assert gain(2 * size) >= gain(size) / 2 * (1 - 1e-9)

"""Guidelines: which are checked, what is compared, and what is claimed."""

import pytest

from busbw.judge.guidelines import COMPOSITIONS, guideline_findings, violations
from busbw.model.run import LaunchShare

from .factories import MiB, make_measurement, make_plan, make_views


def three(all_reduce_s: float, **changes):
    """Return all_reduce and its two parts; the parts take 100 us each. `changes` are those of all_reduce."""
    return (
        make_measurement("all_reduce", MiB, all_reduce_s, point=0, **changes),
        make_measurement("reduce_scatter", MiB, 1e-4, point=1),
        make_measurement("all_gather", MiB, 1e-4, point=2),
    )


def test_all_reduce_slower_than_its_parts_is_found_with_evidence_and_advice():
    (found,) = guideline_findings(make_plan(), violations(three(3e-4)))

    assert found.code == "PERF006"
    assert found.point == 0
    assert "1.50 times" in found.title
    assert "1000 samples" in found.evidence
    assert "coll_tuned_allreduce_algorithm" in (found.fix or "")


def test_mpich_is_told_its_own_variable():
    (found,) = guideline_findings(make_plan(family="MPICH"), violations(three(3e-4)))

    assert "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM" in (found.fix or "")


def test_an_excess_below_a_tenth_is_not_claimed():
    assert violations(three(2.15e-4)) == ()


def test_overlapping_intervals_are_not_claimed():
    assert violations(three(2.4e-4, spread=0.2)) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "float64"},
        {"op": "max"},
        {"mode": "stream"},
        {"in_place": True},
        {"verified": False},
        {"samples": 3},
        {"drift": 0.2},
        {"spread": 0.06},
        {"missed": 100},
        {"per_rank": make_views(losses=900)},
        {"launch": LaunchShare(issue_s=8e-4)},
    ],
    ids=[
        "another type",
        "another operation",
        "another mode",
        "in place",
        "not verified",
        "three samples",
        "drift",
        "wide",
        "missed",
        "disturbed",
        "bound by the host",
    ],
)
def test_unlike_measurements_are_not_compared(changes):
    assert violations(three(9e-4, **changes)) == ()


def test_sizes_within_two_percent_are_compared_and_others_not():
    near = make_measurement("all_reduce", MiB + 16_000, 9e-4)
    far = make_measurement("all_reduce", MiB + 32_000, 9e-4)
    parts = three(1e-4)[1:]

    assert len(violations((near, *parts))) == 1
    assert violations((far, *parts)) == ()


def test_roots_must_agree():
    broadcast = make_measurement("broadcast", MiB, 9e-4)
    scatter, all_gather = make_measurement("scatter", MiB, root=1), make_measurement("all_gather", MiB)

    assert violations((broadcast, scatter, all_gather)) == ()


@pytest.mark.parametrize(("left", "right"), COMPOSITIONS)
def test_every_guideline_fires_on_its_case_and_not_beside_it(left, right):
    parts = tuple(make_measurement(name, MiB, 1e-4) for name in right)

    slow = violations((make_measurement(left, MiB, 1.2e-4 * len(right)), *parts))
    fast = violations((make_measurement(left, MiB, 1e-4 * len(right)), *parts))

    assert any(tuple(one.collective for one in found.right) == right for found in slow)
    assert not any(tuple(one.collective for one in found.right) == right for found in fast)


def test_a_size_slower_than_a_larger_one_is_one_finding():
    measurements = tuple(
        make_measurement("broadcast", 2**16 * 2**step, median_s, point=step)
        for step, median_s in enumerate((8e-5, 9e-5, 4e-5, 2e-4))
    )

    (found,) = guideline_findings(make_plan(), violations(measurements))

    assert found.code == "PERF007"
    assert found.point == 1
    assert "also at 64 KiB" in found.evidence


def test_times_that_grow_with_size_are_silent():
    measurements = tuple(make_measurement("broadcast", 2**step, 1e-6 * step) for step in range(3, 20))

    assert violations(measurements) == ()


def test_only_large_violations_of_large_messages_are_large():
    (mild,) = violations(three(2.8e-4))
    (large,) = violations(three(3.1e-4))
    small = tuple(
        make_measurement(name, 1024, median_s)
        for name, median_s in (("all_reduce", 9e-4), ("reduce_scatter", 1e-4), ("all_gather", 1e-4))
    )

    assert not mild.is_large
    assert large.is_large
    assert not violations(small)[0].is_large

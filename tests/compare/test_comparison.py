"""From launches to what is said of them."""

import math

import pytest
from tests.judge.factories import make_measurement

from busbw.base.errors import InputError
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import measured_points
from busbw.judge.comparing.versus import band_of, least_blocks
from busbw.model.record import Mismatch
from busbw.model.run import WrongResult

from .made import launch, point, sides, steady

NOWHERE = ({}, {})


def compared(names, launches, **fields):
    return compare(sides(*names), launches, [{} for _name in names], design="random_order", **fields)


def test_a_side_that_takes_less_time_is_faster_by_that():
    found = compared(("default", "tuned"), steady((10e-6, 8e-6)))

    (row,) = found.versus[0].points
    assert row.estimate.claim == "faster"
    assert row.estimate.ratio == pytest.approx(1.25, rel=0.01)
    assert found.verdict.outcome == "faster"
    assert "B (tuned) is faster at all_reduce 1 KiB, by 25 %" in found.verdict.sentence


def test_a_side_that_takes_more_time_is_slower():
    found = compared(("default", "tuned"), steady((8e-6, 10e-6)))

    assert found.verdict.outcome == "slower"
    assert found.versus[0].points[0].estimate.high < 0.99


def test_the_same_twice_is_within_one_percent():
    assert compared(("one", "other"), steady((10e-6, 10e-6))).verdict.outcome == "same"


def test_half_a_percent_is_no_difference_that_counts():
    assert compared(("one", "other"), steady((10e-6, 9.95e-6), jitter=0.0001)).verdict.outcome == "same"


def test_noise_claims_nothing_and_tells_what_would_have_been_shown():
    noisy = [
        launch(side, block, point(10e-6 * (1.3 if (block + side) % 3 else 1.0)))
        for block in range(18)
        for side in (0, 1)
    ]

    found = compared(("one", "other"), noisy)

    assert found.verdict.outcome == "none"
    assert found.versus[0].points[0].estimate.detectable > 0.05
    assert "these launches would have shown" in found.verdict.sentence


@pytest.mark.parametrize("blocks", [1, 5])
def test_too_few_blocks_cannot_tell_whatever_the_times(blocks):
    found = compared(("default", "tuned"), steady((10e-6, 1e-6), blocks=blocks))

    estimate = found.versus[0].points[0].estimate
    assert found.verdict.outcome == "cannot_tell"
    assert (estimate.low, estimate.high, estimate.p_value, estimate.claim) == (None, None, None, "cannot_tell")


def test_the_least_blocks_grow_with_the_points_claimed_together():
    assert [least_blocks(points) for points in (1, 18, 60, 1000)] == [6, 10, 12, 16]
    assert [least_blocks(points, "mirrored_pairs") for points in (1, 18, 60)] == [12, 20, 24]


def test_a_point_is_wrong_if_a_result_of_it_was():
    wrong = WrongResult(rank=1, host="n0", mismatch=Mismatch(wrong=1, index=3, got="1", expected="2"))
    measured = make_measurement("all_reduce", 1024), make_measurement("all_reduce", 2048, wrong=wrong)

    assert [point.wrong for point in measured_points(measured)] == [False, True]


def test_wrong_results_count_for_no_ratio_and_are_the_verdict():
    launches = [launch(0, block, point(10e-6)) for block in range(18)]
    launches += [launch(1, block, point(1e-6, wrong=block == 3)) for block in range(18)]

    found = compared(("default", "quick"), launches)

    assert found.verdict.outcome == "wrong"
    assert len(found.versus[0].points[0].estimate.blocks) == 17
    assert [each.code for each in found.findings] == ["CMP005"]


def test_a_third_side_is_held_against_the_first_too():
    found = compared(("default", "tuned", "worse"), steady((10e-6, 8e-6, 12e-6)))

    assert [each.points[0].estimate.claim for each in found.versus] == ["faster", "slower"]
    assert found.verdict.outcome == "mixed"


def test_bands_take_sizes_together_and_show_latency_or_bandwidth():
    sizes = (8, 1024, 2**20, 2**24, 2**26)
    launches = [
        launch(
            side,
            block,
            *(point((1 + side) * 1e-6 * (1 + size_bytes / 1e4), size_bytes=size_bytes) for size_bytes in sizes),
        )
        for block in range(12)
        for side in (0, 1)
    ]

    bands = compared(("default", "slow"), launches).versus[0].bands

    assert [(each.band, each.measure, each.sizes_bytes) for each in bands] == [
        ("small", "latency", (8, 1024)),
        ("medium", "bandwidth", (2**20,)),
        ("large", "bandwidth", (2**24, 2**26)),
    ]
    assert all(each.estimate.ratio == pytest.approx(0.5) for each in bands)


def test_the_borders_of_bands():
    assert [band_of(size) for size in (8, 65535, 65536, 2**23 - 1, 2**23)] == [
        "small", "small", "medium", "medium", "large",
    ]  # fmt: skip


def test_the_geometric_mean_is_there_only_where_it_was_asked_for():
    launches = steady((10e-6, 8e-6))

    assert compared(("a", "b"), launches).versus[0].geometric_mean is None
    assert compared(("a", "b"), launches, geometric_mean=True).versus[0].geometric_mean.ratio == pytest.approx(
        1.25, rel=0.01
    )


def test_points_of_one_side_alone_are_named():
    launches = [launch(0, 0, point(1e-6), point(2e-6, size_bytes=2048)), launch(1, 0, point(1e-6))]

    assert compared(("a", "b"), launches).versus[0].unmatched == ("all_reduce 2 KiB (only A)",)


def test_a_block_that_lacks_a_side_counts_for_nothing():
    launches = [each for each in steady((10e-6, 8e-6)) if (each.side, each.block) != (1, 4)]

    blocks = compared(("a", "b"), launches).versus[0].points[0].estimate.blocks

    assert len(blocks) == 17
    assert all(math.isfinite(ratio) for ratio in blocks)


def test_stored_results_without_a_common_point_are_refused():
    launches = [launch(0, 0, point(1e-6)), launch(1, 0, point(1e-6, dtype="float16"))]

    with pytest.raises(InputError, match=r"all_reduce of float32.*against all_reduce of float16"):
        compare(sides("a", "b", kind="run"), launches, NOWHERE, design="descriptive")

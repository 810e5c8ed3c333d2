"""The claims of a comparison hold as often as they say: simulated with noise of real launches."""

import math
import random

import pytest

from busbw.api.interleave import DEFAULT_BLOCKS
from busbw.judge.comparing.comparison import Unclear, answer_of, causes
from busbw.judge.comparing.versus import FALSE_CLAIMS, LEAST_DIFFERENCE, estimates, shown
from busbw.stats.distributions import median_interval

from .noise import busy_machine, gpus, pairs_on_gpus

COMPARISONS = 5_000
# A suite of six collectives in small, medium and large sizes.
POINTS = 18
MEDIUM_BYTES, LARGE_BYTES, ENDLESS_BYTES = 64 * 2**10, 8 * 2**20, 2**62


def claimed(series):
    return [each.claim for each in shown(series)]


def test_without_a_difference_a_false_claim_is_as_rare_as_stated():
    lot = random.Random(1)
    wrong = covered = 0
    for _comparison in range(COMPARISONS):
        series = busy_machine(lot, DEFAULT_BLOCKS, POINTS)
        wrong += bool({"faster", "slower"} & set(claimed(series)))
        low, high = median_interval(sorted(series[0]))
        covered += low <= 0 <= high

    assert wrong <= FALSE_CLAIMS * COMPARISONS
    assert covered >= 0.95 * COMPARISONS


@pytest.mark.parametrize("blocks", [10, 18])
def test_a_difference_that_does_not_count_is_hardly_ever_claimed(blocks):
    lot = random.Random(2)
    comparisons = 1_000
    pool = pairs_on_gpus(0, ENDLESS_BYTES)
    limit = math.log1p(LEAST_DIFFERENCE)

    wrong = sum(
        "faster" in claimed([[v + limit for v in gpus(lot, blocks, pool, drift=0.05)] for _point in range(POINTS)])
        for _comparison in range(comparisons)
    )

    assert wrong <= FALSE_CLAIMS * comparisons


@pytest.mark.parametrize(
    ("least_bytes", "below_bytes"), [(0, MEDIUM_BYTES), (MEDIUM_BYTES, LARGE_BYTES), (LARGE_BYTES, ENDLESS_BYTES)]
)
def test_three_percent_are_found_where_launches_differ_as_on_four_h200(least_bytes, below_bytes):
    lot = random.Random(3)
    comparisons = 150
    pool = pairs_on_gpus(least_bytes, below_bytes)

    found = sum(
        claimed(
            [[v + math.log(1.03) for v in gpus(lot, DEFAULT_BLOCKS, pool, drift=0.05)] for _ in range(POINTS)]
        ).count("faster")
        for _comparison in range(comparisons)
    )

    assert found >= 0.95 * comparisons * POINTS


def test_three_percent_are_found_where_launches_differ_by_one_percent():
    lot = random.Random(4)
    comparisons = 150

    found = sum(
        claimed(
            [
                [lot.gauss(0, 0.01) - lot.gauss(0, 0.01) - math.log(1.03) for _block in range(DEFAULT_BLOCKS)]
                for _point in range(POINTS)
            ]
        ).count("slower")
        for _comparison in range(comparisons)
    )

    assert found >= 0.95 * comparisons * POINTS


def test_intervals_cover_the_difference_as_often_as_stated_at_every_number_of_blocks():
    lot = random.Random(5)
    pool = pairs_on_gpus(0, ENDLESS_BYTES)
    for blocks in range(6, 25):
        covered = 0
        for _comparison in range(2_000):
            low, high = median_interval(sorted(gpus(lot, blocks, pool, drift=0.05)))
            covered += low <= 0 <= high
        assert covered >= 0.945 * 2_000, blocks


def bisected(lot, pool, cause, effect, items=8):
    """Return what a search over so many items comes to, where `cause` makes the others slower by `effect`."""

    def ratios(changed):
        shift = math.log(effect) if cause <= changed else 0.0
        return dict(enumerate(value - shift for value in gpus(lot, DEFAULT_BLOCKS, pool, drift=0.05)))

    (whole,) = estimates([ratios(frozenset(range(items)))], "random_order")
    if whole.claim != "slower":
        return None
    try:
        return causes(
            range(items),
            lambda sets: [answer_of(each, whole) for each in estimates(list(map(ratios, sets)), "random_order")],
        )
    except Unclear:
        return None


@pytest.mark.parametrize("together", [1, 2])
def test_a_bisection_traces_five_percent_to_what_made_them_and_to_nothing_else(together):
    lot = random.Random(9)
    pool = pairs_on_gpus(MEDIUM_BYTES, LARGE_BYTES)
    planted = [frozenset(lot.sample(range(8), together)) for _search in range(120)]

    found = [bisected(lot, pool, cause, 1.05) for cause in planted]

    assert sum(each == (cause,) for each, cause in zip(found, planted, strict=True)) >= 0.95 * len(planted)
    assert all(each in ((cause,), None) for each, cause in zip(found, planted, strict=True))


def test_the_simulation_can_fail():
    lot = random.Random(6)
    # As a comparison of two columns has it: one side first, then the other, on a machine that drifts.
    one_after_the_other = [[-0.03 * (1 + lot.random()) for _block in range(DEFAULT_BLOCKS)] for _point in range(POINTS)]

    assert set(claimed(one_after_the_other)) == {"slower"}

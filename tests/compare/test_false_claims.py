"""False claims are as rare as stated under any noise, because of the order in which launches are started."""

import math
import random
from itertools import product

import pytest
from benchmarks.comparing.false_claims import BLOCKS, KINDS, Cell, compared, share
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.versus import FALSE_CLAIMS, LEAST_DIFFERENCE, shown, units

from .made import launch, point, sides, steady

TABLES = 60
# Sharp enough for a rate of 9 %, which blocks in mirrored pairs would have at 12, where each counted by itself.
MANY_TABLES = 400
PERIODIC = "periodic 1,0,0,1"
CLAIMED = ("faster", "slower")
# Of a launch, whatever the machine did meanwhile, by the logarithm of its time.
_NOISE = st.one_of(st.sampled_from([0.0, 0.1]), st.floats(-1, 1), st.floats(-0.02, 0.02))
_LAUNCHES = st.lists(st.tuples(_NOISE, _NOISE), min_size=6, max_size=8)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("kind", KINDS)
def test_false_claims_are_as_rare_as_stated_under_every_kind_of_noise(kind, blocks):
    tables = MANY_TABLES if kind == PERIODIC else TABLES

    assert share(Cell(kind=kind, blocks=blocks, points=1), tables) <= FALSE_CLAIMS


@pytest.mark.parametrize("blocks", BLOCKS)
def test_stored_comparisons_in_mirrored_pairs_are_judged_by_those(blocks):
    cell = Cell(kind=PERIODIC, blocks=blocks, points=1, design="mirrored_pairs")

    assert share(cell, MANY_TABLES) <= FALSE_CLAIMS


@given(_LAUNCHES, st.sampled_from([-1, 0, 1]))
@settings(max_examples=40)
def test_of_all_orders_that_may_be_drawn_no_more_make_a_false_claim_than_stated(launches, sign):
    effect = sign * math.log1p(LEAST_DIFFERENCE)
    orders = list(product((1, -1), repeat=len(launches)))

    wrong = 0
    for order in orders:
        ratios = [way * (one - other) + effect for way, (one, other) in zip(order, launches, strict=True)]
        (found,) = shown([ratios])
        wrong += found.claim in CLAIMED

    assert wrong <= FALSE_CLAIMS * len(orders)


def test_mirrored_blocks_that_count_by_themselves_would_be_noticed():
    wrong = 0
    for seed in range(MANY_TABLES):
        first = seed % 4
        noise = [0.1 * (1, 0, 0, 1)[(first + place) % 4] for place in range(24)]
        # The order of every second block is the mirror of the one before.
        ways = [1 if (seed >> (block // 2 + 2)) % 2 == block % 2 else -1 for block in range(12)]
        (found,) = shown([[way * (noise[2 * b] - noise[2 * b + 1]) for b, way in enumerate(ways)]])
        wrong += found.claim in CLAIMED

    assert wrong > FALSE_CLAIMS * MANY_TABLES


def test_a_mirrored_pair_counts_once_and_a_block_without_its_mirror_stands_for_it():
    blocks = {0: 0.1, 1: 0.3, 2: -0.2, 5: 0.4, 6: 0.0}

    assert units(blocks, "mirrored_pairs") == [pytest.approx(0.2), -0.2, 0.4, 0.0]
    assert units(blocks, "random_order") == [0.1, 0.3, -0.2, 0.4, 0.0]


def test_eleven_blocks_in_mirrored_pairs_are_enough_for_one_point_and_ten_are_not():
    found = {
        blocks: compare(sides("a", "b"), steady((10e-6, 5e-6), blocks), [{}, {}], design="mirrored_pairs")
        for blocks in (10, 11)
    }

    assert found[10].verdict.outcome == "cannot_tell"
    assert "10 blocks of launches are too few to claim anything of 1 point; 12 are the least" in (
        found[10].verdict.sentence
    )
    assert found[11].verdict.outcome == "faster"
    assert len(found[11].versus[0].points[0].estimate.blocks) == 11


@pytest.mark.parametrize("kind", ["drift", "random walk", "step"])
def test_of_sides_that_were_not_interleaved_nothing_is_claimed(kind):
    assert share(Cell(kind=kind, blocks=30, points=1, design="descriptive"), TABLES) == 0
    # Nor where the other side is faster indeed.
    assert share(Cell(kind=kind, blocks=30, points=1, effect=1.05, design="descriptive"), TABLES) == 0


@given(st.lists(st.tuples(st.floats(1e-9, 1e3), st.booleans()), min_size=2, max_size=12))
@settings(max_examples=60)
def test_sides_that_were_not_interleaved_are_described(times):
    launches = [launch(int(is_other), block, point(time_s)) for block, (time_s, is_other) in enumerate(times)]

    found = compare(sides("a", "b"), launches, [{}, {}], design="descriptive")

    assert found.false_claims is None
    assert found.blocks == 0
    assert found.verdict.outcome == "cannot_tell"
    for row in found.versus[0].points:
        one = row.estimate
        assert (one.claim, one.p_value, one.detectable, one.confidence, one.blocks) == (
            "cannot_tell", None, None, None, (),
        )  # fmt: skip
        assert one.ratio == pytest.approx(row.first_s / row.other_s)
        assert (one.low is None) == (len(times) == 2)
        assert one.low is None or one.low <= one.ratio * (1 + 1e-9)
        assert one.high is None or one.high >= one.ratio * (1 - 1e-9)


def test_the_spread_leaves_out_one_in_twenty_of_the_ratios():
    launches = [launch(0, block, point(10e-6)) for block in range(10)]
    launches += [launch(1, block, point(1e-3 if block == 0 else 5e-6)) for block in range(100)]

    estimate = compare(sides("a", "b"), launches, [{}, {}], design="descriptive").versus[0].points[0].estimate

    assert (estimate.ratio, estimate.low, estimate.high) == (pytest.approx(2), pytest.approx(2), pytest.approx(2))


def test_bands_of_sides_that_were_not_interleaved_are_of_launches_that_have_all_sizes():
    whole = [
        launch(side, block, *(point((2 - side) * size_bytes * 1e-9, size_bytes=size_bytes) for size_bytes in (8, 1024)))
        for block in range(3)
        for side in (0, 1)
    ]
    short = launch(0, 3, point(8e-9, size_bytes=8))
    parts = [each for each in whole if each.side == 1] + [short, launch(0, 4, point(2048e-9))]

    (of_whole,) = compare(sides("a", "b"), [*whole, short], [{}, {}], design="descriptive").versus[0].bands
    (of_parts,) = compare(sides("a", "b"), parts, [{}, {}], design="descriptive").versus[0].bands

    assert (of_whole.estimate.ratio, of_whole.estimate.low) == (pytest.approx(2), pytest.approx(2))
    # No launch of A has both sizes: once 1.0, once 2.0.
    assert (of_parts.estimate.ratio, of_parts.estimate.low) == (pytest.approx(2**0.5), None)


@pytest.mark.parametrize("values", [[0.0] * 12, [0.0] * 6 + [0.1] * 3 + [-0.1] * 3])
def test_zeros_and_ties_make_no_claim_of_a_difference(values):
    (found,) = shown([values])

    assert found.claim not in CLAIMED


@pytest.mark.parametrize("digits", [0, 1])
def test_rounded_times_make_no_more_false_claims(digits):
    lot = random.Random(4)
    wrong = 0
    for _table in range(MANY_TABLES):
        times = [round(lot.gauss(10, 0.5), digits) for _launch in range(24)]
        (found,) = shown([[lot.choice((1, -1)) * math.log(times[b] / times[b + 12]) for b in range(12)]])
        wrong += found.claim in CLAIMED

    assert wrong <= FALSE_CLAIMS * MANY_TABLES


def test_what_would_have_been_shown_is_shown_in_both_directions_and_less_is_not():
    lot = random.Random(3)
    for _table in range(30):
        (row,) = compared(lot, KINDS["independent"], 12, 1).versus[0].points
        rest = [math.log(ratio / row.estimate.ratio) for ratio in row.estimate.blocks]
        difference = math.log1p(row.estimate.detectable)

        def claimed(shift, rest=rest):
            return shown([[value + shift for value in rest]])[0].claim

        assert (claimed(difference + 1e-9), claimed(-difference - 1e-9)) == CLAIMED
        assert (claimed(0.98 * difference), claimed(-0.98 * difference)) != CLAIMED

"""Slow ends and slow pairs among rates between every two."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.judge.explaining.slow_ends import Pair, laggards


def every_pair(ends, rate_Bps=48e9, slow=()):
    """Return a pair of each two; those that hold an end of `slow` at half the rate."""
    return [
        Pair(ends=(left, right), rate_Bps=rate_Bps / 2 if {left, right} & set(slow) else rate_Bps)
        for left, right in combinations([str(end) for end in ends], 2)
    ]


def test_an_end_that_is_slow_with_all_others_is_named_and_its_pairs_are_not():
    (found,) = laggards(every_pair(range(8), slow=("5",)))
    assert found.ends == ("5",)
    assert found.share == pytest.approx(0.5)
    assert found.pairs == 7


def test_two_slow_ends_are_both_named():
    assert {each.ends for each in laggards(every_pair(range(8), slow=("2", "5")))} == {("2",), ("5",)}


def test_one_slow_pair_of_sound_ends_is_a_pair():
    pairs = [*every_pair(range(6))]
    pairs[4] = Pair(ends=pairs[4].ends, rate_Bps=20e9)
    (found,) = laggards(pairs)
    assert found.ends == pairs[4].ends


def test_a_slow_rail_is_the_pair_of_its_two_ends():
    rails = [Pair(ends=(f"a{gpu}", f"b{gpu}"), rate_Bps=24e9 if gpu == 5 else 48e9) for gpu in range(8)]
    (found,) = laggards(rails)
    assert found.ends == ("a5", "b5")


def test_pairs_of_another_kind_are_not_compared():
    inside = [Pair(ends=(f"{left}", f"{right}"), rate_Bps=300e9, kind="one host") for left, right in ((0, 1), (2, 3))]
    across = [
        Pair(ends=("0", "2"), rate_Bps=48e9, kind="two hosts"),
        Pair(ends=("1", "3"), rate_Bps=48e9, kind="two hosts"),
    ]
    assert laggards([*inside, *across]) == ()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_few_pairs_tell_nothing(count):
    assert laggards(every_pair(range(3), slow=("1",))[:count]) == ()


@given(st.lists(st.floats(0.9, 1.1), min_size=28, max_size=28))
def test_pairs_that_differ_by_a_tenth_are_no_finding(noise):
    pairs = [
        Pair(ends=pair.ends, rate_Bps=pair.rate_Bps * factor)
        for pair, factor in zip(every_pair(range(8)), noise, strict=True)
    ]
    assert laggards(pairs) == ()


@given(st.integers(0, 7), st.lists(st.floats(0.9, 1.1), min_size=28, max_size=28))
def test_a_half_as_fast_end_is_found_in_noise(slow, noise):
    pairs = [
        Pair(ends=pair.ends, rate_Bps=pair.rate_Bps * factor)
        for pair, factor in zip(every_pair(range(8), slow=(str(slow),)), noise, strict=True)
    ]
    assert [each.ends for each in laggards(pairs)] == [(str(slow),)]

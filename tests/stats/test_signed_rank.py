"""The signed-rank test against counting every assignment of signs."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.stats.signed_rank import MOST_PAIRS, least_p_value, p_value, shown_from

differences = st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=12)


def counted_p_value(values, margin):
    """Return the p-value by definition: the share of all sign patterns that are at least as extreme."""
    cap = math.ceil(len(values) / 3)

    def one_sided(shifted):
        # Ties rank against the claim, zeros count as negative.
        ordered = sorted(shifted, key=lambda value: (abs(value), value <= 0))
        scores = [min(rank, cap) for rank in range(1, len(ordered) + 1)]
        seen = sum(score for score, value in zip(scores, ordered, strict=True) if value > 0)
        patterns = itertools.product((0, 1), repeat=len(scores))
        as_extreme = sum(sum(itertools.compress(scores, pattern)) >= seen for pattern in patterns)
        return as_extreme / 2 ** len(scores)

    return min(2 * one_sided([v - margin for v in values]), 2 * one_sided([-v - margin for v in values]), 1.0)


@given(differences, st.sampled_from([0.0, 0.01, 0.2]))
@settings(max_examples=40, deadline=None)
def test_the_p_value_is_that_of_counting(values, margin):
    assert p_value(values, margin) == pytest.approx(counted_p_value(values, margin), rel=1e-12)


@given(differences)
def test_both_directions_are_alike(values):
    assert p_value(values, 0.01) == p_value([-value for value in values], 0.01)


@given(differences, st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_larger_difference_is_never_less_shown(values, shift, more):
    all_above = [abs(value) + shift for value in values]

    assert p_value([value + more for value in all_above], 0.01) <= p_value(all_above, 0.01)


def test_rounded_numbers_that_are_all_alike_claim_nothing():
    assert p_value([0.0] * 20, 0.0) == 1.0
    assert p_value([0.01] * 20, 0.01) == 1.0


def test_all_of_one_sign_have_the_least_p_value():
    assert p_value([0.5 + k / 100 for k in range(12)], 0.01) == least_p_value(12) == 2 / 2**12


def test_what_would_have_been_shown_is_just_shown():
    lot = random.Random(1)
    level = 0.05 / 18
    for _case in range(20):
        values = sorted(lot.gauss(0, 0.02) for _pair in range(18))
        centre = (values[8] + values[9]) / 2
        shown = shown_from(values, 0.01, level)
        both = [[value - centre for value in values], [centre - value for value in values]]
        p_values = [p_value([value + shown * 1.000001 for value in rest], 0.01) for rest in both]
        before = [p_value([value + shown * 0.999 for value in rest], 0.01) for rest in both]

        assert max(p_values) <= level
        assert max(before) > level


def test_too_few_pairs_would_show_nothing():
    assert shown_from([0.5, 0.6, 0.7, 0.8, 0.9], 0.01, 0.05) is None


def test_more_pairs_than_the_limit_are_refused():
    with pytest.raises(ValueError, match="over the limit"):
        p_value([0.1] * (MOST_PAIRS + 1), 0.0)

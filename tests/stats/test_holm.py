"""Holm's adjustment by hand, and against what it must keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.stats.signed_rank import holm

p_values = st.lists(st.floats(0, 1, allow_nan=False), max_size=20)


def test_the_smallest_is_multiplied_by_all_and_none_falls_below_the_one_before():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_nothing_adjusts_to_nothing_and_one_stays():
    assert holm([]) == ()
    assert holm([0.2]) == (0.2,)


@given(p_values)
def test_none_gets_smaller_nor_more_than_one_and_the_order_stays(values):
    adjusted = holm(values)

    assert all(before <= after <= 1 for before, after in zip(values, adjusted, strict=True))
    pairs = sorted(zip(values, adjusted, strict=True))
    assert [after for _before, after in pairs] == sorted(adjusted)

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.stats.tail import autocorrelation, drift


def following(draw, count, memory):
    """Return values of which each keeps `memory` of the one before."""
    values, value = [], 0.0
    for _ in range(count):
        value = memory * value + draw.gauss(0, 1)
        values.append(100 + value)
    return values


@pytest.mark.parametrize("values", [[], [1.0, 2.0] * 4, [1.0] * 100])
def test_few_or_equal_values_have_no_autocorrelation(values):
    assert autocorrelation(values) is None


@given(st.lists(st.floats(1e-9, 1e3), min_size=10))
def test_autocorrelation_lies_between_minus_one_and_one(values):
    found = autocorrelation(values)
    assert found is None or -1 <= found <= 1


# The first example imports SciPy.
@settings(deadline=None)
@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), min_size=10))
def test_autocorrelation_is_that_of_the_ranks(values):
    scipy_stats = pytest.importorskip("scipy.stats")
    ranks = scipy_stats.rankdata(values)
    deviations = ranks - ranks.mean()
    spread = (deviations**2).sum()
    found = autocorrelation(values)
    assert (found is None) == (spread == 0)
    if found is not None:
        assert found == pytest.approx((deviations[:-1] * deviations[1:]).sum() / spread, abs=1e-9)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_autocorrelation_finds_the_memory_of_a_series(memory):
    found = autocorrelation(following(random.Random(4), 5000, memory))
    assert found == pytest.approx(memory, abs=0.05)


def test_a_spike_does_not_hide_autocorrelation():
    values = following(random.Random(5), 1000, 0.8)
    spiky = values.copy()
    spiky[500] *= 1e6
    assert autocorrelation(spiky) == pytest.approx(autocorrelation(values), abs=0.01)


def test_drift_is_the_shift_of_the_median_between_the_halves():
    assert drift([10.0] * 5 + [11.0] * 5) == pytest.approx(0.1)
    assert drift([10.0] * 5 + [9.0] * 6) == pytest.approx(-0.1)
    assert drift([10.0] * 9) is None
    assert drift([0.0] * 20) is None

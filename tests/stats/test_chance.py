"""Against SciPy, which busbw does not need at run time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.stats.distributions import binomial_tail, hypergeometric_tail, normal_quantile, normal_tail

scipy_stats = pytest.importorskip("scipy.stats")


@settings(deadline=None)
@given(st.floats(1e-9, 1 - 1e-9))
def test_the_normal_quantile_is_that_of_scipy(probability):
    assert normal_quantile(probability) == pytest.approx(scipy_stats.norm.ppf(probability), abs=1e-6)


@settings(deadline=None)
@given(st.floats(-8, 8))
def test_the_normal_tail_is_that_of_scipy(value):
    assert normal_tail(value) == pytest.approx(scipy_stats.norm.sf(value), rel=1e-9)


@settings(deadline=None)
@given(st.integers(1, 5000), st.data(), st.floats(1e-4, 0.9))
def test_the_binomial_tail_is_that_of_scipy(trials, data, probability):
    successes = data.draw(st.integers(0, trials))
    expected = scipy_stats.binom.sf(successes - 1, trials, probability)
    assert binomial_tail(successes, trials, probability) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 800), st.integers(1, 800), st.data())
def test_the_hypergeometric_tail_is_that_of_scipy(drawn, others, data):
    total = drawn + others
    all_marked = data.draw(st.integers(0, total))
    marked = data.draw(st.integers(0, min(drawn, all_marked)))
    expected = scipy_stats.hypergeom.sf(marked - 1, total, all_marked, drawn)
    assert hypergeometric_tail(marked, drawn, total, all_marked) == pytest.approx(expected, rel=1e-6, abs=1e-12)

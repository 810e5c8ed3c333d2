import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.stats.distributions import median, percentiles

times = st.floats(1e-9, 1e3)


@given(st.lists(times, min_size=2, max_size=200))
def test_a_percentile_is_that_of_the_standard_library(values):
    expected = statistics.quantiles(values, n=100, method="inclusive")
    for percent, value in percentiles(sorted(values), tuple(range(1, 100))):
        assert value == pytest.approx(expected[round(percent) - 1], rel=1e-9)


@given(st.lists(times, max_size=300))
def test_percentiles_ascend_and_the_fiftieth_is_the_median(values):
    found = percentiles(sorted(values))
    assert [value for _, value in found] == sorted(value for _, value in found)
    if len(values) >= 20:
        assert dict(found)[50] == pytest.approx(median(sorted(values)), rel=1e-12)
    else:
        assert found == ()


@given(st.integers(0, 30_000), st.integers(1, 999))
def test_a_percentile_is_told_only_with_ten_samples_beyond_it(count, permille):
    told = bool(percentiles(range(count), (permille / 10,)))
    assert told == (count * min(permille, 1000 - permille) >= 10_000)


@pytest.mark.parametrize(("percent", "count"), [(1, 1000), (5, 200), (95, 200), (99, 1000), (99.9, 10_000)])
def test_the_least_number_of_samples_is_exact(percent, count):
    assert percent not in dict(percentiles(range(count - 1)))
    assert percent in dict(percentiles(range(count)))

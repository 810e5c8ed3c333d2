import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.stats.distributions import median, median_interval, relative_half_width

times = st.floats(1e-9, 1e3)


@given(st.lists(times, min_size=1))
def test_the_median_is_that_of_the_standard_library(values):
    assert median(sorted(values)) == statistics.median(values)


@given(st.lists(times, min_size=6))
def test_the_interval_holds_the_median_and_ends_on_samples(values):
    ordered = sorted(values)
    low, high = median_interval(ordered)
    assert low <= median(ordered) <= high
    assert low in ordered
    assert high in ordered


def test_fewer_than_six_samples_have_no_interval_at_95_percent():
    assert median_interval([]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)


@pytest.mark.parametrize(("confidence", "least"), [(0.5, 2), (0.9, 5), (0.99, 8), (0.999, 11)])
def test_the_least_number_of_samples_follows_from_the_confidence(confidence, least):
    assert median_interval(range(least - 1), confidence) is None
    assert median_interval(range(least), confidence) == (0, least - 1)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
@pytest.mark.parametrize("count", [0, 100, 1000])
def test_a_confidence_that_is_none_has_no_interval(confidence, count):
    assert median_interval(range(count), confidence) is None


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_the_interval_is_the_narrowest_that_the_binomial_distribution_allows(confidence):
    binom = pytest.importorskip("scipy.stats").binom
    for count in [*range(1, 700), 1000, 1001, 5000, 20_000]:
        interval = median_interval(range(count), confidence)
        outside = -1 if interval is None else int(interval[0])
        assert interval is None or interval == (outside, count - 1 - outside)
        assert 2 * binom.cdf(outside, count, 0.5) <= (1 - confidence) * (1 + 1e-9)
        # Beyond the exact part it may be one sample wider on each side.
        narrower = outside + (1 if count <= 500 else 2)
        assert 2 * binom.cdf(narrower, count, 0.5) > (1 - confidence) * (1 - 1e-9)


DISTRIBUTIONS = {
    "exponential": (lambda draw: draw.expovariate(1.0), math.log(2)),
    "lognormal with a heavy tail": (lambda draw: draw.lognormvariate(0.0, 2.0), 1.0),
    "two levels": (lambda draw: draw.gauss(10, 1) if draw.random() < 0.6 else draw.gauss(30, 2), 10.967),
    "steps of a coarse clock": (lambda draw: draw.randint(0, 10), 5),
}


@pytest.mark.parametrize("count", [6, 10, 30, 101, 1000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_interval_covers_the_true_median_as_often_as_it_says(name, count):
    sample, truth = DISTRIBUTIONS[name]
    draw = random.Random(f"{name} {count}")
    trials = 300 if count == 1000 else 1500
    covered = 0
    for _ in range(trials):
        low, high = median_interval(sorted(sample(draw) for _ in range(count)), 0.95)
        covered += low <= truth <= high
    # Four standard errors of the simulation.
    assert covered / trials >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / trials)


def test_the_half_width_reaches_to_the_farther_side():
    assert relative_half_width([9.0, 10.0, 10.0, 10.0, 10.0, 15.0]) == 0.5
    assert relative_half_width([5.0, 10.0, 10.0, 10.0, 10.0, 11.0]) == 0.5


@pytest.mark.parametrize("ordered", [[], [1.0] * 5, [0.0] * 10, [-1.0] * 10])
def test_without_an_interval_or_a_positive_median_there_is_no_half_width(ordered):
    assert relative_half_width(ordered) is None

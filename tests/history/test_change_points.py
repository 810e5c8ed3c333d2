"""How often a change is claimed where there is none, and how often one is found, over thousands of simulated series.

Every rate is stated with its series: number, length, noise. What docs/history.md says is what is asserted here.
"""

import random
from statistics import median

import pytest

from busbw.stats.change_points import LEAST_OF_A_LEVEL, _chance, change_points, least_values
from busbw.stats.distributions import median_interval

from .series import Noise, drifting, normal, real, spiky, stepped

RATE = 0.01
LENGTHS = (25, 40, 60, 90)


def claims(noise: Noise, series: int, *, rate: float, seed: int) -> float:
    """Return the share of series without a change that are said to have one, of all lengths alike."""
    rng = random.Random(seed)
    return (
        sum(
            bool(change_points(noise(rng, LENGTHS[number % len(LENGTHS)]), false_alarms=rate, least_change=0.0))
            for number in range(series)
        )
        / series
    )


@pytest.mark.parametrize(
    ("noise", "series"),
    [(real, 10_000), (normal, 3_000), (spiky, 3_000), (drifting(0.3), 3_000)],
    ids=["real launches", "normal", "spikes", "autocorrelation 0.3"],
)
def test_a_level_that_stays_is_said_to_change_no_more_often_than_stated(noise: Noise, series: int):
    assert claims(noise, series, rate=RATE, seed=1) <= RATE


def test_with_more_autocorrelation_the_rate_is_at_most_one_and_a_half_times_the_stated():
    assert claims(drifting(0.5), 2_500, rate=RATE, seed=2) <= 1.5 * RATE


def test_another_rate_is_kept_as_well():
    assert claims(real, 1_500, rate=0.05, seed=3) <= 0.05


@pytest.mark.parametrize("count", [10, 11, 25, 40, 250])
def test_a_smaller_statistic_is_never_the_rarer_one(count: int):
    # A series is left alone by its statistic alone, before autocorrelation takes from it: that may not change anything.
    statistics = [number / 200 for number in range(1, 2000)]
    chances = [_chance(statistic, count) for statistic in statistics]
    for rate in (0.2, 0.05, 0.01, 0.0001):
        kept = [statistic for statistic, chance in zip(statistics, chances, strict=True) if chance >= rate]
        assert kept == statistics[: len(kept)]


@pytest.mark.parametrize(("before", "after"), [(20, 20), (30, 15), (60, 12)])
def test_a_step_of_three_percent_among_runs_that_differ_by_one_percent_is_found(before: int, after: int):
    rng = random.Random(4)
    found = right = 0
    for _ in range(400):
        series = stepped(normal(rng, before + after), before, 0.03)
        places = change_points(series, false_alarms=RATE, least_change=0.01)
        found += bool(places)
        right += any(abs(place - before) <= 2 for place in places)
    assert found / 400 >= 0.95
    assert right / 400 >= 0.90


def test_what_came_and_went_again_is_found_on_both_sides():
    rng = random.Random(5)
    series = [stepped(stepped(normal(rng, 90), 40, 0.05), 65, 1 / 1.05 - 1) for _ in range(200)]
    both = sum(len(change_points(each, false_alarms=RATE, least_change=0.01)) == 2 for each in series)
    assert both / 200 >= 0.9


def test_a_change_below_the_least_is_not_told_however_clear():
    rng = random.Random(10)
    values = [level * (1 + rng.gauss(0, 1e-4)) for level in [1.0] * 50 + [1.005] * 50]
    assert change_points(values, false_alarms=RATE, least_change=0.0) == (50,)
    assert change_points(values, false_alarms=RATE, least_change=0.01) == ()


def test_the_interval_of_a_level_covers_it_as_often_as_stated():
    rng = random.Random(6)
    levels = [sorted(normal(rng, 20)) for _ in range(2_000)]
    intervals = [median_interval(each) for each in levels]
    covered = sum(interval is not None and interval[0] <= 1 <= interval[1] for interval in intervals)
    assert covered / 2_000 >= 0.95


def test_the_intervals_around_a_change_that_was_found_cover_the_two_levels_nearly_as_often():
    """The place was chosen by the same values, which pulls the levels apart a little: 90 % at least, of 95 %."""
    rng = random.Random(7)
    covered = told = 0
    for _ in range(600):
        series = stepped(normal(rng, 50), 25, 0.03)
        places = change_points(series, false_alarms=RATE, least_change=0.01)
        if len(places) != 1:
            continue
        for part, truth in ((series[: places[0]], 1.0), (series[places[0] :], 1.03)):
            interval = median_interval(sorted(part))
            told += 1
            covered += interval is not None and interval[0] <= truth <= interval[1]
    assert told > 1_000
    assert covered / told >= 0.90


@pytest.mark.parametrize("rate", [0.05, 0.01, 1e-4])
def test_around_the_least_number_of_values_the_clearest_change_begins_to_be_claimed(rate: float):
    least = least_values(rate)
    rng = random.Random(8)

    def claimed(count: int) -> int:
        return sum(
            bool(change_points(stepped(normal(rng, count), count // 2, 1.0), false_alarms=rate, least_change=0.01))
            for _ in range(200)
        )

    assert claimed(least + 5) >= 140
    assert claimed(least - 5) < claimed(least + 5)


def test_few_equal_and_spiked_values_have_no_change():
    assert change_points([], false_alarms=RATE, least_change=0.01) == ()
    assert change_points([1.0] * 200, false_alarms=RATE, least_change=0.01) == ()
    lone = [1.0 + 1e-3 * (number % 7) for number in range(60)]
    lone[-4:] = [9.0] * 4
    assert change_points(lone, false_alarms=RATE, least_change=0.01) == (), "four runs are no level"
    assert LEAST_OF_A_LEVEL == 5


def test_the_noise_of_real_launches_has_spikes_in_it():
    """Otherwise the simulations above would be easier than the world."""
    rng = random.Random(9)
    values = [value for _ in range(500) for value in real(rng, 20)]
    limit = 1.3 * median(values)
    assert sum(value > limit for value in values) > 0.002 * len(values)


def test_a_series_that_is_looked_at_every_night_is_seldom_said_to_change():
    """The rate is one call's. Neighbouring nights share their runs, so their false alarms come together."""
    rng = random.Random(11)
    alarmed = 0
    for _ in range(60):
        values = real(rng, 200)
        alarmed += any(change_points(values[:runs], false_alarms=RATE, least_change=0.01) for runs in range(25, 201, 5))
    assert alarmed / 60 <= 0.10


def test_a_step_shows_after_about_seven_runs():
    rng = random.Random(12)
    nights = []
    for _ in range(100):
        before, after = normal(rng, 40), stepped(normal(rng, 25), 0, 0.03)
        told = (
            night
            for night in range(1, 26)
            if change_points(before + after[:night], false_alarms=RATE, least_change=0.01)
        )
        nights.append(next(told, 26))
    assert 5 <= median(nights) <= 8
    assert sorted(nights)[89] <= 13

"""Fits of sweeps: what they say of curves that are known, and how often their intervals hold the truth."""

import math
import random

import pytest

from busbw.stats.curves import LEAST_FOR_HILL, LEAST_FOR_LINE, hill, line

SWEEP = tuple(2**power for power in range(10, 34))
TRIALS = 400
# Three standard deviations below 0.95 over so many trials is 0.917; spikes in so few points cost some more.
LEAST_COVERAGE = 0.90


def sweep_of_line(latency_s, algbw_Bps, *, noise=0.0, spikes=0.0, seed=0, sizes=SWEEP):
    draw = random.Random(seed)
    return [(size, (latency_s + size / algbw_Bps) * deviation(draw, noise, spikes)) for size in sizes]


def sweep_of_hill(rate_Bps, half_bytes, steepness, *, noise=0.0, spikes=0.0, seed=0, sizes=SWEEP):
    draw = random.Random(seed)
    return [
        (size, rate_Bps / (1 + (half_bytes / size) ** steepness) / deviation(draw, noise, spikes)) for size in sizes
    ]


def deviation(draw, noise, spikes):
    """Return what a time is multiplied by: noise, and now and then a spike that takes up to twice as long."""
    return math.exp(draw.gauss(0.0, noise)) * (1 + (draw.random() if draw.random() < spikes else 0.0))


def holds(estimate, truth):
    return estimate.low <= truth <= estimate.high


def test_a_line_without_noise_is_found():
    found = line(sweep_of_line(9e-6, 200e9))
    assert found.latency_s.value == pytest.approx(9e-6, rel=1e-3)
    assert found.algbw_Bps.value == pytest.approx(200e9, rel=1e-3)
    assert found.half_bytes.value == pytest.approx(1.8e6, rel=1e-3)


def test_a_hill_curve_without_noise_is_found():
    found = hill(sweep_of_hill(480e9, 17e6, 0.72)[6:])
    assert found.busbw_Bps.value == pytest.approx(480e9, rel=1e-3)
    assert found.half_bytes.value == pytest.approx(17e6, rel=1e-3)
    assert found.steepness.value == pytest.approx(0.72, rel=1e-3)


@pytest.mark.parametrize(("noise", "spikes"), [(0.01, 0.0), (0.05, 0.0), (0.03, 0.05)])
def test_intervals_of_a_line_cover_at_their_stated_rate(noise, spikes):
    hits = {"latency": 0, "algbw": 0, "half": 0}
    for seed in range(TRIALS):
        found = line(sweep_of_line(9e-6, 200e9, noise=noise, spikes=spikes, seed=seed))
        # A spike slows down only, so what is fitted is a little slower than the truth.
        hits["latency"] += holds(found.latency_s, 9e-6)
        hits["algbw"] += holds(found.algbw_Bps, 200e9)
        hits["half"] += holds(found.half_bytes, 9e-6 * 200e9)
        assert found.latency_s.confidence == 0.95
    assert min(hits.values()) >= LEAST_COVERAGE * TRIALS, hits


@pytest.mark.parametrize(("noise", "spikes"), [(0.01, 0.0), (0.03, 0.05)])
def test_intervals_of_a_hill_curve_cover_at_their_stated_rate(noise, spikes):
    hits = {"rate": 0, "half": 0, "steepness": 0}
    for seed in range(TRIALS):
        found = hill(sweep_of_hill(480e9, 17e6, 0.72, noise=noise, spikes=spikes, seed=seed)[6:])
        hits["rate"] += holds(found.busbw_Bps, 480e9)
        hits["half"] += holds(found.half_bytes, 17e6)
        hits["steepness"] += holds(found.steepness, 0.72)
    assert min(hits.values()) >= LEAST_COVERAGE * TRIALS, hits


def test_one_wild_point_does_not_move_the_line():
    points = sweep_of_line(9e-6, 200e9, noise=0.01)
    points[3] = (points[3][0], 50 * points[3][1])
    assert line(points).latency_s.value == pytest.approx(9e-6, rel=0.03)


def test_a_sweep_of_small_messages_tells_no_bandwidth():
    found = line(sweep_of_line(9e-6, 200e9, noise=0.02, sizes=SWEEP[:7]))
    assert found.latency_s.value == pytest.approx(9e-6, rel=0.1)
    assert found.algbw_Bps is None
    assert found.half_bytes is None


def test_a_sweep_of_large_messages_tells_no_latency():
    assert line(sweep_of_line(9e-6, 200e9, noise=0.02, sizes=SWEEP[14:])) is None


@pytest.mark.parametrize("count", range(LEAST_FOR_LINE))
def test_too_few_points_tell_no_line(count):
    assert line(sweep_of_line(9e-6, 200e9)[:count]) is None


@pytest.mark.parametrize("count", range(LEAST_FOR_HILL))
def test_too_few_points_tell_no_hill_curve(count):
    assert hill(sweep_of_hill(480e9, 17e6, 0.72)[:count]) is None


def test_a_sweep_that_does_not_reach_its_plateau_tells_no_hill_curve():
    assert hill(sweep_of_hill(480e9, 17e6, 0.72, noise=0.02)[:12]) is None


@pytest.mark.parametrize("value", [1e-9, 1e-5, 1e3])
def test_times_that_are_all_alike_are_latency(value):
    found = line([(size, value) for size in SWEEP])
    assert found.latency_s.value == pytest.approx(value, rel=1e-3)
    assert found.algbw_Bps is None

import random

import pytest

from busbw.stats.tail import is_stable


def lengths(most=2000):
    """Yield the lengths a growing warm-up is looked at: it doubles."""
    count = 1
    while count <= most:
        yield count
        count = 2 * count + 1


def test_fewer_than_eight_values_are_not_stable():
    assert not is_stable([])
    assert not is_stable([1.0] * 7)
    assert is_stable([1.0] * 8)


def test_a_level_that_fell_in_the_middle_is_not_stable():
    assert not is_stable([20.0] * 50 + [10.0] * 50)
    assert not is_stable([10.0] * 50 + [20.0] * 50)


def test_a_slow_start_is_outgrown():
    assert is_stable([100.0, 50.0, 30.0] + [10.0] * 13)


def test_a_level_that_keeps_falling_is_not_stable():
    draw = random.Random(1)
    falling = [100.0 * 0.995**call * draw.uniform(0.98, 1.02) for call in range(300)]
    assert not any(is_stable(falling[:count]) for count in lengths(300) if count >= 60)


def test_spikes_do_not_unsettle_a_level():
    draw = random.Random(2)
    spiky = [10.0 * (50.0 if draw.random() < 0.1 else 1.0) for _ in range(100)]
    assert is_stable(spiky)


def test_one_lucky_call_does_not_settle_a_falling_level():
    assert not is_stable([20.0, 20.0, 9.0, 20.0, 20.0, 20.0, 20.0, 20.0] + [10.0] * 8)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0])
def test_noise_that_does_not_move_becomes_stable(sigma):
    draw = random.Random(3)
    late = 0
    for _ in range(200):
        noisy = [draw.lognormvariate(0.0, sigma) for _ in range(255)]
        late += not any(is_stable(noisy[:count]) for count in lengths(255))
    assert late == 0

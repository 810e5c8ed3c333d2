"""What a time limit did not reach, and how much more time would have."""

import pytest

from busbw.judge.failures import more_samples, more_time, unreached, unreached_words
from busbw.model.plan import points_of

from .factories import make_measurement, make_outcome, make_plan, make_sweep

MIB = 2**20
SIZES = (MIB, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB)
PLAN = make_plan(make_sweep("all_reduce", SIZES[:2]), make_sweep("alltoall", SIZES))


def measured(*numbers: int, **changes):
    points = points_of(PLAN.sweeps)
    return tuple(
        make_measurement(
            point=number,
            collective=PLAN.sweeps[points[number].sweep].collective,
            size_bytes=points[number].size_bytes,
            **changes,
        )
        for number in numbers
    )


def test_a_whole_run_lacks_nothing():
    assert unreached(PLAN, make_outcome(ended="complete"), measured(*range(7))) is None


def test_a_row_of_sizes_is_named_by_its_ends():
    found = unreached(PLAN, make_outcome(ended="time"), measured(0, 1, 2, 3))

    assert found is not None
    assert found.points == (4, 5, 6)
    assert unreached_words(PLAN, found) == "alltoall 16 MiB to 64 MiB, of 7 points"


def test_sizes_apart_are_named_each():
    found = unreached(PLAN, make_outcome(ended="time"), measured(0, 2, 4, 6))

    assert found is not None
    assert found.names == ("all_reduce 4 MiB", "alltoall 4 MiB", "alltoall 32 MiB")


def test_the_time_is_bounded_by_what_smaller_messages_took():
    found = unreached(PLAN, make_outcome(ended="time"), measured(0, 1, 2, 3, 4, 5, first_s=2.0))

    assert found is not None
    assert (found.least_s, found.most_s) == (2.0, pytest.approx(4.0))
    assert more_time(PLAN, found) == (
        "2.0 s to 4.0 s more would reach the first sample of each",
        "--time-limit 64",
    )


def test_a_larger_message_that_was_measured_bounds_a_smaller_one():
    found = unreached(PLAN, make_outcome(ended="time"), measured(0, 1, 2, 3, 4, 6, first_s=2.0))

    assert found is not None
    assert (found.least_s, found.most_s) == (2.0, 2.0)
    assert more_time(PLAN, found) == ("about 2.0 s more would reach the first sample of each", "--time-limit 62")


def test_without_the_time_of_a_first_turn_one_sample_is_the_least():
    taken = measured(0, 1, 2, 3, 4, 5, median_s=0.5, calls_per_sample=20)
    found = unreached(PLAN, make_outcome(ended="time"), taken)

    assert found is not None
    assert (found.least_s, found.most_s) == (10.0, None)
    assert more_time(PLAN, found) == ("at least 10 s more would be needed", "--time-limit 70 or more")


def test_where_nothing_tells_no_time_is_said():
    found = unreached(PLAN, make_outcome(ended="time"), measured(0, 1, first_s=1.0))

    assert found is not None
    assert (found.least_s, found.most_s) == (None, None)
    assert more_time(PLAN, found) is None


@pytest.mark.parametrize("ended", ["stopped", "failed"])
def test_a_run_that_time_did_not_end_lacks_no_time(ended: str):
    found = unreached(PLAN, make_outcome(ended=ended), measured(0, 1, 2, first_s=1.0))

    assert found is not None
    assert more_time(PLAN, found) is None


def test_points_with_too_few_samples_say_what_the_others_take():
    few = measured(0, 1, samples=10, ended="time", median_s=0.5, calls_per_sample=1)

    assert more_samples(PLAN, few) == "at least 20 s more: --time-limit 80 or more, or fewer sizes"
    assert more_samples(PLAN, measured(0, samples=10, ended="stopped")) is None

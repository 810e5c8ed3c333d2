"""Turns of one point become one measurement, in the order they were taken."""

import pytest

from busbw.measure.backends.backend import Parsed
from busbw.measure.backends.native_mpi import parse
from busbw.model.record import Measured, Mismatch
from busbw.model.run import Measurement

from .records import US, make_hello, make_measured, make_plan, placed

PLAN = make_plan(ranks=2)
FIRST = make_measured((900 * US,), turn=0, warmup_calls=1, warmup_stable=False, ended="time", ended_unix_s=1.5)


def later(turn: int, *times_us: int, **changes) -> Measured:
    verified = {"verified_elements": 0, "warmup_calls": 8}
    return make_measured(tuple(time * US for time in times_us), turn=turn, **(verified | changes))


def read(*by_rank: list[Measured]) -> Parsed:
    return parse(PLAN, placed(*([make_hello(rank), *records] for rank, records in enumerate(by_rank))))


def one(*by_rank: list[Measured]) -> Measurement:
    (found,) = read(*by_rank).measurements
    return found


def test_a_run_that_ended_after_the_first_samples_reads_back():
    found = one([FIRST], [FIRST])

    assert (found.samples, found.turns, found.median_s) == (1, 0, pytest.approx(900e-6))
    assert found.verified
    assert found.first_s == 0.5


def test_the_first_sample_counts_as_warm_up_once_there_are_others():
    found = one([FIRST, later(1, 100, 110)], [FIRST, later(1, 100, 110)])

    assert (found.samples, found.turns, found.max_s) == (2, 1, pytest.approx(110e-6))
    assert found.warmup_calls == 1 + 1 + 8
    assert found.warmup_stable
    assert found.verified
    assert found.first_s == 0.5


def test_turns_are_put_together_in_the_order_they_were_taken():
    turns = [FIRST, later(1, *[100] * 10, ended="time"), later(2, *[200] * 10, missed=(0,), ended="interval")]

    found = one(turns, turns)

    assert (found.samples, found.missed, found.turns, found.ended) == (19, 1, 2, "interval")
    assert found.drift == 1.0
    assert found.warmup_calls == 1 + 1 + 8 + 8


def test_a_turn_that_not_all_ranks_wrote_is_left_out():
    found = one([FIRST, later(1, 100), later(2, 500)], [FIRST, later(1, 100)])

    assert (found.samples, found.turns) == (1, 1)


def test_a_turn_without_a_sample_that_counts_leaves_the_first_one():
    missed = later(1, 100, missed=(0,))

    found = one([FIRST, missed], [FIRST, missed])

    assert (found.samples, found.turns, found.median_s) == (1, 0, pytest.approx(900e-6))


def test_a_wrong_result_in_a_later_turn_leaves_no_time():
    mismatch = Mismatch(wrong=1, index=3, got="1", expected="2")
    good = [FIRST, later(1, 100, 110)]

    found = one([*good, later(2, ended="wrong")], [*good, later(2, ended="wrong", mismatch=mismatch)])

    assert found.wrong is not None
    assert (found.samples, found.ended) == (0, "wrong")


def test_bytes_and_switches_are_those_of_all_turns():
    sent = {"tcp_bytes": (("lo", 5_000_000),), "involuntary_switches": 3}
    turns = [make_measured((900 * US,), turn=0, warmup_calls=1, **sent), later(1, 100, **sent), later(2, 100, **sent)]

    found = one(turns, turns)

    # One call to verify, one to warm up and the first sample; then eight and a sample, twice.
    calls = 1 + 1 + 1 + 2 * 9
    assert dict(found.tcp_share)["lo"] == pytest.approx(2 * 15_000_000 / (calls * 2 * 2**20), rel=1e-3)
    assert [view.involuntary_switches for view in found.per_rank] == [6, 6]


def test_a_start_with_more_than_first_samples_is_not_replaced_by_one_without():
    full, only = [FIRST, later(1, 100, 100)], [FIRST]
    records = placed([make_hello(0), *full], [make_hello(1), *full])
    again = placed([make_hello(0), *only], [make_hello(1), *only], attempt=1)

    (found,) = parse(PLAN, {rank: [*records[rank], *again[rank]] for rank in records}).measurements

    assert found.samples == 2


def test_a_record_without_turns_is_a_whole_point():
    found = one([make_measured()], [make_measured()])

    assert (found.turns, found.first_s, found.samples) == (1, None, 40)

"""Warnings about the host and the MPI: each fires on its case and not beside it."""

import pytest

from busbw.judge.conditions import condition_findings, spoilers

from .factories import make_counters, make_hello, make_outcome, make_plan


def codes(plan=None, outcome=None, hellos=()):
    return [found.code for found in condition_findings(plan or make_plan(), outcome, hellos)]


def ended(load: float = 0.0, **after):
    """Return an outcome of 10 s and 100 s of processor time with these counters after it."""
    return make_outcome(make_counters(load_average=load), make_counters(**({"cpu_s": 100.0} | after)))


def test_a_quiet_machine_gives_no_warning():
    assert codes(make_plan(), ended(), (make_hello(),)) == []


@pytest.mark.parametrize(
    ("code", "case", "neighbour"),
    [
        ("RUN007", {"throttle_events": 1}, {"throttle_events": 0}),
        ("RUN007", {"throttle_events": 1}, {"throttle_events": None}),
        ("RUN008", {"quota_stops": 1}, {"quota_stops": 0}),
        ("RUN009", {"stolen_s": 1.1}, {"stolen_s": 0.9}),
        ("RUN009", {"stolen_s": 1.1}, {"stolen_s": None}),
    ],
)
def test_a_counter_that_grew_is_told(code, case, neighbour):
    assert codes(outcome=ended(**case)) == [code]
    assert codes(outcome=ended(**neighbour)) == []


def test_load_counts_beyond_the_cpus_that_ranks_leave_free():
    assert codes(make_plan(ranks=4), ended(load=0.6)) == ["RUN010"]
    assert codes(make_plan(ranks=4), ended(load=0.4)) == []
    assert codes(make_plan(ranks=2), ended(load=2.4)) == []


def test_more_ranks_than_cores_are_told():
    assert codes(make_plan(ranks=8, oversubscribed=True)) == ["RUN006"]


def test_only_the_powersave_governor_is_told():
    assert codes(make_plan(governor="powersave")) == ["RUN016"]
    assert codes(make_plan(governor="schedutil")) == []


@pytest.mark.parametrize(
    ("code", "case"),
    [
        ("RUN015", {"interposed": ("MPI_Send from /opt/p.so",)}),
        ("RUN017", {"thread_level": "multiple"}),
        ("RUN018", {"small_float_reductions": "busbw"}),
    ],
)
def test_what_a_rank_says_of_its_mpi_is_told_once(code, case):
    assert codes(hellos=(make_hello(0), make_hello(1, **case), make_hello(2, **case))) == [code]
    assert codes(hellos=(make_hello(0), make_hello(1))) == []


@pytest.mark.parametrize(
    ("code", "spoils", "noted_only"),
    [
        ("RUN009", {"stolen_s": 5.1}, {"stolen_s": 4.9}),
        ("RUN008", {"quota_stops": 6}, {"quota_stops": 5}),  # of 100 periods
    ],
)
def test_a_little_is_noted_and_much_spoils_the_judgement(code, spoils, noted_only):
    assert [reason for reason, _ in spoilers(make_plan(), ended(**spoils))] == [code]
    assert spoilers(make_plan(), ended(**noted_only)) == ()
    assert codes(outcome=ended(**noted_only)) == [code]

"""Launch times from records: on every rank or not at all, and several starts in one measurement."""

import msgspec
import pytest

from busbw.measure.backends.native_mpi import parse
from busbw.model.record import EmptyLaunches, Launched, Mismatch

from .records import US, make_measured, make_plan, make_sweep
from .test_native_mpi import starts

WRONG = Mismatch(wrong=1, index=0, got="0", expected="1")


def empty(issue_us=4, wait_us=9, launches=20, batches=4):
    issue_ns = (launches * issue_us * US,) * batches
    return EmptyLaunches(
        launches=launches, issue_ns=issue_ns, device_ns=issue_ns, done_ns=tuple(one + wait_us * US for one in issue_ns)
    )


def small(time_us=10, issue_us=9, before=None, after=None, **changes):
    return make_measured(
        (time_us * US,) * 40, issued_ns=(issue_us * US,) * 40, empty_before=before, empty_after=after, **changes
    )


def repeated(launches):
    plan = make_plan(make_sweep(), ranks=2)
    return msgspec.structs.replace(plan, sampling=msgspec.structs.replace(plan.sampling, launches=launches))


def test_launches_are_those_of_the_latest_start_in_rank_order():
    first, second = [[Launched(empty=empty(3))]] * 2, [[Launched(empty=empty(4))], [Launched(empty=empty(5))]]
    found = parse(make_plan(ranks=2), starts(first, second)).launches
    assert [(one.rank, one.host_s, one.wait_s) for one in found] == [
        (0, pytest.approx(4e-6), pytest.approx(9e-6)),
        (1, pytest.approx(5e-6), pytest.approx(9e-6)),
    ]


def test_launches_that_one_rank_lacks_are_none():
    assert parse(make_plan(ranks=2), starts([[Launched(empty=empty())], []])).launches == ()


def test_a_record_without_the_end_of_launches_tells_no_wait():
    old = msgspec.structs.replace(empty(), done_ns=())
    (one, _other) = parse(make_plan(ranks=2), starts([[Launched(empty=old)]] * 2)).launches
    assert one.wait_s is None


def test_half_of_the_batches_make_the_wait():
    issue_ns = (80 * US,) * 4
    mixed = EmptyLaunches(
        launches=20, issue_ns=issue_ns, device_ns=issue_ns, done_ns=(81_000, 81_000, 980_000, 980_000)
    )
    (one, _other) = parse(make_plan(ranks=2), starts([[Launched(empty=mixed)]] * 2)).launches
    assert one.wait_s == pytest.approx(900e-6)


def test_the_share_of_a_point_is_the_mean_over_ranks_of_what_was_taken_beside_it():
    fast, slow = small(issue_us=8, before=empty(3), after=empty(4)), small(issue_us=9, before=empty(4), after=empty(5))
    (found,) = parse(make_plan(ranks=2), starts([[fast], [slow]])).measurements
    assert found.launch is not None
    assert found.launch.issue_s == pytest.approx(8.5e-6)
    assert [one.host_s for one in found.launch.before] == pytest.approx([3e-6, 4e-6])
    assert [one.host_s for one in found.launch.after] == pytest.approx([4e-6, 5e-6])


def test_points_of_before_have_no_share():
    (found,) = parse(make_plan(ranks=2), starts([[make_measured()], [make_measured()]])).measurements
    assert found.launch is None


def test_of_several_starts_the_one_in_the_middle_stands_and_all_are_told():
    found = parse(
        repeated(3), starts(*([[small(time_us, before=empty(3), after=empty(9))]] * 2 for time_us in (12, 7, 10)))
    ).measurements
    (one,) = found
    assert one.median_s == pytest.approx(10e-6)
    assert one.source == "raw/rank-00000.2.jsonl:1"
    assert [start.median_s for start in one.starts] == pytest.approx([12e-6, 7e-6, 10e-6])
    # The shorter of before and after.
    assert [start.empty_s for start in one.starts] == pytest.approx([3e-6] * 3)


def test_of_two_starts_in_the_middle_the_slower_stands():
    (one,) = parse(repeated(2), starts([[small(7)]] * 2, [[small(10)]] * 2)).measurements
    assert one.median_s == pytest.approx(10e-6)


def test_a_start_of_a_plan_with_one_counts_as_before():
    (one,) = parse(repeated(1), starts([[small(7)]] * 2, [[small(10)]] * 2)).measurements
    assert (one.median_s, one.starts) == (pytest.approx(10e-6), ())


def test_a_wrong_result_of_any_start_counts_before_all_times():
    wrong = small(50, mismatch=WRONG)
    (one,) = parse(repeated(3), starts([[small(7)]] * 2, [[wrong]] * 2, [[small(8)]] * 2)).measurements
    assert one.wrong is not None

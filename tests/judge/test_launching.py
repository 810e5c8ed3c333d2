"""What part of a small message is launch: said where it is one, with what another start may make of it."""

import pytest

from busbw.judge.launching import launch_findings, launch_share
from busbw.model.run import EmptyLaunch, LaunchShare, StartView

from .factories import make_measurement, make_plan, make_wrong

US = 1e-6


def launches(*times_us):
    return tuple(
        EmptyLaunch(rank=rank, host_s=time_us * US, host_low_s=1e-6, host_high_s=1e-5, device_s=time_us * US)
        for rank, time_us in enumerate(times_us)
    )


def small(time_us=10.4, issue_us=10.0, before=(4.0, 4.2), after=(4.0, 4.2), **changes):
    share = LaunchShare(issue_s=issue_us * US, before=launches(*before), after=launches(*after))
    values = {"size_bytes": 1024, "mode": "stream", "launch": share, **changes}
    return make_measurement("all_reduce", median_s=time_us * US, **values)


def stated(*measurements):
    (found,) = launch_findings(make_plan(ranks=2), measurements)
    assert (found.code, found.severity) == ("RUN026", "note")
    return found


def test_the_time_and_the_part_of_it_that_is_launch_are_said():
    found = stated(small())
    assert found.evidence.startswith("all_reduce 1 KiB: 10.4 us, of which 4.10 us launch on the host; ")
    assert "the host decides its time: it takes 10.0 us to issue a call" in found.evidence
    assert "One start is one draw" in found.evidence


def test_commands_for_the_network_alone_and_for_several_starts_are_given():
    command = "busbw run all_reduce --backend nccl --ranks 2 -b 1024 -e 1024"
    assert stated(small()).fix == (
        f"the network's own time, without launches: {command} --mode graph; over several starts: {command} --launches 6"
    )


def test_where_the_gpus_take_longer_the_host_is_not_said_to_decide():
    assert "the host issues a call in 7.00 us, 50 % of it" in stated(small(14.0, 7.0)).evidence


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "graph"},
        {"size_bytes": 2**20},
        {"wrong": make_wrong()},
        {"launch": None},
        {"launch": LaunchShare(issue_s=1e-5)},
        {"time_us": 42.0},
        # A call that is back sooner than a launch holds none.
        {"issue_us": 1.0},
    ],
)
def test_nothing_is_said_where_launches_are_no_part_of_it(changes):
    assert launch_findings(make_plan(), (small(**changes),)) == ()
    assert launch_share(small(**changes)) < 0.1


def test_launches_that_changed_within_the_start_or_differ_between_ranks_are_told():
    assert "(3.00 us before it, 9.00 us after it)" in stated(small(before=(3.0, 3.0), after=(9.0, 9.0))).evidence
    assert "(rank 1 6.00 us, rank 0 4.00 us)" in stated(small(before=(4.0, 6.0), after=(4.0, 6.0))).evidence


def test_what_takes_long_for_a_moment_is_no_part_of_the_message():
    assert "of which 3.00 us launch" in stated(small(before=(3.0, 3.0), after=(9.0, 9.0))).evidence


def test_several_starts_are_told_with_their_range_and_need_no_further_ones():
    starts = tuple(StartView(median_s=time * US, empty_s=launch * US) for time, launch in ((6.8, 3.1), (10.4, 4.1)))
    found = stated(small(starts=starts))
    assert found.evidence.endswith("The median of 2 starts, 6.80 us to 10.4 us; launches 3.10 us to 4.10 us")
    assert "--launches" not in (found.fix or "")


def test_one_finding_tells_of_all_points_by_the_smallest():
    found = stated(small(size_bytes=2048), small(point=1))
    assert found.title.endswith("at 2 points")
    assert "all_reduce 1 KiB" in found.evidence

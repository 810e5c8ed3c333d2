"""What starting work on GPUs takes: taken in every start, on every GPU, beside small messages."""

import pytest

from busbw.model.measurement import EmptyLaunch

from .harness import BRIEF, NcclBusbw, assert_all_right

# What the stand-in's host takes to launch a kernel.
LAUNCH_us = 300


def all_launched(launches: tuple[EmptyLaunch, ...], ranks: int) -> bool:
    """Whether there is a launch of every rank, none faster than the stand-in makes it."""
    return [one.rank for one in launches] == list(range(ranks)) and all(
        LAUNCH_us * 1e-6 <= one.host_low_s <= one.host_s <= one.host_high_s for one in launches
    )


@pytest.mark.parametrize("per_process", [1, 2])
def test_every_start_times_an_empty_launch_on_every_gpu(busbw: NcclBusbw, per_process: int):
    paced = {"STANDIN_LAUNCH_US": str(LAUNCH_us)}
    result = busbw.nccl(
        "all_reduce", "--ranks", 2, "-g", per_process, "-b", "1K", "-e", "1M", "-f", 1024, *BRIEF, env=paced
    )

    small, large = assert_all_right(busbw, result, paced)
    assert all_launched(busbw.run_of().launches, 2)
    assert small.launch is not None
    assert all_launched(small.launch.before, 2)
    assert all_launched(small.launch.after, 2)
    assert small.launch.issue_s > 0
    assert large.launch is not None
    assert large.launch.before == large.launch.after == ()


def test_nothing_is_launched_where_there_is_no_kernel(busbw: NcclBusbw):
    result = busbw.nccl("all_reduce", "--ranks", 2, "-b", "1K", "-e", "1K", *BRIEF, kernels=False)

    (one,) = assert_all_right(busbw, result)
    assert busbw.run_of().launches == ()
    assert one.launch is not None
    assert one.launch.before == ()
    assert one.launch.issue_s > 0


def test_only_the_pair_that_exchanges_counts(busbw: NcclBusbw):
    latency = {"STANDIN_LATENCY_US": "500"}
    result = busbw.nccl(
        "sendrecv", "--ranks", 4, "-g", 4, "--pairs", "1-3", "-b", "1K", "-e", "1K", *BRIEF, env=latency
    )

    (one,) = assert_all_right(busbw, result, latency)
    assert one.launch is not None
    assert one.launch.issue_s <= one.median_s
    assert len(one.launch.before) == 4

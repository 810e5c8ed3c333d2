"""Every way of taking the time over NCCL, and what is recorded of it beside the time."""

import pytest

from busbw.model.run import Measurement

from .harness import NcclBusbw, assert_all_right

# The stand-in's L2 cache; cold calls go through four times as much.
L2_BYTES = 4 << 20
CALLS_us = 300
# A sample has so many calls, and fewer where those would take longer than 20 ms: other work on the machine can do that.
MOST_CALLS = 20
BUSY_s = 2 * CALLS_us * 1e-6


def measured(busbw: NcclBusbw, *arguments: object, **env: str) -> Measurement:
    """Measure one size of one collective between two GPUs."""
    paced = {"STANDIN_LATENCY_US": str(CALLS_us), **env}
    result = busbw.nccl(
        "all_reduce", "--ranks", 2, "-b", "4K", "-e", "4K", "--min-samples", 5, "--time-limit", 0.6, *arguments,
        env=paced,
    )  # fmt: skip
    (one,) = assert_all_right(busbw, result, paced)
    return one


def assert_calls(one: Measurement, calls: int) -> None:
    """Hold the calls of a sample to what they should be; a busy machine may have had fewer."""
    if calls == MOST_CALLS and one.median_s > BUSY_s:
        assert 1 <= one.calls_per_sample <= MOST_CALLS
    else:
        assert one.calls_per_sample == calls


@pytest.mark.parametrize("per_process", [1, 2])
@pytest.mark.parametrize(
    ("arguments", "mode", "calls"),
    [
        ((), "stream", MOST_CALLS),
        (("--mode", "isolated"), "isolated", 1),
        (("-G", 1), "graph", MOST_CALLS),
        (("--mode", "graph", "-n", 7), "graph", 7),
        (("--mode", "loaded", "--load-side", 64, "--calls", 3), "loaded", 3),
    ],
)
def test_each_mode_times_calls_its_own_way(
    busbw: NcclBusbw, arguments: tuple[object, ...], mode: str, calls: int, per_process: int
):
    one = measured(busbw, *arguments, "-g", per_process)

    assert one.mode == mode
    assert_calls(one, calls)
    # A call cannot be faster than the stand-in makes it, nor many times slower; a load takes the stand-in's cores.
    assert one.median_s >= CALLS_us * 1e-6
    assert one.median_s < 20 * CALLS_us * 1e-6 or mode == "loaded"
    assert (one.clock_error_s is not None) == (mode == "isolated")
    assert one.nccl is not None
    assert one.nccl.graph_calls == (one.calls_per_sample if mode == "graph" else 0)
    assert (one.nccl.product_ns is not None) == (mode == "loaded")
    assert len(one.per_rank) == 2


def test_few_calls_fit_into_a_sample_where_each_takes_long(busbw: NcclBusbw):
    # 20 of these would be 80 ms; a sample shall not take much more than 20.
    one = measured(busbw, STANDIN_LATENCY_US="4000")

    assert one.calls_per_sample < 20
    assert 4e-3 <= one.median_s < 20e-3


@pytest.mark.parametrize(("cache", "mode"), [("cold", "stream"), ("warm", "stream"), ("cold", "graph")])
def test_cold_calls_move_through_more_memory_than_the_cache_holds(busbw: NcclBusbw, cache: str, mode: str):
    one = measured(busbw, "--cache", cache, "--mode", mode, "-g", 2)

    assert one.nccl is not None
    if cache == "warm":
        assert one.nccl.slots == 1
        assert 2 * 4096 <= one.nccl.footprint_bytes < 64 << 10
    elif mode == "graph":
        # Only what was captured is ever touched.
        assert_calls(one, MOST_CALLS)
        assert one.nccl.slots == one.nccl.graph_calls == one.calls_per_sample
        assert one.calls_per_sample * 2 * 4096 <= one.nccl.footprint_bytes < L2_BYTES
    else:
        assert one.nccl.footprint_bytes >= 4 * L2_BYTES
        assert one.nccl.slots * 2 * 4096 <= one.nccl.footprint_bytes


@pytest.mark.parametrize("version", [22809, 23203])
def test_what_nccl_chose_is_recorded(busbw: NcclBusbw, version: int):
    forced = {"NCCL_PROTO": "Simple"}
    result = busbw.nccl(
        "all_reduce", "all_gather", "sendrecv", "--ranks", 2, "-b", "4K", "-e", "2M", "-f", 512, "--min-samples", 2,
        "--time-limit", 1.5, version=version, env=forced,
    )  # fmt: skip

    found = {
        (one.collective, one.size_bytes, choice.function, choice.algorithm, choice.protocol, choice.channels)
        for one in assert_all_right(busbw, result, forced)
        if one.nccl is not None
        for choice in one.nccl.choices
    }
    assert {one for one in found if one[0] != "sendrecv"} == {
        ("all_reduce", 4096, "AllReduce", "TREE", "SIMPLE", 1),
        ("all_reduce", 2 << 20, "AllReduce", "RING", "SIMPLE", 8),
        ("all_gather", 4096, "AllGather", "RING", "SIMPLE", 1),
        ("all_gather", 2 << 20, "AllGather", "RING", "SIMPLE", 4),
    }
    assert {one[2] for one in found if one[0] == "sendrecv"} == {"Send", "Recv"}
    assert "tree simple 1" in result.out


@pytest.mark.parametrize("reason", ["an old version", "the user's own plug-in"])
def test_nccl_is_not_asked_where_it_cannot_be(busbw: NcclBusbw, reason: str):
    old = reason == "an old version"
    result = busbw.nccl(
        "all_reduce", "--ranks", 2, "-g", 2, "-b", "4K", "-e", "4K", "--min-samples", 2, "--time-limit", 0.3,
        version=22203 if old else 22809, env={} if old else {"NCCL_PROFILER_PLUGIN": "mine"},
    )  # fmt: skip

    (one,) = assert_all_right(busbw, result)
    assert one.nccl is not None
    assert one.nccl.choices == ()
    plan = busbw.run_of().plan
    assert plan.gpu_setup is not None
    assert plan.gpu_setup.profiler is False
    assert "NCCL_PROFILER_PLUGIN" not in dict(plan.job.env)

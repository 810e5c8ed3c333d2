"""GPUs that run other work are named, by how long empty kernels wait there; idle ones are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.judge import judge
from busbw.judge.launching import busy_findings, busy_gpus, busy_words
from busbw.model.record import GpuHello
from busbw.model.run import EmptyLaunch, LaunchShare

from .factories import make_hello, make_measurement, make_outcome, make_plan, make_rates, make_sweep

IDLE_S, BUSY_S = 9e-6, 2e-3
GPU = GpuHello(
    ordinal=1, model="H100", bus_id="0", free_bytes=1, nccl="2.28.9", nccl_path="/n", driver=13000, driver_path="/d",
    nvrtc_path=None, environment=(),
)  # fmt: skip


def launches(*waits_s):
    return tuple(
        EmptyLaunch(rank=rank, host_s=4e-6, host_low_s=4e-6, host_high_s=5e-6, device_s=4e-6, wait_s=wait_s)
        for rank, wait_s in enumerate(waits_s)
    )


def beside(*waits_s):
    return make_measurement(launch=LaunchShare(issue_s=8e-6, before=launches(*waits_s), after=launches(*waits_s)))


def ranks(*waits_s):
    return [one.rank for one in busy_gpus(launches(*waits_s), ())]


@pytest.mark.parametrize(
    ("waits_s", "busy"),
    [
        ((IDLE_S, IDLE_S), []),
        ((IDLE_S, BUSY_S), [1]),
        ((BUSY_S, IDLE_S, BUSY_S), [0, 2]),
        ((BUSY_S, BUSY_S), [0, 1]),
        ((IDLE_S, 199e-6), []),
        ((IDLE_S, 201e-6), [1]),
        ((100e-6, 499e-6), []),
        ((100e-6, 501e-6), [1]),
        ((None, None), []),
        ((), []),
    ],
)
def test_a_gpu_is_busy_when_kernels_wait_longer_than_a_turn_and_than_on_the_others(waits_s, busy):
    assert ranks(*waits_s) == busy


def test_half_of_the_times_are_enough_and_less_is_not():
    assert [one.rank for one in busy_gpus(launches(IDLE_S, BUSY_S), (beside(IDLE_S, IDLE_S),))] == []
    assert [one.rank for one in busy_gpus((), (beside(IDLE_S, IDLE_S), beside(IDLE_S, BUSY_S)))] == [1]


@given(st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=8), st.integers(0, 7), st.floats(1.0, 1000.0))
def test_a_gpu_whose_kernels_wait_longer_stays_busy(waits_s, which, times):
    which %= len(waits_s)
    longer = [wait_s * times if rank == which else wait_s for rank, wait_s in enumerate(waits_s)]
    assert which not in ranks(*waits_s) or which in ranks(*longer)


def test_the_gpu_its_host_and_its_rank_are_named():
    hellos = (make_hello(0, gpu=GPU), make_hello(1, gpu=GPU))
    busy = busy_gpus(launches(IDLE_S, BUSY_S), ())
    (found,) = busy_findings(busy, hellos)
    assert (found.code, found.severity) == ("RUN027", "warn")
    assert found.title == "GPU 1 on node1 (rank 1) runs other work beside this run"
    assert "rank 1: 2.00 ms, 9.00 us on the idle GPUs" in found.evidence
    assert "nvidia-smi" in (found.fix or "")
    assert busy_words(busy, hellos) == ("GPU 1 on node1 (rank 1) runs other work beside this run",)
    assert busy_findings((), hellos) == busy_words((), hellos) == ()


def test_where_all_gpus_are_busy_all_are():
    hellos = (make_hello(0, gpu=GPU), make_hello(1, gpu=GPU))
    (found,) = busy_findings(busy_gpus(launches(BUSY_S, BUSY_S), ()), hellos)
    assert found.title == "all 2 GPUs run other work beside this run"
    assert found.evidence.endswith("on every GPU of the run")


def test_beside_other_work_speed_is_not_judged_and_the_gpu_comes_first_also_where_points_are_missing():
    plan = make_plan(make_sweep("all_gather", (1024, 2048)))
    hellos = (make_hello(0, gpu=GPU), make_hello(1, gpu=GPU))
    judged = judge(
        plan, make_outcome(), hellos, make_rates(), (beside(IDLE_S, BUSY_S),), launches=launches(IDLE_S, BUSY_S)
    )
    assert judged.verdict.outcome == "cannot_tell"
    assert judged.verdict.sentence.startswith("cannot tell: GPU 1 on node1 (rank 1) runs other work beside this run; ")
    assert judged.verdict.because[:2] == ("RUN027", "RUN003")

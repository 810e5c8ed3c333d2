"""One wrong element of one rank: the run says wrong and names it, whoever checks, in the first call or only later."""

import pytest
from tests.e2e.runner import Result

from busbw.model.run import Measurement

from .harness import BRIEF, NcclBusbw

# The first size is right in the calls that verify it before the time is taken, and wrong in every later one.
LATER = ";".join(f"kind=wrong,rank=1,element=11,call={call}" for call in range(3, 900))


def assert_wrong(busbw: NcclBusbw, result: Result, rank: int, element: int) -> Measurement:
    """Check that the run says which element of which rank is wrong, and gives no time for it."""
    assert result.code == 1, result
    run = busbw.run_of()
    assert run.verdict.outcome == "wrong"
    assert run.findings[0].code == "RUN001"
    point = run.measurements[-1]
    assert point.wrong is not None
    mismatch = point.wrong.mismatch
    assert (point.wrong.rank, mismatch.index, mismatch.wrong) == (rank, element, 1)
    assert mismatch.got != mismatch.expected
    for words in (f"rank {rank} ", f"element {element}", mismatch.got, mismatch.expected):
        assert words in run.verdict.sentence
    assert (point.samples, point.median_s, point.busbw_Bps, point.ended) == (0, 0.0, 0.0, "wrong")
    return point


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "host"])
@pytest.mark.parametrize("collective", ["all_reduce", "alltoall"])
def test_a_wrong_element_is_found_and_named(busbw: NcclBusbw, collective: str, kernels: bool):
    result = busbw.nccl(
        collective, *BRIEF, "--ranks", 2, "-d", "bfloat16", "-b", "4K", "-e", "4K", "--time-limit", 1,
        kernels=kernels, env={"STANDIN_FAULT": "kind=wrong,rank=1,element=1027"},
    )  # fmt: skip

    point = assert_wrong(busbw, result, 1, 1027)
    assert point.nccl is not None
    assert point.nccl.checked_by == ("gpu" if kernels else "host")


def test_a_wrong_element_of_one_of_several_gpus_of_a_process_is_found(busbw: NcclBusbw):
    result = busbw.nccl(
        "all_gather", *BRIEF, "--ranks", 4, "-g", 2, "-b", "4K", "-e", "4K", "--in-place", "in", "--time-limit", 1,
        env={"STANDIN_FAULT": "kind=wrong,rank=2,element=1023"},
    )  # fmt: skip

    assert_wrong(busbw, result, 2, 1023)


@pytest.mark.parametrize("mode", ["stream", "graph", "isolated"])
def test_a_result_that_is_wrong_only_after_the_first_calls_is_found(busbw: NcclBusbw, mode: str):
    result = busbw.nccl(
        "all_reduce", *BRIEF, "--ranks", 2, "-g", 2, "-b", "4K", "-e", "4K", "--mode", mode, "--time-limit", 0.3,
        env={"STANDIN_FAULT": LATER, "STANDIN_LATENCY_US": "2000"},
    )  # fmt: skip

    assert_wrong(busbw, result, 1, 11)


def test_without_checking_a_wrong_result_is_no_verified_one(busbw: NcclBusbw):
    result = busbw.nccl(
        "all_reduce", *BRIEF, "-c", 0, "--ranks", 2, "-b", "4K", "-e", "4K", "--time-limit", 0.3,
        env={"STANDIN_FAULT": "kind=wrong,rank=1,element=3"},
    )  # fmt: skip

    assert result.code != 0, result
    (point,) = busbw.run_of().measurements
    assert point.wrong is None
    assert not point.verified

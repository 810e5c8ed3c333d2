"""A rank that dies, hangs or hears an error: the run ends in bounded time and says which rank, and what NCCL said."""

import pytest
from tests.e2e.runner import STALL_S, Result, left_of, read_records

from busbw.model.record import Failed
from busbw.model.run import Run

from .harness import NcclBusbw, assert_all_right

RANKS = 3
SIZES = ("--ranks", RANKS, "-b", "1K", "-e", "8K", *("--calls", 1, "-w", 1, "--min-samples", 2))
LIMITS = ("--time-limit", 2, "--stall-timeout", STALL_S)


def run_with(busbw: NcclBusbw, fault: str, launcher: str = "processes") -> tuple[Result, Run]:
    """Run with a fault in a call of the first size, and check what every failure has in common."""
    result = busbw.nccl("all_reduce", *SIZES, *LIMITS, launcher=launcher, env={"STANDIN_FAULT": fault})

    assert result.code == 3, result
    assert left_of(busbw.folder) == ()
    run = busbw.run_of()
    assert run.outcome is not None
    assert run.outcome.ended == "failed"
    assert run.verdict.outcome == "failed"
    assert "all_reduce 1 KiB" in run.verdict.sentence, result
    return result, run


def words_of(busbw: NcclBusbw, rank: int) -> str:
    """Return why a rank gave up, from its records."""
    failed = [record for record in read_records(busbw.directory(), rank) if isinstance(record, Failed)]
    return "; ".join(f"{record.step}: {record.cause}" for record in failed)


@pytest.mark.parametrize("launcher", ["processes", "mpirun"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [("kind=exit,code=7", "exited with code 7"), ("kind=exit,code=0", "exited"), ("kind=signal,signal=9", "SIGKILL")],
)  # fmt: skip
def test_a_rank_that_ends_is_named(busbw: NcclBusbw, fault: str, words: str, launcher: str):
    _result, run = run_with(busbw, f"{fault},rank=1,call=5", launcher)

    assert run.outcome is not None
    assert run.outcome.culprit is not None
    assert run.outcome.culprit.rank == 1
    assert words in run.verdict.sentence


@pytest.mark.parametrize("launcher", ["processes", "mpirun"])
def test_a_rank_that_hangs_in_a_call_is_named(busbw: NcclBusbw, launcher: str):
    _result, run = run_with(busbw, "kind=hang,rank=1,call=5", launcher)

    assert run.outcome is not None
    assert run.outcome.culprit is not None
    assert run.outcome.culprit.rank == 1
    assert "did not arrive" in run.verdict.sentence
    # The others' own words are kept: their GPUs were not done.
    for rank in (0, 2):
        assert f"rank {rank}: the GPU is not done" in words_of(busbw, rank)


def test_a_gpu_that_hangs_ends_the_run_and_every_rank_says_what_nccl_said(busbw: NcclBusbw):
    # Nothing on the host tells which GPU of a collective is stuck.
    result, run = run_with(busbw, "kind=gpuhang,rank=1,call=5")

    assert f"no rank made progress for {STALL_S} s" in run.verdict.sentence
    assert "the GPU is not done" in result.out
    for rank in range(RANKS):
        assert "NCCL says: nothing" in words_of(busbw, rank)


def test_an_asynchronous_error_is_stored_in_nccls_own_words(busbw: NcclBusbw):
    # The stand-in gives up waiting for the rank that hangs before busbw does, as NCCL does after NCCL_TIMEOUT.
    result = busbw.nccl(
        "all_reduce", *SIZES, *LIMITS, env={"STANDIN_FAULT": "kind=hang,rank=1,call=5", "STANDIN_PATIENCE_S": "1"}
    )

    assert result.code == 3, result
    assert "asynchronous error: remote process exited or there was a network error" in words_of(busbw, 0)
    assert "last words: a peer did not answer" in words_of(busbw, 0)


@pytest.mark.parametrize("launcher", ["processes", "mpirun"])
def test_an_error_that_nccl_returns_is_told_with_its_last_words(busbw: NcclBusbw, launcher: str):
    result, run = run_with(busbw, "kind=error,rank=1,call=5", launcher)

    assert run.outcome is not None
    assert run.outcome.culprit is not None
    assert run.outcome.culprit.rank == 1
    # The rank itself names the size: whether its own words or what was seen of it is told depends on who is first.
    for words in (
        "all_reduce 1 KiB",
        "ncclAllReduce: unhandled system error",
        "192.0.2.1<1> failed : Connection reset by peer",
    ):
        assert words in words_of(busbw, 1)
        assert words in result.out


def test_a_graph_that_cannot_be_captured_ends_the_run_in_the_drivers_words(busbw: NcclBusbw):
    refused = {"STANDIN_REFUSE": "cuStreamEndCapture=1"}
    result = busbw.nccl("all_reduce", *SIZES, *LIMITS, "-g", RANKS, "-G", 1, env=refused)

    assert result.code == 3, result
    assert left_of(busbw.folder) == ()
    assert "cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" in words_of(busbw, 0)
    assert "cuStreamEndCapture" in result.out


def test_what_was_measured_before_is_kept_and_the_run_goes_on(busbw: NcclBusbw):
    # A call takes 1 ms, and the first turns some 60 calls together. Then a point takes a fifth of its 2 s or 60 calls:
    # the rank dies in the second or third of ten points, on busy cores a little later.
    struck = {"STANDIN_LATENCY_US": "1000", "STANDIN_FAULT": "kind=exit,rank=1,code=7,call=500"}
    result = busbw.nccl(
        "all_reduce", "--ranks", 2, "-b", "1K", "-e", "512K", "--calls", 1, "-w", 1, "--min-samples", 60,
        "--max-samples", 80, "--time-limit", 20, "--stall-timeout", STALL_S, env=struck,
    )  # fmt: skip
    assert result.code == 3, result
    before = busbw.run_of().measurements
    finished = [one for one in before if one.ended in ("interval", "samples")]
    assert len(finished) < len(before) <= 10

    resumed = busbw("run", "--resume", busbw.directory())

    after = assert_all_right(busbw, resumed)
    assert len(after) == 10
    assert all(one in after for one in finished)

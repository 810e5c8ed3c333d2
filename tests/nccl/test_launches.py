"""What starting work on GPUs takes: taken in every start, on every GPU, beside small messages."""

import pytest

from busbw.model.record import Measured
from busbw.model.run import EmptyLaunch
from busbw.store.raw import read_records

from .harness import NcclBusbw, assert_all_right, assert_refused

# Enough for a turn after the first, in which launches are timed.
BRIEF = ("--calls", 1, "-w", 1, "--max-samples", 20)
# What the stand-in's host takes to launch a kernel.
LAUNCH_us = 300


def all_launched(launches: tuple[EmptyLaunch, ...], ranks: int) -> bool:
    """Whether there is a launch of every rank, none faster than the stand-in makes it."""
    return [one.rank for one in launches] == list(range(ranks)) and all(
        LAUNCH_us * 1e-6 <= one.host_low_s <= one.host_s <= one.host_high_s for one in launches
    )


def points_of_rank(busbw: NcclBusbw, rank: int) -> list[Measured]:
    records, unreadable = read_records(busbw.directory())
    assert unreadable == ()
    return [record for _place, record in records[rank] if isinstance(record, Measured)]


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
    # NCCL launches a kernel too, and the GPU is done after the host.
    assert small.launch.issue_s >= LAUNCH_us * 1e-6
    for rank in range(2):
        turns = points_of_rank(busbw, rank)
        assert {measured.size_bytes for measured in turns} == {2**10, 2**20}
        for measured in turns:
            assert all(issued <= took for issued, took in zip(measured.issued_ns, measured.duration_ns, strict=True))
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


def test_small_messages_say_what_part_of_them_is_launch(busbw: NcclBusbw):
    paced = {"STANDIN_LAUNCH_US": str(LAUNCH_us)}
    result = busbw.nccl("all_reduce", "--ranks", 2, "-b", "1K", "-e", "1K", *BRIEF, env=paced)

    (note,) = [found for found in busbw.run_of().findings if found.code == "RUN026"]
    assert "of which" in note.evidence
    assert "launch on the host" in note.evidence
    assert "One start is one draw" in note.evidence
    assert f"note RUN026 {note.title}: {note.evidence}" in " ".join(result.out.split())
    assert note.fix is not None
    assert " --mode graph; over several starts: " in note.fix


def test_a_graph_is_not_said_to_be_launched_call_by_call(busbw: NcclBusbw):
    paced = {"STANDIN_LAUNCH_US": str(LAUNCH_us)}
    result = busbw.nccl("all_reduce", "--ranks", 2, "-b", "1K", "-e", "1K", "--mode", "graph", *BRIEF, env=paced)

    assert_all_right(busbw, result, paced)
    assert [found for found in busbw.run_of().findings if found.code == "RUN026"] == []


def test_small_messages_are_measured_in_as_many_starts_as_asked_for(busbw: NcclBusbw):
    paced = {"STANDIN_LAUNCH_US": str(LAUNCH_us)}
    result = busbw.nccl(
        "all_reduce", "--ranks", 2, "-b", "1K", "-e", "1M", "-f", 1024, *BRIEF, "--launches", 3, env=paced
    )

    small, large = assert_all_right(busbw, result, paced)
    assert len(small.starts) == 3
    assert small.median_s == sorted(start.median_s for start in small.starts)[1]
    assert all((start.empty_s or 0) >= LAUNCH_us * 1e-6 for start in small.starts)
    assert large.starts == ()
    assert "start 3 of 3" in result.err
    assert "# the middle of 3 starts: 1 KiB " in result.out
    (note,) = [found for found in busbw.run_of().findings if found.code == "RUN026"]
    assert "The median of 3 starts" in note.evidence
    raw = busbw.directory() / "raw"
    starts = [path.read_text() for path in sorted(raw.glob("rank-00000.*.jsonl"))]
    assert [f'"size_bytes":{2**20}' in text.replace(" ", "") for text in starts] == [True, False, False]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-b", "1M", "-e", "1M", "--launches", 2), "below 1 MiB"),
        (("-b", "1K", "-e", "1K", "--launches", 0), "once to 1000 times"),
    ],
)
def test_starts_that_would_measure_nothing_are_refused(busbw: NcclBusbw, arguments: tuple[object, ...], words: str):
    assert_refused(busbw.nccl("all_reduce", "--ranks", 2, *arguments), words)


def test_a_gpu_that_works_for_others_is_named_and_speed_is_not_judged(busbw: NcclBusbw):
    busy = {"STANDIN_BUSY_GPU": "1"}
    result = busbw.nccl("all_reduce", "--ranks", 2, "-b", "1K", "-e", "1K", *BRIEF, env=busy)

    assert_all_right(busbw, result, busy)
    run = busbw.run_of()
    (warning,) = [found for found in run.findings if found.code == "RUN027"]
    name = f"GPU 1 on {run.ranks[1].host} (rank 1) runs other work beside this run"
    assert warning.title == name
    assert (run.verdict.outcome, run.verdict.because[0]) == ("cannot_tell", "RUN027")
    assert run.verdict.sentence.startswith(f"cannot tell: {name}")


def test_a_graph_is_replayed_on_several_gpus_of_one_process(busbw: NcclBusbw):
    result = busbw.nccl("all_reduce", "--ranks", 2, "-g", 2, "-b", "1K", "-e", "1K", "--mode", "graph", *BRIEF)

    (one,) = assert_all_right(busbw, result)
    assert one.nccl is not None
    assert one.nccl.graph_calls > 0

"""What comes of the real text of nccl-tests' versions."""

from pathlib import Path

import msgspec
import pytest

from busbw.measure.backends import nccl_tests

from .foreign import foreign_plan, printed, read
from .records import make_sweep

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
MIB = 2**20


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def test_rows_of_both_placements_become_points_of_both_sweeps():
    sizes = (MIB, 2 * MIB, 4 * MIB)
    plan = foreign_plan(
        "nccl-tests", make_sweep(sizes_bytes=sizes), make_sweep(sizes_bytes=sizes, in_place=True), ranks=4
    )
    text = """# nThread 1 nGpus 4 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid 101 on node1 device  0 [0x07] NVIDIA A100
#  Rank  1 Group  0 Pid 101 on node1 device  1 [0x08] NVIDIA A100
#  Rank  2 Group  0 Pid 101 on node1 device  2 [0x09] NVIDIA A100
#  Rank  3 Group  0 Pid 101 on node1 device  3 [0x0a] NVIDIA A100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    19.91   52.66   78.99      0    17.90   58.59   87.88      0
     2097152        524288     float     sum      -1    29.91   70.12  105.17      0    27.90   75.17  112.75      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 96.1975
"""
    found, done = read(nccl_tests, plan, printed(text))

    assert [(one.point, one.in_place, one.size_bytes, one.samples) for one in found.measurements] == [
        (0, False, MIB, 1), (1, False, 2 * MIB, 1), (3, True, MIB, 1), (4, True, 2 * MIB, 1),
    ]  # fmt: skip
    first = found.measurements[0]
    assert first.median_s == pytest.approx(19.91e-6)
    assert first.busbw_Bps == pytest.approx(1.5 * MIB / 19.91e-6)
    assert (first.calls_per_sample, first.warmup_calls, first.verified) == (20, 5, True)
    assert done == {0}  # a largest size left out for want of memory is no reason to repeat it


def test_separate_runs_of_one_rank_give_no_measurement():
    plan = foreign_plan("nccl-tests", make_sweep(sizes_bytes=(MIB, 2 * MIB, 4 * MIB)), ranks=2)

    found, done = read(nccl_tests, plan, printed(sample("nccl-tests-2.13-one-rank-runs.log")))

    assert found.measurements == ()
    assert done == frozenset()


def test_na_is_not_checked_and_the_program_of_eight_gpus_is_read():
    plan = foreign_plan("nccl-tests", make_sweep(sizes_bytes=(2**33,)), ranks=8, with_mpi=False)

    (one,) = read(nccl_tests, plan, printed(sample("nccl-tests-2.9-all_reduce-c0.log")))[0].measurements

    assert not one.verified
    assert one.wrong is None
    assert one.median_s == pytest.approx(63896e-6)


def test_samples_of_several_starts_are_put_together_and_the_last_attempt_counts():
    plan = foreign_plan("nccl-tests", make_sweep(sizes_bytes=(2**33,)), ranks=8, steps=2, with_mpi=False)
    text = sample("nccl-tests-2.9-all_reduce-c0.log")
    again = printed(text.replace("63896", "70000").replace("134.44  235.26", "122.71  214.75"), attempt=1)

    (one,) = read(nccl_tests, plan, [*printed(text, text), *again])[0].measurements

    assert (one.samples, one.min_s, one.max_s) == (2, pytest.approx(63896e-6), pytest.approx(70000e-6))


def test_a_text_cut_off_at_any_place_is_read_as_far_as_it_goes():
    plan = foreign_plan("nccl-tests", make_sweep(sizes_bytes=(2**33,)), ranks=8, with_mpi=False)
    text = sample("nccl-tests-2.9-all_reduce-c0.log")
    for end in range(0, len(text), 97):
        found, done = read(nccl_tests, plan, printed(text[:end]))
        assert len(found.measurements) <= 1
        assert not done


def test_failures_are_told_in_the_programs_words_with_the_rank_of_the_process():
    lines = [
        "node7: Test NCCL failure common.cu:1042 'unhandled system error / '",
        " .. node7 pid 4711: Test failure common.cu:891",
    ]
    failure = nccl_tests.failure_of(lines, 3, ())

    assert failure is not None
    assert (failure.host, failure.process_id, failure.rank) == ("node7", 4711, None)
    assert failure.cause == "Test NCCL failure common.cu:1042 'unhandled system error / '"
    assert nccl_tests.failure_of([], 4, ()) is not None
    assert nccl_tests.failure_of([], 1, ()) is None


def test_parts_that_an_old_version_aligns_differently_find_their_point():
    sweep = make_sweep("all_gather", sizes_bytes=(3 * 16, 3 * 32))
    plan = foreign_plan("nccl-tests", sweep, ranks=3, with_mpi=False)
    text = """# Using devices
#   Rank  0 Pid 9 on n device  0 [0x07] A
#   Rank  1 Pid 9 on n device  1 [0x08] A
#   Rank  2 Pid 9 on n device  2 [0x09] A
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
          60             5   float    10.00    0.01    0.00  0e+00    10.00    0.01    0.00  0e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.004
"""
    (one,) = read(nccl_tests, msgspec.structs.replace(plan), printed(text))[0].measurements

    assert (one.point, one.size_bytes, one.count) == (0, 60, 5)

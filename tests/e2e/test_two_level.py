"""The two-level alltoall over real MPIs: every grouping gives what a linear one gives, down to a byte a slice."""

import pytest

from busbw.model.plan import points_of

from .runner import YIELDING, Busbw, read_run

# All in one group, and in between; tests/nccl/test_exchanges.py has every grouping of the core's exchange, so here are
# those in which each level of MPI's has another number of ranks. test_collectives.py has every rank for itself.
GROUPINGS = [(2, 2), (6, 2), (6, 3)]


@pytest.mark.parametrize(
    ("ranks", "group", "mpi"), [*((*grouping, "Open MPI") for grouping in GROUPINGS), (4, 2, "MPICH")]
)
def test_slices_of_any_size_arrive_where_they_belong(busbw: Busbw, ranks: int, group: int, mpi: str):
    result = busbw(
        "run", "alltoall_2dh", "-n", ranks, "--group", group, "-d", "int8", "--unaligned",
        "-b", ranks, "-e", 29 * ranks, "-i", 7 * ranks, "-w", 1, "--max-samples", 2, "--time-limit", 20, mpi=mpi,
        env=YIELDING,
    )  # fmt: skip

    result = busbw.to_the_end(result, mpi, env=YIELDING)
    assert result.code in {0, 1, 4}, result
    run = read_run(busbw.directory())
    assert [point.size_bytes // ranks for point in run.measurements] == [1, 8, 15, 22, 29], result
    assert [point.count for point in run.measurements] == [1, 8, 15, 22, 29]
    assert all(point.verified and point.wrong is None and point.group == group for point in run.measurements)
    assert all(point.median_s > 0 for point in run.measurements)
    assert f"groups of {group}" in result.out


def test_every_size_of_element_is_exchanged_in_a_stream_too(busbw: Busbw):
    types = ("bfloat16", "int32", "float64")

    result = busbw(
        "run", "alltoall", "alltoall_2dh", "-n", 4, "--group", 2, "-d", ",".join(types), "-b", "1K", "-e", "256K",
        "-f", 256, "--mode", "stream", "-w", 1, "--max-samples", 2, "--time-limit", 20, env=YIELDING,
    )  # fmt: skip

    result = busbw.to_the_end(result, env=YIELDING)
    run = read_run(busbw.directory())
    assert len(run.measurements) == len(points_of(run.plan.sweeps)) == 4 * len(types), result
    assert all(point.verified and point.wrong is None for point in run.measurements)
    assert {(point.collective, point.group, point.dtype) for point in run.measurements} == {
        (*kind, dtype) for kind in (("alltoall", None), ("alltoall_2dh", 2)) for dtype in types
    }


# MPI_Alltoall gives rank 1 a wrong byte 1027 where the message has at least 3000 elements: slices have 1001, so with
# six ranks that is the level that brings three slices to each peer. With groups of three it is the last one, and the
# byte stays where it went wrong. With groups of two it is the first one: what lies behind the first slice is for the
# second group, whose rank of the same place gets it behind no other slice, since rank 0 sent it.
@pytest.mark.parametrize(("group", "rank", "index"), [(3, 1, 1027), (2, 3, 26)])
def test_a_byte_that_goes_wrong_at_either_level_is_found(busbw: Busbw, group: int, rank: int, index: int):
    spoiled = {**YIELDING, **busbw.shim("wrong"), "WRONG_RANK": "1", "WRONG_INDEX": "1027", "WRONG_COUNT": "3000"}

    result = busbw(
        "run", "alltoall_2dh", "-n", 6, "--group", group, "-d", "int8", "--unaligned", "-b", 6006, "-e", 6006,
        "--time-limit", 20, env=spoiled,
    )  # fmt: skip

    assert result.code == 1, result
    run = read_run(busbw.directory())
    (point,) = run.measurements
    assert run.verdict.outcome == "wrong"
    assert point.wrong is not None
    assert (point.wrong.rank, point.wrong.mismatch.index, point.wrong.mismatch.wrong) == (rank, index, 1)
    assert int(point.wrong.mismatch.got) ^ int(point.wrong.mismatch.expected) == 1
    assert (point.samples, point.median_s) == (0, 0.0)


def test_unaligned_sizes_of_every_collective_that_is_split_are_right(busbw: Busbw):
    result = busbw(
        "run", "all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "-n", 2, "-d", "uint8", "--unaligned",
        "-b", 7, "-e", 35, "-i", 14, "--in-place", "both", "-w", 1, "--max-samples", 2, "--time-limit", 20,
        env=YIELDING,
    )  # fmt: skip

    result = busbw.to_the_end(result, env=YIELDING)
    run = read_run(busbw.directory())
    assert {point.size_bytes for point in run.measurements} == {6, 20, 34}, result
    assert all(point.verified and point.wrong is None for point in run.measurements)

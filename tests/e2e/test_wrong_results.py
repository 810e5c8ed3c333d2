"""One wrong element of one rank: the run says wrong, names it, and gives no time that could pass for a right one."""

import pytest

from .runner import Busbw, read_run


@pytest.mark.parametrize("mpi", ["Open MPI", "MPICH"])
@pytest.mark.parametrize("collective", ["all_reduce", "alltoall"])
def test_a_flipped_bit_is_found_and_named(busbw: Busbw, collective: str, mpi: str):
    spoiled = {**busbw.shim("wrong", mpi), "WRONG_RANK": "1", "WRONG_INDEX": "1027", "WRONG_COUNT": "2048"}

    result = busbw(
        "run", collective, "-n", 2, "-b", "1K", "-e", "16K", "-f", 16, "-d", "int32", "--time-limit", 2,
        mpi=mpi, env=spoiled,
    )  # fmt: skip

    assert result.code == 1, result
    run = read_run(busbw.directory())
    right, wrong = run.measurements
    assert right.wrong is None
    assert right.median_s > 0
    assert run.verdict.outcome == "wrong"
    assert wrong.wrong is not None
    assert (wrong.wrong.rank, wrong.wrong.mismatch.index, wrong.wrong.mismatch.wrong) == (1, 1027, 1)
    mismatch = wrong.wrong.mismatch
    assert int(mismatch.got) ^ int(mismatch.expected) == 1
    for words in ("rank 1 ", "element 1027", mismatch.got, mismatch.expected):
        assert words in run.verdict.sentence
    assert run.findings[0].code == "RUN001"
    assert (wrong.samples, wrong.median_s, wrong.busbw_Bps, wrong.ended) == (0, 0.0, 0.0, "wrong")


def test_the_table_gives_no_time_for_a_wrong_result(busbw: Busbw):
    # A float sum is held to a rounding error, so the bit is one that is worth an eighth.
    spoiled = {**busbw.shim("wrong"), "WRONG_RANK": "1", "WRONG_BIT": "20"}

    result = busbw("run", "all_reduce", "-n", 2, "-b", "16K", "-e", "16K", "--time-limit", 2, env=spoiled)

    (row,) = [line.split() for line in result.out.splitlines() if line.split()[:1] == ["16384"]]
    time_us, algbw, busbw_column, wrong = row[5:9]
    assert wrong == "1"
    assert all(not _is_positive(cell) for cell in (time_us, algbw, busbw_column)), result
    assert busbw("show").out == result.out


def _is_positive(cell: str) -> bool:
    try:
        return float(cell) > 0
    except ValueError:
        return False

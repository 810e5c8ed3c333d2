"""Every exchange gives right results: element for element, before any time is taken."""

from itertools import product

import pytest

from busbw.base.collectives import COLLECTIVES, MPI_COLLECTIVES
from busbw.model.plan import points_of

from .runner import YIELDING, Busbw, Result, read_run

NOT_PAIRS = tuple(name for name in MPI_COLLECTIVES if not COLLECTIVES[name].pairs)
REDUCTIONS = tuple(name for name, collective in COLLECTIVES.items() if collective.reduces)
# Types of every size and kind with operations, each group in one start: starting ranks takes longer than what they do.
# The 16-bit floats on both families: where MPI has no such sum, busbw brings its own.
FLOATS_16 = ("float16,bfloat16", "sum,min,max", "Open MPI")
SPREAD = [
    ("int8,int32,float64", "sum,prod", "Open MPI"),
    ("uint16,uint64", "min,max", "Open MPI"),
    FLOATS_16,
    (*FLOATS_16[:2], "MPICH"),
]


def assert_all_right(busbw: Busbw, result: Result, mpi: str = "Open MPI") -> None:
    result = busbw.to_the_end(result, mpi, env=YIELDING)
    assert result.code in {0, 1, 4}, result
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended == "complete", result
    assert len(run.measurements) == len(points_of(run.plan.sweeps))
    assert all(point.verified and point.wrong is None for point in run.measurements)
    assert all(point.median_s > 0 for point in run.measurements)
    assert run.unreadable == ()


@pytest.mark.parametrize("mpi", ["Open MPI", "MPICH"])
@pytest.mark.parametrize(
    ("ranks", "names", "smallest"),
    [
        (2, MPI_COLLECTIVES, "192"),
        (3, NOT_PAIRS, "48K"),
    ],  # three ranks on two cores take their time: one size is enough
)
def test_every_collective_in_and_out_of_place_verifies_right(
    busbw: Busbw, ranks: int, names: tuple[str, ...], smallest: str, mpi: str
):
    result = busbw(
        "run", *names, "-n", ranks, "--group", 1, "-b", smallest, "-e", "48K", "-f", 256, "--in-place", "both",
        "-w", 1, "--max-samples", 2, "--time-limit", 20, mpi=mpi, env=YIELDING,
    )  # fmt: skip

    assert_all_right(busbw, result, mpi)
    measured = read_run(busbw.directory()).measurements
    assert all(1 <= point.samples <= 2 for point in measured)
    places = {(point.collective, point.in_place) for point in measured}
    assert places == {(name, in_place) for name in names for in_place in {False, COLLECTIVES[name].in_place}}


def test_rooted_collectives_verify_right_from_every_root(busbw: Busbw):
    rooted = [name for name in MPI_COLLECTIVES if COLLECTIVES[name].rooted]

    result = busbw(
        "run", *rooted, "-n", 3, "-r", "all", "-b", "3K", "-e", "3K", "--in-place", "both", "-w", 1, "--max-samples", 2,
        "--time-limit", 20, env=YIELDING,
    )  # fmt: skip

    assert_all_right(busbw, result)
    measured = {(point.collective, point.root) for point in read_run(busbw.directory()).measurements}
    assert measured == set(product(rooted, range(3)))


@pytest.mark.parametrize(("dtypes", "ops", "mpi"), SPREAD)
def test_reductions_of_every_kind_of_type_verify_right(busbw: Busbw, dtypes: str, ops: str, mpi: str):
    result = busbw(
        "run", *REDUCTIONS, "-n", 2, "-d", dtypes, "--op", ops, "-b", "4K", "-e", "4K", "-w", 1, "--max-samples", 2,
        "--time-limit", 20, mpi=mpi, env=YIELDING,
    )  # fmt: skip

    assert_all_right(busbw, result, mpi)
    measured = {(point.dtype, point.op) for point in read_run(busbw.directory()).measurements}
    assert measured == set(product(dtypes.split(","), ops.split(",")))


@pytest.mark.timed
@pytest.mark.parametrize("mpi", ["Open MPI", "MPICH"])
def test_streams_are_measured_as_well_as_isolated_calls(busbw: Busbw, mpi: str):
    result = busbw(
        "run", "all_reduce", "latency", "bibw", "-n", 2, "-b", 64, "-e", "64K", "-f", 1024, "--mode", "stream",
        "--min-samples", 5, "--time-limit", 3, mpi=mpi, env=YIELDING,
    )  # fmt: skip

    assert_all_right(busbw, result, mpi)
    measurements = read_run(busbw.directory()).measurements
    assert {point.mode for point in measurements} == {"stream"}
    assert max(point.calls_per_sample for point in measurements) > 1
    assert all(point.clock_error_s is None for point in measurements)

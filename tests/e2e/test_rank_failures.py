"""A rank dies, hangs or is stopped: busbw ends in bounded time, names it, keeps what was measured, and can go on.

How a rank ended, Open MPI tells. MPICH's Hydra may say nothing and collect the process before busbw can ask the kernel;
then "ended early" has to do.
"""

import os
import signal
from pathlib import Path

import pytest
from tests.patience import wait_until
from tests.survival.mpi import unless_every

from busbw.measure.execute.processes import mapped_by
from busbw.model.run import Measurement, Run

from .runner import STALL_S, TIMEOUT_S, Busbw, Result, left_of, process_of, read_run

# Sixteen sizes, a twentieth of a second each on a quiet machine: enough to be caught in the middle of.
SIZES = ("-n", 2, "-b", "4K", "-e", "64K", "-i", "4K", "--time-limit", 8, "--max-samples", 400)
BYTES = [4096 * number for number in range(1, 17)]
# The third size, in elements of four bytes: what the shim waits for.
THIRD_COUNT = 3072
LAST_COUNT = 16384
FIRST_DONE = "ended by"


def fail_in_third_size(busbw: Busbw, mpi: str, **settings: object) -> dict[str, str]:
    """Return what makes rank 1 fail in a call of the third size, the tenth."""
    told = {f"FAIL_{name.upper()}": str(value) for name, value in settings.items()}
    return {**busbw.shim("fail", mpi), "FAIL_RANK": "1", "FAIL_COUNT": str(THIRD_COUNT), "FAIL_CALL": "10", **told}


def run_until_it_fails(busbw: Busbw, mpi: str, failing: dict[str, str], *arguments: object) -> Result:
    """Return how a run with a fault ends; where the cores are busy its time may be over before the fault comes."""
    result = busbw("run", "all_reduce", *SIZES, *arguments, mpi=mpi, env=failing)
    return busbw.to_the_end(result, mpi, env=failing)


def assert_failed_by_rank_1(busbw: Busbw, result: Result, *words: str) -> Run:
    """Check everything that every failure has in common."""
    assert result.code == 3, result
    assert left_of(busbw.folder) == ()
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended == "failed"
    assert run.outcome.culprit is not None, result
    assert run.outcome.culprit.rank == 1
    assert run.verdict.outcome == "failed"
    for word in ("rank 1 ", "all_reduce", *words):
        assert word in run.verdict.sentence, result
    assert run.verdict.sentence.removeprefix("failed: ") in result.out
    assert [point.size_bytes for point in run.measurements] == BYTES[: len(run.measurements)] != []
    shown = busbw("show")
    assert (shown.code, shown.out) == (3, result.out)
    return run


def assert_cut_off(run: Run) -> None:
    """Check that nothing but a cut ended the run, and that sizes are left with their first sample."""
    assert run.outcome is None
    assert [point.size_bytes for point in run.measurements] == BYTES
    assert any(point.turns == 0 for point in run.measurements)


def finished(run: Run) -> dict[int, Measurement]:
    """Return the points that need no further start."""
    return {one.point: one for one in run.measurements if one.ended in ("interval", "samples")}


def assert_kept(before: Run, after: Run) -> None:
    """Check that what was finished is as it was."""
    now = {one.point: one for one in after.measurements}
    assert all(now[number] == one for number, one in finished(before).items())


def assert_resumable(busbw: Busbw, mpi: str = "Open MPI") -> None:
    """Check that the rest is measured, and what was finished before is kept as it was."""
    before = busbw("show", "--json", mpi=mpi).run()
    result = busbw.to_the_end(busbw("run", "--resume", busbw.directory().name, mpi=mpi), mpi)

    assert result.code in {0, 1, 4}, result
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended == "complete", result
    assert [point.size_bytes for point in run.measurements] == BYTES
    assert all(point.turns > 0 for point in run.measurements)
    assert_kept(before, run)


@pytest.mark.parametrize("mpi", ["Open MPI", "MPICH", unless_every("Intel MPI")])
def test_a_rank_killed_in_the_middle_is_named_and_the_run_can_go_on(busbw: Busbw, mpi: str):
    started = busbw.start("run", "all_reduce", *SIZES, mpi=mpi, env=busbw.held(THIRD_COUNT, mpi))
    started.wait_for(FIRST_DONE)
    killed = process_of(busbw.directory(), 1)
    shared = mapped_by(killed)
    os.kill(killed, signal.SIGKILL)

    result = started.finish()

    assert_failed_by_rank_1(busbw, result, *([] if mpi == "MPICH" else ["SIGKILL"]))
    assert [path for path in shared if Path(path).exists()] == []
    assert_resumable(busbw, mpi)


@pytest.mark.parametrize("mpi", ["Open MPI", unless_every("MPICH")])
def test_a_stopped_rank_is_named_and_the_run_can_go_on(busbw: Busbw, mpi: str):
    started = busbw.start("run", "all_reduce", *SIZES, mpi=mpi, env=busbw.held(THIRD_COUNT, mpi))
    started.wait_for(FIRST_DONE)
    os.kill(process_of(busbw.directory(), 1), signal.SIGSTOP)

    result = started.finish()

    run = assert_failed_by_rank_1(busbw, result, "stopped")
    assert run.autopsy is not None
    assert [(rank.rank, rank.state) for rank in run.autopsy.ranks if rank.state == "stopped"] == [(1, "stopped")]
    assert next(rank.frame for rank in run.autopsy.ranks if rank.rank == 0), "no stack of the rank that waits"
    assert_resumable(busbw, mpi)


@pytest.mark.parametrize("mpi", ["Open MPI", unless_every("MPICH")])
@pytest.mark.parametrize("code", [0, unless_every(3)])
def test_a_rank_that_exits_early_is_named_whatever_its_code(busbw: Busbw, code: int, mpi: str):
    early = fail_in_third_size(busbw, mpi, how="exit", code=code)

    result = run_until_it_fails(busbw, mpi, early)

    run = assert_failed_by_rank_1(busbw, result, *([] if mpi == "MPICH" else ["exited"]))
    assert {point.size_bytes for point in run.measurements if point.turns > 0} <= set(BYTES[:2])
    if mpi == "Open MPI":
        assert_resumable(busbw)


@pytest.mark.parametrize("mpi", ["Open MPI", unless_every("MPICH")])
def test_a_rank_with_a_segmentation_fault_is_named(busbw: Busbw, mpi: str):
    broken = fail_in_third_size(busbw, mpi, how="segv")

    result = run_until_it_fails(busbw, mpi, broken)

    assert_failed_by_rank_1(busbw, result, *([] if mpi == "MPICH" else ["SIGSEGV"]))


@pytest.mark.parametrize("mpi", ["Open MPI", unless_every("MPICH")])
def test_a_rank_that_never_comes_is_named_after_the_stall_timeout(busbw: Busbw, mpi: str):
    hanging = fail_in_third_size(busbw, mpi, how="hang", when="after")

    result = run_until_it_fails(busbw, mpi, hanging, "--stall-timeout", STALL_S)

    run = assert_failed_by_rank_1(busbw, result, "did not arrive")
    assert run.outcome is not None
    assert run.outcome.cause is not None
    assert f"no rank made progress for {STALL_S} s" in run.outcome.cause


def test_a_rank_that_sleeps_in_the_call_the_others_wait_in_is_named(busbw: Busbw):
    hanging = fail_in_third_size(busbw, "Open MPI", how="hang", when="before")

    result = run_until_it_fails(busbw, "Open MPI", hanging, "--stall-timeout", STALL_S)

    run = assert_failed_by_rank_1(busbw, result, "sleeps while the others wait for it")
    assert {point.size_bytes for point in run.measurements if point.turns > 0} <= set(BYTES[:2])
    assert_resumable(busbw)


@pytest.mark.parametrize("mpi", [unless_every("Open MPI"), "MPICH", unless_every("Intel MPI")])
def test_busbw_killed_takes_its_ranks_along_and_the_run_can_go_on(busbw: Busbw, mpi: str):
    started = busbw.start("run", "all_reduce", *SIZES, mpi=mpi, env=busbw.held(THIRD_COUNT, mpi))
    started.wait_for(FIRST_DONE)
    os.kill(started.process.pid, signal.SIGKILL)
    started.process.wait()

    wait_until(lambda: left_of(busbw.folder) == (), TIMEOUT_S, "the ranks to be gone")
    shown = busbw("show", "--json")
    # 1: what was measured before may be slow on a busy machine, and the verdict says that first.
    assert shown.code in {1, 4}, shown
    assert_cut_off(shown.run())
    assert_resumable(busbw, mpi)


def test_a_resume_that_is_killed_loses_nothing_either(busbw: Busbw):
    start = ("run", "all_reduce", *SIZES)
    for arguments, count in ((start, THIRD_COUNT), (("run", "--resume", "last"), LAST_COUNT)):
        before = busbw("show", "--json").run() if arguments != start else None
        # At full speed: a size is done before the last has had ten calls.
        started = busbw.start(*arguments, env={**busbw.held(count), "OMPI_MCA_mpi_yield_when_idle": "0"})
        started.wait_for(FIRST_DONE)
        os.kill(started.process.pid, signal.SIGKILL)
        started.process.wait()
        wait_until(lambda: left_of(busbw.folder) == (), TIMEOUT_S, "the ranks to be gone")

    shown = busbw("show", "--json").run()

    assert_cut_off(shown)
    assert before is not None
    assert sum(one.turns > 0 for one in shown.measurements) > sum(one.turns > 0 for one in before.measurements)
    assert_kept(before, shown)

"""`busbw run --backend osu` under a real mpirun, with programs that answer as OSU's do."""

from pathlib import Path

import pytest

from .foreign_programs import osu_latency
from .runner import STALL_S, Busbw, Result


def run(busbw: Busbw, folder: Path, *more: object) -> Result:
    return busbw("run", "latency", "--backend", "osu", "--bin", folder, "-b", 64, "-e", 256, "--json", *more)


def test_each_start_gives_one_sample_of_each_size(busbw: Busbw, tmp_path: Path):
    result = run(busbw, osu_latency(tmp_path / "osu" / "libexec" / "pt2pt").parents[1], "--launches", 2)

    found = result.run()
    assert [(one.size_bytes, one.samples, one.verified) for one in found.measurements] == [
        (64, 2, True), (128, 2, True), (256, 2, True),
    ], result  # fmt: skip
    assert found.measurements[2].median_s == pytest.approx(1.26e-6)
    assert found.verdict.outcome == "cannot_tell"
    assert found.plan.steps[0].job.argv[-6:] == (
        str(tmp_path / "osu" / "libexec" / "pt2pt" / "osu_latency"), "-m", "64:256", "-c", "-T", "mpi_float",
    )  # fmt: skip


@pytest.mark.parametrize("said", ["#Using NCCL", "Usage: osu_latency [options]\nOptions:\n"])
def test_a_program_that_cannot_print_its_options_is_taken_by_its_version(busbw: Busbw, tmp_path: Path, said: str):
    # What 7.4 does where its compiler guards string functions.
    result = run(busbw, osu_latency(tmp_path / "osu", mute=said), "--launches", 1)

    found = result.run()
    assert len(found.measurements) == 3, result
    assert found.plan.steps[0].job.argv[-5:] == ("-m", "64:256", "-c", "-T", "mpi_float")
    assert found.plan.programs[0].version == "7.4"


def test_a_failed_validation_is_a_wrong_result(busbw: Busbw, tmp_path: Path):
    result = run(busbw, osu_latency(tmp_path / "osu", verdict="Fail"), "--launches", 1)

    assert result.code == 1, result
    assert result.run().verdict.outcome == "wrong"


def test_sizes_that_do_not_double_are_measured_one_by_one(busbw: Busbw, tmp_path: Path):
    result = run(busbw, osu_latency(tmp_path / "osu"), "--launches", 1, "-i", 96)

    found = result.run()
    assert [one.size_bytes for one in found.measurements] == [64, 160, 256], result
    assert len(found.plan.steps) == 3


def test_a_hang_is_a_failure(busbw: Busbw, tmp_path: Path):
    result = run(busbw, osu_latency(tmp_path / "osu", hangs_at=128), "--launches", 1, "--stall-timeout", STALL_S)

    assert result.code == 3, result
    assert "after latency 64 B" in result.run().verdict.sentence


def test_more_ranks_than_a_pair_are_refused(busbw: Busbw, tmp_path: Path):
    result = run(busbw, osu_latency(tmp_path / "osu"), "--ranks", 4)

    assert result.code == 2, result
    assert "between two ranks" in result.err


def test_a_folder_without_the_program_is_refused(busbw: Busbw, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    result = run(busbw, tmp_path / "empty")

    assert result.code == 2, result
    assert "no osu_latency here" in result.err

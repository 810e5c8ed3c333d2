"""The main job: measure, judge, store, show; the same from every MPI."""

import hashlib
import subprocess
from pathlib import Path

import msgspec
import pytest

from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.record import Finished, Hello, Measured

from .runner import Busbw, environment_of, read_plan, read_records, read_run

SHORT = ("-n", 2, "-b", "1K", "-e", "64K", "-f", 8, "--time-limit", 3, "--max-samples", 20)
# What a run with nothing wrong in it may end with: ok, findings, cannot tell (this machine is small and busy).
USUAL = {0, 1, 4}


@pytest.mark.parametrize("mpi", ["Open MPI", "MPICH", "Intel MPI"])
def test_a_run_is_measured_stored_and_shown_again(busbw: Busbw, mpi: str):
    result = busbw.to_the_end(busbw("run", "all_reduce", *SHORT, mpi=mpi), mpi)

    assert result.code in USUAL, result
    directory = busbw.directory()
    run = read_run(directory)
    assert run.plan.mpi.family == mpi
    assert run.outcome is not None
    assert run.outcome.ended == "complete"
    assert [point.size_bytes for point in run.measurements] == [1024, 8192, 65536]
    assert all(point.verified and point.wrong is None for point in run.measurements)
    for rank in (0, 1):
        records = read_records(directory, rank)
        assert isinstance(records[0], Hello)
        assert isinstance(records[-1], Finished)
        taken = [(record.point, record.turn) for record in records if isinstance(record, Measured)]
        # Every size has its first sample before any has its second, and all ranks go the same way.
        assert taken[:3] == [(0, 0), (1, 0), (2, 0)]
        assert all(turn > 0 for _point, turn in taken[3:])
        assert taken == [(one.point, one.turn) for one in read_records(directory, 0) if isinstance(one, Measured)]
    shown = busbw("show", mpi=mpi)
    assert (shown.out, shown.code, shown.err) == (result.out, result.code, "")


def test_standard_output_is_the_table_and_progress_goes_to_standard_error(busbw: Busbw):
    result = busbw("run", "all_reduce", *SHORT)

    lines = result.out.splitlines()
    # The verdict stands first and again last; what was measured follows it.
    assert lines[0].split(":")[0] in ("ok", "slow", "cannot tell")
    assert any(line.startswith("busbw ") for line in lines)
    header = next(line for line in lines if "algbw" in line)
    columns = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"]
    assert header.split()[: len(columns)] == columns
    rows = [line.split() for line in lines if line.split()[:1] in (["1024"], ["8192"], ["65536"])]
    assert [row[:5] for row in rows] == [
        ["1024", "256", "float", "sum", "-1"],
        ["8192", "2048", "float", "sum", "-1"],
        ["65536", "16384", "float", "sum", "-1"],
    ]
    assert "[1/3]" in result.err
    assert "[1/3]" not in result.out
    assert "busbw-event" not in result.out + result.err


def test_json_is_the_content_of_run_json(busbw: Busbw):
    result = busbw("run", "all_reduce", *SHORT, "--json", "--tag", "nightly")

    assert result.run().plan.tag == "nightly"
    assert result.out.encode() == (busbw.directory() / "run.json").read_bytes()
    (row,) = msgspec.json.decode(busbw("runs", "--json").out)
    assert row["run_id"] == result.run().plan.run_id
    assert (row["measured"], row["planned"], row["tag"]) == (3, 3, "nightly")
    assert result.run().plan.run_id in busbw("runs").out


def test_a_result_is_rebuilt_from_the_raw_records_alone(busbw: Busbw):
    first = busbw("run", "all_reduce", *SHORT, "--json")
    (busbw.directory() / "run.json").unlink()

    rebuilt = busbw("load", busbw.directory().name, "--json")

    assert rebuilt.run() == first.run()
    assert rebuilt.code == first.code
    assert (busbw.directory() / "run.json").read_bytes() == first.out.encode()


def test_a_report_is_one_file(busbw: Busbw, tmp_path: Path):
    busbw("run", "all_reduce", *SHORT)

    result = busbw("report", "last", "-o", tmp_path / "report.html")

    assert result.code == 0, result
    assert result.out == ""
    assert (tmp_path / "report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_a_plan_starts_nothing_and_is_what_a_run_then_does(busbw: Busbw, tmp_path: Path):
    where = tmp_path / "chosen"

    text = busbw("run", "all_reduce", *SHORT, "-o", where, "--plan")
    planned = codec.decode(
        busbw("run", "all_reduce", *SHORT, "-o", where, "--plan", "--json").out.encode(), Plan, where="--plan"
    )

    assert not where.exists()
    assert not busbw.runs.exists()
    assert " ".join(planned.job.argv) in text.out
    busbw("run", "all_reduce", *SHORT, "-o", where)
    stored = read_plan(where)
    assert stored.job == planned.job
    assert stored.sweeps == planned.sweeps


def test_a_plan_is_on_disk_before_the_first_rank_starts(busbw: Busbw):
    busbw("run", "all_reduce", *SHORT)

    directory = busbw.directory()
    planned_unix_ns = (directory / "plan.json").stat().st_mtime_ns
    started_unix_s = [record.started_unix_s for record in read_records(directory, 0) if isinstance(record, Measured)]
    assert planned_unix_ns < min(started_unix_s) * 1e9
    assert planned_unix_ns <= (directory / "raw" / "launcher.0.stdout").stat().st_mtime_ns


def test_one_compiled_core_serves_both_families_of_mpi(busbw: Busbw):
    handle_bytes = {}
    digests = {}
    for mpi in ("Open MPI", "MPICH"):
        busbw("run", "all_reduce", "-n", 2, "-b", 8, "-e", 8, "--time-limit", 0.3, "-o", busbw.folder / mpi, mpi=mpi)
        handle_bytes[mpi] = [
            record.handle_bytes for rank in (0, 1) for record in read_records(busbw.folder / mpi, rank)[:1]
        ]
        digests[mpi] = hashlib.sha256(_core_of(environment_of(mpi)).read_bytes()).hexdigest()

    assert handle_bytes == {"Open MPI": [8, 8], "MPICH": [4, 4]}
    assert digests["Open MPI"] == digests["MPICH"]


def _core_of(prefix: Path) -> Path:
    command = [str(prefix / "bin" / "python"), "-c", "from busbw import _core; print(_core.__file__)"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout.strip())

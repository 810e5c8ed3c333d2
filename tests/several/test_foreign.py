"""The programs of others over several hosts: where their ranks run, what is left of them, what is refused."""

from pathlib import Path

import pytest
from tests.e2e.foreign_programs import nccl_tests, osu_latency
from tests.e2e.runner import read_run
from tests.lab.lab import Lab

from .jobs import Jobs
from .test_hosts import on_n0

pytestmark = pytest.mark.root


def of_nccl_tests(folder: Path, *more: object) -> tuple[object, ...]:
    where = ("--hosts", "n0,n1", "--interface", "eth0", "--out", folder / "run")
    return (
        "run",
        "all_reduce",
        "--backend",
        "nccl-tests",
        "--bin",
        folder / "bin",
        "-b",
        "1K",
        "-e",
        "2K",
        *where,
        *more,
    )


def test_nccl_tests_are_started_on_every_host(lab: Lab, tmp_path: Path) -> None:
    nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6", mpi=True)

    done = on_n0(lab, tmp_path, *of_nccl_tests(tmp_path, "--ranks-per-node", 1, "--launcher", "mpirun"))

    run = read_run(tmp_path / "run")
    assert [(one.size_bytes, one.ranks) for one in run.measurements] == [(1024, 2), (2048, 2)], done
    assert run.plan.placement.hosts == ("n0", "n1")
    assert run.plan.placement.ranks_of_hosts == (1, 1)
    assert "2 ranks on 2 hosts" in done.stdout


def test_a_program_that_hangs_leaves_nothing_on_any_host(lab: Lab, tmp_path: Path) -> None:
    nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6", mpi=True, hangs_at=2048, lasts_s=600)
    hang = of_nccl_tests(tmp_path, "--ranks-per-node", 2, "--launcher", "mpirun", "--stall-timeout", 4)

    done = on_n0(lab, tmp_path, *hang)

    assert done.returncode == 3, done
    assert (
        "all_reduce_perf printed nothing for 4 s, after all_reduce 1 KiB" in read_run(tmp_path / "run").verdict.sentence
    )
    assert lab.processes("n1") == ()


def test_osu_measures_between_two_hosts_of_an_allocation(jobs: Jobs, tmp_path: Path) -> None:
    osu_latency(tmp_path / "osu")
    where = jobs.folder / "run"

    done = jobs(
        "run", "latency", "--backend", "osu", "--bin", tmp_path / "osu", "--nodes", 2, "-b", 64, "-e", 128,
        "--launches", 1, "--out", where,
        within=("salloc", "--nodes=2", "--ntasks-per-node=1"),
    )  # fmt: skip

    run = jobs.run(where)
    assert run.plan.launcher == "srun", done
    assert [(one.size_bytes, one.ranks) for one in run.measurements] == [(64, 2), (128, 2)]


@pytest.mark.parametrize(
    ("mpi", "arguments", "words"),
    [
        (True, ("--ranks-per-node", 2, "-g", 4, "--launcher", "mpirun"), "2 GPUs are not equal parts of 4"),
        (True, ("--launcher", "mpirun"), "cannot tell how many GPUs a host has"),
        (False, ("--launcher", "direct", "--ranks-per-node", 1), "direct starts ranks on this host alone"),
    ],
)
def test_what_cannot_be_is_refused(
    lab: Lab, tmp_path: Path, mpi: bool, arguments: tuple[object, ...], words: str
) -> None:
    nccl_tests(tmp_path / "bin", "nccl-tests-2.19.6", mpi=mpi)

    done = on_n0(lab, tmp_path, *of_nccl_tests(tmp_path, *arguments))

    assert done.returncode == 2, done
    assert words in done.stderr

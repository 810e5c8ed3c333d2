"""Runs over hosts that a user names: files, lists, one other host, what is refused."""

import subprocess
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of, read_run
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.ranks import INTEL_MPI, OPEN_MPI

from .jobs import SHORT

pytestmark = pytest.mark.root


def on_n0(lab: Lab, folder: Path, *arguments: object, mpi: str = "Open MPI") -> "subprocess.CompletedProcess[str]":
    """Run `busbw` on n0 to its end."""
    path = clean_environment(environment_of(mpi), folder)["PATH"]
    done = lab.run(
        "n0",
        [environment_of(mpi) / "bin" / "busbw", *map(str, arguments)],
        env={**ENVIRONMENT, "PATH": path, "BUSBW_RUNS": str(folder), **(OPEN_MPI if mpi == "Open MPI" else INTEL_MPI)},
        cwd=str(folder),
        timeout_s=120,
    )
    assert "Traceback" not in done.stderr, done
    return done


@pytest.mark.parametrize(
    ("text", "hosts", "ranks"),
    [("n0 slots=2\nn2 slots=1  # the new one\n", ("n0", "n2"), (2, 1)), ("n[1-2]:1\n", ("n1", "n2"), (1, 1))],
)
def test_a_host_file_says_where_ranks_run(
    lab: Lab, tmp_path: Path, text: str, hosts: tuple[str, ...], ranks: tuple[int, ...]
) -> None:
    (tmp_path / "hosts").write_text(text)

    done = on_n0(
        lab, tmp_path, "run", "all_reduce", *SHORT, "--hosts", "hosts", "--interface", "eth0", "-o", tmp_path / "run"
    )

    run = read_run(tmp_path / "run")
    assert run.measurements, done
    assert run.plan.placement.ranks_of_hosts == ranks
    expected = [host for host, count in zip(hosts, ranks, strict=True) for _rank in range(count)]
    assert sorted(rank.host for rank in run.ranks) == expected
    assert "by mpirun: host file hosts" in done.stderr


def test_one_other_host_is_measured_from_here(lab: Lab, tmp_path: Path) -> None:
    done = on_n0(
        lab, tmp_path, "run", "all_reduce", *SHORT, "--hosts", "n3", "-n", "2", "--interface", "eth0",
        "-o", tmp_path / "run",
    )  # fmt: skip

    run = read_run(tmp_path / "run")
    assert run.measurements, done
    assert [rank.host for rank in run.ranks] == ["n3", "n3"]
    assert lab.processes("n3") == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hosts", "n0,n1", "-n", "3"), "3 ranks are not alike on 2 nodes"),
        (("--hosts", "n0,n1", "--ranks-per-node", "0"), "at least one rank on each node"),
        (("--hosts", "n0;rm"), "cannot be the name of a host"),
        (("--hosts", "n0,n1", "--launcher", "srun"), "srun starts ranks inside an allocation"),
        (("--hosts", "n0,n1", "--launcher", "processes"), "starts ranks on this host alone"),
        (("--ranks-per-node", "2"), "there is one node: this host"),
    ],
)
def test_what_cannot_be_is_refused(lab: Lab, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = on_n0(lab, tmp_path, "run", "all_reduce", *arguments, "-o", tmp_path / "run")

    assert done.returncode == 2, done
    assert words in done.stderr
    assert not (tmp_path / "run").exists()

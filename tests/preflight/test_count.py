"""As many processes as planned, or the reason: launchers and MPI libraries that do not know each other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.runner import ENVIRONMENTS, clean_environment, environment_of

from busbw.model.record import EVENT_PREFIX
from busbw.rank.admission import suspicion, wrong_count
from busbw.rank.socket_world import SocketWorld

TIMEOUT_S = 200.0
LIBRARIES = {"Open MPI": "libmpi.so.40", "MPICH": "libmpi.so.12"}


class Alone(SocketWorld):
    """A process that has met nobody, with the name of an MPI."""

    def __init__(self, version: str = "Open MPI v5.0.11", *, rank: int = 0, ranks: int = 1) -> None:
        self.rank, self.ranks, self.version, self.library = rank, ranks, version, "/usr/lib/libmpi.so"


HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "4", "PMI_FD": "7"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0"}
SRUN = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}


def test_processes_that_hydra_started_and_open_mpi_does_not_find() -> None:
    words = wrong_count(Alone(), 4, HYDRA)
    assert words is not None
    assert words.startswith("4 processes started, 4 planned, and each is alone: Hydra (MPICH, Intel MPI, MVAPICH)")
    assert "loaded Open MPI v5.0.11 from /usr/lib/libmpi.so" in words
    assert words.endswith("start with the mpirun of Open MPI, or load the MPI of this mpirun: busbw run --mpirun PATH")


def test_processes_that_srun_started_without_pmi() -> None:
    words = wrong_count(Alone("MPICH Version: 4.2"), 4, SRUN)
    assert words is not None
    assert "srun started them, and it offers no PMI (--mpi=none), which MPICH does not understand" in words
    assert "start with srun --mpi=pmi2" in words
    words = wrong_count(Alone(), 4, {**SRUN, "PMI_FD": "7", "SLURM_MPI_TYPE": "pmi2"})
    assert words is not None
    assert "it offers PMI_FD, which Open MPI does not understand" in words
    assert "srun --mpi=pmix, if `srun --mpi=list` has it (now pmi2)" in words


def test_of_many_alone_one_says_so() -> None:
    said = [wrong_count(Alone(), 4, {**HYDRA, "PMI_RANK": str(rank)}) for rank in range(4)]
    assert [words is not None for words in said] == [True, False, False, False]


def test_where_ranks_have_met_the_first_counts_them() -> None:
    assert wrong_count(Alone(ranks=3), 4, OPEN_MPI | {"OMPI_COMM_WORLD_SIZE": "3"}) == (
        "3 processes started, 4 planned; loaded Open MPI v5.0.11 from /usr/lib/libmpi.so"
    )
    assert wrong_count(Alone(rank=2, ranks=3), 4, {}) is None
    assert (wrong_count(Alone(), 4, {}) or "").startswith("1 process started, 4 planned")


def test_mpich_under_pmix_is_suspected_before_it_ends_the_process() -> None:
    words = suspicion("MPICH", "/lib/libmpi.so.12", OPEN_MPI)
    assert words is not None
    assert words.startswith("Open MPI's mpirun started it with PMIx, which MPICH (/lib/libmpi.so.12) mostly does not")
    assert suspicion("Open MPI", "/lib/libmpi.so.40", OPEN_MPI) is None
    assert suspicion("MPICH", "/lib/libmpi.so.12", HYDRA) is None
    assert suspicion("MPICH", "/lib/libmpi.so.12", {**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "1"}) == words


@pytest.mark.timed
@pytest.mark.parametrize(("launching", "loaded"), [("MPICH", "Open MPI"), ("Open MPI", "MPICH")])
def test_ranks_under_an_mpirun_of_another_mpi_are_refused_with_the_reason(
    launching: str, loaded: str, tmp_path: Path
) -> None:
    prefix = environment_of(launching)
    environment_of(loaded)
    library = ENVIRONMENTS[loaded] / "lib" / LIBRARIES[loaded]
    env = clean_environment(ENVIRONMENTS[loaded], tmp_path) | {"MPI4PY_LIBMPI": str(library)}
    directory = tmp_path / "run"
    (directory / "raw").mkdir(parents=True)
    asked = [str(Path(sys.prefix, "bin", "busbw")), "run", "all_reduce", "-n", "2", "-e", "64", "-o", directory]
    planned = subprocess.run([*asked, "--plan", "--json"], env=env, capture_output=True, timeout=TIMEOUT_S, check=True)
    (directory / "plan.json").write_bytes(planned.stdout)
    starts = [prefix / "bin" / "mpirun", "-n", "2"]
    if launching == "Open MPI":
        starts += ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    rank = [sys.executable, "-P", "-m", "busbw.rank", directory, "0", ""]

    done = subprocess.run([*starts, *rank], env=env, capture_output=True, timeout=TIMEOUT_S, text=True, check=False)

    assert done.returncode != 0
    assert list((directory / "raw").iterdir()) == []
    if launching == "MPICH":
        reasons = [line for line in done.stderr.splitlines() if "busbw does not measure: " in line]
        assert len(reasons) == 1, done.stderr
        assert "2 processes started, 2 planned, and each is alone: Hydra" in reasons[0]
        assert done.stdout.count(EVENT_PREFIX) == 1
    else:
        # MPICH ends the process itself; what busbw says before is all that is readable.
        assert "failed at loading MPI, possibly: Open MPI's mpirun started it with PMIx, which MPICH" in done.stderr

"""The Slurm of the lab: steps through PMIx and PMI-2, jobs, arrays, what a node's state does, where ranks run."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.e2e.runner import environment_of, program
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.open_mpi_4 import OpenMpi4
from tests.lab.ranks import MPICH, OPEN_MPI, PROGRAM, check_one_on_each, ranks_of
from tests.lab.slurm import Cluster
from tests.patience import wait_until

pytestmark = pytest.mark.root

# One rank on each node with all its cores: all nodes have the same ones.
ALONE = ("-N4", "-n4", f"-c{os.cpu_count()}")


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file; none while there is none."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def submit(cluster: Cluster, folder: Path, script: str, *options: str) -> str:
    """Submit a script, and return the number of its job."""
    path = program(folder / "job.sh", f"#!/bin/bash\n{script}\n")
    done = cluster.run(["sbatch", "--parsable", *options, path], cwd=folder)
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_open_mpi_5_starts_through_pmix(slurm_cluster: Cluster) -> None:
    done = slurm_cluster.run(
        ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", *ALONE, sys.executable, PROGRAM],
        env={**ENVIRONMENT, **OPEN_MPI, "LAB_VARIABLE": "a,b"},
    )

    ranks = ranks_of(done)
    check_one_on_each(ranks, "Open MPI v5")
    assert {rank["variable"] for rank in ranks} == {"a,b"}


def test_open_mpi_4_starts_through_pmix(slurm_cluster: Cluster, open_mpi_4: OpenMpi4) -> None:
    env = {**ENVIRONMENT, **OPEN_MPI, **open_mpi_4.env, "MPI4PY_LIBMPI": str(open_mpi_4.library)}
    # Slurm's own fence over direct connections lets a rank go too early: one start in twelve crashes (22.05.8).
    env["SLURM_PMIX_FENCE"] = "tree"

    done = slurm_cluster.run(["srun", "--mpi=pmix", "--kill-on-bad-exit=1", *ALONE, sys.executable, PROGRAM], env=env)

    check_one_on_each(ranks_of(done), "Open MPI v4")


def test_mpich_starts_through_pmi2(slurm_cluster: Cluster) -> None:
    python = environment_of("MPICH") / "bin" / "python"

    done = slurm_cluster.run(["srun", "--mpi=pmi2", *ALONE, python, PROGRAM], env={**ENVIRONMENT, **MPICH})

    check_one_on_each(ranks_of(done), "MPICH")


def test_without_pmi_each_rank_is_a_world_of_its_own(slurm_cluster: Cluster) -> None:
    python = environment_of("MPICH") / "bin" / "python"

    done = slurm_cluster.run(["srun", "--mpi=none", *ALONE, python, PROGRAM], env={**ENVIRONMENT, **MPICH})

    assert [(rank["rank"], rank["ranks"]) for rank in ranks_of(done)] == [(0, 1)] * 4


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core: nothing to choose")
def test_masks_bind_each_rank_to_its_cores(slurm_cluster: Cluster) -> None:
    show = "import json, os; print(json.dumps([int(os.environ['SLURM_PROCID']), sorted(os.sched_getaffinity(0))]))"
    command = ["srun", "-N2", "-n4", "--exclusive", "--cpu-bind=mask_cpu:0x2,0x1"]

    done = slurm_cluster.run([*command, sys.executable, "-c", show])

    assert done.returncode == 0, done
    bound = dict(json.loads(line) for line in done.stdout.splitlines())
    assert bound == {0: [1], 1: [0], 2: [1], 3: [0]}


def test_a_job_runs_on_the_nodes_of_one_leaf_and_leaves_its_output(slurm_cluster: Cluster, tmp_path: Path) -> None:
    number = submit(slurm_cluster, tmp_path, "srun hostname", "-N2", "--switches=1", "--output=out")

    wait_until(lambda: slurm_cluster.job(number)["JobState"] == "COMPLETED", 30, slurm_cluster.log)
    assert sorted(lines_of(tmp_path / "out")) in (["n0", "n1"], ["n2", "n3"])


def test_an_array_is_one_job_for_each_number(slurm_cluster: Cluster, tmp_path: Path) -> None:
    submit(slurm_cluster, tmp_path, "echo $SLURM_ARRAY_TASK_ID $(hostname)", "--array=0-3", "--output=out-%a")

    wait_until(lambda: slurm_cluster.jobs() == {}, 30, slurm_cluster.log)
    found = {path.name: path.read_text().split() for path in tmp_path.glob("out-*")}
    assert {name: words[0] for name, words in found.items()} == {f"out-{number}": str(number) for number in range(4)}
    assert {words[1] for words in found.values()} <= {"n0", "n1", "n2", "n3"}


def test_a_drained_node_takes_no_job_until_it_is_resumed(slurm_cluster: Cluster, tmp_path: Path) -> None:
    slurm_cluster.drain("n1")
    assert slurm_cluster.states()["n1"] == "drain"
    number = submit(slurm_cluster, tmp_path, "srun hostname", "-N4", "--output=out")
    assert "n1" not in slurm_cluster.run(["srun", "-N3", "hostname"]).stdout.split()
    assert slurm_cluster.job(number)["JobState"] == "PENDING"

    slurm_cluster.resume("n1")

    wait_until(lambda: sorted(lines_of(tmp_path / "out")) == ["n0", "n1", "n2", "n3"], 30, slurm_cluster.log)


def test_every_rank_of_a_cancelled_job_is_told_to_stop(slurm_cluster: Cluster, lab: Lab, tmp_path: Path) -> None:
    step = "srun sh -c 'trap \"echo stop >> stopped; exit\" TERM; echo on >> begun; while :; do sleep 0.1; done'"
    number = submit(slurm_cluster, tmp_path, step, "-N2")
    wait_until(lambda: len(lines_of(tmp_path / "begun")) == 2, 30, slurm_cluster.log)

    slurm_cluster.run(["scancel", number])

    wait_until(lambda: slurm_cluster.jobs() == {}, 30, slurm_cluster.log)
    assert len(lines_of(tmp_path / "stopped")) == 2
    assert slurm_cluster.job(number)["JobState"] == "CANCELLED"
    wait_until(lambda: not any(lab.processes(host) for host in lab.hosts), 30, "the end of all")


@pytest.mark.slow
@pytest.mark.slow
def test_nodes_come_back_after_a_restart(slurm_cluster: Cluster, lab: Lab) -> None:
    lab.restart("n2")
    slurm_cluster.wait_ready()

    assert slurm_cluster.run(["srun", "-wn2", "hostname"]).stdout == "n2\n"

"""Runs inside an allocation of Slurm: where their ranks are, what they are bound to, what is refused."""

import os

import pytest

from .jobs import SHORT, Jobs

pytestmark = pytest.mark.root
HOSTS = ("n0", "n1", "n2", "n3")
SALLOC = ("salloc", "--nodes=4", "--ntasks-per-node=1")


@pytest.mark.parametrize(("mpi", "kind"), [("Open MPI", "pmix"), ("MPICH", "pmi2")])
def test_a_suite_measures_over_the_nodes_of_the_allocation(jobs: Jobs, mpi: str, kind: str) -> None:
    where = jobs.folder / "run"

    done = jobs("run", "--suite", "six", "--nodes", 4, *SHORT, "--time-limit", 8, "-o", where, mpi=mpi, within=SALLOC)

    run = jobs.run(where)
    assert f"--mpi={kind}" in run.plan.job.argv, done
    assert "4 hosts, n[0-3], by srun: SLURM_JOB_NODELIST=n[0-3] of job" in done.stderr
    assert run.outcome is not None
    assert run.outcome.ended in ("complete", "time"), done
    assert [rank.host for rank in run.ranks] == list(HOSTS)
    assert len({measurement.collective for measurement in run.measurements}) >= 3
    assert all(measurement.wrong is None for measurement in run.measurements)
    assert "4 ranks on 4 hosts, n[0-3], 1 on each" in done.stdout


def test_ranks_have_the_cpus_that_were_asked_for(jobs: Jobs) -> None:
    where = jobs.folder / "run"

    done = jobs(
        "run", "all_reduce", "--nodes", 2, *SHORT, "--bind-to", "core", "-o", where,
        within=("salloc", "--nodes=2", "--ntasks-per-node=1", f"--cpus-per-task={os.cpu_count()}"),
    )  # fmt: skip

    run = jobs.run(where)
    assert "--cpu-bind=cores" in run.plan.job.argv
    assert [rank.host for rank in run.ranks] == ["n0", "n1"], done
    assert all(len(rank.cpus) >= 1 for rank in run.ranks)


def test_fewer_nodes_than_asked_for_are_refused(jobs: Jobs) -> None:
    done = jobs("run", "all_reduce", "--nodes", 3, *SHORT, within=("salloc", "--nodes=2"))

    assert done.returncode == 2
    assert "3 nodes asked for, 2 there (SLURM_JOB_NODELIST=n[0-1]" in done.stderr


def test_a_run_does_not_go_on_with_other_hosts(jobs: Jobs) -> None:
    where = jobs.folder / "run"
    jobs("run", "all_reduce", "--nodes", 2, *SHORT, "-o", where, within=("salloc", "--nodelist=n0,n1"))

    done = jobs("run", "--resume", where, within=("salloc", "--nodelist=n0,n2"))

    assert done.returncode == 2
    assert "this run belongs to n[0-1], and n1 is not among the hosts of this job" in done.stderr


def test_outside_of_an_allocation_the_word_says_what_to_do(jobs: Jobs) -> None:
    done = jobs("run", "all_reduce", "--nodes", 2)

    assert done.returncode == 2
    assert "no allocation was found here" in done.stderr
    assert "--launcher sbatch" in done.stderr


def test_each_of_several_tasks_refuses_with_the_reason(jobs: Jobs) -> None:
    done = jobs("run", "all_reduce", "-n", 2, *SHORT, within=("srun", "--nodes=2", "--ntasks=2"))

    assert done.returncode == 2, done
    reason = "error: srun started busbw 2 times (SLURM_STEP_NUM_TASKS=2): busbw starts the ranks itself"
    assert done.stderr.splitlines().count(reason) == 2
    assert not (jobs.folder / "runs").exists()


def test_a_step_of_one_task_measures_its_own_host(jobs: Jobs) -> None:
    where = jobs.folder / "run"

    done = jobs("run", "all_reduce", "-n", 2, *SHORT, "-o", where, within=("srun", "--nodes=1", "--ntasks=1"))

    run = jobs.run(where)
    assert run.measurements, done
    assert [rank.host for rank in run.ranks] == ["n0", "n0"]


def test_the_step_of_an_interactive_shell_plans_for_the_nodes_of_the_allocation(jobs: Jobs) -> None:
    shell = ("salloc", "--nodes=2", "--ntasks-per-node=2", "srun", "--interactive", "--preserve-env")

    done = jobs("run", "all_reduce", "--nodes", 2, *SHORT, "--plan", within=shell)

    assert done.returncode == 0, done
    assert "--nodes=2" in done.stdout

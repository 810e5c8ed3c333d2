"""A whole sweep as a job of Slurm: its hosts are those of the job, srun starts its ranks, the slow host is named."""

import json
from pathlib import Path

import pytest
from tests.e2e.runner import program
from tests.patience import wait_until

from .jobs import Jobs

pytestmark = pytest.mark.root
_SCRIPT = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --output=out
#SBATCH --error=err
busbw fabric --metric bandwidth -b 8K --pair-time 0.05 --out run --json
echo $? > code
"""


def text_of(path: Path) -> str:
    """Return what a file holds; "" while there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_a_sweep_as_a_job_takes_its_hosts_from_the_job_and_names_the_slow_one(jobs: Jobs) -> None:
    script, code = program(jobs.folder / "job.sh", _SCRIPT), jobs.folder / "code"
    jobs.cluster.lab.shape("n2", "20mbit")

    jobs.cluster.run(["sbatch", script], env=jobs.environment("MPICH"), cwd=jobs.folder)

    # `sbatch --wait` would look every some seconds.
    wait_until(lambda: text_of(code).endswith("\n"), 90, lambda: f"{jobs.err}\n{jobs.cluster.log()}")
    report = json.loads(text_of(jobs.folder / "out"))
    assert text_of(code) == "1\n", jobs.err
    assert report["nodes"] == 4
    assert [each["nodes"] for each in report["answers"]] == [["n2"]], report["answers"]
    assert "4 hosts, n[0-3], by srun: SLURM_JOB_NODELIST=n[0-3] of job" in jobs.err
    assert "--mpi=pmi2" in jobs.run(jobs.folder / "run").plan.job.argv

"""Slurm ends, stops or starts a run again: what was measured stays, and the run says who ended it."""

import pytest
from tests.e2e.runner import program
from tests.lab.slurm import Cluster
from tests.patience import wait_until

from .several import BYTES, FIRST_DONE, SIZES, Several

NODES = ("-N3", "-n3", "-c2", "--time=5")


def start_job(
    several: Several, cluster: Cluster, *options: str, before: str = "", run: str = "exec busbw run", after: str = ""
) -> str:
    """Submit a job that measures over its three nodes; return its number when the first size is done."""
    environment = several.environment()
    exported = "\n".join(f"export {name}='{environment[name]}'" for name in ("PATH", "BUSBW_RUNS"))
    words = " ".join(SIZES)
    script = program(
        several.folder / "job.sh",
        f"#!/bin/bash\n{exported}\n{before}"
        f"{run} all_reduce {words} --nodes 3 -n 3 --interface eth0 --launcher srun 2>> err >> out\n{after}",
    )
    (several.folder / "err").touch()
    done = cluster.run(["sbatch", "--parsable", *NODES, *options, script], cwd=several.folder)
    assert done.returncode == 0, done
    number = done.stdout.strip()
    wait_until(
        lambda: FIRST_DONE in several.err or cluster.job(number).get("JobState") in ("FAILED", "COMPLETED"),
        90,
        lambda: f"{several.err}\n{cluster.log()}",
    )
    assert FIRST_DONE in several.err, several.err
    return number


def wait_for_end(several: Several, cluster: Cluster, number: str) -> None:
    """Wait until a job is over and its run has an outcome."""
    wait_until(lambda: number not in cluster.jobs(), 60, lambda: f"{cluster.jobs()}\n{several.err}")


@pytest.mark.parametrize("whom", ["--full", "--batch"])
def test_a_signal_to_the_job_stops_the_run_with_grace(several: Several, slurm_cluster: Cluster, whom: str) -> None:
    """`--full` reaches the ranks too; with `--batch` only busbw hears it, and srun hands on what it says."""
    number = start_job(several, slurm_cluster)

    slurm_cluster.run(["scancel", "--signal=TERM", whom, number])

    wait_for_end(several, slurm_cluster, number)
    run = several.run()
    assert run.outcome is not None
    assert (run.outcome.ended, run.outcome.exit_code) == ("stopped", 0), (run.outcome, several.err)
    # On busy cores a size may have missed every start of its first turn.
    assert {point.size_bytes for point in run.measurements} <= set(BYTES)
    assert run.measurements
    several.check_nothing_left("n0", "n1", "n2")


def test_scancel_of_the_step_is_named(several: Several, slurm_cluster: Cluster) -> None:
    number = start_job(several, slurm_cluster)

    slurm_cluster.run(["scancel", f"{number}.0"])

    wait_for_end(several, slurm_cluster, number)
    run = several.run()
    assert run.outcome is not None
    assert run.outcome.ended == "stopped", (run.outcome, several.err)
    assert run.outcome.cause in (None, "Slurm ended the job: cancelled")
    assert run.autopsy is None
    several.check_nothing_left("n0", "n1", "n2")


def test_a_job_that_is_preempted_and_requeued_goes_on(several: Several, slurm_cluster: Cluster) -> None:
    again = 'if [ "${SLURM_RESTART_COUNT:-0}" != 0 ]; then exec busbw run --resume last 2>> err >> out; fi\n'
    number = start_job(
        several,
        slurm_cluster,
        "--requeue",
        "--nodelist=n[0-2]",
        "--open-mode=append",
        before=f"{again}trap : TERM\n",
        run="busbw run",
        # A job that ends by itself in its time of grace has ended, and is not requeued.
        after="sleep 100 & wait\nsleep 100\n",
    )

    urgent = slurm_cluster.run(
        ["sbatch", "--parsable", "--partition=urgent", "-N4", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"],
        cwd=several.folder,
    )
    assert urgent.returncode == 0, urgent
    wait_until(lambda: slurm_cluster.job(number).get("Restarts") == "1", 60, slurm_cluster.log)
    wait_until(lambda: number not in slurm_cluster.jobs(), 120, lambda: f"{slurm_cluster.jobs()}\n{several.err}")

    run = several.run()
    assert run.outcome is not None
    assert run.outcome.ended in ("complete", "time"), (run.outcome, several.err)
    assert [point.size_bytes for point in run.measurements] == BYTES[: len(run.measurements)]
    assert (several.directory / "raw" / "rank-00002.1.jsonl").exists()
    several.check_nothing_left("n0", "n1", "n2")

"""Runs as jobs of Slurm: submitted, followed, split into an array, cancelled, started again."""

import signal
from pathlib import Path

import pytest
from tests.patience import wait_until

from .jobs import SHORT, Jobs

pytestmark = pytest.mark.root
ANSWERS = (0, 1, 4)
TWO = ("--launcher", "sbatch", "--nodes", "2", "--ranks-per-node", "1")
# Longer than it takes to see it running.
LONG = ("-b", "8", "-e", "64K", "-f", "2", "--bind-to", "none", "--time-limit", "14", "--min-samples", "400")


def script_of(where: Path) -> str:
    return (where.with_name(f"{where.name}.job") / "job.sh").read_text()


def test_a_run_is_submitted_followed_and_its_result_printed(jobs: Jobs) -> None:
    where = jobs.folder / "run"

    done = jobs("run", "all_reduce", *TWO, *SHORT, "-o", where, "--batch-option=--comment=a,b")

    assert done.returncode in ANSWERS, done
    run = jobs.run(where)
    assert [rank.host for rank in run.ranks] == ["n0", "n1"]
    assert run.plan.launcher == "srun"
    assert "#SBATCH --comment=a,b" in script_of(where)
    assert " running on n[0-1]" in done.stderr
    assert "all_reduce 512 B, ended by" in done.stderr
    assert done.stdout.count("# all_reduce, out of place, 2 ranks") == 1


def test_each_collective_can_be_a_task_of_an_array(jobs: Jobs) -> None:
    where = jobs.folder / "run"

    done = jobs("run", "all_reduce", "broadcast", *TWO, *SHORT, "--split", "-o", where)

    assert done.returncode in ANSWERS, done
    names = [jobs.run(where / name).measurements[0].collective for name in ("all_reduce", "broadcast")]
    assert names == ["all_reduce", "broadcast"]
    assert "#SBATCH --array=0-1%1" in script_of(where)


def test_a_job_can_be_left_to_itself(jobs: Jobs) -> None:
    where = jobs.folder / "run"

    done = jobs("run", "all_reduce", *TWO, *SHORT, "-o", where, "--no-follow")

    number = done.stdout.strip()
    assert done.returncode == 0, done
    assert number.isdecimal(), done
    wait_until(lambda: jobs.cluster.jobs().get(number) is None, 60, lambda: str(jobs.cluster.jobs()))
    assert jobs.run(where).measurements


def test_ctrl_c_cancels_the_job_and_keeps_what_was_measured(jobs: Jobs) -> None:
    where = jobs.folder / "run"
    process = jobs.start("run", "all_reduce", *TWO, *LONG, "-o", where)
    wait_until(lambda: "ended by" in jobs.err, 60, lambda: jobs.err)

    process.send_signal(signal.SIGINT)

    assert process.wait(90) in (1, 3, 4), jobs.err
    assert "cancelling job" in jobs.err
    run = jobs.run(where)
    assert run.outcome is None or run.outcome.ended != "complete"
    assert any(one.turns > 0 for one in run.measurements)
    assert not all(one.turns > 0 for one in run.measurements)
    assert jobs.cluster.jobs() == {}


def test_a_requeued_job_goes_on_where_it_was(jobs: Jobs) -> None:
    where = jobs.folder / "run"
    # The same nodes again, so that it may go on.
    process = jobs.start(
        "run", "all_reduce", *TWO, *LONG, "--time-limit", 8, "-o", where, "--batch-option=--nodelist=n1,n2"
    )
    wait_until(lambda: "ended by" in jobs.err, 60, lambda: jobs.err)
    (number,) = jobs.cluster.jobs()

    done = jobs.cluster.run(["scontrol", "requeue", number])

    assert done.returncode == 0, done
    assert process.wait(200) in ANSWERS, jobs.err
    run = jobs.run(where)
    assert run.outcome is not None
    assert run.outcome.ended in ("complete", "time"), jobs.err
    assert len(list((where / "raw").glob("rank-00000.*.jsonl"))) == 2
    assert "start 2" in jobs.err


def test_several_copies_submit_nothing(jobs: Jobs) -> None:
    done = jobs("run", "all_reduce", *TWO, *SHORT, "--no-follow", within=("srun", "--nodes=2", "--ntasks=4"))

    assert done.returncode == 2, done
    assert done.stderr.count("started busbw 4 times") == 4
    assert jobs.cluster.jobs() == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nodes", "2", "--batch-option=--partition=nowhere"), "sbatch refused the job"),
        (("--nodes", "2", "--hosts", "n0"), "sbatch chooses the hosts"),
        ((), "sbatch has to know how many nodes"),
        (("--nodes", "2", "--split"), "nothing to split"),
        (("--nodes", "2", "--batch-option=partition"), "is not a directive of sbatch"),
    ],
)
def test_what_cannot_be_submitted_is_refused(jobs: Jobs, arguments: tuple[str, ...], words: str) -> None:
    done = jobs("run", "all_reduce", "--launcher", "sbatch", *arguments, *SHORT, "-o", jobs.folder / "run")

    assert done.returncode in (2, 3)
    assert words in done.stderr
    assert not (jobs.folder / "run").exists()

"""The check of a recipe as a job of Slurm: it finds its folder, measures over both nodes, and says what it showed."""

import shutil

import pytest
from click.testing import CliRunner
from tests.e2e.foreign_programs import osu_latency
from tests.patience import wait_until

from busbw.cli.command import busbw

from .jobs import Jobs

pytestmark = pytest.mark.root


def test_a_check_is_a_job_over_two_nodes(jobs: Jobs) -> None:
    folder = jobs.folder / "a recipe"
    CliRunner().invoke(busbw, ["recipe", "write", "osu-modules", "-o", str(folder)])
    programs = osu_latency(folder / "osu" / "libexec" / "pt2pt")
    shutil.copy(programs / "osu_latency", programs / "osu_bw")

    submitted = jobs.cluster.run(
        ["sbatch", "--parsable", "check.sh"],
        env={**jobs.environment(), "RUN_OPTIONS": "--launches 1 -b 64 -e 64"},
        cwd=str(folder),
        timeout_s=60,
    )

    number = submitted.stdout.strip()
    assert number.isdecimal(), submitted
    wait_until(lambda: jobs.cluster.jobs().get(number) is None, 90, lambda: str(jobs.cluster.jobs()))
    said = (folder / f"osu-modules-{number}.out").read_text()
    assert "2 ranks on 2 hosts" in said, said
    # The stand-in is a script, and so is linked with nothing.
    assert "not proven:\n  the programs are linked with an MPI\n" in said

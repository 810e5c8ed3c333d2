"""The check of a recipe as a job of Slurm: it finds its folder, measures over both nodes, and says what it showed."""

import shutil

import pytest
from click.testing import CliRunner
from tests.e2e.foreign_programs import osu_latency
from tests.e2e.runner import NO_DEVICES
from tests.patience import wait_until
from tests.recipes.building import container, entry, libfabric, nccl, needs_gcc, plugin

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


@needs_gcc
def test_the_check_of_an_adopted_stack_looks_on_every_node(jobs: Jobs) -> None:
    stack = jobs.folder / "my stack"
    nccl(stack / "nccl", code=container(entry(90)))
    plugin(stack / "ofi", libfabric(stack / "fabric"))
    folder = jobs.folder / "adopted"
    places = [str(stack / name) for name in ("nccl", "ofi", "fabric")]
    done = CliRunner().invoke(busbw, ["recipe", "adopt", *places, "--platform", "generic", "-o", str(folder)])
    assert done.exit_code == 0, done.output
    changed = stack / "fabric" / "libfabric.so.1"
    changed.write_bytes(changed.read_bytes() + b"built again")

    submitted = jobs.cluster.run(
        ["sbatch", "--parsable", "check.sh"], env={**jobs.environment(), **NO_DEVICES}, cwd=str(folder), timeout_s=60
    )

    number = submitted.stdout.strip()
    assert number.isdecimal(), submitted
    wait_until(lambda: jobs.cluster.jobs().get(number) is None, 90, lambda: str(jobs.cluster.jobs()))
    said = (folder / f"adopted-{number}.out").read_text()
    told = [line for line in said.splitlines() if line.endswith(f"{changed} is not as it was examined")]
    assert len({line.split(":")[0] for line in told}) == 2, said
    assert "not proven:\n  every node has the files that were examined\n  all_reduce runs\n" in said

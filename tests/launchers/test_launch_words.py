"""`busbw launch`: what it takes for granted on a machine, and options that a launcher would not heed."""

import json

import pytest
from click.testing import CliRunner

from busbw.base.errors import InputError
from busbw.cli.command import busbw

ISAMBARD = ("--platform", "isambard-ai-phase2", "--nodes", "2")


def launched(*arguments: str) -> list[str]:
    done = CliRunner().invoke(busbw, ["launch", *arguments, "--json", "--", "./app"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["job"]["argv"]


def test_on_slingshot_srun_introduces_cray_mpich_and_binds_each_rank_beside_its_gpu():
    argv = launched(*ISAMBARD, "--launcher", "srun")

    assert "--mpi=cray_shasta" in argv
    (bound,) = (word for word in argv if word.startswith("--cpu-bind="))
    masks = [int(mask, 16) for mask in bound.removeprefix("--cpu-bind=mask_cpu:").split(",")]
    assert masks == [((1 << 72) - 1) << (72 * gpu) for gpu in range(4)]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((*ISAMBARD, "--launcher", "srun", "--mpi", "open-mpi-5"), "--mpi=pmix"),
        (("--platform", "azure-nd-h100-v5", "--nodes", "2", "--launcher", "srun"), "--mpi=pmix"),
        ((*ISAMBARD, "--launcher", "srun", "--bind-to", "none"), "--cpu-bind=none"),
        ((*ISAMBARD, "--launcher", "srun", "--ranks-per-node", "1"), "--cpu-bind=none"),
    ],
)
def test_what_is_said_goes_before_it_and_other_machines_are_as_they_were(arguments: tuple[str, ...], word: str):
    assert word in launched(*arguments)


@pytest.mark.parametrize(
    ("launcher", "option", "hint"),
    [
        ("srun", ("--image", "x"), "--container pyxis"),
        ("mpirun", ("--image", "x"), "mpijob"),
        ("srun", ("--host-network",), "mpijob"),
        ("sbatch", ("--claim", "x"), "mpijob"),
        ("srun", ("--time", "60"), "sbatch"),
        ("mpirun", ("--batch-option", "--qos=x"), "sbatch"),
        ("mpirun", ("--name", "x"), "mpijob"),
        ("mpijob", ("--image", "x", "--time", "60"), "sbatch"),
    ],
)
def test_an_option_that_the_launcher_has_no_word_for_is_refused(launcher: str, option: tuple[str, ...], hint: str):
    done = CliRunner().invoke(busbw, ["launch", *ISAMBARD, "--launcher", launcher, *option, "--", "./app"])

    assert isinstance(done.exception, InputError)
    assert option[0] in done.exception.cause or "--time" in done.exception.cause
    assert hint in (done.exception.hint or "")


def test_pods_and_batch_jobs_take_their_own():
    pods = ("--image", "registry/x:1", "--name", "x", "--host-network")
    for arguments in (("mpijob", *pods), ("sbatch", "--time", "60", "--batch-option", "--qos=x")):
        done = CliRunner().invoke(busbw, ["launch", *ISAMBARD, "--launcher", *arguments, "--", "./app"])
        assert done.exit_code == 0, done.output

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


HBV4 = ("--platform", "azure-hbv4", "--nodes", "2", "--hosts", "n[0-1]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--launcher", "mpirun_rsh"), ("-np 352", "MV2_CPU_BINDING_LEVEL=core", "MV2_IBA_HCA=mlx5_ib0")),
        (("--launcher", "mpirun_rsh", "--ranks-per-node", "4"), ("-np 8", "MV2_CPU_BINDING_POLICY=scatter")),
        (("--mpi", "hpcx"), ("--map-by ppr:176:node", "--bind-to core", "--mca pml ucx", "UCX_NET_DEVICES=mlx5_ib0:1")),
        (("--mpi", "open-mpi-4"), ("--mca btl ^vader,tcp,openib",)),
        (("--mpi", "mvapich"), ("-n 352", "-bind-to core")),
        (("--mpi", "mvapich2"), ("-n 352", "-bind-to none")),
        (("--mpi", "mvapich2", "--launcher", "srun"), ("--ntasks=352", "--cpu-bind=cores", "--mpi=pmi2")),
        (("--mpi", "hpcx", "--ranks-per-node", "4"), ("-n 8", "--bind-to numa")),
        (("--mpi", "hpcx", "--bind-to", "none"), ("--bind-to none",)),
    ],
)
def test_a_machine_without_gpus_is_started_on_as_its_mpi_is_told(arguments: tuple[str, ...], words: tuple[str, ...]):
    said = " ".join(launched(*HBV4, *arguments))

    assert all(each in said for each in words), said


def test_bindings_of_the_recommendation_are_left_to_the_launcher():
    asked = ("launch", *HBV4, "--mpi", "intel-mpi", "--json", "--", "./app")
    line = json.loads(CliRunner().invoke(busbw, asked).stdout)

    assert "I_MPI_PIN_DOMAIN" not in dict(line["job"]["env"])
    assert line["job"]["argv"][-4:] == ["-genv", "I_MPI_PIN_DOMAIN", "core", "./app"]
    assert not any(each["name"] == "I_MPI_PIN_DOMAIN" for each in line["recommendation"]["settings"])


def test_machines_with_gpus_are_started_on_as_before():
    argv = launched("--platform", "azure-nd-h100-v5", "--nodes", "2", "--mpi", "hpcx")

    assert "--bind-to none" in " ".join(argv)
    assert "pml" not in argv


def test_an_mpi_for_memory_of_gpus_is_told_of_them_and_of_its_nics():
    said = " ".join(launched("--platform", "azure-ndv4", "--launcher", "mpirun_rsh", "--mpi", "mvapich2-gdr"))

    assert "MV2_USE_CUDA=1" in said
    assert "UCX_TLS" not in said

"""What srun is told."""

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.measure.launchers import srun
from busbw.model.launch import Batch

from .starts import MPIS, SLURM, library, make_placement, make_start


def argv_of(**changes: object) -> tuple[str, ...]:
    return srun.job(make_start(**({"slurm": SLURM} | changes))).argv


@pytest.mark.parametrize(
    ("mpi", "types", "kind"),
    [
        (MPIS["Open MPI 5"], ("none", "pmi2", "pmix", "pmix_v4"), "pmix"),
        (MPIS["Open MPI 4"], ("pmix_v3", "pmix_v4"), "pmix_v4"),
        (MPIS["MPICH"], ("pmix", "pmi2"), "pmi2"),
        (library("MPICH", "8", library="/opt/cray/pe/lib/libmpi.so"), ("pmi2", "cray_shasta"), "cray_shasta"),
        (library("MPICH", "8", library="/opt/cray/pe/lib/libmpi.so"), ("pmi2",), "pmi2"),
        (None, ("pmix",), "none"),
    ],
)
def test_the_pmi_is_one_that_the_mpi_understands(mpi: object, types: tuple[str, ...], kind: str):
    assert argv_of(mpi=mpi, slurm=msgspec.structs.replace(SLURM, mpi_types=types))[1] == f"--mpi={kind}"


def test_without_one_the_start_is_refused_since_each_rank_would_be_a_run_of_its_own():
    with pytest.raises(InputError, match="so many runs of one rank each") as refused:
        argv_of(slurm=msgspec.structs.replace(SLURM, mpi_types=("none", "pmi2")))

    assert refused.value.where is not None
    assert "none, pmi2" in refused.value.where


def test_intel_mpi_asks_slurm_only_where_it_is_told_the_library():
    with pytest.raises(InputError, match="I_MPI_PMI_LIBRARY"):
        argv_of(mpi=MPIS["Intel MPI"])

    assert "--mpi=pmi2" in argv_of(mpi=MPIS["Intel MPI"], forward=("I_MPI_PMI_LIBRARY",))


def test_what_the_user_says_takes_the_place_of_our_word():
    argv = argv_of(options=("--mpi=pmi2", "--cpu-bind=verbose,cores"))

    assert [word for word in argv if word.startswith(("--mpi", "--cpu-bind"))] == [
        "--mpi=pmi2",
        "--cpu-bind=verbose,cores",
    ]


def test_masks_are_hexadecimal():
    argv = argv_of(placement=make_placement(binding="masks", masks=("0-11", "12-23,70")))

    assert "--cpu-bind=mask_cpu:fff,400000000000fff000" in argv


def test_uneven_ranks_are_dealt_out_by_a_list():
    argv = argv_of(placement=make_placement(ranks_of_hosts=(1, 2)))

    assert "--nodelist=n0,n1,n1" in argv
    assert "--distribution=arbitrary" in argv


def test_every_task_sees_every_gpu_of_its_host():
    job = srun.job(make_start(slurm=SLURM, gpus_per_host=8))

    assert {"--gpus-per-node=8", "--gpu-bind=none"} <= set(job.argv)
    assert "SLURM_GPUS_PER_TASK" in job.unset


def test_settings_are_in_the_environment_and_never_in_export():
    job = srun.job(make_start(slurm=SLURM, env=(("NCCL_IB_HCA", "=a,b"),), unset=("X",), interface="eth0"))

    assert dict(job.env) == {"NCCL_IB_HCA": "=a,b", "OMPI_MCA_btl_tcp_if_include": "eth0"}
    assert "--export=ALL" in job.argv
    assert "X" in job.unset


def test_cpus_of_a_task_are_said_to_the_step():
    assert "--cpus-per-task=72" in argv_of(batch=Batch(name="x", nodes=2, cpus_per_task=72))


@pytest.mark.parametrize(
    ("version", "of_ranks", "of_visit"),
    [("20.02.7", False, False), ("21.08.8", True, True), ("22.05.8", False, True), (None, False, True)],
)
def test_a_visit_shares_the_resources_of_the_ranks(version: str | None, of_ranks: bool, of_visit: bool):
    start = make_start(slurm=msgspec.structs.replace(SLURM, version=version))

    assert ("--overlap" in srun.job(start).argv) == of_ranks
    assert ("--overlap" in srun.visit(start).argv) == of_visit


def test_a_visit_is_one_process_a_host_without_mpi():
    argv = srun.visit(make_start(slurm=SLURM, gpus_per_host=8, options=("--network=x",))).argv

    assert {"--mpi=none", "--ntasks=2", "--ntasks-per-node=1"} <= set(argv)
    assert not {"--gpus-per-node=8", "--network=x", "--chdir=/runs/x"} & set(argv)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"slurm": None}, "no srun"), ({"env": (("SLURM_NTASKS", "1"),)}, "itself"), ({"argv": ("p", ":")}, "hand")],
)
def test_what_cannot_be_started_is_refused_with_the_reason(changes: dict[str, object], reason: str):
    with pytest.raises(InputError, match=reason):
        argv_of(**changes)

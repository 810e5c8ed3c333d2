"""The binding `default`: the launcher is told nothing of CPUs, and everything else as always."""

import pytest

from busbw.measure.launchers import registry

from .starts import MANAGERS, MPIS, SLURM, here, make_placement, make_start, managed_start

_OF_BINDING = ("bind", "-cc", "--cpu", "I_MPI_PIN", "cpu-affinity", "--map-by core")


def words_of(launcher: str, start) -> str:
    job = registry.find(launcher).job(start)
    return " ".join((*job.argv, *(f"{name}={value}" for name, value in job.env)))


@pytest.mark.parametrize("mpi", sorted(MPIS))
@pytest.mark.parametrize("is_spread", [False, True])
def test_mpirun_is_told_nothing_of_cpus(mpi: str, is_spread: bool):
    place = make_placement if is_spread else here
    told = words_of("mpirun", make_start(mpi=MPIS[mpi], placement=place(binding="core")))
    untold = words_of("mpirun", make_start(mpi=MPIS[mpi], placement=place(binding="default")))

    assert not [word for word in _OF_BINDING if word in untold]
    # Intel MPI binds to cores by itself, and is told so on several hosts only.
    assert [word for word in _OF_BINDING if word in told] or (mpi == "Intel MPI" and not is_spread)


def test_mpirun_may_still_start_more_ranks_than_cores():
    words = words_of("mpirun", make_start(placement=here(binding="default", oversubscribed=True)))

    assert "--oversubscribe" in words
    assert "--bind-to" not in words


def test_srun_is_told_nothing_of_cpus():
    assert "--cpu-bind" not in words_of("srun", make_start(slurm=SLURM, placement=make_placement(binding="default")))
    assert "--cpu-bind=cores" in words_of("srun", make_start(slurm=SLURM, placement=make_placement(binding="core")))


@pytest.mark.parametrize("launcher", sorted(MANAGERS))
def test_flux_jsrun_and_aprun_are_told_nothing_of_cpus(launcher: str):
    nodes = ("nid00012", "nid00013")
    told = words_of(launcher, managed_start(launcher, placement=make_placement(nodes, binding="core")))
    untold = words_of(launcher, managed_start(launcher, placement=make_placement(nodes, binding="default")))

    assert [word for word in _OF_BINDING if word in told]
    assert not [word for word in _OF_BINDING if word in untold.replace("--cpu_per_rs", "")]

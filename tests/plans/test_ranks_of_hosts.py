"""How many ranks each host of an allocation has where nobody asks for a number."""

import pytest

from busbw.base.errors import InputError
from busbw.measure.plan.hosts import gpus_of_hosts, ranks_of_hosts
from busbw.model.launch import Allocation, AllocationKind, HostSlots
from busbw.model.request import Request


def allocation(kind: AllocationKind, *slots: int | None) -> Allocation:
    hosts = tuple(HostSlots(name=f"n{number}", slots=count) for number, count in enumerate(slots))
    return Allocation(kind=kind, hosts=hosts, how="made")


@pytest.mark.parametrize("kind", ["slurm", "pbs", "lsf", "sge", "flux"])
@pytest.mark.parametrize("slots", [1, 96, None])
def test_every_gpu_is_used_whatever_a_batch_system_counts(kind: AllocationKind, slots: int | None):
    assert gpus_of_hosts(Request(), allocation(kind, slots, slots), 8) == (8, 8)


@pytest.mark.parametrize("kind", ["host file", "host list"])
def test_gpus_that_a_user_has_written_down_are_used(kind: AllocationKind):
    assert gpus_of_hosts(Request(), allocation(kind, 2, 4, None), 8) == (2, 4, 8)


def test_a_number_that_is_asked_for_comes_first():
    assert gpus_of_hosts(Request(ranks_per_node=4), allocation("slurm", 96, 96), 8) == (4, 4)
    with pytest.raises(InputError, match="are not alike on 2 nodes"):
        gpus_of_hosts(Request(ranks=9), allocation("slurm", 96, 96), 8)


def test_over_mpi_a_job_that_asked_for_no_tasks_has_no_more_ranks_than_cpus():
    hosts = (HostSlots(name="n0", cpus=96), HostSlots(name="n1", cpus=1))
    made = Allocation(kind="slurm", hosts=hosts, how="made")

    assert ranks_of_hosts(Request(), made, 8) == (8, 1)
    assert ranks_of_hosts(Request(ranks_per_node=2), made, 8) == (2, 2)
    assert gpus_of_hosts(Request(), made, 4) == (4, 4)


def test_over_mpi_a_host_has_as_many_ranks_as_slots():
    assert ranks_of_hosts(Request(), allocation("pbs", 3, None), 8) == (3, 8)

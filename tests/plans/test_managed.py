"""What busbw plans inside of allocations of Flux, LSF and PBS, word for word, and what must hold of it.

After a wanted change: `GOLDEN=write python -m pytest tests/plans`, then read the difference before it is committed.
"""

import dataclasses
import datetime as dt
import os
from pathlib import Path

import msgspec
import pytest
from tests.judge.factories import make_host
from tests.launchers.managers import READERS
from tests.launchers.starts import CRAY, MPIS, SLURM

from busbw.base.errors import InputError
from busbw.measure.backends.backend import Surroundings
from busbw.measure.containers.place import ContainerPlace, Containment
from busbw.measure.launchers.launcher import Launchers
from busbw.measure.plan.hosts import of_hosts
from busbw.measure.plan.planning import compose
from busbw.model.launch import Allocation, AllocationKind, HostSlots
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Plan
from busbw.model.request import Container, Request

GOLDEN = Path(__file__).parent / "golden"
HOSTS = ("nid00012", "nid00013")
KINDS: dict[str, AllocationKind] = {"flux": "flux", "jsrun": "lsf", "aprun": "pbs"}
FITTING = {"flux": MPIS["MPICH"], "jsrun": MPIS["Open MPI 4"], "aprun": CRAY}
MASKS = ("0-1", "2-3")


def allocation(kind: AllocationKind, hosts: tuple[str, ...] = HOSTS) -> Allocation:
    return Allocation(kind=kind, hosts=tuple(HostSlots(name=host) for host in hosts), how=f"a job of {kind}")


def launchers(*names: str) -> Launchers:
    """Return what there is to choose from where these are on PATH."""
    return Launchers(slurm=SLURM if "srun" in names else None, on_path=names)


def surroundings_of(launcher: str, mpi: MpiLibrary, **changes: object) -> Surroundings:
    surroundings = Surroundings(
        host=make_host(memory_available_bytes=2**35),
        mpi=mpi,
        allocation=allocation(KINDS[launcher]),
        launchers={name: f"/usr/bin/{name}" for name in KINDS},
        python="/opt/venv/bin/python",
        as_root=False,
        created=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        token="beef",
    )
    return dataclasses.replace(surroundings, **changes)


def composed(request: Request, surroundings: Surroundings) -> Plan:
    return compose(request, surroundings, None, Path("/runs"))[0]


@pytest.mark.parametrize("binding", [None, "masks"])
@pytest.mark.parametrize("launcher", KINDS)
def test_the_plan_is_as_it_was(launcher: str, binding: str | None):
    request = Request(collectives=("all_reduce",), largest_bytes=64, ranks_per_node=2, binding=binding)
    surroundings = surroundings_of(launcher, FITTING[launcher], masks=MASKS if binding else ())
    plan = composed(request, surroundings)
    shown = {name: getattr(plan, name) for name in ("launcher", "notes", "placement", "job", "visit", "visit_each")}
    text = msgspec.json.format(msgspec.json.encode(shown), indent=1).decode() + "\n"
    file = GOLDEN / f"managed-{launcher}-{binding or 'core'}.json"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")

    assert text == file.read_text(encoding="utf-8")
    assert plan.launcher == launcher
    started = READERS[launcher](plan.job)
    ranks = (
        sum(line.startswith("rank: ") for file in plan.job.files for line in file.text.splitlines())
        or started.processes
    )
    assert ranks == plan.placement.ranks == 4
    assert started.command[-1] == f"/runs/{plan.run_id}"
    assert len(plan.visit_each) == (0 if launcher == "aprun" else 2)


@pytest.mark.parametrize(
    ("kind", "mpi", "there", "name", "words"),
    [
        ("flux", MPIS["MPICH"], ("flux",), "flux", "by flux: the hosts are those of Flux"),
        ("flux", MPIS["Open MPI 5"], ("flux",), "mpirun", "not by flux: Open MPI needs its plug-in"),
        ("flux", MPIS["MPICH"], (), "mpirun", None),
        ("lsf", MPIS["Open MPI 4"], ("jsrun", "flux"), "jsrun", "by jsrun: the hosts are those of LSF"),
        ("lsf", MPIS["Intel MPI"], ("jsrun",), "mpirun", "not by jsrun: it introduces ranks by PMIx"),
        ("lsf", MPIS["Open MPI 4"], (), "mpirun", None),
        ("pbs", CRAY, ("aprun",), "aprun", "by aprun: the hosts are those of PBS"),
        ("pbs", MPIS["MPICH"], ("aprun",), "mpirun", "not by aprun: it introduces ranks to each other for Cray MPICH"),
        ("slurm", MPIS["MPICH"], ("srun", "flux"), "srun", None),
        ("slurm", MPIS["MPICH"], (), "mpirun", None),
        ("slurm", MPIS["Intel MPI"], ("srun",), "mpirun", "not by srun: Intel MPI asks Slurm only where I_MPI_PMI_L"),
        ("sge", MPIS["MPICH"], ("flux",), "mpirun", None),
        ("host list", MPIS["MPICH"], ("srun", "flux", "jsrun", "aprun"), "mpirun", None),
    ],
)
def test_the_launcher_of_the_batch_system_is_taken_where_it_fits(
    kind: AllocationKind, mpi: MpiLibrary, there: tuple[str, ...], name: str, words: str | None
):
    chosen = of_hosts(Request(), allocation(kind), mpi, launchers(*there))

    assert chosen.launcher.name == name
    assert chosen.notes[:1] == () if words is None else chosen.notes[0].startswith(words)
    assert any("have not been tried" in note for note in chosen.notes) == (name in KINDS)


def test_a_slurm_that_cannot_introduce_the_ranks_leaves_them_to_mpirun():
    there = Launchers(slurm=msgspec.structs.replace(SLURM, mpi_types=("none", "pmi2")), on_path=())

    chosen = of_hosts(Request(), allocation("slurm"), MPIS["Open MPI 5"], there)

    assert chosen.launcher.name == "mpirun"
    assert chosen.notes[0].startswith("not by srun: this Slurm has no PMI that Open MPI understands")
    asked = Request(launcher_options=("--mpi=pmix_v5",))
    assert of_hosts(asked, allocation("slurm"), MPIS["Open MPI 5"], there).launcher.name == "srun"


def test_nodes_that_have_no_numbers_are_not_for_aprun():
    chosen = of_hosts(Request(), allocation("pbs", ("login1",)), CRAY, launchers("aprun"))

    assert chosen.launcher.name == "mpirun"
    assert "takes nodes by number" in chosen.notes[0]


def test_jsrun_takes_a_part_of_a_job_only_where_each_rank_has_its_host():
    part = msgspec.structs.replace(allocation("lsf"), is_part=True)
    asked = Request(launcher="jsrun")

    assert of_hosts(asked, allocation("lsf"), MPIS["Open MPI 4"], launchers("jsrun")).launcher.name == "jsrun"
    for hosts in (part, allocation("host list")):
        with pytest.raises(InputError, match="chooses the hosts itself"):
            of_hosts(asked, hosts, MPIS["Open MPI 4"], launchers("jsrun"))
        request = Request(launcher="jsrun", binding="masks")
        assert of_hosts(request, hosts, MPIS["Open MPI 4"], launchers("jsrun")).launcher.name == "jsrun"


@pytest.mark.parametrize("launcher", KINDS)
def test_a_launcher_that_is_not_there_is_refused(launcher: str):
    with pytest.raises(InputError, match=f"there is no {launcher} on PATH"):
        of_hosts(Request(launcher=launcher), allocation(KINDS[launcher]), FITTING[launcher], launchers())


def test_containers_are_not_started_by_them():
    contained = Containment(Container(runtime="apptainer", program="apptainer", image="x.sif"), ContainerPlace())
    plan = surroundings_of("flux", FITTING["flux"], containment=contained)
    with pytest.raises(InputError, match="not started by flux"):
        composed(Request(collectives=("all_reduce",), largest_bytes=64, ranks_per_node=2), plan)

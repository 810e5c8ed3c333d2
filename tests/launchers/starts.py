"""Starts to build jobs from, each with what a test changes as arguments."""

from typing import Any

from busbw.model.launch import Slurm, Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Placement, Program

HOSTS = ("n0", "n1")
SLURM = Slurm(srun="/usr/bin/srun", version="22.05.8", mpi_types=("none", "pmi2", "pmix", "pmix_v4", "cray_shasta"))
# What only plans can be made for: the program, and an MPI that it introduces ranks of.
MANAGERS = {"flux": "MPICH", "jsrun": "Open MPI 5", "aprun": "Cray MPICH"}
MPIS: dict[str, MpiLibrary] = {
    name: MpiLibrary(family=family, version=version, mpirun="/opt/m/bin/mpirun", library="/opt/m/l.so", origin="site")
    for name, family, version in (
        ("Open MPI 5", "Open MPI", "5.0.11"),
        ("Open MPI 4", "Open MPI", "4.1.4"),
        ("MPICH", "MPICH", "5.0.2"),
        ("MVAPICH", "MVAPICH", "4.0"),
        ("Intel MPI", "Intel MPI", "2021.18"),
    )
}
CRAY = MpiLibrary(
    family="MPICH", version="8.1", mpirun="mpirun", library="/opt/cray/pe/lib64/libmpi_cray.so", origin="site"
)


def library(family: MpiFamily, version: str | None, **changes: Any) -> MpiLibrary:
    values: dict[str, Any] = {"mpirun": "/opt/m/bin/mpirun", "library": "/opt/m/l.so", "origin": "site"}
    return MpiLibrary(family=family, version=version, **(values | changes))


def make_placement(
    hosts: tuple[str, ...] = HOSTS, ranks_of_hosts: tuple[int, ...] = (2, 2), **changes: Any
) -> Placement:
    values: dict[str, Any] = {"ranks": sum(ranks_of_hosts), "binding": "core", "oversubscribed": False}
    return Placement(hosts=hosts, ranks_of_hosts=ranks_of_hosts, **(values | changes))


def here(ranks: int = 2, **changes: Any) -> Placement:
    return make_placement(("n0",), (), **({"ranks": ranks} | changes))


def make_start(argv: tuple[str, ...] = ("/bin/p",), env: tuple[tuple[str, str], ...] = (), **changes: Any) -> Start:
    values: dict[str, Any] = {
        "placement": make_placement(),
        "directory": "/runs/x",
        "mpi": MPIS["Open MPI 5"],
        "measuring_s": 50.0,
        "stall_s": 20.0,
    }
    return Start(program=Program(argv=argv, env=env), **(values | changes))


def managed_start(launcher: str, argv: tuple[str, ...] = ("/bin/p",), **changes: Any) -> Start:
    """Return a start for flux, jsrun or aprun on hosts whose names it can be told."""
    values: dict[str, Any] = {
        "launcher_program": f"/usr/bin/{launcher}",
        "mpi": CRAY if launcher == "aprun" else MPIS[MANAGERS[launcher]],
        "placement": make_placement(("nid00012", "nid00013")),
    }
    return make_start(argv, **(values | changes))

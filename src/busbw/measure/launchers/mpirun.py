"""mpirun of every MPI family: one launcher, whose words the family and the version decide."""

from collections.abc import Callable

import msgspec

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, hydra, open_mpi
from busbw.measure.launchers.hosts import Role, one_each
from busbw.measure.launchers.launcher import LaunchWords, RankLauncher
from busbw.model.launch import Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Job

name = "mpirun"

_JOBS: dict[MpiFamily, Callable[[Start, MpiLibrary, Role], Job]] = {
    "Open MPI": open_mpi.job,
    "MPICH": hydra.job,
    "MVAPICH": hydra.job,
    "Intel MPI": hydra.job,
}


def job(start: Start) -> Job:
    """Return the command that starts the ranks, on this host or on those of the placement.

    Where this host is among several, it has to be the first: Open MPI 4 numbers the ranks of its own host first,
    whatever the host file says. Raises InputError for an MPI whose mpirun is not known, and for what that cannot do.
    """
    mpi = _known(start)
    return _JOBS[mpi.family](start, mpi, Role.MEASURING)


def visit(start: Start) -> Job:
    """Return the command that starts the program once on each host, without MPI. Raises InputError as `job` does."""
    mpi = _known(start)
    job = _JOBS[mpi.family](one_each(start), mpi, Role.VISITING)
    return msgspec.structs.replace(job, timeout_s=hosts.VISIT_S, stall_s=hosts.VISIT_S)


def _known(start: Start) -> MpiLibrary:
    mpi = start.mpi
    if mpi is None:
        raise InputError("mpirun needs an MPI", hint="put one on PATH, or name its mpirun with --mpirun")
    if mpi.family not in _JOBS:
        raise InputError(
            f"do not know how to start ranks with this mpirun ({mpi.version or 'no version'})",
            where=mpi.mpirun,
            hint="put Open MPI, MPICH, Intel MPI or MVAPICH first on PATH, or name one with --mpirun",
        )
    return mpi


LAUNCHER = RankLauncher(
    name=name,
    job=job,
    here=True,
    name_here="local",
    visit=visit,
    of_containers="mpirun",
    words=LaunchWords(job=lambda start, _request: job(start), hosts_of="nobody"),
)

"""What a plan depends on beside the request."""

import datetime as dt
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.machine.capture.environment import environment
from busbw.measure.launchers.registry import programs
from busbw.measure.plan.request import Request
from busbw.model.launch import Allocation, Slurm
from busbw.model.machine import GpuHost, Host, MpiLibrary

if TYPE_CHECKING:
    from busbw.measure.plan.containing import Containment


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a plan depends on beside the request: the machine, and who asks."""

    host: Host
    # None where ranks start without MPI.
    mpi: MpiLibrary | None
    # None where nothing is measured on GPUs.
    gpus: GpuHost | None = None
    # The plug-in that tells what NCCL chose; None where the user has one of his own.
    plugin: str | None = None
    # GPUs that the kernel shows, whether or not they are measured.
    gpus_seen: int = 0
    # None: this host alone.
    allocation: Allocation | None = None
    # Seen where there are several hosts; None: no srun here.
    slurm: Slurm | None = None
    # Paths of other launchers of batch systems that are on PATH, by name.
    launchers: Mapping[str, str] = field(default_factory=dict)
    # CPUs of each rank of a host, as lists, where they were asked for.
    masks: tuple[str, ...] = ()
    # None: ranks run on the host as it is.
    containment: "Containment | None" = None
    # Names of the settings that ranks on other hosts must have too.
    settings: tuple[str, ...] = ()
    # The interpreter that the ranks run.
    python: str
    as_root: bool
    created: dt.datetime
    # Tells runs of the same second apart.
    token: str


def surroundings(
    request: Request,
    host: Host,
    mpi: MpiLibrary | None,
    allocation: Allocation | None,
    *,
    gpus: GpuHost | None = None,
    plugin: str | None = None,
) -> Surroundings:
    """Return the machine as it is now, and who asks."""
    return Surroundings(
        host=host,
        mpi=mpi,
        gpus=gpus,
        plugin=plugin,
        gpus_seen=capture.gpus_seen(),
        allocation=allocation,
        slurm=batch_systems.slurm() if allocation is not None else None,
        launchers=batch_systems.launchers(programs()) if allocation is not None else {},
        masks=_masks(of_node=gpus is not None) if request.binding == "masks" else (),
        containment=_containment(request, mpi),
        settings=tuple(environment()) if allocation is not None else (),
        python=sys.executable,
        as_root=os.geteuid() == 0,
        created=dt.datetime.now(dt.UTC),
        token=os.urandom(2).hex(),
    )


def _containment(request: Request, mpi: MpiLibrary | None) -> "Containment | None":
    if request.container is None:
        return None
    from busbw.measure.plan.containing import containment  # noqa: PLC0415 - few ask for it

    return containment(request.container, mpi, tuple(environment()), request.image_python)


def _masks(*, of_node: bool) -> tuple[str, ...]:
    """Return the CPUs of each local rank of this host: all of its NUMA node, or an even share of them.

    Raises InputError where its topology does not tell.
    """
    from busbw.measure.plan.masks import rank_masks  # noqa: PLC0415 - reading a topology takes long, and few ask for it

    found = rank_masks(None, here=True)
    lists = [place.cpus if of_node else place.share for place in found.ranks]
    if not lists or any(cpus is None for cpus in lists):
        raise InputError(
            "cannot tell which CPUs each rank should have" + "".join(f"; {each}" for each in found.missing),
            where="--bind-to masks",
            hint="busbw topo masks --here",
        )
    return tuple(format_cpu_list(cpus) for cpus in lists if cpus is not None)

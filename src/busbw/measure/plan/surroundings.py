"""The machine as a plan finds it: what is looked at for every request, and the door for what a backend looks at."""

import dataclasses
import datetime as dt
import sys
from importlib import resources
from typing import TYPE_CHECKING

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.machine.capture.environment import environment, value_of
from busbw.machine.capture.gpus import Named, gpus
from busbw.measure.backends.backend import Backend, Door, Programs, Surroundings
from busbw.measure.launchers import registry
from busbw.model.launch import Allocation
from busbw.model.machine import GpuHost, Host, MpiLibrary
from busbw.model.request import Request

if TYPE_CHECKING:
    from busbw.measure.containers.place import Containment

# Beside this package's modules.
_PLUGIN = "_nccl_profiler.so"


def surroundings(host: Host, allocation: Allocation | None) -> Surroundings:
    """Return the machine as it is now, and who asks, before a backend has looked at anything."""
    return Surroundings(
        host=host,
        mpi=None,
        gpus_seen=capture.gpus_seen(),
        allocation=allocation,
        slurm=batch_systems.slurm() if allocation is not None else None,
        launchers=batch_systems.launchers(registry.programs()) if allocation is not None else {},
        settings=tuple(environment()) if allocation is not None else (),
        python=sys.executable,
        as_root=capture.user() is None,
        created=dt.datetime.now(dt.UTC),
        token=capture.token(),
    )


def looked_at(request: Request, around: Surroundings, backend: Backend, names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with all that a backend, CPUs by number and a container need. Raises InputError."""
    door = Door(
        mpi=capture.mpi,
        gpus=_gpus,
        plugin=_plugin,
        programs=_programs,
    )
    seen = backend.look(request, around, door, names)
    return dataclasses.replace(
        seen,
        masks=_masks(of_node=seen.gpus is not None) if request.binding == "masks" else (),
        containment=_containment(request, seen.mpi),
    )


def _gpus(request: Request) -> GpuHost:
    return gpus(Named(nccl=request.nccl, driver=request.driver, nvrtc=request.nvrtc), sys.executable)


def _programs() -> Programs:
    from busbw.machine.capture import programs  # noqa: PLC0415 - ranks of ours need none

    return programs


def _plugin() -> str | None:
    return None if value_of("NCCL_PROFILER_PLUGIN") is not None else str(resources.files("busbw") / _PLUGIN)


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

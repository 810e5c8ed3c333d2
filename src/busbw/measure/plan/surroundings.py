"""The machine as a plan finds it: what is looked at for every request, and the door for what a backend looks at."""

import dataclasses
import datetime as dt
import sys
from importlib import resources
from typing import TYPE_CHECKING

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.errors import InputError
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.machine.capture.environment import environment, value_of
from busbw.machine.capture.host import Named, gpus
from busbw.machine.capture.libraries import kind_of_nccl
from busbw.machine.read.built import readers_of, unread_by
from busbw.measure.backends.backend import Backend, Door, Programs, Surroundings
from busbw.measure.launchers import registry
from busbw.model.launch import Allocation
from busbw.model.machine import GpuHost, Host, Library, MpiLibrary
from busbw.model.request import Request

if TYPE_CHECKING:
    from busbw.measure.containers.place import Containment
from pathlib import Path

from msgspec import structs

from busbw.env.layers import layers, settings_paths
from busbw.env.versions import newest, parse_version
from busbw.facts.envvars import variables
from busbw.machine.capture.environment import take_settings
from busbw.machine.capture.files import Collection
from busbw.model.host import CapturedFile
from busbw.model.settings import JobEnvironment, SettingsFile

# Beside this package's modules.
_PLUGIN = "_nccl_profiler.so"


def surroundings_of(host: Host, allocation: Allocation | None) -> Surroundings:
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


def looked_at(request: Request, surroundings: Surroundings, backend: Backend, names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with all that a backend, CPUs by number and a container need. Raises InputError."""
    door = Door(
        mpi=capture.mpi,
        gpus=_gpus,
        gpu_buffers=_gpu_buffers,
        plugin=_plugin,
        programs=_programs,
    )
    seen = backend.look(request, surroundings, door, names)
    return dataclasses.replace(
        seen,
        masks=_masks(request, of_node=seen.gpus is not None),
        containment=_containment(request, seen.mpi),
    )


def _gpus(request: Request) -> GpuHost:
    found = gpus(Named(nccl=request.nccl, driver=request.driver, nvrtc=request.nvrtc), sys.executable)
    _check_algorithms(found.nccl)
    return found


_PRELOAD = "LD_PRELOAD"
_IN_NCCLS_PLACE = "libmscclpp_nccl"


def _check_algorithms(nccl: Library) -> None:
    """Raise InputError where algorithms are asked for that this library, opened by its path, will not run (ENV090)."""
    set_ = environment()
    if any("MSCCL" in name for name in set_):
        kind = kind_of_nccl(Path(nccl.path))
        for name in unread_by(kind, set_)[:1]:
            raise InputError(
                f'{name} = "{set_[name]}" does nothing: it is for {" and ".join(readers_of(name))}, and this is {kind} '
                f"{nccl.version}",
                where=nccl.path,
                hint=f"name the right library with --nccl, or unset {name}; docs/findings/ENV090.md",
            )
    if _IN_NCCLS_PLACE in set_.get(_PRELOAD, ""):
        raise InputError(
            f"{_IN_NCCLS_PLACE}.so in {_PRELOAD} would not be measured: busbw's ranks open NCCL by its path",
            where=nccl.path,
            hint="measure MSCCL++ with programs that are linked to NCCL: --backend nccl-tests --bin DIR",
        )


def _gpu_buffers(request: Request, mpi: MpiLibrary) -> Library:
    return capture.driver_for_mpi(mpi, request.driver, sys.executable)


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


def _masks(request: Request, *, of_node: bool) -> tuple[str, ...]:
    """Return the CPUs of each local rank of this host: those asked for, else its NUMA node, or an even share of one.

    () where the binding is none by masks. Raises InputError for lists that are none, and where the topology of this
    host does not tell.
    """
    if request.cpus:
        return _given(request)
    if request.binding != "masks":
        return ()
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


def _given(request: Request) -> tuple[str, ...]:
    if request.binding != "masks":
        raise InputError("CPUs are given for another binding", where="--cpus", hint="--bind-to masks")
    found = []
    for text in request.cpus:
        cpus = parse_cpu_list(text)
        if not cpus:
            raise InputError(f"{text[:40]!r} is no list of CPUs", where="--cpus", hint="--cpus 0-11,24")
        found.append(format_cpu_list(cpus))
    return tuple(found)


_NAMED = "NCCL_CONF_FILE"
_OF_A_HOME = "/.nccl.conf"
_TIMEOUT_S = 10.0


def surroundings_now() -> JobEnvironment:
    """Return the environment of this process and the settings files of this host, in milliseconds."""
    taken = Collection(Path("/"), timeout_s=_TIMEOUT_S)
    take_settings(taken)
    return with_files(JobEnvironment(where="this host", environment=environment()), taken.files)


def with_files(found: JobEnvironment, captured: tuple[CapturedFile, ...]) -> JobEnvironment:
    """Return surroundings with those of the captured files that NCCL reads settings from, the stronger first.

    Which ones those are depends on its version; where none is found they are those of the newest known.
    """
    by_path = {file.path: file for file in captured}
    named = found.environment.get(_NAMED, "")
    homes = [path.removesuffix(_OF_A_HOME) for path in by_path if path.endswith(_OF_A_HOME) and path != named]
    files: list[SettingsFile] = []
    unseen: list[str] = []
    for layer, path in settings_paths(found.environment, home=next(iter(homes), None), nccl=_version(found.nccl)):
        file = by_path.get(path)
        if file is not None and file.text is not None:
            files.append(SettingsFile(path=path, layer=layer, text=file.text))
        elif file is not None:
            unseen.append(f"{path}: {file.reason or 'cannot be read'}")
        elif path == named and not path.startswith("/"):
            unseen.append(f'{_NAMED} = "{path}": which file that is depends on the folder that a job starts in')
    if len(homes) > 1:
        unseen.append(f"{_OF_A_HOME[1:]} is in {' and '.join(homes)}: HOME and the list of accounts disagree")
    return structs.replace(found, files=tuple(files), unseen=(*found.unseen, *unseen))


def named_paths(found: JobEnvironment) -> dict[str, str]:
    """Return the absolute paths that variables are set to, by the variable's name."""
    known = variables()
    values = layers(found, _version(found.nccl) or newest()).env()
    return {
        name: value
        for name, value in values.items()
        if name in known and known[name].kind == "path" and value.startswith("/")
    }


def _version(text: str | None) -> tuple[int, ...] | None:
    """Return a version of NCCL; None, the newest known, where there is none: a library may call itself anything."""
    try:
        return parse_version(text) if text is not None else None
    except InputError:
        return None

"""Launchers by name: our own, and those of other packages, with an entry point in the group `busbw.launchers`."""

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from busbw.base.errors import InputError
from busbw.measure.launchers.launcher import LaunchWords, RankLauncher
from busbw.model.launch import AllocationKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "busbw.launchers"
# Found without the metadata of an installed package, and not to be replaced by another package's. A module is read when
# it is asked for: those for pods bring YAML.
_STARTING = {
    "mpirun": "mpirun:LAUNCHER",
    "mpirun_rsh": "mpirun_rsh:LAUNCHER",
    "srun": "srun:LAUNCHER",
    "flux": "flux:LAUNCHER",
    "jsrun": "jsrun:LAUNCHER",
    "aprun": "aprun:LAUNCHER",
    "processes": "processes:PROCESSES",
    "torchrun": "processes:TORCHRUN",
    "direct": "processes:DIRECT",
}
# For `busbw launch` alone.
_WRITING = {
    "sbatch": "sbatch:WORDS",
    "mpijob": "mpijob:WORDS",
    "kubernetes-job": "kubernetes_job:WORDS",
}


def known(name: str | None) -> RankLauncher | None:
    """Return the launcher called `name`; None when there is none. Raises InputError when it cannot be imported."""
    if name is None or name in _WRITING:
        return None
    if name in _STARTING:
        return _own(_STARTING[name])
    entry = _others().get(name)
    return _loaded(entry) if entry is not None else None


def usual() -> RankLauncher:
    """Return the launcher that every MPI brings."""
    return _own(_STARTING["mpirun"])


def find(name: str) -> RankLauncher:
    """Return the launcher called `name`. Raises InputError when there is none."""
    found = known(name)
    if found is None:
        raise InputError(f"there is no launcher {name[:40]!r}", hint="one of: " + ", ".join(names()))
    return found


def names(fits: Callable[[RankLauncher], bool] = lambda _each: True) -> tuple[str, ...]:
    """Return the names of the launchers that fit, our own first. Raises InputError as `known` does."""
    return tuple(each.name for each in starting() if fits(each))


def starting() -> Iterator[RankLauncher]:
    """Yield every launcher, our own first. Raises InputError as `known` does."""
    yield from map(_own, _STARTING.values())
    yield from map(_loaded, _others().values())


def programs() -> tuple[str, ...]:
    """Return the programs that launchers look for on PATH. Raises InputError as `known` does."""
    return tuple(each.program for each in starting() if each.program is not None)


def of_system(kind: AllocationKind) -> RankLauncher | None:
    """Return the launcher of the batch system that an allocation is of; None where it has none."""
    return next((each for each in starting() if each.system is not None and each.system.kind == kind), None)


def writing() -> tuple[str, ...]:
    """Return the names of what `busbw launch` can write."""
    ours = (*names(lambda each: each.words is not None and each.name in _STARTING), *_WRITING)
    return (*ours, *names(lambda each: each.words is not None and each.name not in _STARTING))


def words(name: str) -> LaunchWords:
    """Return what `busbw launch` needs of a launcher. Raises InputError for one that it cannot write."""
    found = known(name)
    of_it = _words(_WRITING[name]) if name in _WRITING else found.words if found is not None else None
    if of_it is None:
        raise InputError(f"there is no launcher {name[:40]!r}", hint="one of: " + ", ".join(writing()))
    return of_it


def _own(place: str) -> RankLauncher:
    found = _value(place)
    assert isinstance(found, RankLauncher)
    return found


def _words(place: str) -> LaunchWords:
    found = _value(place)
    assert isinstance(found, LaunchWords)
    return found


def _value(place: str) -> object:
    module, _colon, value = place.partition(":")
    return getattr(importlib.import_module(f"busbw.measure.launchers.{module}"), value)


def _others() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - our own are found without

    ours = {**_STARTING, **_WRITING}
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in ours}


def _loaded(entry: "EntryPoint") -> RankLauncher:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"launcher {entry.name!r} cannot be imported: {error}") from error
    if not isinstance(found, RankLauncher) or found.name != entry.name:
        raise InputError(
            f"launcher {entry.name!r} cannot be used: {entry.value} is not a RankLauncher of this name",
            hint=f"an entry point looks like {entry.name} = site_package:LAUNCHER",
        )
    return found

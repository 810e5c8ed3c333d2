"""What a container needs of its host and must not take from it, from data/containers.toml."""

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.value import Value
from busbw.model.request import RuntimeName

FabricName = Literal["InfiniBand", "RoCE", "EFA", "Slingshot"]
Disturbance = Literal["python", "loader", "library path", "mpi"]


class FabricLibrary(Value, frozen=True, kw_only=True):
    """A folder of the host that the fabric's libraries are in."""

    source_path: str
    target_path: str
    why: str


class FabricNeed(Value, frozen=True, kw_only=True):
    """What ranks need to see of a fabric."""

    kinds: tuple[FabricName, ...]
    # Paths or globs of device nodes.
    devices: tuple[str, ...]
    # NICs pin the buffers they reach; the limit of locked memory must allow it.
    locks_memory: bool
    why: str
    libraries: tuple[FabricLibrary, ...] = ()
    source: str


class FileVariable(Value, frozen=True, kw_only=True):
    """A variable whose value is the path of a file that ranks read."""

    name: str
    why: str
    source: str


class RankVariables(Value, frozen=True, kw_only=True):
    """Through which variables a rank finds its launcher."""

    pmi: Literal["pmix"]
    # For runtimes that take names with a star at their end.
    patterns: tuple[str, ...]
    # For those that do not.
    names: tuple[str, ...]
    source: str


class Disturbing(Value, frozen=True, kw_only=True):
    """Variables of the host that mean nothing, or the wrong thing, inside."""

    names: tuple[str, ...]
    kind: Disturbance
    why: str
    source: str


class OwnCpus(Value, frozen=True, kw_only=True):
    """Runtimes whose containers do not keep the CPUs of the command that starts them."""

    runtimes: tuple[RuntimeName, ...]
    why: str
    source: str


class ContainerFacts(Value, frozen=True, kw_only=True):
    """Everything in the file."""

    fabric: tuple[FabricNeed, ...]
    file_variable: tuple[FileVariable, ...]
    own_cpus: tuple[OwnCpus, ...]
    rank_variables: tuple[RankVariables, ...]
    disturbing: tuple[Disturbing, ...]


@cache
def container_facts() -> ContainerFacts:
    """Return what is known, in the order of the file."""
    raw = files("busbw").joinpath("data", "containers.toml").read_bytes()
    return msgspec.toml.decode(raw, type=ContainerFacts)


def fabric_need(fabric: FabricName) -> FabricNeed:
    """Return what ranks need of a fabric."""
    return next(need for need in container_facts().fabric if fabric in need.kinds)


def disturbing(*kinds: Disturbance) -> tuple[str, ...]:
    """Return the names of variables that disturb in these ways."""
    return tuple(name for each in container_facts().disturbing if each.kind in kinds for name in each.names)


def why_unbound(runtime: RuntimeName) -> str | None:
    """Return why a container of this runtime does not keep the CPUs that a launcher gives; None where it keeps them."""
    return next((each.why for each in container_facts().own_cpus if runtime in each.runtimes), None)

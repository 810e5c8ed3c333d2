"""The topology that somebody names: of an NCCL file, a platform, a captured host or this one."""

from collections.abc import Iterator
from pathlib import Path

from busbw.api.platforms import platform
from busbw.errors import InputError
from busbw.model.paths import NodeView
from busbw.model.topology import Topology
from busbw.model.value import Value
from busbw.store.node_sources import source_kind
from busbw.store.topology_files import read_topology_file
from busbw.topo.file.obstacles import obstacles
from busbw.topo.file.reader import read_document
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.ways.view import view_of

_CHOICES = "name an NCCL topology file, a platform, or a snapshot of `busbw probe`; or give --here"
_FILE_ENDINGS = (".xml", ".tar", ".tgz", ".gz", ".txt")


class NamedTopology(Value, kw_only=True, frozen=True):
    """A topology, and what to know of how it was found, in words."""

    topology: Topology
    notes: tuple[str, ...] = ()
    # Of a file: why NCCL would not see what it means.
    obstacles: tuple[str, ...] = ()


def topology(source: str | None, *, here: bool = False) -> Topology:
    """Return the topology of a file, a platform, a snapshot, or of this host; see `named_topology`."""
    return named_topology(source, here=here).topology


def named_topology(source: str | None, *, here: bool = False) -> NamedTopology:
    """Return the topology of a file, a platform, a snapshot, or of this host, with notes for whoever asked.

    A file is told from a snapshot by content, and goes before a platform of the same name. Raises InputError when
    nothing or too much is given, and for what is none of these.
    """
    if here and source is not None:
        raise InputError(f"both {source!r} and --here are given", hint="choose one of them")
    if here:
        return NamedTopology(topology=_of_this_host())
    if not source:
        raise InputError("no node is named", hint=_CHOICES)
    kind = source_kind(source)
    if kind == "absent":
        return NamedTopology(topology=_topology_of_platform(source))
    notes = tuple(_shadowed(source))
    if kind == "snapshot":
        return NamedTopology(topology=_of_a_host(Path(source)), notes=notes)
    document = read_document(read_topology_file(Path(source)), source)
    found = topologies_of(document)
    if len(found) > 1:
        hash_ = found[0].host_hash or "none"
        notes += (f"{source} holds {len(found)} hosts; this is the first, with host_hash {hash_}",)
    return NamedTopology(topology=found[0], notes=notes, obstacles=obstacles(document))


def node_view(source: str | None, *, here: bool = False) -> NodeView:
    """Return a topology with everything that follows from it; raises as `named_topology` does."""
    named = named_topology(source, here=here)
    return view_of(named.topology, (*named.notes, *named.obstacles))


def _of_this_host() -> Topology:
    from busbw.api.probing import hardware_here  # noqa: PLC0415 - importing it takes as long as showing a file

    return topology_of_hardware(hardware_here())


def _of_a_host(path: Path) -> Topology:
    from busbw.api.probing import hardware_of_file  # noqa: PLC0415 - the same

    return topology_of_hardware(hardware_of_file(path))


def _topology_of_platform(name: str) -> Topology:
    if _is_a_file_name(name):
        raise InputError(f"there is no file {name}", where=name, hint=_CHOICES)
    try:
        found = platform(name)
    except InputError as error:
        raise InputError(f"no file here, and {error.cause}", where=error.where, hint=error.hint) from error
    return topology_of_platform(found.platform)


def _shadowed(name: str) -> Iterator[str]:
    """Say that a platform has the name of the file."""
    if _is_a_file_name(name):
        return
    try:
        known = platform(name).platform.id
    except InputError:
        return
    yield f"{name} is a file here, and it is read; the platform {known} has that name too"


def _is_a_file_name(name: str) -> bool:
    """Return whether nobody would call a platform so."""
    return "/" in name or name.endswith(_FILE_ENDINGS)

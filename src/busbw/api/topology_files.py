"""Topology files made and compared: `busbw topo make` and `busbw topo diff`."""

from pathlib import Path

from msgspec import structs

from busbw import __version__
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.machine.named import named_topology
from busbw.model.difference import Comparison, Difference
from busbw.store.node_files import source_kind
from busbw.topo.comparison import compare
from busbw.topo.file.portable import portable
from busbw.topo.file.writer import file_text


class MadeFile(Value, kw_only=True, frozen=True):
    """The text of a topology file, and what to know of its source, in words."""

    text: str
    notes: tuple[str, ...] = ()


def made_file(source: str | None, *, here: bool = False) -> MadeFile:
    """Return a topology file for all machines like the one named: a platform, a snapshot, a file, or this host.

    Raises InputError as busbw.machine.named.named_topology does, and for a machine without GPUs.
    """
    named = named_topology(source, here=here)
    if not named.topology.gpus:
        raise InputError(f"{source or 'this host'} has no GPU: NCCL has no use for a topology file there", where=source)
    is_platform = source is not None and source_kind(source) == "absent"
    topology = portable(named.topology)
    if is_platform:
        topology = structs.replace(topology, name=named.topology.name)
    origin = named.topology.name if is_platform else Path(source).name if source is not None else "this host"
    comment = (
        f"Made by busbw {__version__} from {origin}",
        "For every rank: NCCL_TOPO_FILE=/path/to/this/file; what is not in it NCCL finds out on the machine",
    )
    repaired = tuple(f"{words}; the new file has what was meant" for words in named.obstacles)
    return MadeFile(text=file_text(topology, comment), notes=(*named.notes, *repaired))


def compared(first: str, second: str) -> Comparison:
    """Return how two topologies differ in what NCCL would see; each is a file, a platform or a snapshot."""
    one, other = named_topology(first), named_topology(second)
    found = compare(one.topology, other.topology, (first, second), (*one.notes, *other.notes))
    unread = [Difference(group="files", subject="A", what="not as meant", first=words) for words in one.obstacles]
    unread += [Difference(group="files", subject="B", what="not as meant", second=words) for words in other.obstacles]
    return structs.replace(found, differences=(*unread, *found.differences))

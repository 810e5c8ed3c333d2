"""What is known of a fabric beside its tests: where its hosts stand, its links, and the counters of its ports."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw.base.errors import InputError
from busbw.fabric.ib_links import placed_by_links, slow_links
from busbw.fabric.ib_topology import MOST_BYTES as MOST_IB_BYTES
from busbw.fabric.ib_topology import IbFabric, is_ib_topology, read_ib_topology
from busbw.fabric.perfquery import is_perfquery, named_by, read_perfquery
from busbw.fabric.places import Places
from busbw.fabric.port_counters import PortChanges, changes
from busbw.fabric.slurm_topology import MOST_BYTES as MOST_TREE_BYTES
from busbw.fabric.slurm_topology import placed, read_tree
from busbw.machine import named
from busbw.model import codec
from busbw.model.finding import Finding
from busbw.model.port_counters import CountersRead
from busbw.store.files import read_bounded
from busbw.store.sources import source_kind

_MOST_COUNTERS_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class KnownTopology:
    """The places with their leaves, and of an InfiniBand fabric its links and what is wrong with them."""

    places: Places
    fabric: IbFabric | None = None
    findings: tuple[Finding, ...] = ()


def place_by_file(places: Places, path: str) -> KnownTopology:
    """Return the places as a file has them: Slurm's topology.conf, ibnetdiscover, iblinkinfo or opensm's list of links.

    Which of them it is follows from its content. Raises InputError for what is none, and for a host it does not have.
    """
    raw = read_bounded(Path(path), most_bytes=MOST_IB_BYTES, kind="topology")
    text = raw.decode("utf-8", "replace")
    if is_ib_topology(text):
        fabric = read_ib_topology(text, path)
        return KnownTopology(places=placed_by_links(places, fabric), fabric=fabric, findings=slow_links(fabric))
    if len(raw) > MOST_TREE_BYTES:
        raise InputError(f"{len(raw)} bytes are too many for a topology.conf", where=path)
    return KnownTopology(places=placed(places, read_tree(text, path)))


def changed_counters(before: Sequence[str], after: Sequence[str], fabric: IbFabric | None) -> PortChanges:
    """Return what ports counted between the readings of some files and those of others.

    A file is lines of `busbw probe --counters` of any number of hosts, outputs of perfquery, or a snapshot of `busbw
    probe`. Raises InputError for what is none of these, and where no host is in both.
    """
    sides = [[each for path in paths for each in _read(path)] for paths in (before, after)]
    if fabric is not None:
        sides = [list(named_by(side, fabric)) for side in sides]
    found = changes(*sides)
    if not found.hosts:
        raise InputError(
            "no host is in the counters before and in those after",
            where=f"{before[0]}, {after[0]}",
            hint="busbw probe --counters on each host, before and after",
        )
    return found


def _read(path: str) -> tuple[CountersRead, ...]:
    if source_kind(path) == "snapshot":
        return (named.counters_of_file(Path(path)),)
    raw = read_bounded(Path(path), most_bytes=_MOST_COUNTERS_BYTES, kind="file of counters")
    text = raw.decode("utf-8", "replace")
    if is_perfquery(text):
        return read_perfquery(text, path)
    return counter_lines(raw, path)


def counter_lines(raw: bytes, where: str) -> tuple[CountersRead, ...]:
    """Return the readings of a file with one as JSON a line. Raises InputError with the line for anything else."""
    found = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            if not line.lstrip().startswith(b"{"):
                raise InputError(
                    "neither counters of `busbw probe --counters` nor perfquery's, nor a snapshot",
                    where=f"{where}:{number}",
                    hint="busbw probe --counters >> before.jsonl",
                )
            found.append(codec.decode(line, CountersRead, where=f"{where}:{number}"))
    if not found:
        raise InputError("no counters in it", where=where, hint="busbw probe --counters >> before.jsonl")
    return tuple(found)

"""Where hosts stand by a file: Slurm's topology.conf, or what ibnetdiscover, iblinkinfo or opensm wrote."""

from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.fabric.ib_links import placed_by_links, slow_links
from busbw.fabric.ib_topology import IbFabric, is_ib_topology, read_ib_topology
from busbw.fabric.places import Places
from busbw.fabric.slurm_topology import MOST_BYTES, placed, read_tree
from busbw.model.finding import Finding


@dataclass(frozen=True, kw_only=True)
class KnownTopology:
    """The places with their leaves, and of an InfiniBand fabric its links and what is wrong with them."""

    places: Places
    fabric: IbFabric | None = None
    findings: tuple[Finding, ...] = ()


def placed_by_text(places: Places, text: str, where: str) -> KnownTopology:
    """Return the places as a file has them; which kind it is follows from its content.

    Raises InputError for what is none of them, and for a host that it does not have.
    """
    if is_ib_topology(text):
        fabric = read_ib_topology(text, where)
        return KnownTopology(places=placed_by_links(places, fabric), fabric=fabric, findings=slow_links(fabric))
    if len(text) > MOST_BYTES:
        raise InputError(f"{len(text)} characters are too many for a topology.conf", where=where)
    return KnownTopology(places=placed(places, read_tree(text, where)))

"""The CPUs of the ranks of a node, and what a binding would give them."""

from busbw.base.errors import InputError
from busbw.machine.named import named_topology, platform
from busbw.model.topology import RankMasks
from busbw.store.sources import source_kind
from busbw.topo.ranks.masks import masks_of


def rank_masks(
    source: str | None,
    *,
    here: bool = False,
    binding: str | None = None,
    ranks: int | None = None,
    ignores_affinity: bool = False,
) -> RankMasks:
    """Return which CPUs each local rank should have, in GPU order, and what `binding` would give it.

    `source`: as for `api.topologies.topology`. Raises InputError for what names no node, and for a binding that no
    launcher knows.
    """
    named = named_topology(source, here=here)
    return masks_of(
        named.topology,
        sockets=_sockets(source) if source is not None and not here else None,
        binding=binding,
        ranks=ranks,
        ignores_affinity=ignores_affinity,
        remarks=named.notes,
    )


def _sockets(source: str) -> int | None:
    """Return the sockets of a platform; a topology does not know them."""
    if source_kind(source) != "absent":
        return None
    try:
        return platform(source).platform.cpu.sockets
    except InputError:
        return None

"""The CPUs of the ranks of a node, and what a binding would give them."""

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.machine.named import named_topology, platform
from busbw.model.launch import CpuSharing
from busbw.model.platform import Platform
from busbw.model.topology import RankMasks
from busbw.store.sources import source_kind
from busbw.topo.ranks.masks import cpus_beside_gpus, masks_of


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


def process_masks(platform: Platform, processes: int | None, sharing: CpuSharing) -> tuple[str, ...] | str:
    """Return the CPUs of each process of a node, as lists, or why they cannot be told.

    `processes`: how many a node has; None: one for each GPU, or for each core of a node without.
    """
    beside = cpus_beside_gpus(platform)
    if beside and processes in (None, len(beside)):
        # One GPU for each processor: its share is all of it.
        return beside
    if not platform.gpu.count:
        return _by_number(platform, processes, sharing)
    try:
        found = rank_masks(platform.id)
    except InputError as error:
        return error.cause
    if found.missing:
        return "; ".join(found.missing)
    if processes not in (None, len(found.ranks)):
        return f"{len(found.ranks)} GPUs have CPUs of their own, and {processes} processes a node are asked for"
    lists = [place.cpus if sharing == "numa" else place.share for place in found.ranks]
    return tuple(format_cpu_list(cpus) for cpus in lists if cpus) if all(lists) else "the CPUs of each NUMA node"


def _by_number(platform: Platform, processes: int | None, sharing: CpuSharing) -> tuple[str, ...] | str:
    """Return even shares of a node without GPUs to be near to, whose CPUs are all cores, in their order."""
    cores = platform.cpu.cores
    if sharing == "numa" or not cores or cores != platform.cpu.threads:
        return f"the CPUs of each NUMA node of {platform.id} are not published"
    count = processes or cores
    if count > cores:
        return f"{count} processes for {cores} cores"
    ends = [place * cores // count for place in range(count + 1)]
    return tuple(format_cpu_list(tuple(range(ends[place], ends[place + 1]))) for place in range(count))

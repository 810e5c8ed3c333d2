"""Where the local ranks of a node belong, and what NCCL makes of where they are."""

from collections import Counter

from busbw.base.errors import InputError
from busbw.model.binding import BoundRank, Fit, RankPlace
from busbw.model.topology import Topology
from busbw.topo.ranks.cores import Cores, cpus_of

MOST_RANKS = 4096


def rank_places(topology: Topology, cores: Cores | None, ranks: int | None = None) -> tuple[RankPlace, ...]:
    """Return where each local rank belongs: rank i beside GPU i; without GPUs spread over the NUMA nodes in order.

    Raises InputError for more ranks than GPUs: with NCCL each has one of its own.
    """
    nodes = _gpu_nodes(topology) if topology.gpus else _spread(topology, ranks)
    count = len(nodes) if ranks is None else ranks
    if not 1 <= count <= MOST_RANKS:
        raise InputError(f"{count} ranks of one node", hint=f"from 1 to {MOST_RANKS}")
    if topology.gpus and count > len(nodes):
        raise InputError(
            f"{count} ranks for {len(nodes)} GPUs", hint=f"with NCCL a rank has a GPU of its own: --ranks {len(nodes)}"
        )
    nodes = nodes[:count]
    return tuple(
        RankPlace(
            rank=rank,
            gpu=gpu,
            numa=numa,
            cpus=_cpus_of_node(topology, numa),
            share=_share(cores, [other for _gpu, other in nodes], rank),
        )
        for rank, (gpu, numa) in enumerate(nodes)
    )


def _gpu_nodes(topology: Topology) -> list[tuple[str | None, int | None]]:
    by_bus = {device.bus_id: device.numa for device in topology.devices}
    known = {node.id for node in topology.numa}
    numas = [(gpu.bus_id, by_bus.get(gpu.bus_id)) for gpu in topology.gpus]
    return [(bus_id, numa if numa in known else None) for bus_id, numa in numas]


def _spread(topology: Topology, ranks: int | None) -> list[tuple[str | None, int | None]]:
    ids = [node.id for node in sorted(topology.numa, key=lambda node: node.cpus or (node.id,)) if node.cpus != ()]
    if not ids:
        raise InputError("neither GPUs nor NUMA nodes are known", hint="capture a host: busbw probe -o host.tar")
    count = len(ids) if ranks is None else min(max(ranks, 0), MOST_RANKS + 1)
    return [(None, ids[rank * len(ids) // count]) for rank in range(count)]


def _cpus_of_node(topology: Topology, numa: int | None) -> tuple[int, ...] | None:
    return next((node.cpus or None for node in topology.numa if node.id == numa), None)


def _share(cores: Cores | None, nodes: list[int | None], rank: int) -> tuple[int, ...] | None:
    """Return an even share of the cores of a rank's NUMA node: neighbours, whole cores, the first ranks one more."""
    numa = nodes[rank]
    if cores is None or numa not in cores.numa_ids:
        return None
    own = cores.numa[cores.numa_ids.index(numa)]
    sharing, place = Counter(nodes)[numa], nodes[:rank].count(numa)
    if sharing > len(own):
        return None
    each, more = divmod(len(own), sharing)
    first = place * each + min(place, more)
    return cpus_of(cores, own[first : first + each + (place < more)])


def bound_rank(
    place: RankPlace, cpus: tuple[int, ...] | None, topology: Topology, *, ignores_affinity: bool
) -> BoundRank:
    """Return what follows for a rank that runs on `cpus`.

    NCCL's threads run where the process may run and its GPU's NUMA node is; with NCCL_IGNORE_CPU_AFFINITY=1 on that
    node alone. Where nothing is left it changes nothing (facts: NCCL's topology format, section 5).
    """
    nodes = tuple(node.id for node in topology.numa if node.cpus and cpus and not set(node.cpus).isdisjoint(cpus))
    if cpus is None or place.cpus is None:
        return BoundRank(rank=place.rank, cpus=cpus, numa=nodes, fit="unknown", nccl_cpus=None, nccl_applies=None)
    allowed = place.cpus if ignores_affinity else tuple(sorted(set(cpus) & set(place.cpus)))
    return BoundRank(
        rank=place.rank,
        cpus=cpus,
        numa=nodes,
        fit=_fit(cpus, place.cpus),
        nccl_cpus=allowed or cpus,
        nccl_applies=bool(allowed),
    )


def _fit(cpus: tuple[int, ...], own: tuple[int, ...]) -> Fit:
    inside = len(set(cpus) & set(own))
    return "right" if inside == len(set(cpus)) else "partly" if inside else "wrong"

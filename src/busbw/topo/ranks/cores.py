"""The cores of a node as a launcher counts them: logical numbers, in the order of NUMA nodes and CPUs."""

from collections import Counter
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.model.topology import BoundRank, Fit, NumaNode, RankPlace, Topology


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Cores in logical order, each with its CPUs, and the NUMA nodes and sockets as ranges of them."""

    cores: tuple[tuple[int, ...], ...]
    # NUMA ids in logical order, and the logical numbers of each one's cores.
    numa_ids: tuple[int, ...]
    numa: tuple[tuple[int, ...], ...]
    # The same of sockets; empty: not known.
    sockets: tuple[tuple[int, ...], ...]
    # How far apart the numbers of two hyperthreads of a core are; None: a CPU is a core.
    sibling_step: int | None
    # CPUs that no NUMA node of the topology has, though the numbering says that the machine does.
    elsewhere: tuple[int, ...]
    # Whether the logical numbers hold for the whole machine.
    numbered: bool


def cores_of(topology: Topology, sockets: int | None = None) -> Cores | None:
    """Return the cores of a node; None where a NUMA node's CPUs are not known.

    Hyperthreads are told by their numbers: where the CPUs of every NUMA node are two blocks as far apart everywhere.
    NUMA nodes without CPUs (memory of GPUs) are left out. A file that names only the NUMA nodes with GPUs leaves gaps;
    the cores in them are counted, by number. `sockets` share the NUMA nodes evenly, in order.
    """
    nodes = _with_cpus(topology.numa)
    if not nodes:
        return None
    step = _sibling_step(tuple(cpus for cpus, _id in nodes))
    firsts = tuple(tuple(cpu for cpu in cpus if step is None or cpu - step not in cpus) for cpus, _id in nodes)
    known = {cpu for first in firsts for cpu in first}
    # Where hyperthreads are numbered after all cores, the step is the number of cores.
    gaps = sorted(set(range(max(*known, step or 0))) - known)
    # Blocks of neighbours follow each other as their NUMA nodes do; what is numbered in turns does not.
    numbered = not gaps or all(first[-1] - first[0] + 1 == len(first) for first in firsts)
    order = sorted(known | set(gaps)) if gaps and numbered else [cpu for first in firsts for cpu in first]
    place = {cpu: number for number, cpu in enumerate(order)}
    numa = tuple(tuple(place[cpu] for cpu in first) for first in firsts)
    return Cores(
        cores=tuple((cpu,) if step is None else (cpu, cpu + step) for cpu in order),
        numa_ids=tuple(id_ for _cpus, id_ in nodes),
        numa=numa,
        sockets=_sockets(numa, sockets) if not gaps else (),
        sibling_step=step,
        elsewhere=tuple(gaps),
        numbered=numbered,
    )


def _with_cpus(nodes: tuple[NumaNode, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Return CPUs and ids of the NUMA nodes that have any, by CPUs; nothing where some node's are not known."""
    if any(node.cpus is None for node in nodes):
        return []
    return sorted((node.cpus, node.id) for node in nodes if node.cpus)


def _sibling_step(nodes: tuple[tuple[int, ...], ...]) -> int | None:
    """Return how far the second block of each NUMA node's CPUs is from the first; None where there are no two."""
    steps = set()
    for cpus in nodes:
        half, odd = divmod(len(cpus), 2)
        if odd:
            return None
        low, high = cpus[:half], cpus[half:]
        step = high[0] - low[0]
        # Even numbers here and odd ones there look like two blocks as well: they go on with the same stride.
        stride = cpus[1] - cpus[0] if half > 1 else 1
        if high != tuple(cpu + step for cpu in low) or high[0] - low[-1] == stride:
            return None
        steps.add(step)
    return steps.pop() if len(steps) == 1 else None


def _sockets(numa: tuple[tuple[int, ...], ...], sockets: int | None) -> tuple[tuple[int, ...], ...]:
    if len(numa) == 1:
        return numa
    if sockets is None or sockets < 1 or len(numa) % sockets:
        return ()
    each = len(numa) // sockets
    return tuple(
        tuple(core for node in numa[place : place + each] for core in node) for place in range(0, len(numa), each)
    )


def cpus_of(cores: Cores, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the CPUs of cores by their logical numbers, ascending."""
    return tuple(sorted(cpu for number in numbers for cpu in cores.cores[number]))


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

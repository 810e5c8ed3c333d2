"""What NCCL searches: the GPUs of a node in the order of its file, the ways between them, and what the links carry."""

from dataclasses import dataclass

from busbw.model.topology import PathType, Topology
from busbw.topo.paths.graph import NVSWITCHES, Graph, Nccl
from busbw.topo.paths.paths import NO_PATH, Paths, is_on_amd, nccl_paths, paths_through, shared_paths
from busbw.topo.search.ports import PortGroup, ports_of
from busbw.topo.search.speeds import HOPPER
from busbw.topo.search.ways import PARTS_SINCE, MBps, NumberedLinks, SearchedWay, types_of

# From here on ports stay in the topology of one node, and everything is tried again with leave to change ports.
_PORTS_STAY_SINCE = (2, 28, 7)
# Up to then two GPUs alone do without NVLS.
_PAIR_ADDS_SINCE = (2, 28, 7)
# From here on two groups of GPUs want a tree, which needs two channels and gets as many as the ring.
_SPLIT_SINCE = (2, 26, 2)
# From here on GPUs before Hopper are searched with every type of way to ports.
_ALL_TYPES_SINCE = (2, 29, 2)


@dataclass(kw_only=True)
class SearchedNode:
    """The GPUs of a node by their places, and what channels through them may take."""

    # By the place of the GPU it begins at, then of the one it ends at.
    ways: tuple[tuple[SearchedWay, ...], ...]
    # To each GPU from the switches, and back, where there are switches.
    switched: tuple[tuple[SearchedWay, SearchedWay], ...]
    # The ports, where channels go to other nodes; None: the node is alone.
    ports: PortGroup | None
    # In MB/s, by the numbers of the links.
    capacities: tuple[int, ...]
    # The link of each GPU on PCIe, to it and back.
    pci_links: tuple[tuple[int, int] | None, ...]
    # Types of ways that the release knows, the best first: a rank is a place in it.
    types: tuple[PathType, ...]
    sm: int
    nccl: Nccl
    # The most that the NVLinks, or the PCIe link, of one GPU carry; and that one way does: to a port, if there are any.
    total_MBps: MBps
    widest_MBps: MBps
    # How many ports NCCL counts: of one node alone nothing comes of changing them.
    port_count: int
    is_amd: bool

    @property
    def adds(self) -> bool:
        """Return whether switches join all GPUs and can add."""
        joined = bool(self.switched) and all(way.hops for both in self.switched for way in both)
        least = 2 if self.nccl >= _PAIR_ADDS_SINCE else 3
        return joined and self.sm >= HOPPER and len(self.switched) >= least

    def rank(self, name: PathType) -> int:
        """Return the rank of a type of ways."""
        return self.types.index(name)

    def ranks_within(self) -> tuple[int, int]:
        """Return the ranks of the best and the worst way between two GPUs."""
        best, worst = self.rank("SYS"), self.rank("LOC")
        for start, row in enumerate(self.ways):
            for end, way in enumerate(row):
                if start != end:
                    best, worst = min(best, way.rank), max(worst, way.rank)
        return (best, worst) if len(self.ways) > 1 else (worst, best)

    def ranks_between(self) -> tuple[int, int]:
        """Return the ranks of the best and the worst way from a GPU to a port; PIX and SYS where the node is alone."""
        if self.ports is None:
            return self.rank("PIX"), self.rank("SYS")
        ranks = [way.rank for row in self.ports.out for way in row]
        worst = max(ranks)
        if self.nccl >= _ALL_TYPES_SINCE and self.sm < HOPPER:
            worst = self.rank("SYS")
        return min(*ranks, self.rank("SYS")), worst

    def is_split(self) -> bool:
        """Return whether NVLinks join the GPUs to two groups, which the release looks for."""
        if self.nccl < _SPLIT_SINCE:
            return False
        group = list(range(len(self.ways)))
        for start, row in enumerate(self.ways):
            for end in range(start + 1, len(row)):
                if row[end].rank == self.rank("NVL"):
                    group[end] = group[start]
        return sum(group.count(number) > 1 for number in set(group)) == 2


def node_alone(topology: Topology, graph: Graph, nccl: Nccl) -> SearchedNode:
    """Return a node whose job has no other nodes."""
    paths = shared_paths(topology, graph, nccl)
    links = NumberedLinks(topology, graph, types_of(nccl))
    ways = _ways(paths, graph, links, nccl)
    return _node(
        topology,
        graph,
        nccl,
        links,
        ways=ways,
        switched=_switched(paths, graph, links),
        widest_MBps=max((way.rate_MBps for row in ways for way in row if way.hops), default=0),
    )


def node_of_several(topology: Topology, graph: Graph, nccl: Nccl) -> SearchedNode:
    """Return one of several nodes that are alike. Raises MissingPortError for one that cannot be reached."""
    paths = nccl_paths(topology, nccl)
    links = NumberedLinks(topology, graph, types_of(nccl))
    ways, switched = _ways(paths, graph, links, nccl), _switched(paths, graph, links)
    ports = ports_of(topology, graph, paths, links, nccl)
    reached = paths_through(graph, nccl) if nccl >= PARTS_SINCE else paths
    rates_Bps = [reached[gpu].get(port, NO_PATH).bandwidth_Bps for gpu in graph.gpus for port in ports.names]
    return _node(
        topology,
        graph,
        nccl,
        links,
        ways=ways,
        switched=switched,
        ports=ports,
        widest_MBps=round(max(rates_Bps) / 1e6),
    )


def _node(
    topology: Topology,
    graph: Graph,
    nccl: Nccl,
    links: NumberedLinks,
    *,
    ways: tuple[tuple[SearchedWay, ...], ...],
    switched: tuple[tuple[SearchedWay, SearchedWay], ...],
    widest_MBps: MBps,
    ports: PortGroup | None = None,
) -> SearchedNode:
    return SearchedNode(
        ways=ways,
        switched=switched,
        ports=ports,
        pci_links=tuple(links.pci_links(gpu) for gpu in graph.gpus),
        capacities=tuple(links.capacities),
        types=types_of(nccl),
        sm=min(gpu.sm for gpu in topology.gpus if gpu.sm is not None),
        nccl=nccl,
        total_MBps=max(_own_MBps(graph, gpu) for gpu in graph.gpus),
        widest_MBps=widest_MBps,
        port_count=len(topology.nets) if ports is not None or nccl >= _PORTS_STAY_SINCE else 0,
        is_amd=is_on_amd(topology),
    )


def _ways(paths: Paths, graph: Graph, links: NumberedLinks, nccl: Nccl) -> tuple[tuple[SearchedWay, ...], ...]:
    more = 2 if nccl >= PARTS_SINCE else 0
    return tuple(
        tuple(links.way(paths[start].get(end, NO_PATH), start, more) for end in graph.gpus) for start in graph.gpus
    )


def _switched(paths: Paths, graph: Graph, links: NumberedLinks) -> tuple[tuple[SearchedWay, SearchedWay], ...]:
    return tuple(
        (
            links.way(paths[NVSWITCHES].get(gpu, NO_PATH), NVSWITCHES),
            links.way(paths[gpu].get(NVSWITCHES, NO_PATH), gpu),
        )
        for gpu in (graph.gpus if NVSWITCHES in paths else ())
    )


def _own_MBps(graph: Graph, gpu: str) -> MBps:
    nvlinks_Bps = sum(hop.bandwidth_Bps for hop in graph.links[gpu] if hop.kind == "NVL")
    return round(max([nvlinks_Bps, *(hop.bandwidth_Bps for hop in graph.links[gpu] if hop.kind == "PCI")]) / 1e6)

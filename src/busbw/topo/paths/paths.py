"""Every way through a node, found as NCCL finds it."""

from collections.abc import Mapping

from busbw.model.topology import Hop, LinkType, Path, PathType, Topology
from busbw.topo.paths.constants import DEFAULT_NCCL, LOCAL_Bps, Nccl
from busbw.topo.paths.graph import NVSWITCHES, Graph, graph_of

TYPES: tuple[PathType, ...] = (
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS",
)  # fmt: skip
RANK: dict[str, int] = {name: rank for rank, name in enumerate(TYPES)}
NO_PATH = Path(type="DIS", bandwidth_Bps=0.0)
_HERE = Path(type="LOC", bandwidth_Bps=LOCAL_Bps)
# A way through a port is as good as the way to it.
_LINK_RANK: dict[LinkType, int] = {
    "LOC": RANK["LOC"],
    "NET": RANK["LOC"],
    "NVL": RANK["NVL"],
    "C2C": RANK["C2C"],
    "PCI": RANK["PIX"],
    "SYS": RANK["SYS"],
}
# From here on NCCL prefers the better type, and bandwidth only within it.
_TYPE_FIRST_SINCE = (2, 30, 7)
_P2C_SINCE = (2, 27, 3)

# Ways by where they begin, then by where they end.
Paths = Mapping[str, Mapping[str, Path]]


def direct_paths(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> dict[str, dict[str, Path]]:
    """Return the way from every device to every CPU, GPU, port and to the NVSwitches, as the wires have it.

    NCCL's own tables may hold detours instead: see topo.detours.
    """
    return paths_through(graph_of(topology, nccl), nccl)


def paths_through(graph: Graph, nccl: Nccl = DEFAULT_NCCL) -> dict[str, dict[str, Path]]:
    """Return the way from every device of a graph to every CPU, GPU, port and to the NVSwitches."""
    found: dict[str, dict[str, Path]] = {name: {} for name in graph.links}
    switches = (NVSWITCHES,) if NVSWITCHES in graph.links else ()
    reverse = {(hop.target, hop.source, hop.kind): hop for hops in graph.links.values() for hop in hops}
    for target in (*graph.cpus, *graph.gpus, *graph.ports, *switches):
        for source, path in _paths_to(graph, reverse, target, nccl).items():
            found[source][target] = path
    if nccl >= _P2C_SINCE:
        _name_chip_to_pci(graph, found)
    return found


def bottleneck(path: Path) -> Hop | None:
    """Return the narrowest link of a way, the nearest of several; None where there is none."""
    return min(path.hops, key=lambda hop: hop.bandwidth_Bps, default=None)


def nearest_cpu(paths: Paths, gpu: str) -> str | None:
    """Return the NUMA node that NCCL takes for a GPU's own: widest, then best type, then fewest links."""
    ways = [(name, path) for name, path in paths[gpu].items() if name.startswith("CPU/") and path.type != "DIS"]
    order = min(
        ways, key=lambda way: (-way[1].bandwidth_Bps, RANK[way[1].type], len(way[1].hops)), default=(None, NO_PATH)
    )
    return order[0]


def joined(first: Path, second: Path) -> Path:
    """Return the way that goes one way and then the other."""
    worst, best = sorted((first.type, second.type), key=RANK.__getitem__, reverse=True)
    return Path(
        type="P2C" if (worst, best) == ("PHB", "C2C") else worst,
        bandwidth_Bps=min(first.bandwidth_Bps, second.bandwidth_Bps),
        hops=first.hops + second.hops,
    )


def _paths_to(graph: Graph, reverse: dict[tuple[str, str, LinkType], Hop], target: str, nccl: Nccl) -> dict[str, Path]:
    """Search breadth first from `target`; the ways found lead to it."""
    found = {target: _HERE}
    level = [target]
    while level:
        following: dict[str, None] = {}
        for near in level:
            for link in graph.links[near]:
                if near != target and near.startswith("GPU/") and not _may_pass(link, found[near]):
                    continue
                back = reverse.get((link.source, link.target, link.kind))
                if back is None:
                    continue
                longer = _longer(found[near], link, back)
                if _is_better(longer, found.get(link.target, NO_PATH), nccl):
                    found[link.target] = longer
                    following[link.target] = None
        level = list(following)
    return found


def _may_pass(link: Hop, path: Path) -> bool:
    """A GPU passes traffic on to another GPU over NVLink only, and only one does."""
    return link.kind == "NVL" and link.target.startswith("GPU/") and len(path.hops) <= 1


def _longer(path: Path, link: Hop, back: Hop) -> Path:
    rank = _LINK_RANK[link.kind]
    ends = (link.source, link.target)
    if all(end.startswith("PCI/") for end in ends):
        rank = RANK["PXB"]
    if link.kind == "PCI" and any(end.startswith("CPU/") for end in ends):
        rank = RANK["PHB"]
    if link.kind == "NVL" and path.type == "NVL" and link.source.startswith("GPU/") and path.hops:
        rank = RANK["NVB"]
    return Path(
        type=TYPES[max(rank, RANK[path.type])],
        bandwidth_Bps=min(path.bandwidth_Bps, link.bandwidth_Bps),
        hops=(back, *path.hops),
    )


def _is_better(path: Path, known: Path, nccl: Nccl) -> bool:
    if nccl < _TYPE_FIRST_SINCE:
        is_first = known.type == "DIS"
        return known.bandwidth_Bps < path.bandwidth_Bps and (is_first or len(known.hops) > len(path.hops) - 1)
    return (RANK[path.type], -path.bandwidth_Bps, len(path.hops)) < (
        RANK[known.type],
        -known.bandwidth_Bps,
        len(known.hops),
    )


def _name_chip_to_pci(graph: Graph, found: dict[str, dict[str, Path]]) -> None:
    """Name ways P2C that go from a GPU over C2C to its CPU and from there over PCI to a port."""
    for gpu in graph.gpus:
        cpu = nearest_cpu(found, gpu)
        for port in graph.ports:
            to_cpu = found[port].get(cpu, NO_PATH) if cpu is not None else NO_PATH
            if cpu is None or joined(found[gpu][cpu], to_cpu).type != "P2C":
                continue
            for source, target in ((gpu, port), (port, gpu)):
                path = found[source][target]
                if RANK[path.type] > RANK["P2C"]:
                    found[source][target] = Path(type="P2C", bandwidth_Bps=path.bandwidth_Bps, hops=path.hops)

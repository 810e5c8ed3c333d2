"""The groups of GPUs that fewest links lead out of, where links lead from GPU to GPU."""

from collections.abc import Iterator
from itertools import combinations

from busbw.topo.paths.graph import NVSWITCHES, Graph

# Machines with direct links have 8; of more than these there are too many groups.
_MOST_GPUS = 12


def groups_of_linked(graph: Graph) -> Iterator[frozenset[str]]:
    """Yield every group of two GPUs up to half of all; none where links lead to switches, which join all alike."""
    if len(graph.gpus) > _MOST_GPUS or NVSWITCHES in graph.links:
        return
    for size in range(2, len(graph.gpus) // 2 + 1):
        yield from (frozenset(group) for group in combinations(graph.gpus, size))


def links_Bps(graph: Graph, group: frozenset[str]) -> float:
    """Return what leaves a group of GPUs over NVLink to other GPUs or their switches."""
    return sum(
        hop.bandwidth_Bps
        for name in group
        for hop in graph.links[name]
        if hop.kind == "NVL" and hop.target not in group and not hop.target.startswith("CPU/")
    )

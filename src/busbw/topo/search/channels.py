"""What NCCL plans: how many channels a ring, a tree and NVLS get, and how fast each is.

NCCL lays channels of one speed along the ways between GPUs, and to ports where there are other nodes, until no link has
that much left. The same is done here with the same limits of its tries, so that a plan is NCCL's where its search ends
early, too. Every node searches for itself: of several that are alike all find the same, however many they are.

Read in src/graph of NCCL 2.25.1 to 2.30.7, and held against what it prints (tests/topo/nccl_plans.json and
nccl_plans_between.json).
"""

from dataclasses import dataclass
from functools import partial

from busbw.model.limit import ChannelPlan, PlannedAlgorithm
from busbw.model.topology import PathType, Topology
from busbw.topo.paths.graph import DEFAULT_NCCL, Graph, Nccl, graph_of
from busbw.topo.search.between import lay_between
from busbw.topo.search.node import SearchedNode, node_alone, node_of_several
from busbw.topo.search.ports import MissingPortError, fused
from busbw.topo.search.tries import ChannelDraft, Pattern, StepBudget, TooLongError, Tries
from busbw.topo.search.within import lay_within

# The first release whose search is known.
OLDEST_PLANNED = (2, 25, 1)
# What all tries for one node may take together here: about a second.
MOST_STEPS = 500_000
# Of one of several nodes: tables of all ways are made for each try.
_MOST_GPUS = 32
_MOST_PORTS = 64
_MOST_CHANNELS = 32
_MOST_HEADS = 32


@dataclass(frozen=True, kw_only=True)
class FoundChannels:
    """The channels of one pattern. GB/s of one of them within the node and to others, and the worst types of ways."""

    channels: int
    within_GBps: float
    between_GBps: float
    within_type: PathType
    between_type: PathType
    alike: bool
    # Of a tree: whether its traffic with other nodes goes through one GPU of each.
    chain: bool
    latency_us: float


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What NCCL's search finds for each node of a job. None: nothing, or, of NVLS, GPUs whose switches do not add."""

    ring: FoundChannels | None = None
    tree: FoundChannels | None = None
    nvls: FoundChannels | None = None
    # Why nothing can be told, in words.
    gap: str | None = None


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What NCCL plans for a node; or why that is not known, in words."""

    plans: tuple[ChannelPlan, ...] = ()
    gap: str | None = None


def planned(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> Planned:
    """Return what NCCL plans for all GPUs of a node alone: ring and tree, and NVLS where the GPUs' switches can add.

    For under two GPUs there is neither a plan nor a gap.
    """
    searched = searched_within(topology, nccl)
    count = len(topology.gpus)
    if searched.ring is None or searched.tree is None:
        return Planned(gap=searched.gap)
    plans = [
        _plan("ring", searched.ring, 1.0),
        # NCCL takes a tree's algorithm bandwidth for half of what its channels carry.
        _plan("tree", searched.tree, (count - 1) / count),
        *([_plan("nvls", searched.nvls, None)] if searched.nvls is not None else []),
    ]
    return Planned(plans=tuple(plans))


def _plan(algorithm: PlannedAlgorithm, found: FoundChannels, factor: float | None) -> ChannelPlan:
    return ChannelPlan(
        algorithm=algorithm,
        channels=found.channels,
        channel_Bps=found.within_GBps * 1e9,
        type=found.within_type,
        alike=found.alike,
        plain=found.chain,
        busbw_Bps=found.channels * found.within_GBps * 1e9 * factor if factor is not None else None,
    )


def searched_within(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> Searched:
    """Return what NCCL finds for a node alone; nothing, and no gap, for under two GPUs."""
    graph = graph_of(topology, nccl)
    if len(graph.gpus) < 2:
        return Searched()
    gap = _gap(topology, graph, nccl)
    return Searched(gap=gap) if gap is not None else _searched(node_alone(topology, graph, nccl))


def searched_between(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> Searched:
    """Return what NCCL finds for a node of a job of several that are alike, with the ports of its topology.

    Ports of one card are one. Every node finds the same, so the number of nodes plays no part.
    """
    topology = fused(topology)
    graph = graph_of(topology, nccl)
    gap = "there is no GPU" if not graph.gpus else _gap(topology, graph, nccl)
    if len(graph.gpus) > _MOST_GPUS or len(topology.nets) > _MOST_PORTS:
        gap = f"it is searched here for up to {_MOST_GPUS} GPUs and {_MOST_PORTS} ports"
    if gap is not None:
        return Searched(gap=gap)
    try:
        return _searched(node_of_several(topology, graph, nccl))
    except MissingPortError as error:
        return Searched(gap=str(error))


def _gap(topology: Topology, graph: Graph, nccl: Nccl) -> str | None:
    """Return why no plan can be told."""
    if any(gpu.gcn is not None for gpu in topology.gpus) or any(link.kind == "xgmi" for link in topology.nvlinks):
        return "RCCL has a search of its own"
    if nccl < OLDEST_PLANNED:
        return f"the search of releases before {'.'.join(map(str, OLDEST_PLANNED))} is not known"
    if len(topology.gpus) > len(graph.gpus):
        return "several ranks or parts share a GPU, or a GPU is on no bus"
    if any(gpu.sm is None for gpu in topology.gpus):
        return "the GPUs' compute capability (sm) is not given"
    return None


def _searched(node: SearchedNode) -> Searched:
    budget = StepBudget(MOST_STEPS)
    lay = partial(lay_within if node.ports is None else lay_between, node, budget)
    count = len(node.ways)
    heads = min(_MOST_HEADS, count)

    def best(pattern: Pattern, least: int, most: int) -> ChannelDraft:
        return Tries(node, ChannelDraft(pattern=pattern, least=least, most=most), lay).found()

    try:
        ring = best("ring", 2 if node.is_split() else 1, _MOST_CHANNELS)
        tree = best("tree" if count > 1 else "chain", ring.channels, ring.channels)
        nvls = best("nvls", heads if node.ports is None else 1, heads) if node.adds else None
    except TooLongError:
        return Searched(gap="the search for it takes longer than it may here")
    return Searched(
        ring=_found(node, ring),
        tree=_found(node, tree),
        nvls=_found(node, nvls) if nvls is not None and nvls.channels else None,
    )


def _found(node: SearchedNode, draft: ChannelDraft) -> FoundChannels:
    return FoundChannels(
        channels=draft.channels,
        within_GBps=draft.within_MBps / 1000,
        between_GBps=draft.between_MBps / 1000,
        within_type=node.types[draft.within_rank],
        between_type=node.types[draft.between_rank],
        alike=draft.alike,
        chain=draft.pattern == "chain",
        latency_us=draft.latency_us,
    )

"""What rings and chains over a node can carry at best: the narrowest of all cuts between its GPUs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from busbw.base.value import Value
from busbw.model.topology import (
    Hop,
    LinkType,
    RingCeiling,
    Topology,
)
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    INTEL_PEER_COST,
    NVSWITCHES,
    Graph,
    Nccl,
    graph_of,
    link_words,
)
from busbw.topo.paths.paths import (
    NO_PATH,
    Paths,
    gpu_names,
    paths_through,
)

# Machines with direct links have 8; of more than these there are too many groups.
_MOST_GPUS = 12
# So many groups that their own links leave the narrowest are looked at in full.
_MOST_GROUPS = 12
# Flows are sums of rates: what is left of one is nothing.
_NOTHING_Bps = 1.0

Group = frozenset[str]
_LinkKey = tuple[str, str, LinkType]


def groups_of_linked(graph: Graph) -> Iterator[Group]:
    """Yield every group of two GPUs up to half of all; none where links lead to switches, which join all alike."""
    if len(graph.gpus) > _MOST_GPUS or NVSWITCHES in graph.links:
        return
    for size in range(2, len(graph.gpus) // 2 + 1):
        yield from (frozenset(group) for group in combinations(graph.gpus, size))


def links_Bps(graph: Graph, group: Group) -> float:
    """Return what leaves a group of GPUs over NVLink to other GPUs or their switches."""
    return sum(
        hop.bandwidth_Bps
        for name in group
        for hop in graph.links[name]
        if hop.kind == "NVL" and hop.target not in group and not hop.target.startswith("CPU/")
    )


class _Cut(Value, kw_only=True, frozen=True):
    """What all ways out of a group of GPUs carry together, and the links that bound it."""

    group: Group
    rate_Bps: float
    links: tuple[Hop, ...]


def ring_ceilings(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> tuple[RingCeiling, ...]:
    """Return what NCCL can plan at most for ring and tree, as bus bandwidth of all_reduce; empty for under two GPUs.

    It counts its own rates, along the one way that it knows between each two GPUs. Every ring leaves every group of
    GPUs once. A tree within a node is a chain: it crosses the border of each group once, up and down in opposite
    directions, and leaves a group twice unless it ends there; the ends may differ from channel to channel.
    """
    graph = graph_of(topology, nccl)
    ranks = len(graph.gpus)
    if ranks < 2:
        return ()
    words = _CutWords(graph, topology)
    flows = _Flows(graph, paths_through(graph, nccl), topology)
    names = _named_groups(graph, words)
    cuts = {group: flows.narrower(group) for group in names}
    # Most files leave NVLinks to NCCL, and then this is no bound on the machine.
    beside = "" if topology.nvlinks else "over PCIe alone: "
    least = min(cuts.values(), key=lambda cut: cut.rate_Bps)
    ring = RingCeiling(
        algorithm="ring",
        busbw_Bps=least.rate_Bps,
        formula=beside + words.formula(least, names[least.group]),
        limit=words.limit(least),
    )
    chain_Bps, parts = min(
        ((_chain_Bps([cuts[part].rate_Bps for part in each]), each) for each in _partitions(graph, names)),
        key=lambda bound: bound[0],
    )
    if least.rate_Bps <= chain_Bps * (1 + _SAME):
        chain_Bps, parts = least.rate_Bps, ()
    narrowest = min((cuts[part] for part in parts), key=lambda cut: cut.rate_Bps, default=least)
    factor = 2 * (ranks - 1) / ranks
    if parts:
        of = f"chains through {len(parts)} parts leave all but two of them twice; {words.limit(narrowest)}"
    else:
        of = f"a chain crosses this once; {words.formula(least, names[least.group])}"
    tree = RingCeiling(
        algorithm="tree",
        busbw_Bps=factor * chain_Bps,
        formula=f"{beside}2(n-1)/n x {_rate(chain_Bps)} each way: {of}",
        limit=words.limit(narrowest),
    )
    return (ring, tree)


# Rates that differ by less are the same.
_SAME = 1e-9


def _chain_Bps(outs: Sequence[float]) -> float:
    """Return how much chains through all of these parts can carry each way, if so much can leave each part.

    Of each chain two parts are ends and leave once, the others twice. So of any k parts the sum of what leaves them is
    at least 2(k-1) times what the chains carry; the k narrowest say most.
    """
    ordered = sorted(outs)
    sums = [(sum(ordered[:count]), count) for count in range(2, len(ordered) + 1)]
    return min([ordered[0], *(total / (2 * (count - 1)) for total, count in sums)])


def _named_groups(graph: Graph, words: "_CutWords") -> dict[Group, str]:
    """Return the groups of GPUs that something may part from the others, each with its name."""
    every = frozenset(graph.gpus)
    found: dict[Group, str] = {frozenset((gpu,)): words.name(gpu) for gpu in graph.gpus}
    for name, members in _containers(graph).items():
        kind, _, id_ = name.partition("/")
        found.setdefault(members, f"NUMA node {id_}" if kind == "CPU" else f"switch {id_}")
    for island in _islands(graph):
        if len(island) > 1:
            found.setdefault(island, f"{words.members(island)}, which {words.links} join")
    nodes = [members for name, members in _containers(graph).items() if name.startswith("CPU/")]
    if len(nodes) <= _MOST_GPUS:
        for size in range(2, len(nodes) // 2 + 1):
            for several in combinations(nodes, size):
                members = frozenset().union(*several)
                found.setdefault(members, words.members(members))
    linked = sorted(groups_of_linked(graph), key=lambda group: links_Bps(graph, group))
    for group in linked[:_MOST_GROUPS]:
        found.setdefault(group, words.members(group))
    return {group: name for group, name in found.items() if group != every}


def _containers(graph: Graph) -> dict[str, Group]:
    """Return the GPUs below each switch and each NUMA node."""
    groups: dict[str, set[str]] = {}
    for gpu in graph.gpus:
        for name in graph.above(gpu):
            groups.setdefault(name, set()).add(gpu)
    return {name: frozenset(members) for name, members in groups.items()}


def _partitions(graph: Graph, known: Mapping[Group, str]) -> Iterator[tuple[Group, ...]]:
    """Yield ways to divide the GPUs: one by one, by NVLinks, by NUMA node, by highest and by lowest switch."""
    single = {gpu: frozenset((gpu,)) for gpu in graph.gpus}
    containers = _containers(graph)
    levels: list[dict[str, Group]] = [single, {gpu: island for island in _islands(graph) for gpu in island}]
    for place in (-1, -2, 0):
        above = {gpu: graph.above(gpu) for gpu in graph.gpus}
        levels.append(
            {gpu: containers[line[place]] if len(line) >= abs(place) else single[gpu] for gpu, line in above.items()}
        )
    for level in levels:
        parts = tuple(dict.fromkeys(level.values()))
        if len(parts) > 1 and all(part in known for part in parts):
            yield parts


class _Flows:
    """What can leave groups of GPUs along the ways that NCCL knows: the largest flow over their links."""

    def __init__(self, graph: Graph, paths: Paths, topology: Topology) -> None:
        self._gpus = graph.gpus
        self._paths = paths
        intel = {f"CPU/{numa.id}" for numa in topology.numa if numa.vendor == "GenuineIntel"}
        # An Intel CPU passes traffic between its own GPUs on in small packets, so that it costs more of their links.
        self._costly = {
            (source, target)
            for source in graph.gpus
            for target in graph.gpus
            if source != target
            and paths[source].get(target, NO_PATH).type == "PHB"
            and any(hop.target in intel for hop in paths[source][target].hops)
        }

    def narrower(self, group: Group) -> _Cut:
        """Return what can leave a group, or enter it, whichever is less."""
        rest = [gpu for gpu in self._gpus if gpu not in group]
        ways = [self._cut(group, sorted(group), rest), self._cut(group, rest, sorted(group))]
        return min(ways, key=lambda cut: cut.rate_Bps)

    def _cut(self, group: Group, sources: Sequence[str], targets: Sequence[str]) -> _Cut:
        rates = self._rates(sources, targets)
        left = dict(rates)
        rate_Bps = _push_all(left, sources, frozenset(targets))
        reached = _reached(left, sources)
        crossing = {
            (source, target, kind) for source, target, kind in rates if source in reached and target not in reached
        }
        links = tuple(
            Hop(source=source, target=target, kind=kind, bandwidth_Bps=rates[source, target, kind])
            for source, target, kind in sorted(crossing)
        )
        return _Cut(group=group, rate_Bps=rate_Bps, links=links)

    def _rates(self, sources: Sequence[str], targets: Sequence[str]) -> dict[_LinkKey, float]:
        """Return the links of all ways from the ones to the others, with what they carry of this traffic."""
        full: dict[_LinkKey, float] = {}
        cheap: set[_LinkKey] = set()
        for source in sources:
            for target in targets:
                for hop in self._paths[source].get(target, NO_PATH).hops:
                    key = (hop.source, hop.target, hop.kind)
                    full[key] = hop.bandwidth_Bps
                    if hop.kind != "PCI" or (source, target) not in self._costly:
                        cheap.add(key)
        return {key: rate_Bps if key in cheap else rate_Bps / INTEL_PEER_COST for key, rate_Bps in full.items()}


def _push_all(left: dict[_LinkKey, float], sources: Sequence[str], targets: frozenset[str]) -> float:
    """Return the largest flow from the ones to the others; `left` is then what the links could still carry."""
    total_Bps = 0.0
    while True:
        came: dict[str, _LinkKey | None] = dict.fromkeys(sources)
        level, end = list(sources), None
        beyond = _neighbours(left)
        while level and end is None:
            following = []
            for name in level:
                for key in beyond.get(name, ()):
                    if key[1] not in came:
                        came[key[1]] = key
                        following.append(key[1])
            end = next((name for name in following if name in targets), None)
            level = following
        if end is None:
            return total_Bps
        way: list[_LinkKey] = []
        last = came[end]
        while last is not None:
            way.append(last)
            last = came[last[0]]
        rate_Bps = min(left[key] for key in way)
        for source, target, kind in way:
            left[source, target, kind] -= rate_Bps
            left[target, source, kind] = left.get((target, source, kind), 0.0) + rate_Bps
        total_Bps += rate_Bps


def _reached(left: Mapping[_LinkKey, float], sources: Sequence[str]) -> set[str]:
    beyond, found, waiting = _neighbours(left), set(sources), list(sources)
    while waiting:
        for _source, target, _kind in beyond.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _neighbours(left: Mapping[_LinkKey, float]) -> dict[str, list[_LinkKey]]:
    beyond: dict[str, list[_LinkKey]] = {}
    for key, rate_Bps in left.items():
        if rate_Bps > _NOTHING_Bps:
            beyond.setdefault(key[0], []).append(key)
    return beyond


class _CutWords:
    """What cuts are called."""

    def __init__(self, graph: Graph, topology: Topology) -> None:
        self._graph = graph
        self._names = {f"GPU/{bus_id}": name for bus_id, name in gpu_names(topology.gpus).items()}
        self.links = link_words(topology)

    def name(self, gpu: str) -> str:
        return self._names[gpu]

    def members(self, group: Group) -> str:
        return ", ".join(self._names[gpu] for gpu in self._graph.gpus if gpu in group)

    def formula(self, cut: _Cut, name: str) -> str:
        """Return what a cut carries, by kind of link where there are several."""
        kinds: dict[str, float] = {}
        for hop in cut.links:
            kind = self._kind(hop)
            kinds[kind] = kinds.get(kind, 0.0) + hop.bandwidth_Bps
        if len(cut.group) == 1 and list(kinds) == [self.links]:
            return f"{self.links} of one GPU to {self._peers(cut)}: {_rate(cut.rate_Bps)}"
        if list(kinds) == [self.links]:
            return f"{self.links} out of {name}: {_rate(cut.rate_Bps)}"
        if len(kinds) == 1:
            own = next(iter(kinds))
            return f"out of {name}: {_rate(cut.rate_Bps)}" + (f" {own}" if own else "")
        parts = " + ".join(f"{_rate(rate_Bps)} {kind}".rstrip() for kind, rate_Bps in kinds.items())
        return f"out of {name}: {parts.replace(f' {self.links}', f' of {self.links}')}"

    def _kind(self, hop: Hop) -> str:
        if hop.kind == "NVL" and not any(end.startswith("CPU/") for end in (hop.source, hop.target)):
            return self.links
        return {"PCI": "of PCIe", "SYS": "between NUMA nodes"}.get(hop.kind, "to the CPU")

    def _peers(self, cut: _Cut) -> str:
        if any(NVSWITCHES in (hop.source, hop.target) for hop in cut.links):
            return "the NVSwitches"
        return f"{len(cut.links)} GPU{'s' if len(cut.links) > 1 else ''}"

    def limit(self, cut: _Cut) -> str:
        """Return the parts that bound a cut."""
        kinds = {self._kind(hop) for hop in cut.links}
        if kinds == {self.links}:
            of = self.members(cut.group)
            return f"{self.links} of {of}" if len(cut.group) == 1 else f"{self.links} out of {of}"
        if kinds == {"between NUMA nodes"}:
            nodes = sorted({hop.source.partition("/")[2] for hop in cut.links})
            others = len({hop.target for hop in cut.links})
            return f"links between NUMA node {', '.join(nodes)} and {others} other{'s' if others > 1 else ''}"
        ends = dict.fromkeys(self._lower(hop) for hop in cut.links if self._kind(hop) != self.links)
        many = "s" if len(ends) > 1 else ""
        what = "PCIe link" if kinds <= {"of PCIe"} else "link to the CPU" if kinds <= {"to the CPU"} else "link"
        if self.links in kinds:
            return f"links of {self.members(cut.group)}"
        return f"{what.replace('link', f'link{many}', 1)} of {', '.join(ends)}"

    def _lower(self, hop: Hop) -> str:
        """Return the lower end of a link, which it belongs to."""
        low = hop.source if self._graph.up.get(hop.source) == hop.target else hop.target
        low = hop.source if low.startswith("CPU/") else low
        return self._names.get(low) or f"switch {low.partition('/')[2]}"


def _islands(graph: Graph) -> list[Group]:
    """Return the GPUs that NVLinks join, group by group."""
    islands: list[Group] = []
    for gpu in graph.gpus:
        if any(gpu in island for island in islands):
            continue
        reached, stack = {gpu}, [gpu]
        while stack:
            for hop in graph.links[stack.pop()]:
                if hop.kind == "NVL" and not hop.target.startswith("CPU/") and hop.target not in reached:
                    reached.add(hop.target)
                    stack.append(hop.target)
        islands.append(frozenset(name for name in reached if name.startswith("GPU/")))
    return islands


def _rate(rate_Bps: float) -> str:
    return f"{rate_Bps / 1e9:.1f} GB/s"

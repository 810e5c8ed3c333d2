"""A topology with everything that follows from it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from busbw.base.text import listed
from busbw.base.value import Value
from busbw.model.limit import Bound
from busbw.model.topology import (
    Hop,
    LinkType,
    MatrixRow,
    NodeView,
    PairPath,
    PathMatrix,
    PciDevice,
    RingCeiling,
    Topology,
)
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    INTEL_PEER_COST,
    LAST_OF_SERIES,
    NVSWITCHES,
    Graph,
    Nccl,
    graph_of,
    link_words,
    merged_switches,
)
from busbw.topo.paths.paths import (
    NO_PATH,
    Paths,
    gpu_names,
    gpu_numbers,
    gpu_spots,
    nccl_paths,
    paths_through,
    port_spots,
)
from busbw.topo.search.channels import Planned

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


_AMD = "0x1002"


def view_of(
    topology: Topology,
    notes: tuple[str, ...] = (),
    nccl: Nccl = DEFAULT_NCCL,
    bounds: tuple[Bound, ...] = (),
    plan: Planned | None = None,
) -> NodeView:
    """Return what follows from a topology; `notes` are what its reader has to say, and stand first.

    `bounds` are what line rates allow. Where they rest on NVLinks that the topology lacks, NCCL's count and `plan` are
    left out.
    """
    graph, detours = graph_of(topology, nccl), nccl_paths(topology, nccl)
    has_hidden = not topology.nvlinks and any(line.part == "nvlink" for bound in bounds for line in bound.lines)
    doubts = [_HIDDEN_LINKS] if has_hidden else list(_doubts(topology))
    if plan is not None and plan.gap is not None and not has_hidden:
        doubts.append(f"what NCCL plans is not known: {plan.gap}")
    return NodeView(
        release=_release(nccl),
        topology=topology,
        gpus=gpu_spots(topology, graph, paths_through(graph, nccl)),
        ports=port_spots(topology),
        ceilings=() if has_hidden else ring_ceilings(topology, nccl),
        bounds=bounds,
        plans=plan.plans if plan is not None and not has_hidden else (),
        pairs=tuple(_pairs(graph, detours)),
        notes=(*notes, *doubts),
    )


def _pairs(graph: Graph, paths: Paths) -> Iterator[PairPath]:
    ends = (*graph.gpus, *graph.ports)
    gpus = frozenset(graph.gpus)
    for source in ends:
        for target in ends:
            if source != target and (source in gpus or target in gpus):
                path = paths[source].get(target, NO_PATH)
                yield PairPath(source=source, target=target, type=path.type, bandwidth_Bps=path.bandwidth_Bps)


def _release(nccl: Nccl) -> str:
    return ".".join(map(str, nccl[:2] if nccl[2] >= LAST_OF_SERIES else nccl))


_HIDDEN_LINKS = (
    "which GPUs the NVLinks join is not known, so paths between GPUs are shown without them, and what NCCL would count "
    "for a ring or tree cannot be told"
)


def _doubts(topology: Topology) -> Iterator[str]:
    """Say what the topology leaves open and NCCL would ask the machine for."""
    if any(device.kind == "other" and device.device_class is None for device in topology.devices):
        yield "there are devices without a class: NCCL asks the machine what they are"
    own = tuple(dict.fromkeys(link.gpu for link in topology.nvlinks if link.target == link.gpu))
    if own:
        yield f"{link_words(topology)} that lead to the GPU itself are not counted: {', '.join(own)}"
    if merged_switches(topology.devices):
        yield "Broadcom switches of two levels are in it: NCCL makes one of both, and ways through them are PIX"
    if any(device.kind == "gpu" and device.vendor == _AMD for device in topology.devices):
        if not topology.nvlinks:
            yield "no XGMI links are listed: where the machine has some, RCCL finds them, and GPUs are nearer"
    elif len(topology.gpus) > 1 and not topology.nvlinks:
        yield "no NVLinks are listed: where the machine has some, NCCL finds them, and ways between GPUs are better"
    kinds = {link.kind for link in topology.nvlinks}
    if "nvlink" in kinds and any(gpu.sm is None for gpu in topology.gpus):
        yield "the GPUs' compute capability (sm) is not given: an NVLink counts as 20 GB/s, as of A100"
    if "xgmi" in kinds and any(gpu.gcn is None for gpu in topology.gpus):
        yield "the GPUs' processor (gcn) is not given: an XGMI link counts as 24 GB/s, as of MI60 and MI100"
    yield from _open_ports(topology)


def _open_ports(topology: Topology) -> Iterator[str]:
    if topology.gpus and not topology.nets:
        nics = any(device.kind == "nic" for device in topology.devices)
        yield "no ports are listed: NCCL finds them on the machine" + (", on the NICs that are" if nics else "")
    slow = [net.name for net in topology.nets if net.speed_Mbps is None]
    if slow:
        yield f"no speed is given of {listed(slow)}: 10 Gb/s are counted; on the machine NCCL asks the driver for it"


# As nvidia-smi explains them under its matrix.
_MEANINGS = (
    ("X", "itself"),
    ("SYS", "through PCIe and the link between NUMA nodes"),
    ("NODE", "through PCIe and the link between host bridges of one NUMA node"),
    ("PHB", "through PCIe and one host bridge"),
    ("PXB", "through several PCIe switches, and no host bridge"),
    ("PIX", "through at most one PCIe switch"),
    ("NV#", "through # NVLinks"),
)
# nvidia-smi has no word for it; rocm-smi's matrix says this.
_XGMI = "XGMI"
_XGMI_MEANING = (_XGMI, "through links between AMD's GPUs")


class _End(Value, kw_only=True, frozen=True):
    """A GPU or port of the matrix."""

    name: str
    # As in model.paths.
    device: str
    bus_id: str
    numa: int
    # Bus ids of the switches above, the nearest first.
    switches: tuple[str, ...]
    host_bridge: str | None


@dataclass(frozen=True, kw_only=True)
class _Links:
    """The links between GPUs: how many each has to each other one, and under None to switches; which are XGMI."""

    counts: Mapping[tuple[str, str | None], int]
    xgmi: frozenset[tuple[str, str]]


def path_matrix(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> PathMatrix:
    """Return the matrix of all GPUs, then all ports of PCI devices, with the CPUs and NUMA node of each GPU.

    Raises InputError for a topology larger than a node can be.
    """
    paths = nccl_paths(topology, nccl)
    devices: dict[str | None, PciDevice] = {device.bus_id: device for device in topology.devices}
    cpus = {numa.id: numa.cpus for numa in topology.numa}
    gpus = tuple(
        _end(f"GPU{number}", f"GPU/{gpu.bus_id}", gpu.bus_id, _numa(devices, gpu.bus_id), devices)
        for number, gpu in zip(gpu_numbers(topology.gpus), topology.gpus, strict=True)
    )
    # nvidia-smi knows ports of the PCI bus only; a host may have a hundred interfaces beside them.
    ports = tuple((port, port.bus_id) for port in port_spots(topology) if port.bus_id is not None)
    nics = tuple(
        _end(f"NIC{place}", f"{'NIC' if port.rate_Bps is None else 'NET'}/{port.name}", bus_id, port.numa, devices)
        for place, (port, bus_id) in enumerate(ports)
    )
    links = _links(topology)
    rows = tuple(
        MatrixRow(
            name=end.name,
            cells=tuple("X" if end.device == other.device else _cell(end, other, links) for other in (*gpus, *nics)),
            nccl=tuple(paths.get(end.device, {}).get(other.device, NO_PATH).type for other in (*gpus, *nics)),
            bandwidth_Bps=tuple(
                paths.get(end.device, {}).get(other.device, NO_PATH).bandwidth_Bps for other in (*gpus, *nics)
            ),
            cpus=cpus.get(end.numa) or _near_cpus(devices, end.bus_id) if end in gpus else None,
            numa=_numa_near(devices, end) if end in gpus else None,
        )
        for end in (*gpus, *nics)
    )
    return PathMatrix(
        release=_release(nccl),
        rows=rows,
        legend=tuple((nic.name, port.name) for nic, (port, _bus_id) in zip(nics, ports, strict=True)),
    )


def meanings(matrix: PathMatrix) -> tuple[tuple[str, str], ...]:
    """Return what the words of a matrix mean: all of nvidia-smi's, and XGMI where it is in the matrix."""
    return (*_MEANINGS, _XGMI_MEANING) if any(_XGMI in row.cells for row in matrix.rows) else _MEANINGS


def _near_cpus(devices: Mapping[str | None, PciDevice], bus_id: str) -> tuple[int, ...] | None:
    return devices[bus_id].near_cpus or None if bus_id in devices else None


def _numa_near(devices: Mapping[str | None, PciDevice], end: _End) -> int | None:
    """Return the NUMA node of an end; of one that shows none, that of all CPUs that are local to it."""
    if end.numa >= 0:
        return end.numa
    near = devices[end.bus_id].near_numa if end.bus_id in devices else ()
    return near[0] if len(near) == 1 else None


def _numa(devices: Mapping[str | None, PciDevice], bus_id: str) -> int:
    return devices[bus_id].numa if bus_id in devices else -1


def _end(name: str, device: str, bus_id: str, numa: int, devices: Mapping[str | None, PciDevice]) -> _End:
    switches = tuple(_switches(bus_id, devices)) if bus_id in devices else ()
    bridge = devices[bus_id].host_bridge if bus_id in devices else None
    return _End(name=name, device=device, bus_id=bus_id, numa=numa, switches=switches, host_bridge=bridge)


def _switches(bus_id: str | None, devices: Mapping[str | None, PciDevice]) -> Iterator[str]:
    seen = {bus_id}
    parent = devices[bus_id].parent
    while parent is not None and parent in devices and parent not in seen:
        seen.add(parent)
        yield parent
        parent = devices[parent].parent


def _cell(one: _End, other: _End, links: _Links) -> str:
    straight = links.counts.get((one.bus_id, other.bus_id), 0)
    count = straight or min(links.counts.get((end.bus_id, None), 0) for end in (one, other))
    if count:
        return _XGMI if (one.bus_id, other.bus_id) in links.xgmi else f"NV{count}"
    if one.numa != other.numa:
        return "SYS"
    shared = next((switch for switch in one.switches if switch in other.switches), None)
    if shared is not None:
        return "PIX" if one.switches[0] == shared == other.switches[0] else "PXB"
    if one.bus_id.rpartition(".")[0] == other.bus_id.rpartition(".")[0]:
        # Ports of one card.
        return "PIX"
    return "PHB" if _root_bus(one) == _root_bus(other) is not None else "NODE"


def _root_bus(end: _End) -> str | None:
    """Return the root bus above a device; where that is not known its own bus, unless it is below a switch."""
    if end.host_bridge is not None:
        return end.host_bridge
    return end.bus_id.rpartition(":")[0] if not end.switches else None


def _links(topology: Topology) -> _Links:
    gpus = {gpu.bus_id for gpu in topology.gpus}
    counts: Counter[tuple[str, str | None]] = Counter()
    for link in topology.nvlinks:
        if link.target in gpus:
            counts[link.gpu, link.target] += link.count
        elif link.kind == "nvlink" and not (link.target_class or "").startswith(("0x03", "0x068001")):
            counts[link.gpu, None] += link.count
    xgmi = frozenset((link.gpu, link.target) for link in topology.nvlinks if link.kind == "xgmi")
    return _Links(counts=counts, xgmi=xgmi)

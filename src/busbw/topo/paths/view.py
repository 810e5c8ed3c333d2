"""A topology with everything that follows from it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from busbw.base.value import Value
from busbw.model.topology import Hop, MatrixRow, NodeView, PathMatrix, PciDevice, RingCeiling, Topology
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    INTEL_PEER_COST,
    NVSWITCHES,
    Graph,
    Nccl,
    graph_of,
    link_words,
    merged_switches,
)
from busbw.topo.paths.paths import NO_PATH, gpu_names, gpu_numbers, gpu_spots, nccl_paths, paths_through, port_spots

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


class _GroupExit(Value, kw_only=True, frozen=True):
    """How much can leave a group of GPUs, and over what."""

    rate_Bps: float
    formula: str
    limit: str


def ring_ceilings(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> tuple[RingCeiling, ...]:
    """Return the bounds of ring and tree as bus bandwidth of all_reduce; empty for fewer than two GPUs."""
    graph = graph_of(topology, nccl)
    ranks = len(graph.gpus)
    if ranks < 2:
        return ()
    names = {f"GPU/{bus_id}": name for bus_id, name in gpu_names(topology.gpus).items()}
    islands, words = _islands(graph), link_words(topology)
    if len(islands) == 1:
        # Where NVLinks join all GPUs, NCCL lays its channels over them alone.
        ways = [
            *(_link_way(graph, gpu, names, words) for gpu in graph.gpus),
            *(_cut_way(graph, group, names, words) for group in groups_of_linked(graph)),
        ]
    else:
        ways = [
            *(_gpu_way(graph, topology, gpu, names) for gpu in graph.gpus),
            *_group_ways(graph, topology),
            *(_island_way(graph, topology, island, names) for island in islands if len(island) > 1),
        ]
    way = min(ways, key=lambda each: each.rate_Bps)
    # Most files leave NVLinks to NCCL, and then this is no bound on the machine.
    beside = "" if topology.nvlinks else "over PCIe alone: "
    formula = beside + way.formula
    ring = RingCeiling(algorithm="ring", busbw_Bps=way.rate_Bps, formula=formula, limit=way.limit)
    if ranks == 2:
        return (ring, RingCeiling(algorithm="tree", busbw_Bps=way.rate_Bps, formula=formula, limit=way.limit))
    tree = RingCeiling(
        algorithm="tree",
        busbw_Bps=(ranks - 1) / ranks * way.rate_Bps,
        formula=f"{beside}(n-1)/n of {_rate(way.rate_Bps)}: a chain within a node, whose inner GPUs send up and down",
        limit=way.limit,
    )
    return (ring, tree)


def _link_way(graph: Graph, gpu: str, names: dict[str, str], words: str) -> _GroupExit:
    rate_Bps = links_Bps(graph, frozenset((gpu,)))
    links = [hop for hop in graph.links[gpu] if hop.kind == "NVL" and not hop.target.startswith("CPU/")]
    peers = f"{len(links)} GPU{'s' if len(links) > 1 else ''}"
    to = "the NVSwitches" if any(hop.target == NVSWITCHES for hop in links) else peers
    return _GroupExit(
        rate_Bps=rate_Bps,
        formula=f"{words} of one GPU to {to}: {_rate(rate_Bps)}",
        limit=f"{words} of {names[gpu]}",
    )


def _cut_way(graph: Graph, group: frozenset[str], names: dict[str, str], words: str) -> _GroupExit:
    rate_Bps = links_Bps(graph, group)
    members = ", ".join(names[gpu] for gpu in names if gpu in group)
    return _GroupExit(
        rate_Bps=rate_Bps,
        formula=f"{words} out of {members}: {_rate(rate_Bps)}",
        limit=f"{words} out of {members}",
    )


def _gpu_way(graph: Graph, topology: Topology, gpu: str, names: dict[str, str]) -> _GroupExit:
    """A GPU's own links: NVLinks to some others, and the one to its switch or CPU."""
    linked_Bps, up_Bps = links_Bps(graph, frozenset((gpu,))), _up_Bps(graph, topology, gpu, frozenset((gpu,)))
    name = names[gpu]
    beside = f"{_rate(linked_Bps)} of {link_words(topology)} + " if linked_Bps else ""
    return _GroupExit(
        rate_Bps=linked_Bps + up_Bps,
        formula=f"out of {name}: {beside}{_rate(up_Bps)}",
        limit=f"links of {name}" if linked_Bps else f"PCIe link of {name}",
    )


def _group_ways(graph: Graph, topology: Topology) -> list[_GroupExit]:
    """Everything that holds some of the GPUs and not all: switches, and NUMA nodes."""
    groups: dict[str, set[str]] = {}
    for gpu in graph.gpus:
        for name in graph.above(gpu):
            groups.setdefault(name, set()).add(gpu)
    ways = []
    for name, members in groups.items():
        group = frozenset(members)
        if len(group) == len(graph.gpus):
            continue
        linked_Bps = links_Bps(graph, group)
        if name.startswith("CPU/"):
            to_others = [hop for hop in graph.links[name] if hop.kind == "SYS" and hop.target in groups]
            up_Bps, words = sum(hop.bandwidth_Bps for hop in to_others), f"NUMA node {name.partition('/')[2]}"
            limit = f"links between {words} and {len(to_others)} other"
        else:
            up_Bps, words = _up_Bps(graph, topology, name, group), f"switch {name.partition('/')[2]}"
            limit = f"PCIe link of {words}"
        beside = f"{_rate(linked_Bps)} of {link_words(topology)} + " if linked_Bps else ""
        ways.append(
            _GroupExit(rate_Bps=linked_Bps + up_Bps, formula=f"out of {words}: {beside}{_rate(up_Bps)}", limit=limit)
        )
    return ways


def _island_way(graph: Graph, topology: Topology, island: frozenset[str], names: dict[str, str]) -> _GroupExit:
    members = ", ".join(names[gpu] for gpu in names if gpu in island)
    rate_Bps = sum(_up_Bps(graph, topology, gpu, island) for gpu in island)
    is_pcie = all(hop.kind == "PCI" for gpu in island for hop in _ups(graph, gpu))
    return _GroupExit(
        rate_Bps=rate_Bps,
        formula=f"out of {members}, which {link_words(topology)} join: {_rate(rate_Bps)} "
        + ("of PCIe" if is_pcie else "to the CPU"),
        limit=f"{'PCIe links' if is_pcie else 'links to the CPU'} of {members}",
    )


def _up_Bps(graph: Graph, topology: Topology, name: str, group: frozenset[str]) -> float:
    """Return what leaves a GPU or switch upwards; an Intel CPU that passes it on to GPUs of its own makes it less."""
    above = graph.up.get(name)
    rate_Bps = max((hop.bandwidth_Bps for hop in _ups(graph, name)), default=0.0)
    shared = above is not None and above.startswith("CPU/") and _has_others(graph, above, group)
    is_intel = bool(topology.numa) and topology.numa[0].vendor == "GenuineIntel"
    return rate_Bps / INTEL_PEER_COST if shared and is_intel else rate_Bps


def _ups(graph: Graph, name: str) -> list[Hop]:
    """Return the links of a GPU or switch upwards: over PCIe, and of some GPUs straight to their CPU."""
    upwards = {graph.up.get(name), *graph.cpus}
    return [hop for hop in graph.links[name] if hop.kind in ("PCI", "C2C", "NVL") and hop.target in upwards]


def _has_others(graph: Graph, cpu: str, group: frozenset[str]) -> bool:
    return any(cpu in graph.above(gpu) for gpu in graph.gpus if gpu not in group)


def _islands(graph: Graph) -> list[frozenset[str]]:
    """Return the GPUs that NVLinks join, group by group."""
    islands: list[frozenset[str]] = []
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


def view_of(topology: Topology, notes: tuple[str, ...] = (), nccl: Nccl = DEFAULT_NCCL) -> NodeView:
    """Return what follows from a topology; `notes` are what its reader has to say, and stand first."""
    graph = graph_of(topology, nccl)
    return NodeView(
        topology=topology,
        gpus=gpu_spots(topology, graph, paths_through(graph, nccl)),
        ports=port_spots(topology),
        ceilings=ring_ceilings(topology, nccl),
        notes=(*notes, *_doubts(topology)),
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
    if topology.gpus and not topology.nets:
        nics = any(device.kind == "nic" for device in topology.devices)
        yield "no ports are listed: NCCL finds them on the machine" + (", on the NICs that are" if nics else "")


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
            cpus=cpus.get(end.numa) or _near_cpus(devices, end.bus_id) if end in gpus else None,
            numa=_numa_near(devices, end) if end in gpus else None,
        )
        for end in (*gpus, *nics)
    )
    return PathMatrix(
        rows=rows, legend=tuple((nic.name, port.name) for nic, (port, _bus_id) in zip(nics, ports, strict=True))
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

"""Every way through a node, found as NCCL finds it."""

from collections import Counter
from collections.abc import Mapping

from busbw.model.topology import Gpu, GpuSpot, Hop, LinkType, Path, PathType, PortSpot, Topology
from busbw.topo.paths.graph import DEFAULT_NCCL, NVSWITCHES, Graph, LOCAL_Bps, Nccl, graph_of, net_Bps, port_names

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
# From here on only the way to a GPU's own ports, the widest, is called so: PXN goes before it on the way to others.
_P2C_OF_OWN_PORTS_SINCE = (2, 29, 2)
# From here on GPUs are dealt ports by their number among those that share them, and not by NVML's alone.
_BY_SHARERS_SINCE = (2, 30, 7)
# Up to here the NUMA node with the fewest links in between was a GPU's own.
_WIDEST_CPU_SINCE = (2, 30, 7)

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
        _name_chip_to_pci(graph, found, nccl)
    return found


def bottleneck(path: Path) -> Hop | None:
    """Return the narrowest link of a way, the nearest of several; None where there is none."""
    return min(path.hops, key=lambda hop: hop.bandwidth_Bps, default=None)


def nearest_cpu(paths: Paths, gpu: str, nccl: Nccl = DEFAULT_NCCL) -> str | None:
    """Return the NUMA node that NCCL takes for a GPU's own: the one with fewest links in between.

    Since 2.30.7 the widest, then the best type, goes before that.
    """
    ways = [(name, path) for name, path in paths[gpu].items() if name.startswith("CPU/") and path.type != "DIS"]

    def nearness(way: tuple[str, Path]) -> tuple[float, int, int]:
        path = way[1]
        if nccl < _WIDEST_CPU_SINCE:
            return 0.0, 0, len(path.hops)
        return -path.bandwidth_Bps, RANK[path.type], len(path.hops)

    return min(ways, key=nearness, default=(None, NO_PATH))[0]


def joined(first: Path, second: Path, nccl: Nccl) -> Path:
    """Return the way that goes one way and then the other."""
    worst, best = sorted((first.type, second.type), key=RANK.__getitem__, reverse=True)
    return Path(
        type="P2C" if (worst, best) == ("PHB", "C2C") and nccl >= _P2C_SINCE else worst,
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


def _name_chip_to_pci(graph: Graph, found: dict[str, dict[str, Path]], nccl: Nccl) -> None:
    """Name ways P2C that go from a GPU over C2C to its CPU and from there over PCI to a port."""
    for gpu in graph.gpus:
        cpu = nearest_cpu(found, gpu, nccl)
        own = widest(found, gpu, ("NET", "NIC")) if nccl >= _P2C_OF_OWN_PORTS_SINCE else graph.ports
        for port in own:
            to_cpu = found[port].get(cpu, NO_PATH) if cpu is not None else NO_PATH
            if cpu is None or joined(found[gpu][cpu], to_cpu, nccl).type != "P2C":
                continue
            for source, target in ((gpu, port), (port, gpu)):
                path = found[source][target]
                if RANK[path.type] > RANK["P2C"]:
                    found[source][target] = Path(type="P2C", bandwidth_Bps=path.bandwidth_Bps, hops=path.hops)


def gpu_spots(topology: Topology, graph: Graph, paths: Paths) -> tuple[GpuSpot, ...]:
    """Return where each GPU sits and its nearest ports: those with the best type of way, the widest of them.

    `paths` are the direct ones: a port that traffic has to be copied to is still the nearest.
    """
    devices = {device.bus_id: device for device in topology.devices}
    cpus = {numa.id: numa.cpus for numa in topology.numa}
    near = {gpu.bus_id: nearest_ports(paths, f"GPU/{gpu.bus_id}") for gpu in topology.gpus}
    sharers = Counter(near.values())
    spots = []
    for number, gpu in zip(gpu_numbers(topology.gpus), topology.gpus, strict=True):
        numa = devices[gpu.bus_id].numa if gpu.bus_id in devices else -1
        ports = near[gpu.bus_id]
        path = paths[f"GPU/{gpu.bus_id}"][ports[0]] if ports else NO_PATH
        spots.append(
            GpuSpot(
                number=number,
                bus_id=gpu.bus_id,
                numa=numa,
                cpus=cpus.get(numa),
                ports=tuple(port.partition("/")[2] for port in ports),
                path=path.type if ports else None,
                path_Bps=path.bandwidth_Bps if ports else None,
                bottleneck=link_words(graph, path) if ports else None,
                sharers=sharers[ports] if ports else 1,
            )
        )
    return tuple(spots)


def port_spots(topology: Topology) -> tuple[PortSpot, ...]:
    """Return where each port sits; a NIC without a named port stands for its own, at no known rate."""
    cpus = {numa.id: numa.cpus for numa in topology.numa}
    named = [
        PortSpot(name=name, bus_id=net.bus_id, numa=net.numa, cpus=cpus.get(net.numa), rate_Bps=net_Bps(net))
        for name, net in zip(port_names(topology), topology.nets, strict=True)
    ]
    taken = {net.bus_id for net in topology.nets}
    cards = {bus_id.rpartition(".")[0] for bus_id in taken if bus_id is not None}
    bare = [
        PortSpot(name=device.bus_id, bus_id=device.bus_id, numa=device.numa, cpus=cpus.get(device.numa), rate_Bps=None)
        for device in topology.devices
        if device.kind == "nic" and device.bus_id.rpartition(".")[0] not in cards
    ]
    return (*named, *bare)


def gpu_numbers(gpus: tuple[Gpu, ...]) -> tuple[int, ...]:
    """Return what people call each GPU: NCCL's dev where every GPU has one of its own, else its place."""
    numbers = tuple(gpu.dev for gpu in gpus)
    known = tuple(number for number in numbers if number is not None)
    return known if len(set(known)) == len(gpus) else tuple(range(len(gpus)))


def gpu_names(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """Return what people call the GPU at each address, as `GPU3`; where ranks or parts share one, as `GPU4/5`."""
    numbers: dict[str, list[str]] = {}
    for gpu, number in zip(gpus, gpu_numbers(gpus), strict=True):
        numbers.setdefault(gpu.bus_id, []).append(str(number))
    return {bus_id: f"GPU{'/'.join(own)}" for bus_id, own in numbers.items()}


def nearest_ports(paths: Paths, gpu: str) -> tuple[str, ...]:
    """Return the ports with the best type of way from a GPU, and of those the widest; () where there are none."""
    ways = _ways_to_ports(paths, gpu)
    best = min((_nearness(path) for _name, path in ways), default=None)
    return tuple(name for name, path in ways if _nearness(path) == best)


def sending_ports(paths: Paths, topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> dict[str, tuple[str, ...]]:
    """Return the ports that NCCL's channels use from each GPU in turn, under its policy AUTO.

    NCCL takes the widest way before the best type, and deals the ports among the GPUs that share them.
    """
    numbers = _numbers_by_name(topology)
    sending = {name: _sends(paths, name, number, nccl) for name, number in numbers.items() if name in paths}
    return {name: ports for name, ports in sending.items() if ports}


def _numbers_by_name(topology: Topology) -> dict[str, int]:
    numbers = zip(gpu_numbers(topology.gpus), topology.gpus, strict=True)
    return {f"GPU/{gpu.bus_id}": number for number, gpu in numbers}


def _sends(paths: Paths, gpu: str, number: int, nccl: Nccl) -> tuple[str, ...]:
    ports = widest(paths, gpu, ("NET", "NIC"))
    if not ports:
        return ()
    sharers = max(1, len(widest(paths, ports[0], ("GPU",))))
    each = -(-len(ports) // sharers)
    if nccl >= _BY_SHARERS_SINCE:
        number %= sharers
    is_power_of_two = len(ports) & len(ports) - 1 == 0
    start = _mirrored(number, len(ports)) if is_power_of_two else number
    return tuple(ports[(start + turn) % len(ports)] for turn in range(each))


def port_gpus(paths: Paths, topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> dict[str, str]:
    """Return the GPU that NCCL calls local to each port: the first whose channels use it; others have none."""
    numbers = _numbers_by_name(topology)
    local = {port: _port_gpu(paths, port, numbers, nccl) for port in paths if port.startswith("NET/")}
    return {port: gpu for port, gpu in local.items() if gpu is not None}


def _port_gpu(paths: Paths, port: str, numbers: Mapping[str, int], nccl: Nccl) -> str | None:
    sending = {gpu: _sends(paths, gpu, numbers[gpu], nccl) for gpu in widest(paths, port, ("GPU",))}
    near = [gpu for gpu, ports in sending.items() if port in ports]
    return min(near, key=lambda gpu: sending[gpu].index(port), default=None)


def widest(paths: Paths, source: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the devices of some kinds that NCCL calls local: with the widest way, and of those the best type."""
    ways = [
        (name, path)
        for name, path in paths[source].items()
        if name.partition("/")[0] in kinds and path.bandwidth_Bps > 0
    ]
    best = min(((-path.bandwidth_Bps, RANK[path.type]) for _name, path in ways), default=None)
    return tuple(name for name, path in ways if (-path.bandwidth_Bps, RANK[path.type]) == best)


def link_words(graph: Graph, path: Path) -> str | None:
    """Return the narrowest link of a way in words: `switch ffff:ff:01.0`, `GPU's PCIe link`, `port`, `NUMA 0 to 1`."""
    hop = bottleneck(path)
    if hop is None:
        return None
    if hop.kind == "PCI":
        # A link belongs to its lower end.
        kind, name = (hop.source if graph.up.get(hop.source) == hop.target else hop.target).split("/", maxsplit=1)
        return f"switch {name}" if kind == "PCI" else f"{kind}'s PCIe link"
    if hop.kind == "SYS":
        return f"NUMA {hop.source.partition('/')[2]} to {hop.target.partition('/')[2]}"
    return {"NET": "port", "NVL": "NVLink", "C2C": "C2C"}.get(hop.kind, "link between switches")


def _ways_to_ports(paths: Paths, gpu: str) -> list[tuple[str, Path]]:
    ways = paths.get(gpu, {}).items()
    return [(name, path) for name, path in ways if name.startswith(("NET/", "NIC/")) and path.type != "DIS"]


def _nearness(path: Path) -> tuple[int, float]:
    return RANK[path.type], -path.bandwidth_Bps


def _mirrored(number: int, power: int) -> int:
    """Return the bits of a number below a power of two in the opposite order."""
    bits = power.bit_length() - 1
    return sum(1 << bits - 1 - place for place in range(bits) if number >> place & 1)


# Up to here PXN needed a NIC without a CPU in between, unless NCCL_PXN_C2C was set; it came with 2.27.5.
_PXN_OVER_C2C_SINCE = (2, 28, 3)
_PXN_BEATS_CPU_SINCE = (2, 27, 5)
# From here on a relay that cannot do GPUDirect RDMA with the port is none.
_PXN_NEEDS_GDR_SINCE = (2, 30, 3)
# From here on a part of a GPU (MLOPart) does no GPUDirect RDMA.
_PARTS_WITHOUT_GDR_SINCE = (2, 30, 7)
_WHOLE_GPU = (None, -1)
# From here on GPUs on two NUMA nodes, or behind two host bridges, exchange data through memory on every processor.
_SHARING_SINCE = (2, 23, 4)
_AMD = ("x86_64", "AuthenticAMD")


def shared_paths(topology: Topology, graph: Graph, nccl: Nccl = DEFAULT_NCCL) -> dict[str, dict[str, Path]]:
    """Return the direct ways, and between GPUs that are too far apart those through the memory of the second one's CPU.

    They are the same links, except where the way to that CPU is over NVLink, past a GPU that is beside it.
    """
    paths = paths_through(graph, nccl)
    farthest = RANK["SYS" if is_on_amd(topology) and len(graph.gpus) <= 2 else "PXB"]
    for end in graph.gpus if nccl >= _SHARING_SINCE else ():
        cpu = nearest_cpu(paths, end, nccl)
        for start in graph.gpus:
            if cpu is not None and RANK[paths[start].get(end, NO_PATH).type] > farthest:
                paths[start][end] = joined(paths[start].get(cpu, NO_PATH), paths[cpu].get(end, NO_PATH), nccl)
    return paths


def is_on_amd(topology: Topology) -> bool:
    """Return whether NCCL takes the processors for AMD's: the first one counts."""
    return bool(topology.numa) and (topology.numa[0].architecture, topology.numa[0].vendor) == _AMD


def nccl_paths(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> dict[str, dict[str, Path]]:
    """Return the ways that NCCL's own tables show, with its defaults: the direct ones and the detours to ports.

    A port or GPU whose `gdr` is 0 is reached through its CPU; one that the topology says nothing of counts as able.
    """
    paths = shared_paths(topology, graph_of(topology, nccl), nccl)
    gpus = tuple(name for name in paths if name.startswith("GPU/"))
    numbers = _numbers_by_name(topology)
    able = _able(topology, nccl)
    for port in (name for name in paths if name.startswith("NET/")):
        for gpu in gpus:
            # Detours change what is local to the port, and so who relays for those that come later.
            relay = _port_gpu(paths, port, numbers, nccl)
            if relay is not None and nccl >= _PXN_NEEDS_GDR_SINCE and not (able[relay] and able[port]):
                relay = None
            if relay is not None and relay != gpu and _is_worth_a_relay(paths, gpu, relay, port, nccl):
                past = joined(paths[gpu][relay], paths[relay][port], nccl)
                paths[gpu][port] = Path(type="PXN", bandwidth_Bps=past.bandwidth_Bps, hops=past.hops)
            if RANK[paths[gpu][port].type] < RANK["PHB"] and not (able[gpu] and able[port]):
                _divert(paths, gpu, port, nccl)
    return paths


def _is_worth_a_relay(paths: dict[str, dict[str, Path]], gpu: str, relay: str, port: str, nccl: Nccl) -> bool:
    direct, onward = paths[gpu][port], paths[relay][port]
    farthest = "P2C" if nccl >= _PXN_OVER_C2C_SINCE else "PXB"
    best_kept = "PXN" if nccl >= _PXN_BEATS_CPU_SINCE else "PXB"
    return (
        RANK[onward.type] <= RANK[farthest]
        and RANK[paths[relay][gpu].type] <= RANK["NVL"]
        and (onward.bandwidth_Bps > direct.bandwidth_Bps or RANK[direct.type] > RANK[best_kept])
    )


def _able(topology: Topology, nccl: Nccl) -> dict[str, bool]:
    """Return for each GPU and port whether nothing in the topology forbids GPUDirect RDMA."""
    gpus = {
        f"GPU/{gpu.bus_id}": gpu.gdr is not False and (nccl < _PARTS_WITHOUT_GDR_SINCE or gpu.mlopart in _WHOLE_GPU)
        for gpu in topology.gpus
    }
    nets = zip(port_names(topology), topology.nets, strict=True)
    return gpus | {f"NET/{name}": net.gdr is not False for name, net in nets}


def _divert(paths: dict[str, dict[str, Path]], gpu: str, port: str, nccl: Nccl) -> None:
    cpu = nearest_cpu(paths, gpu, nccl)
    if cpu is not None and cpu in paths[port]:
        paths[port][gpu] = joined(paths[port][cpu], paths[cpu][gpu], nccl)
        paths[gpu][port] = joined(paths[gpu][cpu], paths[cpu][port], nccl)

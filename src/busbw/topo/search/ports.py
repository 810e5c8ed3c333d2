"""The ports of a node as NCCL's search goes to them: in which order, from which GPU, and which share an adapter."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import structs

from busbw.model.topology import Net, Topology
from busbw.topo.paths.graph import Graph, Nccl, as_in_file, net_Bps, port_names
from busbw.topo.paths.paths import NO_PATH, RANK, Paths, port_gpus, sending_ports
from busbw.topo.search.ways import PARTS_SINCE, MBps, NumberedLinks, SearchedWay

# Up to then channels began at the GPUs that were nearest to a port, in turns, and not at those that NCCL calls local.
_LOCAL_SINCE = (2, 27, 3)
# NCCL_NET_MAX_DEVS_PER_NIC.
_MOST_FUSED = 4
# From here on the rails and planes that a file names count.
_RAILS_SINCE = (2, 30, 7)


class MissingPortError(Exception):
    """Why channels to other nodes cannot be told, in words."""


@dataclass(frozen=True, kw_only=True)
class PortGroup:
    """All ports by their places, in the order of NCCL's file, and the ways between them and the GPUs."""

    names: tuple[str, ...]
    # What NCCL counts for each in one direction.
    rates_MBps: tuple[MBps, ...]
    latencies_us: tuple[float, ...]
    # Ports of the same adapter and number, the port itself among them: what a channel takes of one is gone for all.
    same: tuple[tuple[int, ...], ...]
    # Ports that a channel may return by that went out by this one, where it may not change ports.
    partners: tuple[frozenset[int], ...]
    # Those of other planes, to which no channel changes.
    apart: tuple[frozenset[int], ...]
    # From each GPU to each port, and from each port to each GPU.
    out: tuple[tuple[SearchedWay, ...], ...]
    into: tuple[tuple[SearchedWay, ...], ...]
    # The ports that each GPU uses in turn, the first one first.
    preferred: tuple[tuple[int, ...], ...]
    # The GPU that NCCL calls local to each port; and those that channels may begin at.
    own: tuple[int | None, ...]
    near: tuple[tuple[int, ...], ...]

    def chosen(self, worst: int, gpus: Iterable[int]) -> tuple[int, ...]:
        """Return the ports to try from some GPUs over ways of a rank or better, the best first."""
        starts = tuple(gpus)
        found = dict.fromkeys(port for gpu in starts for port in self.preferred[gpu])
        for rank in range(worst + 1):
            for gpu in starts:
                found |= dict.fromkeys(port for port, way in enumerate(self.out[gpu]) if way.rank == rank)
        return tuple(found)


def fused(topology: Topology) -> Topology:
    """Return a topology in which up to four ports of one card are one, as NCCL makes them by default.

    It does so where its own plug-in for InfiniBand and RoCE is used; other plug-ins bring one port a card.
    """
    cards: dict[str, list[Net]] = {}
    for number, net in enumerate(topology.nets):
        card = net.bus_id.rpartition(".")[0] if net.bus_id is not None else f"port {number}"
        cards.setdefault(card, []).append(net)
    nets = tuple(
        _one_port(members[first : first + _MOST_FUSED])
        for members in cards.values()
        for first in range(0, len(members), _MOST_FUSED)
    )
    return structs.replace(topology, nets=nets)


def _one_port(members: list[Net]) -> Net:
    if len(members) == 1:
        return members[0]
    return structs.replace(
        members[0],
        name="+".join(net.name or net.bus_id or "" for net in members),
        speed_Mbps=round(sum(net_Bps(net) for net in members) * 8e-6),
        gdr=None if any(net.gdr is None for net in members) else all(net.gdr for net in members),
    )


def ports_of(topology: Topology, graph: Graph, paths: Paths, links: NumberedLinks, nccl: Nccl) -> PortGroup:
    """Return the ports of a node. Raises MissingPortError where there are none, or where a GPU has no way to one."""
    nets = dict(zip((f"NET/{name}" for name in port_names(topology)), topology.nets, strict=True))
    names = tuple(_in_order(topology, nets))
    if not names:
        raise MissingPortError("no ports are listed")
    sending = sending_ports(paths, topology, nccl)
    place = {name: number for number, name in enumerate(names)}
    if any(gpu not in sending for gpu in graph.gpus):
        raise MissingPortError("a GPU has no way to a port")
    if any(port not in place for ports in sending.values() for port in ports):
        raise MissingPortError("a NIC has no port listed")
    more = 1 if nccl >= PARTS_SINCE else 0
    local = port_gpus(paths, topology, nccl)
    gpu_place = {gpu: number for number, gpu in enumerate(graph.gpus)}
    same = tuple(_same(name, nets) for name in names)
    return PortGroup(
        names=names,
        rates_MBps=tuple(round(net_Bps(nets[name]) / 1e6) for name in names),
        latencies_us=tuple(nets[name].latency_us or 0.0 for name in names),
        same=tuple(tuple(place[other] for other in names if other in group) for group in same),
        partners=tuple(frozenset(_partners(name, names, nets, same, nccl)) for name in names),
        apart=tuple(frozenset(_apart(name, names, nets, nccl)) for name in names),
        out=tuple(tuple(_out(paths, gpu, port, links, more) for port in names) for gpu in graph.gpus),
        into=tuple(tuple(links.way(paths[port].get(gpu, NO_PATH), port, more) for gpu in graph.gpus) for port in names),
        preferred=tuple(tuple(place[port] for port in sending[gpu]) for gpu in graph.gpus),
        own=tuple(gpu_place[local[name]] if name in local else None for name in names),
        near=tuple(tuple(gpu_place[gpu] for gpu in _near(paths, name, graph.gpus, nccl)) for name in names),
    )


def _out(paths: Paths, gpu: str, port: str, links: NumberedLinks, more: int) -> SearchedWay:
    path = paths[gpu].get(port, NO_PATH)
    # Past another GPU, that one is passed as a device and a part, too.
    return links.way(path, gpu, 3 * more if path.type == "PXN" else more)


def _in_order(topology: Topology, nets: dict[str, Net]) -> Iterable[str]:
    """Yield ports as NCCL reads them: with their devices, then those of which only the NUMA node is known."""
    devices = {bus_id: number for number, bus_id in enumerate(as_in_file(topology))}
    numa = {node.id: number for number, node in enumerate(topology.numa)}
    device_numa = {device.bus_id: device.numa for device in topology.devices}

    def place(name: str) -> tuple[int, int]:
        net = nets[name]
        if net.bus_id in devices:
            return numa.get(device_numa[net.bus_id], len(numa)), devices[net.bus_id]
        return numa.get(net.numa, len(numa)), len(devices)

    return sorted(nets, key=place)


def _same(name: str, nets: dict[str, Net]) -> frozenset[str]:
    guid, port = _guid(nets[name]), nets[name].port or 0
    if guid is None:
        return frozenset((name,))
    return frozenset(other for other, net in nets.items() if (_guid(net), net.port or 0) == (guid, port))


def _guid(net: Net) -> int | None:
    try:
        return int(net.guid, 16) if net.guid is not None else None
    except ValueError:
        return 0


def _partners(
    name: str, names: tuple[str, ...], nets: dict[str, Net], same: tuple[frozenset[str], ...], nccl: Nccl
) -> Iterable[int]:
    own = nets[name].more.get("rail") if nccl >= _RAILS_SINCE else None
    for number, other in enumerate(names):
        rail = nets[other].more.get("rail")
        if rail == own if own is not None and rail is not None else name in same[number]:
            yield number


def _apart(name: str, names: tuple[str, ...], nets: dict[str, Net], nccl: Nccl) -> Iterable[int]:
    own = nets[name].more.get("plane") if nccl >= _RAILS_SINCE else None
    for number, other in enumerate(names):
        plane = nets[other].more.get("plane")
        if own is not None and plane is not None and plane != own:
            yield number


def _near(paths: Paths, port: str, gpus: tuple[str, ...], nccl: Nccl) -> list[str]:
    """Return the GPUs with the widest way from a port, and of those the best type; before 2.27.3 the fewest links."""
    ways = {gpu: paths[port].get(gpu, NO_PATH) for gpu in gpus}
    widest_Bps = max(path.bandwidth_Bps for path in ways.values())
    near = {gpu: path for gpu, path in ways.items() if path.bandwidth_Bps == widest_Bps}
    if nccl < _LOCAL_SINCE:
        fewest = min(len(path.hops) for path in near.values())
        return [gpu for gpu, path in near.items() if len(path.hops) == fewest]
    best = min(RANK[path.type] for path in near.values())
    return [gpu for gpu, path in near.items() if RANK[path.type] == best and path.type != "DIS"]

"""Two topologies made alike in everything but where their devices are, so that only that is compared."""

from msgspec import structs

from busbw.model.topology import Gpu, NumaNode, PciDevice, Topology
from busbw.topo.pcie import lane_units

# Wider than any link: a link that is left to detection does not narrow a way.
_WIDE = "64.0 GT/s PCIe"
# Lanes that NCCL takes a width of 0 for.
HIDDEN_WIDTH = 16


def card(bus_id: str) -> str:
    """Return the address of a card: that of its functions without the last digit."""
    return bus_id.rpartition(".")[0] or bus_id


def aligned_kinds(topology: Topology, other: Topology) -> Topology:
    """Return a topology in which devices without a class are what the other one says they are."""
    known = {device.bus_id: device for device in other.devices}
    devices, gpus = [], list(topology.gpus)
    for device in topology.devices:
        twin = known.get(device.bus_id)
        if device.device_class is None and device.kind == "other" and twin is not None:
            devices.append(structs.replace(device, kind=twin.kind))
            if twin.kind == "gpu":
                gpus.append(Gpu(bus_id=device.bus_id))
        else:
            devices.append(device)
    return structs.replace(topology, devices=tuple(devices), gpus=tuple(gpus))


def aligned_trees(first: Topology, second: Topology) -> tuple[Topology, Topology]:
    """Return the PCI trees of both with the same links, the faster ones, and processors, as far as both have them.

    Ports and other links are gone. A switch that only one has keeps its link, and narrows nothing where it has none.
    """
    links: dict[str, tuple[str | None, int | None]] = {}
    for device in (*first.devices, *second.devices):
        speed, width = links.get(device.bus_id, (None, None))
        links[device.bus_id] = _faster(speed, device.link_speed), _wider(width, device.link_width)
    nodes = {node.id: node for node in (*second.numa, *first.numa)}
    return _aligned(first, links, nodes), _aligned(second, links, nodes)


def _faster(first: str | None, second: str | None) -> str | None:
    """Return the text of the faster link; one alone where the other is not given."""
    if first is None or second is None:
        return second if first is None else first
    return max(first, second, key=lane_units)


def _wider(first: int | None, second: int | None) -> int | None:
    given = [width or HIDDEN_WIDTH for width in (first, second) if width is not None]
    return max(given, default=None)


def _aligned(
    topology: Topology, links: dict[str, tuple[str | None, int | None]], nodes: dict[int, NumaNode]
) -> Topology:
    devices: list[PciDevice] = []
    for device in topology.devices:
        speed, width = links[device.bus_id]
        if speed is None and device.kind == "switch":
            speed = _WIDE
        devices.append(structs.replace(device, link_speed=speed, link_width=width))
    return structs.replace(
        topology, numa=tuple(nodes.values()), devices=tuple(devices), nvlinks=(), chip_links=(), nets=()
    )

"""What of a topology belongs into a file for many machines: what NCCL cannot find out, or finds wrong."""

from msgspec import structs

from busbw.model.topology import Gpu, NumaNode, PciDevice, Topology
from busbw.topo.processors import real_family

_OPTIONAL = ("device_class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed")


def portable(topology: Topology) -> Topology:
    """Return NUMA nodes with their CPUs, and the PCI tree; the rest NCCL finds out on each machine.

    Left out are what belongs to one host or one job (its name and hash, ranks, GUIDs), what would stop NCCL from
    looking (NVLinks, chip-to-chip links), what it fills in itself (ports, what it asks of a GPU), and NUMA nodes
    without devices.
    """
    used = {device.numa for device in topology.devices}
    nodes = tuple(_complete(node) for node in topology.numa if node.id in used)
    is_rccls = any(gpu.gcn is not None for gpu in topology.gpus)
    return structs.replace(
        topology,
        name=None,
        host_hash=None,
        numa=nodes if is_rccls else tuple(_recounted(node) for node in nodes),
        devices=tuple(_known(device) for device in topology.devices),
        gpus=tuple(_bare(gpu) for gpu in {gpu.bus_id: gpu for gpu in reversed(topology.gpus)}.values())[::-1],
        nvlinks=(),
        chip_links=(),
        nets=(),
    )


def _bare(gpu: Gpu) -> Gpu:
    # RCCL refuses a file of NCCL's version, and AMD's processor is what makes it RCCL's.
    return Gpu(bus_id=gpu.bus_id, gcn=gpu.gcn)


def _complete(node: NumaNode) -> NumaNode:
    """Return a node without half a processor: NCCL asks for family and model together, and fails on one alone."""
    if node.family is not None and node.model is not None:
        return node
    return structs.replace(node, family=None, model=None)


def _recounted(node: NumaNode) -> NumaNode:
    """Return a node with the true family of AMD's processors, as every NCCL takes it; RCCL wants it as it writes it."""
    return structs.replace(node, family=real_family(node.vendor, node.family))


def _known(device: PciDevice) -> PciDevice:
    """Return a device without empty values: NCCL takes them as they stand, and does not look further."""
    empty = {name for name in _OPTIONAL if getattr(device, name) == ""}
    # A width of 0 is what a machine shows that hides it; NCCL finds the same.
    hidden = {"link_width"} if device.link_width == 0 else set()
    return structs.replace(device, **dict.fromkeys(empty | hidden)) if empty | hidden else device

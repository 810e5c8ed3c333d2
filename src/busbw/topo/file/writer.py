"""Topologies as files that NCCL's reader accepts, of AMD's GPUs RCCL's.

An element a line, spaces only, no prolog, within its limits.

The same topology gives the same bytes.
"""

from collections.abc import Iterator, Sequence

from msgspec import structs

from busbw.base.cpus import format_mask
from busbw.base.errors import InputError
from busbw.base.text import one_line
from busbw.model.topology import Gpu, Net, NumaNode, PciDevice, Topology
from busbw.topo.buses import real_family
from busbw.topo.file.document import MOST_ELEMENTS, MOST_VALUE_BYTES, RCCL_VERSION, VERSION

_WORD_BITS = 32
_INDENT = "  "

# Name and value of each attribute; None is not written.
Attributes = Sequence[tuple[str, str | int | float | bool | None]]


def file_text(topology: Topology, comment: tuple[str, ...] = ()) -> str:
    """Return the file of a topology; `comment` is put above it, line by line, as what NCCL skips.

    What is None is left out, and NCCL then asks the machine. Raises InputError where the topology contradicts itself,
    or exceeds what NCCL's reader takes.
    """
    _check_size(len(topology.devices) + len(topology.numa))
    _check(topology)
    is_rccls = any(gpu.gcn is not None for gpu in topology.gpus)
    system = [("version", RCCL_VERSION if is_rccls else VERSION), ("name", topology.name)]
    inside = [line for node in topology.numa for line in _cpu(topology, node)]
    lines = [*_comment(comment), *_element("system", system, inside)]
    _check_size(sum(1 for line in lines if line.lstrip()[1] not in "/!"))
    return "".join(f"{line}\n" for line in lines)


def _check_size(count: int) -> None:
    if count > MOST_ELEMENTS:
        raise InputError(
            f"the topology takes {count} elements; NCCL's reader stops after {MOST_ELEMENTS}",
            hint="leave devices out that NCCL does not use, or bridges between them",
        )


def _comment(lines: tuple[str, ...]) -> list[str]:
    # The space matters: NCCL reads the first word as a name. Two hyphens end a comment for some XML readers.
    return [f"<!-- {one_line(line).replace('--', '-')} -->" for line in lines]


def _element(name: str, attributes: Attributes, inside: list[str]) -> list[str]:
    """Return the lines of an element around the lines of what it holds."""
    written = "".join(f" {key}={_quoted(key, value)}" for key, value in attributes if value is not None)
    if not inside:
        return [f"<{name}{written}/>"]
    return [f"<{name}{written}>", *(f"{_INDENT}{line}" for line in inside), f"</{name}>"]


def _quoted(name: str, value: str | float | bool) -> str:  # noqa: FBT001 - a value like the others
    text = str(int(value)) if isinstance(value, bool) else str(value)
    quote = "'" if '"' in text else '"'
    if quote in text or not text.isprintable():
        raise InputError(f"{name} holds characters that no topology file can: {text[:60]!r}")
    if len(text.encode()) > MOST_VALUE_BYTES:
        raise InputError(f"{name} has {len(text.encode())} bytes; NCCL's reader takes {MOST_VALUE_BYTES}")
    return f"{quote}{text}{quote}"


def _cpu(topology: Topology, node: NumaNode) -> list[str]:
    attributes = [
        ("host_hash", topology.host_hash),
        ("numaid", node.id),
        ("affinity", None if node.cpus is None else format_mask(node.cpus, _words(topology))),
        ("arch", node.architecture),
        ("vendor", node.vendor),
        ("familyid", node.family),
        ("modelid", node.model),
    ]
    inside = [
        line
        for device in topology.devices
        if device.parent is None and device.numa == node.id
        for line in _pci(topology, device)
    ]
    nets = [net for net in topology.nets if net.bus_id is None and net.numa == node.id]
    return _element("cpu", attributes, [*inside, *_nic(nets)])


def _words(topology: Topology) -> int:
    """Return how many words hold every CPU of the machine."""
    highest = max((cpu for node in topology.numa for cpu in node.cpus or ()), default=0)
    return highest // _WORD_BITS + 1


def _pci(topology: Topology, device: PciDevice) -> list[str]:
    attributes = [
        ("busid", device.bus_id),
        ("class", device.device_class),
        ("vendor", device.vendor),
        ("device", device.device),
        ("subsystem_vendor", device.subsystem_vendor),
        ("subsystem_device", device.subsystem_device),
        ("link_speed", device.link_speed),
        ("link_width", device.link_width),
    ]
    inside = [line for child in topology.devices if child.parent == device.bus_id for line in _pci(topology, child)]
    for link in topology.pci_links:
        if link.device == device.bus_id:
            inside += _element("pcilink", [("target", link.target)], [])
    gpus = [gpu for gpu in topology.gpus if gpu.bus_id == device.bus_id]
    nets = [net for net in topology.nets if net.bus_id == device.bus_id and net.name]
    if not nets and device.kind == "nic" and not (device.device_class or "").startswith("0x02"):
        inside += _element("nic", [], [])
    return _element("pci", attributes, [*_gpus(topology, device, gpus), *inside, *_nic(nets)])


def _gpus(topology: Topology, device: PciDevice, gpus: list[Gpu]) -> Iterator[str]:
    """Yield the lines of the GPUs of a device; what is known of their links stands with the first."""
    links = [
        line
        for link in topology.nvlinks
        if link.gpu == device.bus_id
        for line in _element(
            link.kind, [("target", link.target), ("count", link.count), ("tclass", link.target_class)], []
        )
    ]
    for chip in topology.chip_links:
        if chip.gpu == device.bus_id:
            links += _element("c2c", [("bw", chip.link_MBps), ("count", chip.count)], [])
    for place, gpu in enumerate(gpus):
        attributes = [(name, getattr(gpu, name)) for name in ("dev", "sm", "gcn", "rank", "gdr", "mlopart")]
        inside = links if place == 0 else []
        is_known = inside or len(gpus) > 1 or any(value is not None for _name, value in attributes)
        # Without it only the class says that the device is a GPU.
        if is_known or not (device.device_class or "").startswith("0x03"):
            yield from _element("gpu", attributes, inside)


def _nic(nets: list[Net]) -> list[str]:
    """Return the lines of ports; NCCL knows them by name, and one without is not written."""
    nets = [net for net in nets if net.name]
    if not nets:
        return []
    inside = []
    for net in nets:
        attributes = [
            ("name", net.name),
            ("dev", net.dev),
            ("speed", net.speed_Mbps),
            ("port", net.port),
            ("latency", net.latency_us),
            ("guid", net.guid),
            ("maxconn", net.maxconn),
            ("gdr", net.gdr),
            ("coll", net.coll),
            *net.more.items(),
        ]
        inside += _element("net", attributes, [])
    return _element("nic", [], inside)


def _check(topology: Topology) -> None:
    """Raise InputError where a device would get lost, or stand in two places."""
    numa = [node.id for node in topology.numa]
    places: dict[str, int] = {}
    for device in topology.devices:
        if device.bus_id in places:
            raise InputError(f"{device.bus_id} stands twice in the topology")
        if device.numa not in numa:
            raise InputError(f"{device.bus_id} is on NUMA node {device.numa}, which the topology does not describe")
        if device.parent is not None and places.get(device.parent) != device.numa:
            raise InputError(f"{device.bus_id} hangs below {device.parent}, which does not stand before it on its node")
        places[device.bus_id] = device.numa
    if len(set(numa)) != len(numa):
        raise InputError("a NUMA node stands twice in the topology")
    _check_holders(topology, set(places))
    for net in topology.nets:
        if net.bus_id is None and net.numa not in numa:
            raise InputError(f"{net.name} is on NUMA node {net.numa}, which the topology does not describe")


def _check_holders(topology: Topology, devices: set[str]) -> None:
    """Raise InputError where a GPU, a port or a link belongs to nothing that is written."""
    gpus = {gpu.bus_id for gpu in topology.gpus}
    for gpu in sorted({*(link.gpu for link in topology.nvlinks), *(link.gpu for link in topology.chip_links)} - gpus):
        raise InputError(f"{gpu} has links of a GPU, but is not a GPU of the topology")
    ports = {net.bus_id for net in topology.nets if net.bus_id is not None}
    for bus_id in sorted({*gpus, *ports, *(link.device for link in topology.pci_links)} - devices):
        raise InputError(f"{bus_id} has a GPU, a port or a link, but is not a device of the topology")


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

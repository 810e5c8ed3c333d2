"""The topologies that an NCCL topology file describes: one for each host in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.model.topology import (
    ChipLink,
    DeviceKind,
    Gpu,
    LinkKind,
    Net,
    NumaNode,
    NvLink,
    PciDevice,
    PciLink,
    Topology,
)
from busbw.topo.buses import normal_bus_id
from busbw.topo.file.document import Element, TopologyDocument, read_cpus, read_integer, read_real

# NCCL compares the beginning of a class with these, in this order.
_KINDS: tuple[tuple[str, DeviceKind], ...] = (
    ("0x060400", "switch"),
    # The data-direct function of a ConnectX-8.
    ("0x080100", "switch"),
    ("0x068000", "nvswitch"),
    ("0x068001", "cpu"),
    ("0x03", "gpu"),
    ("0x02", "nic"),
)
_LINK_KINDS: tuple[LinkKind, ...] = ("nvlink", "xgmi")
_NEWER_NET_ATTRIBUTES = ("net", "gin", "rma", "rail", "plane")


@dataclass(slots=True)
class _Host:
    """What has been read of one host."""

    host_hash: str | None
    numa: dict[int, NumaNode] = field(default_factory=dict)
    devices: dict[str, PciDevice] = field(default_factory=dict)
    gpus: list[Gpu] = field(default_factory=list)
    nvlinks: list[NvLink] = field(default_factory=list)
    chip_links: list[ChipLink] = field(default_factory=list)
    pci_links: list[PciLink] = field(default_factory=list)
    nets: list[Net] = field(default_factory=list)


def topologies_of(document: TopologyDocument) -> tuple[Topology, ...]:
    """Return the topology of each host, in the order of the file: usually one, empty where no NUMA node is described.

    Numbers are read as NCCL reads them, but None where NCCL takes a value without digits for 0. What NCCL cannot use is
    left out: a `pci` without a bus id, a `net` without a name. A NUMA node or bus id that stands twice is one, and its
    first description counts.
    """
    hosts: dict[int, _Host] = {}
    for cpu in document.root.named("cpu"):
        text = cpu.value("host_hash")
        host = hosts.setdefault(_hash(text), _Host(text))
        _read_cpu(host, cpu)
    name = document.root.value("name")
    return tuple(_topology(host, name) for host in hosts.values()) or (Topology(name=name),)


def kind_of(device: Element) -> DeviceKind:
    """Return what NCCL takes a `pci` for: by what it holds, else by its class."""
    if device.named("gpu"):
        return "gpu"
    if device.named("nic"):
        return "nic"
    device_class = device.value("class") or ""
    known = next((kind for prefix, kind in _KINDS if device_class.startswith(prefix)), None)
    return known or ("switch" if device.named("pci") else "other")


def _hash(text: str | None) -> int:
    try:
        return int(text or "0", 16)
    except ValueError:
        return 0


def _topology(host: _Host, name: str | None) -> Topology:
    # Without its number NVML's order is the order of the bus.
    gpus = sorted(host.gpus, key=lambda gpu: (gpu.dev is None, gpu.dev or 0, gpu.bus_id))
    return Topology(
        name=name,
        host_hash=host.host_hash,
        numa=tuple(host.numa.values()),
        devices=tuple(host.devices.values()),
        gpus=tuple(gpus),
        nvlinks=tuple(host.nvlinks),
        chip_links=tuple(host.chip_links),
        pci_links=tuple(host.pci_links),
        nets=tuple(host.nets),
    )


def _read_cpu(host: _Host, cpu: Element) -> None:
    # As NCCL does, a text without digits is 0; where no id stands it fails.
    id_ = -1 if cpu.value("numaid") is None else read_integer(cpu.value("numaid")) or 0
    host.numa.setdefault(
        id_,
        NumaNode(
            id=id_,
            cpus=read_cpus(cpu.value("affinity")),
            architecture=cpu.value("arch"),
            vendor=cpu.value("vendor"),
            family=read_integer(cpu.value("familyid")),
            model=read_integer(cpu.value("modelid")),
        ),
    )
    _read_nets(host, cpu, None, id_)
    for device in cpu.named("pci"):
        _read_device(host, device, None, id_)


def _read_device(host: _Host, element: Element, parent: str | None, numa: int) -> None:
    written = element.value("busid")
    if not written:
        return
    bus_id = normal_bus_id(written)
    if bus_id not in host.devices:
        host.devices[bus_id] = PciDevice(
            bus_id=bus_id,
            parent=parent,
            numa=numa,
            kind=kind_of(element),
            device_class=element.value("class"),
            vendor=element.value("vendor"),
            device=element.value("device"),
            subsystem_vendor=element.value("subsystem_vendor"),
            subsystem_device=element.value("subsystem_device"),
            link_speed=element.value("link_speed"),
            link_width=read_integer(element.value("link_width")),
        )
        _read_gpus(host, element, bus_id)
    _read_nets(host, element, bus_id, host.devices[bus_id].numa)
    for link in element.named("pcilink"):
        host.pci_links.append(PciLink(device=bus_id, target=normal_bus_id(link.value("target") or "")))
    for child in element.named("pci"):
        _read_device(host, child, bus_id, host.devices[bus_id].numa)


def _read_gpus(host: _Host, device: Element, bus_id: str) -> None:
    """Read the GPUs of a device: several where ranks or parts share it, one where nothing but its class is said.

    Each of several lists all links of the device, so they are read of the first.
    """
    if host.devices[bus_id].kind != "gpu":
        return
    elements = device.named("gpu")
    if not elements:
        host.gpus.append(Gpu(bus_id=bus_id))
    for element in elements:
        host.gpus.append(
            Gpu(
                bus_id=bus_id,
                dev=read_integer(element.value("dev")),
                rank=read_integer(element.value("rank")),
                # RCCL counts compute units there.
                sm=read_integer(element.value("sm")) if element.value("gcn") is None else None,
                gdr=_flag(element.value("gdr")),
                mlopart=read_integer(element.value("mlopart")),
                gcn=element.value("gcn"),
            )
        )
    for element in elements[:1]:
        host.nvlinks += [_link(link, bus_id, kind) for kind in _LINK_KINDS for link in element.named(kind)]
        for link in element.named("c2c"):
            count, rate = (read_integer(link.value(name)) or 0 for name in ("count", "bw"))
            host.chip_links.append(ChipLink(gpu=bus_id, count=count, link_MBps=rate))


def _link(element: Element, gpu: str, kind: LinkKind) -> NvLink:
    return NvLink(
        gpu=gpu,
        target=normal_bus_id(element.value("target") or ""),
        count=read_integer(element.value("count")) or 0,
        target_class=element.value("tclass"),
        kind=kind,
    )


def _read_nets(host: _Host, parent: Element, bus_id: str | None, numa: int) -> None:
    for net in (net for nic in parent.named("nic") for net in nic.named("net")):
        if not net.value("name"):
            continue
        more = {name: value for name in _NEWER_NET_ATTRIBUTES if (value := net.value(name)) is not None}
        host.nets.append(
            Net(
                name=net.value("name") or "",
                bus_id=bus_id,
                numa=numa,
                dev=read_integer(net.value("dev")),
                speed_Mbps=read_integer(net.value("speed")),
                latency_us=read_real(net.value("latency")),
                port=read_integer(net.value("port")),
                guid=net.value("guid"),
                maxconn=read_integer(net.value("maxconn")),
                gdr=_flag(net.value("gdr")),
                coll=_flag(net.value("coll")),
                more=more,
            )
        )


def _flag(text: str | None) -> bool | None:
    number = read_integer(text)
    return None if number is None else number != 0


def obstacles(document: TopologyDocument) -> tuple[str, ...]:
    """Return, with their lines, what stops NCCL's reader, or keeps it from finding a device; () where nothing does.

    Busbw reads behind all of these: what it says of the file is what its author meant.
    """
    return tuple(dict.fromkeys((*_stops(document), *_not_found(document))))


def _stops(document: TopologyDocument) -> Iterator[str]:
    for remark in document.remarks:
        if remark.effect == "fails":
            yield f"line {remark.line}: NCCL stops at {remark.text}"
        elif remark.kind == "root-name":
            yield f"line {remark.line}: {remark.text}"


def _not_found(document: TopologyDocument) -> Iterator[str]:
    """Yield the GPUs and NICs whose bus ids are not written as NCCL writes them; only switches may have any name."""
    for element in document.root.walk():
        written = element.attribute("busid")
        if element.name != "pci" or written is None or kind_of(element) == "switch":
            continue
        right = normal_bus_id(written.value)
        if written.value != right:
            yield f"line {written.line}: NCCL looks for {right}, and that is not how {written.value} is written"

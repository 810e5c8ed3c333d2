"""A topology from what a host shows, as NCCL would find it there without a file."""

from collections import Counter
from collections.abc import Mapping

from msgspec import structs

from busbw.facts.devices import gpus_on_bus
from busbw.model.host import Hardware, HostGpu, HostNvLink, HostPort, PciFunction
from busbw.model.topology import ChipLink, DeviceKind, Gpu, Net, NumaNode, NvLink, PciDevice, Topology
from busbw.topo.buses import GENERATION_GTps, speed_text, transfer_GTps

NO_NUMA = -1


def devices_above(
    ends: Mapping[str, DeviceKind], functions: Mapping[str, PciFunction], gpus: Mapping[str, HostGpu]
) -> tuple[PciDevice, ...]:
    """Return the devices at the bus ids `ends` and the switches above them, parents first.

    Ordered by NUMA node, then by bus id among the children of one device.
    """
    parents: dict[str, str | None] = {}
    tops: dict[str, str] = {}
    for end in ends:
        chain = _chain(end, functions)
        for lower, upper in zip(chain, [*chain[1:], None], strict=True):
            parents[lower] = upper
            tops[lower] = chain[-1]
    children: dict[str | None, list[str]] = {}
    for bus_id, parent in parents.items():
        children.setdefault(parent, []).append(bus_id)

    def numa(bus_id: str) -> int:
        return _numa(tops[bus_id], functions, gpus)

    ordered: list[str] = []
    waiting = sorted(children.get(None, ()), key=lambda bus_id: (numa(bus_id), bus_id), reverse=True)
    while waiting:
        bus_id = waiting.pop()
        ordered.append(bus_id)
        waiting += sorted(children.get(bus_id, ()), reverse=True)
    return tuple(
        _device(bus_id, parents[bus_id], numa(bus_id), ends.get(bus_id, "switch"), functions, gpus.get(bus_id))
        for bus_id in ordered
    )


def _chain(bus_id: str, functions: Mapping[str, PciFunction]) -> list[str]:
    """Return a device and the switches above it, lowest first."""
    chain = [bus_id]
    while (upper := _upper(chain[-1], functions)) is not None and upper not in chain:
        chain.append(upper)
    return chain


def _upper(bus_id: str, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the switch that NCCL puts above a device; None: its CPU."""
    function = functions.get(bus_id)
    port = functions.get(function.parent) if function is not None and function.parent is not None else None
    return port.parent if port is not None and port.parent in functions else None


def _numa(top: str, functions: Mapping[str, PciFunction], gpus: Mapping[str, HostGpu]) -> int:
    """Return the NUMA node of a device right below a CPU: what it says itself counts for all below it."""
    if top in functions:
        return functions[top].numa
    # Without sysfs the driver may still know where its GPU is.
    gpu = gpus.get(top)
    return gpu.numa if gpu is not None and gpu.numa is not None else NO_NUMA


def _device(
    bus_id: str,
    parent: str | None,
    numa: int,
    kind: DeviceKind,
    functions: Mapping[str, PciFunction],
    gpu: HostGpu | None,
) -> PciDevice:
    function = functions.get(bus_id)
    if function is None:
        speed, width = _link_of_driver(gpu)
        return PciDevice(bus_id=bus_id, parent=parent, numa=numa, kind=kind, link_speed=speed, link_width=width)
    port = functions.get(function.parent) if function.parent is not None else None
    speed, width = _link(function, port)
    driver_speed, driver_width = _link_of_driver(gpu)
    return PciDevice(
        bus_id=bus_id,
        parent=parent,
        numa=numa,
        kind=kind,
        device_class=function.device_class,
        vendor=function.vendor,
        device=function.device,
        subsystem_vendor=function.subsystem_vendor,
        subsystem_device=function.subsystem_device,
        link_speed=speed if speed is not None else driver_speed,
        link_width=width if width is not None else driver_width,
        host_bridge=_host_bridge(function, functions),
        near_cpus=function.local_cpus if numa == NO_NUMA else (),
    )


def _host_bridge(function: PciFunction, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the root bus that a function is below; None where the way up ends at a bridge that is not shown."""
    seen = {function.bus_id}
    while function.parent is not None:
        upper = functions.get(function.parent)
        if upper is None or upper.bus_id in seen:
            return None
        seen.add(upper.bus_id)
        function = upper
    return function.bus_id.rpartition(":")[0]


def _link(function: PciFunction, port: PciFunction | None) -> tuple[str | None, int | None]:
    """Return speed and lanes of a link: the less of what the device and the port above it can do.

    Where the port is hidden, in virtual machines, NCCL writes 0 lanes and counts 16; here it is what the device says.
    """
    ends = [end for end in (function, port) if end is not None]
    speeds = [(rate, end.max_link_speed) for end in ends if (rate := _rate_GTps(end.max_link_speed)) is not None]
    widths = [end.max_link_width for end in ends if end.max_link_width]
    return min(speeds)[1] if speeds else None, min(widths, default=None)


def _rate_GTps(text: str | None) -> float | None:
    return transfer_GTps(text) if text is not None else None


def _link_of_driver(gpu: HostGpu | None) -> tuple[str | None, int | None]:
    """Return speed and lanes of a GPU's link as its driver has them."""
    if gpu is None:
        return None, None
    rate_GTps = GENERATION_GTps.get(gpu.max_link_generation or 0)
    return speed_text(rate_GTps) if rate_GTps is not None else None, gpu.max_link_width


_NIC_CLASS = "0x02"
_VIRTIO = "0x1af4"
_GUID_DIGITS = 16
# A thousand times what the fastest ports do; a snapshot may hold any number.
_FASTEST_bps = 1e15


def nets_of(hardware: Hardware, functions: Mapping[str, PciFunction]) -> tuple[Net, ...]:
    """Return the ports that NCCL would use: those of RDMA devices, and only without any the network interfaces.

    Ports that are down are left out, as NCCL leaves them out. What NCCL_IB_HCA or NCCL_SOCKET_IFNAME choose is not
    applied here. `numa` is that of the port's own function; -1 for what has no place on the PCI bus.
    """
    ports = [port for port in hardware.ports if port.up is not False]
    rdma = [port for port in ports if port.kind != "Ethernet"]
    nets: list[Net] = []
    on_device: Counter[str] = Counter()
    guids: dict[str, str | None] = {}
    for dev, port in enumerate(rdma or ports):
        bus_id = _device_of(port, functions)
        before = on_device[bus_id] if bus_id is not None else 0
        if bus_id is not None:
            on_device[bus_id] += 1
            guids.setdefault(bus_id, _guid(port.guid))
        function = functions.get(bus_id or "")
        nets.append(
            Net(
                name=port.name,
                bus_id=bus_id,
                numa=function.numa if function is not None else NO_NUMA,
                dev=dev,
                speed_Mbps=_Mbps(port.rate_bps),
                # Ports of one card count on, whichever function they are on; an interface has none for NCCL.
                port=port.port + before if rdma else 0,
                guid=guids[bus_id] if bus_id is not None else _guid(port.guid),
            )
        )
    return tuple(nets)


def _device_of(port: HostPort, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the PCI device that NCCL puts a port at: the first function of its card, or of what it is a part of.

    A virtio interface has none: its device is on the virtio bus.
    """
    function = functions.get(port.bus_id or "")
    if function is None:
        return port.bus_id
    if function.vendor == _VIRTIO:
        return None
    if port.kind in ("InfiniBand", "RoCE"):
        bus = function.bus_id.rsplit(":", 1)[0]
        slot = function.bus_id.rsplit(".", 1)[0]
        for first in (f"{bus}:00.0", f"{slot}.0"):
            # Virtual functions belong to the card's physical one, where that is here too.
            if first in functions and functions[first].device_class.startswith(_NIC_CLASS):
                return first
    return function.bus_id


def _Mbps(rate_bps: float | None) -> int | None:
    """Return a rate as NCCL counts it; None for what no port can have."""
    return round(rate_bps / 1e6) if rate_bps is not None and 1e6 <= rate_bps <= _FASTEST_bps else None


def _guid(text: str | None) -> str | None:
    """Return a GUID as NCCL writes it: the bytes of `0x946dae030050709a` in the order of the machine, as a number."""
    digits = (text or "").replace(":", "").removeprefix("0x")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        return None
    return f"0x{int.from_bytes(raw, 'little'):x}" if len(digits) == _GUID_DIGITS else None


# What the driver says, and NCCL writes, where a virtual machine does not show the other end.
HIDDEN_TARGET = "fffffff:ff:ff.0"
_SWITCH_CLASS = "0x068000"
_CLASSES = {"gpu": "0x030200", "switch": _SWITCH_CLASS, "cpu": "0x068001"}
# Boards that plug into a slot are joined by bridges, two by two: there is no switch to hide.
_BRIDGED_BOARDS = ("pcie", "nvl")


def nvlinks_of(hardware: Hardware) -> tuple[NvLink, ...]:
    """Return the active NVLinks of every GPU, counted by what is at their other end.

    Ends that the driver hides are taken from the matrix of `nvidia-smi topo -m` where its counts say that the GPUs are
    joined directly, and are a hidden switch else, as NCCL takes them.
    """
    functions = {function.bus_id: function for function in hardware.pci}
    return tuple(link for gpu in hardware.gpus for link in _of_gpu(gpu, hardware, functions))


def _of_gpu(gpu: HostGpu, hardware: Hardware, functions: Mapping[str, PciFunction]) -> list[NvLink]:
    active = [link for link in gpu.nvlinks if link.active]
    counts = Counter(link.target for link in active if link.target is not None)
    kinds = {link.target: link for link in active}
    links = [
        NvLink(
            gpu=gpu.bus_id,
            target=target,
            count=count,
            target_class=_class(kinds[target], functions),
            kind="nvlink" if gpu.gcn is None else "xgmi",
        )
        for target, count in sorted(counts.items())
    ]
    hidden = [link for link in active if link.target is None]
    peers = _direct_peers(gpu, hardware, len(hidden)) if all(link.target_kind != "switch" for link in hidden) else {}
    if peers:
        links += [
            NvLink(gpu=gpu.bus_id, target=peer, count=count, target_class=_gpu_class(peer, functions))
            for peer, count in sorted(peers.items())
        ]
    elif hidden:
        links.append(
            NvLink(gpu=gpu.bus_id, target=HIDDEN_TARGET, count=len(hidden), target_class=_SWITCH_CLASS),
        )
    return links


def _class(link: HostNvLink, functions: Mapping[str, PciFunction]) -> str:
    """Return the class of what a link leads to; what the machine does not show is a switch to NCCL."""
    target = functions.get(link.target or "")
    if target is not None:
        return target.device_class
    return _CLASSES.get(link.target_kind or "switch", _SWITCH_CLASS)


def _gpu_class(bus_id: str, functions: Mapping[str, PciFunction]) -> str:
    return functions[bus_id].device_class if bus_id in functions else _CLASSES["gpu"]


def _direct_peers(gpu: HostGpu, hardware: Hardware, hidden: int) -> dict[str, int]:
    """Return how many links lead to each other GPU, where no switch is between them; else nothing.

    Through a switch every peer is reached by all links, so the counts of a row add up to more than there are.
    """
    by_name = {f"GPU{each.index}": each.bus_id for each in hardware.gpus}
    counts: dict[str, int] = {}
    for cell in hardware.matrix:
        peer = by_name.get(cell.column)
        number = cell.path.removeprefix("NV")
        if cell.row == f"GPU{gpu.index}" and peer is not None and number != cell.path and number.isdecimal():
            counts[peer] = int(number[:4])
    if sum(counts.values()) != hidden:
        return {}
    bridged = any(word in (gpu.name or "").lower() for word in _BRIDGED_BOARDS)
    return counts if len(counts) > 1 or bridged else {}


# NCCL's words for what the kernel calls a machine.
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64", "ppc64le": "ppc64", "ppc64": "ppc64"}

# A thousand times what a link does; a snapshot may hold any number.
_FASTEST_Bps = 1e14


def topology_of_hardware(hardware: Hardware) -> Topology:
    """Return the node that NCCL would find on this host: GPUs, ports it can send through, and what joins them.

    NUMA nodes with CPUs stand there also without a device; on a machine that shows no NUMA for any of its devices (many
    virtual machines) NCCL knows one node, -1, without CPUs, and so does this. Not seen here: chip-to-chip links,
    whether GPUDirect works, and links between PCI switches.
    """
    gpus = hardware.gpus or gpus_on_bus(hardware.pci)
    functions = {function.bus_id: function for function in hardware.pci}
    nets = nets_of(hardware, functions)
    ends: dict[str, DeviceKind] = {net.bus_id: "nic" for net in nets if net.bus_id is not None}
    ends |= {gpu.bus_id: "gpu" for gpu in gpus}
    devices = tuple(
        _near(device, hardware) for device in devices_above(ends, functions, {gpu.bus_id: gpu for gpu in gpus})
    )
    numa = _numa_nodes(hardware, devices)
    return Topology(
        name=hardware.hostname,
        numa=numa,
        devices=devices,
        gpus=tuple(_gpu(gpu) for gpu in sorted(gpus, key=lambda gpu: (gpu.index, gpu.bus_id))),
        nvlinks=nvlinks_of(hardware),
        chip_links=tuple(link for gpu in gpus if (link := _chip_link(gpu)) is not None),
        nets=tuple(_placed(net, devices, numa) for net in nets),
    )


def _near(device: PciDevice, hardware: Hardware) -> PciDevice:
    """Return a device with the NUMA nodes of the CPUs that are local to it."""
    near = frozenset(device.near_cpus)
    return structs.replace(device, near_numa=tuple(node.id for node in hardware.numa if not near.isdisjoint(node.cpus)))


def _gpu(gpu: HostGpu) -> Gpu:
    return Gpu(bus_id=gpu.bus_id, dev=gpu.index, sm=gpu.sm, gcn=gpu.gcn, name=gpu.name)


def _chip_link(gpu: HostGpu) -> ChipLink | None:
    """Return the active links of a GPU to its own CPU; all of them are as fast as the last."""
    rates_Bps = [
        link.rate_Bps for link in gpu.chip_links if link.active and 1e6 <= (link.rate_Bps or 0) <= _FASTEST_Bps
    ]
    if not rates_Bps:
        return None
    return ChipLink(gpu=gpu.bus_id, count=len(rates_Bps), link_MBps=round((rates_Bps[-1] or 0) / 1e6))


def _numa_nodes(hardware: Hardware, devices: tuple[PciDevice, ...]) -> tuple[NumaNode, ...]:
    """Return the nodes that devices are at and, unless the machine hides where they are, all nodes with CPUs."""
    cpus = {node.id: node.cpus for node in hardware.numa if node.cpus}
    ids = {device.numa for device in devices}
    if ids != {NO_NUMA}:
        ids |= set(cpus)
    arm = hardware.architecture in ("aarch64", "arm64")
    return tuple(
        NumaNode(
            id=number,
            cpus=cpus.get(number),
            architecture=_ARCHITECTURES.get(hardware.architecture or "", hardware.architecture),
            # NCCL asks the processor for these on x86 alone.
            vendor=None if arm else hardware.cpu_vendor,
            family=None if arm else hardware.cpu_family,
            model=None if arm else hardware.cpu_model_number,
        )
        for number in sorted(ids or {NO_NUMA})
    )


def _placed(net: Net, devices: tuple[PciDevice, ...], numa: tuple[NumaNode, ...]) -> Net:
    """Return a port at the NUMA node of the tree it is in; what is on no PCI bus goes to the first node, as in NCCL."""
    here = {device.bus_id: device.numa for device in devices}
    first = devices[0].numa if devices else numa[0].id
    return structs.replace(net, numa=first if net.bus_id is None else here[net.bus_id])

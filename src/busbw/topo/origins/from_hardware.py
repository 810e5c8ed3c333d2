"""A topology from what a host shows, as NCCL would find it there without a file."""

from msgspec import structs

from busbw.facts.accelerators import gpus_on_bus
from busbw.model.host import Hardware, HostGpu
from busbw.model.topology import ChipLink, DeviceKind, Gpu, Net, NumaNode, PciDevice, Topology
from busbw.topo.origins.host_nets import nets_of
from busbw.topo.origins.host_nvlinks import nvlinks_of
from busbw.topo.origins.host_tree import NO_NUMA, devices_above

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

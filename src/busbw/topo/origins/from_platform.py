"""The topology of a platform, as far as its PCI map is published."""

from collections.abc import Iterator

from busbw.base.cpus import parse_cpu_list
from busbw.base.errors import InputError
from busbw.model.platform import GpuPlace, NicPlace, Platform, SwitchPlace
from busbw.model.topology import ChipLink, DeviceKind, Gpu, LinkKind, Net, NumaNode, NvLink, PciDevice, Topology
from busbw.topo.buses import GENERATION_GTps, normal_bus_id, speed_text

_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}
_SWITCH_CLASS = "0x060400"
# 3D controllers, and processing accelerators as AMD's are.
_GPU_CLASS = "0x030200"
_ACCELERATOR_CLASS = "0x120000"
_INFINIBAND_CLASS = "0x020700"
_ETHERNET_CLASS = "0x020000"
_NVSWITCH_CLASS = "0x068000"
# What NCCL writes for a target that a virtual machine does not show; it takes it for an NVSwitch.
_HIDDEN_TARGET = "fffffff:ffff:ff"
# Kinds of fabric whose ports have numbers.
_WITH_PORTS = ("InfiniBand", "RoCE")
_HINT = "on such a machine: busbw topo make --here"


def topology_of_platform(platform: Platform) -> Topology:
    """Return one node of a platform.

    NVLinks whose other ends nobody published lead to switches that a machine would not show, or to each other GPU where
    there are no switches. Raises InputError where no PCI map is published, or a device has no known place in it.
    """
    _check(platform)
    devices = tuple(_devices(platform))
    gpus = tuple(place for place in platform.gpus if place.bus_id is not None)
    return Topology(
        name=platform.id,
        numa=_numa_nodes(platform, devices),
        devices=devices,
        gpus=tuple(
            Gpu(bus_id=_bus_id(place), dev=place.gpu, sm=platform.gpu.sm, gcn=platform.gpu.gcn) for place in gpus
        ),
        nvlinks=tuple(link for place in gpus for link in _nvlinks(platform, place)),
        chip_links=tuple(
            ChipLink(gpu=_bus_id(place), count=1, link_MBps=round(platform.nvlink.c2c_Bps / 1e6))
            for place in gpus
            if platform.nvlink.c2c_Bps is not None
        ),
        nets=tuple(_nets(platform)),
    )


def map_gap(platform: Platform) -> str | None:
    """Return what of a platform's PCI map is not published, without which there is no topology; None: nothing."""
    places: tuple[GpuPlace | NicPlace, ...] = (*platform.gpus, *platform.nics)
    located = [place for place in places if place.bus_id is not None]
    gpus = sum(place.bus_id is not None for place in platform.gpus)
    if not located or (platform.gpu.count and gpus == 0):
        return f"no PCI map of {platform.id} is published"
    if gpus != platform.gpu.count:
        return f"the PCI map of {platform.id} is published in part: {gpus} of {platform.gpu.count} GPUs"
    for place in located:
        if place.numa is None:
            return f"the NUMA node of {place.bus_id} is not published for {platform.id}"
    if any(_has_own_nics(platform, place) for place in platform.gpus):
        return f"which switches the GPUs of {platform.id} share with their NICs is not published"
    return None


def _check(platform: Platform) -> None:
    """Raise InputError where the map has a gap."""
    gap = map_gap(platform)
    if gap is not None:
        raise InputError(gap, hint=_HINT)
    places: tuple[GpuPlace | NicPlace, ...] = (*platform.gpus, *platform.nics)
    located = [place for place in places if place.bus_id is not None]
    known = {normal_bus_id(place.bus_id) for place in platform.switches}
    hanging: tuple[SwitchPlace | GpuPlace | NicPlace, ...] = (*platform.switches, *located)
    for each in hanging:
        if each.parent is not None and normal_bus_id(each.parent) not in known:
            raise InputError(f"{each.bus_id} of {platform.id} hangs below {each.parent}, which is not described")


def _has_own_nics(platform: Platform, gpu: GpuPlace) -> bool:
    """Return whether a GPU is nearer to its NICs than to others of its NUMA node, over a switch that nobody names."""
    beside = {nic.name for nic in platform.nics if nic.numa == gpu.numa and nic.bus_id is not None}
    return gpu.parent is None and bool(gpu.nics) and set(gpu.nics) < beside


def _bus_id(place: SwitchPlace | GpuPlace | NicPlace) -> str:
    assert place.bus_id is not None
    return normal_bus_id(place.bus_id)


def _numa_nodes(platform: Platform, devices: tuple[PciDevice, ...]) -> tuple[NumaNode, ...]:
    """Return every NUMA node with CPUs, and those that only devices name."""
    masks = {place.id: None if place.cpus is None else parse_cpu_list(place.cpus) for place in platform.numa}
    masks |= {device.numa: None for device in devices if device.numa not in masks}
    architecture = _ARCHITECTURES.get(platform.match.architecture or "")
    is_x86 = architecture == "x86_64"
    # NCCL asks the processor for both or for none.
    has_model = is_x86 and platform.cpu.family is not None and platform.cpu.model_number is not None
    return tuple(
        NumaNode(
            id=id_,
            cpus=cpus,
            architecture=architecture,
            vendor=platform.cpu.vendor if is_x86 else None,
            family=platform.cpu.family if has_model else None,
            model=platform.cpu.model_number if has_model else None,
        )
        for id_, cpus in masks.items()
    )


def _devices(platform: Platform) -> Iterator[PciDevice]:
    """Yield what hangs below each NUMA node, each device before what hangs below it; every bus id once."""
    all_: dict[str, PciDevice] = {}
    for device in (*_switches(platform), *_gpu_devices(platform), *_nic_devices(platform)):
        all_.setdefault(device.bus_id, device)
    below: dict[str | None, list[PciDevice]] = {}
    for device in all_.values():
        below.setdefault(device.parent, []).append(device)
    waiting = below.get(None, [])[::-1]
    while waiting:
        device = waiting.pop()
        yield device
        waiting += below.get(device.bus_id, [])[::-1]


def _switches(platform: Platform) -> Iterator[PciDevice]:
    for place in platform.switches:
        yield PciDevice(
            bus_id=_bus_id(place),
            parent=None if place.parent is None else normal_bus_id(place.parent),
            numa=place.numa,
            kind="switch",
            device_class=_SWITCH_CLASS,
            vendor=place.vendor,
            device=place.device,
            subsystem_vendor=place.subsystem_vendor,
            subsystem_device=place.subsystem_device,
            link_speed=_link_text(platform, place.link_GTps),
            link_width=place.link_width if place.link_width is not None else platform.pcie.width,
        )


def _gpu_devices(platform: Platform) -> Iterator[PciDevice]:
    for place in platform.gpus:
        if place.bus_id is not None:
            yield _end(platform, place, "gpu", _gpu_class(platform), platform.match.gpu_devices)


def _gpu_class(platform: Platform) -> str:
    return _GPU_CLASS if platform.gpu.gcn is None else _ACCELERATOR_CLASS


def _nic_devices(platform: Platform) -> Iterator[PciDevice]:
    usual = _INFINIBAND_CLASS if platform.fabric.kind == "InfiniBand" else _ETHERNET_CLASS
    for place in platform.nics:
        if place.bus_id is not None:
            yield _end(platform, place, "nic", platform.nic.device_class or usual, platform.match.nic_devices)


def _end(
    platform: Platform, place: GpuPlace | NicPlace, kind: DeviceKind, device_class: str, ids: tuple[str, ...]
) -> PciDevice:
    """Return a GPU or a NIC in a slot of the platform."""
    assert place.numa is not None
    # Where there are several kinds nobody says which sits here.
    parts = [f"0x{part}" for part in ids[0].split(":")] if len(ids) == 1 else []
    vendor, device, subsystem_vendor, subsystem_device = [*parts, None, None, None, None][:4]
    return PciDevice(
        bus_id=_bus_id(place),
        parent=None if place.parent is None else normal_bus_id(place.parent),
        numa=place.numa,
        kind=kind,
        device_class=device_class,
        vendor=vendor,
        device=device,
        subsystem_vendor=subsystem_vendor,
        subsystem_device=subsystem_device,
        link_speed=_link_text(platform, None),
        link_width=platform.pcie.width,
    )


def _link_text(platform: Platform, own_GTps: float | None) -> str | None:
    """Return the link speed of a device: its own, else that of the generation, else what the vendor's file says."""
    rate_GTps = own_GTps or GENERATION_GTps.get(platform.pcie.generation or 0) or platform.pcie.written_GTps
    return None if rate_GTps is None else speed_text(rate_GTps)


def _nvlinks(platform: Platform, place: GpuPlace) -> Iterator[NvLink]:
    """Yield the NVLinks of a GPU: as published one by one, else as the kind of links has them."""
    gpu, links = _bus_id(place), platform.nvlink
    kind: LinkKind = "nvlink" if platform.gpu.gcn is None else "xgmi"
    gpu_class = _gpu_class(platform)
    peers = {_bus_id(other): gpu_class for other in platform.gpus if other.bus_id is not None and other is not place}
    if place.nvlinks:
        for target, count in place.nvlinks.items():
            target_class = peers.get(normal_bus_id(target), _NVSWITCH_CLASS)
            yield NvLink(gpu=gpu, target=normal_bus_id(target), count=count, target_class=target_class, kind=kind)
    elif links.switched and links.links_per_gpu:
        yield NvLink(gpu=gpu, target=_HIDDEN_TARGET, count=links.links_per_gpu, target_class=_NVSWITCH_CLASS)
    elif links.links_per_pair and links.links_per_gpu == links.links_per_pair * len(peers):
        for target in peers:
            yield NvLink(gpu=gpu, target=target, count=links.links_per_pair, target_class=gpu_class, kind=kind)


def _nets(platform: Platform) -> Iterator[Net]:
    for place in platform.nics:
        rate_bps = place.rate_bps if place.rate_bps is not None else platform.nic.port_bps
        if place.numa is not None and (place.name is not None or (place.bus_id is not None and rate_bps is not None)):
            yield Net(
                name=place.name or "",
                bus_id=None if place.bus_id is None else normal_bus_id(place.bus_id),
                numa=place.numa,
                speed_Mbps=None if rate_bps is None else round(rate_bps / 1e6),
                port=place.port if platform.fabric.kind in _WITH_PORTS else None,
            )

"""The graph that NCCL builds of a topology: who is linked to whom, and how fast."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.model.topology import Gpu, Hop, LinkType, Net, NumaNode, NvLink, PciDevice, Topology
from busbw.topo.buses import link_Bps

# The release whose rules hold where none is named: its path tables were held against those of a real machine.
DEFAULT_NCCL = (2, 28, 9)
# The first whose rules are known.
OLDEST_NCCL = (2, 18, 0)
# Whatever stays inside one device.
LOCAL_Bps = 5000e9
# A port without a speed, or with one that is not positive.
NO_SPEED_Mbps = 10_000
# Intel's root complex cuts traffic between GPUs into small packets: it costs this much more of a PCIe link.
INTEL_PEER_COST = 6 / 5

Nccl = tuple[int, int, int]
# Stands for the last release of a series that is named by two numbers.
LAST_OF_SERIES = 999

_POWER9_Bps = 32e9
_ARM_Bps = 6e9
_AMD_Bps = 16e9
# Since 2.31 by family: Zen 5, Zen 3 and 4 (NVIDIA/nccl issue 2441). Older ones wrote 143 and up.
_AMD_FAMILIES = ((26, 32e9), (25, 24e9))
# First model of Intel's family 6 that has the rate, the newest first; those before all of them count as Broadwell.
_INTEL = ((0xCF, 40e9), (0x8F, 22e9), (0x55, 10e9))
_BROADWELL_Bps = 6e9
_ZHAOXIN = ("CentaurHauls", "  Shanghai  ")
_ZHAOXIN_Bps = 6e9
_YONGFENG = (7, 0x5B)
_YONGFENG_Bps = 9e9
# First compute capability that has the rate; 8.6 stands out among its neighbours. Below all of them counts as 8.0.
_NVLINK = ((90, 20.6e9), (87, 20e9), (86, 12e9), (70, 20e9), (60, 18e9))
_UNKNOWN_NVLINK_Bps = 20e9
# By the beginning of the processor's name. Of MI300X and newer it is what protocol and error correction leave of 64
# GB/s (ROCm/rccl issue 1210). RCCL counts every other processor as Vega.
_XGMI = (("gfx95", 48e9), ("gfx94", 48e9), ("gfx90a", 36e9))
_VEGA_XGMI_Bps = 24e9
# RCCL's older files hold a number: 910 is gfx90a.
_GCN_NUMBER = re.compile(r"9\d\d", re.ASCII)
_GCN_OF_MI200 = "910"


def release_name(nccl: Nccl) -> str:
    """Return a release as people write it; of the last of a series its first two numbers."""
    return ".".join(map(str, nccl[:2] if nccl[2] >= LAST_OF_SERIES else nccl))


def nvlink_Bps(sm: int | None, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL counts for one NVLink of a GPU in one direction.

    `sm` is the compute capability times ten; None counts as what NCCL does not know.
    """
    if sm is None:
        return _UNKNOWN_NVLINK_Bps
    if sm >= 90 and nccl < (2, 20, 0):
        return 20e9
    if sm >= 100 and nccl >= (2, 25, 0):
        return 40.1e9 if nccl >= (2, 27, 5) else 40e9
    return next((rate_Bps for first, rate_Bps in _NVLINK if sm >= first), _UNKNOWN_NVLINK_Bps)


def xgmi_Bps(gcn: str | None) -> float:
    """Return what RCCL counts for one XGMI link of a GPU in one direction.

    `gcn` is the processor as RCCL writes it, as `gfx942` or `gfx90a:sramecc+:xnack-`; None counts as unknown, as Vega.
    """
    name = gcn or ""
    if _GCN_NUMBER.fullmatch(name):
        name = "gfx90a" if name == _GCN_OF_MI200 else f"gfx{name}"
    return next((rate_Bps for prefix, rate_Bps in _XGMI if name.startswith(prefix)), _VEGA_XGMI_Bps)


def link_rate_Bps(link: NvLink, gpu: Gpu, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL, or RCCL, counts for all links of an entry in one direction; `gpu` is where they begin."""
    return link.count * (xgmi_Bps(gpu.gcn) if link.kind == "xgmi" else nvlink_Bps(gpu.sm, nccl))


def cpu_link_Bps(numa: NumaNode, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL counts from one NUMA node to any other in one direction, whether in one socket or not.

    A processor that NCCL has no figure for counts as if it were no limit.
    """
    if numa.architecture == "ppc64":
        return _POWER9_Bps
    if numa.architecture == "arm64":
        return _ARM_Bps
    return _x86_Bps(numa, nccl) if numa.architecture == "x86_64" else LOCAL_Bps


def _x86_Bps(numa: NumaNode, nccl: Nccl) -> float:
    if numa.vendor == "GenuineIntel":
        # Up to 2.25 everything from Skylake on counted as Skylake.
        known = _INTEL if nccl >= (2, 26, 0) else _INTEL[-1:]
        model = numa.model if numa.family == 6 and numa.model is not None else -1
        return next((rate_Bps for first, rate_Bps in known if model >= first), _BROADWELL_Bps)
    if numa.vendor == "AuthenticAMD":
        return _amd_Bps(numa, nccl)
    if numa.vendor in _ZHAOXIN:
        return _YONGFENG_Bps if (numa.family, numa.model) == _YONGFENG else _ZHAOXIN_Bps
    return LOCAL_Bps


def _amd_Bps(numa: NumaNode, nccl: Nccl) -> float:
    # 2.18 had no figure for AMD.
    if nccl < (2, 19, 1):
        return LOCAL_Bps
    known = _AMD_FAMILIES if nccl >= (2, 31, 0) else ()
    return next((rate_Bps for first, rate_Bps in known if (numa.family or 0) >= first), _AMD_Bps)


NVSWITCHES = "NVS/0"
# NCCL itself takes no more of one kind (NCCL_TOPO_MAX_NODES); every pair of them has a way.
MOST_DEVICES = 576
MOST_NUMA_NODES = 128
# C2C is a kind of its own since NCCL 2.26; before, it counted as an NVLink to the CPU.
_C2C_SINCE = (2, 26, 0)
# Classes of what an NVLink can lead to.
_TARGET_GPU = "0x03"
_TARGET_CPU = "0x068001"
# Broadcom's switches in base mode show two levels though they carry full rate between all ports; NCCL makes one of
# them. By vendor, device and subsystem, the last three digits aside: of the upper level and of the lower.
_BROADCOM = ((0x1000C0101000A, 0x1000C0101000A), (0x1000C03010000, 0x1000C03010001))
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,4}")


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Devices by the names of model.paths, and the links that leave each, the widest first, the one upwards last."""

    links: dict[str, tuple[Hop, ...]]
    # In the order of NCCL's file, by which it chooses among equals.
    gpus: tuple[str, ...]
    # Ports that NCCL can send through; a NIC stands for its own where the topology names none.
    ports: tuple[str, ...]
    cpus: tuple[str, ...]
    # What each device hangs below on PCI; CPUs and ports hang below nothing.
    up: dict[str, str]

    def above(self, name: str) -> tuple[str, ...]:
        """Return what is above a device, the nearest first: switches, then its NUMA node."""
        found: list[str] = []
        while (name := self.up.get(name, "")) and name not in found:
            found.append(name)
        return tuple(found)


def graph_of(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> Graph:
    """Return the graph of a node. Devices that hang below something else than a switch or a CPU are not in it.

    Raises InputError for more devices and ports, or NUMA nodes, than NCCL would take.
    """
    count = len(topology.devices) + len(topology.nets)
    if count > MOST_DEVICES or len(topology.numa) > MOST_NUMA_NODES:
        raise InputError(
            f"{count} devices and ports on {len(topology.numa)} NUMA nodes are more than one node can have",
            hint=f"NCCL takes at most {MOST_DEVICES} devices; cut a dump of several hosts to one",
        )
    builder = _GraphBuilder()
    cpus = _add_cpus(builder, topology, nccl)
    names = _add_devices(builder, topology)
    ports = _add_nets(builder, topology, names)
    _add_nvlinks(builder, topology, names, nccl)
    for link in topology.pci_links:
        if link.device in names and link.target in names:
            builder.one_way(names[link.device], names[link.target], "LOC", LOCAL_Bps)
    # A partitioned GPU stands there several times.
    known = {gpu.bus_id for gpu in topology.gpus if gpu.bus_id in names}
    gpus = tuple(names[bus_id] for bus_id in as_in_file(topology) if bus_id in known)
    return Graph(links=builder.ordered(), gpus=gpus, ports=ports, cpus=cpus, up=builder.up)


def as_in_file(topology: Topology) -> Iterator[str]:
    """Yield the bus ids of devices as NCCL's file has them: NUMA node by NUMA node, what is below a switch with it."""
    below: dict[tuple[int, str | None], list[str]] = {}
    for device in topology.devices:
        below.setdefault((device.numa, device.parent), []).append(device.bus_id)
    for numa in dict.fromkeys([*(numa.id for numa in topology.numa), *(device.numa for device in topology.devices)]):
        waiting = below.get((numa, None), [])[::-1]
        while waiting:
            bus_id = waiting.pop()
            yield bus_id
            waiting += below.pop((numa, bus_id), [])[::-1]


class _GraphBuilder:
    """Links while they are collected; several between the same two add up."""

    def __init__(self) -> None:
        self.rates: dict[str, dict[tuple[str, LinkType], float]] = {}
        self.up: dict[str, str] = {}

    def add(self, name: str) -> None:
        self.rates.setdefault(name, {})

    def one_way(self, source: str, target: str, kind: LinkType, rate_Bps: float) -> None:
        self.add(source)
        self.add(target)
        self.rates[source][target, kind] = self.rates[source].get((target, kind), 0.0) + rate_Bps

    def both_ways(self, lower: str, upper: str, kind: LinkType, rate_Bps: float) -> None:
        self.one_way(lower, upper, kind, rate_Bps)
        self.one_way(upper, lower, kind, rate_Bps)
        if kind == "PCI":
            self.up[lower] = upper

    def ordered(self) -> dict[str, tuple[Hop, ...]]:
        return {
            source: tuple(
                Hop(source=source, target=target, kind=kind, bandwidth_Bps=rate_Bps)
                for (target, kind), rate_Bps in sorted(
                    rates.items(),
                    key=lambda link: (link[0] == (self.up.get(source), "PCI"), -link[1]),
                )
            )
            for source, rates in self.rates.items()
        }


def _add_cpus(builder: _GraphBuilder, topology: Topology, nccl: Nccl) -> tuple[str, ...]:
    rates_Bps = {f"CPU/{numa.id}": cpu_link_Bps(numa, nccl) for numa in topology.numa}
    # A device may name a node that has no entry of its own.
    for numa in [*(device.numa for device in topology.devices), *(net.numa for net in topology.nets)]:
        rates_Bps.setdefault(f"CPU/{numa}", LOCAL_Bps)
    for name in rates_Bps:
        builder.add(name)
    for source, rate_Bps in rates_Bps.items():
        for target in rates_Bps:
            if target != source:
                builder.one_way(source, target, "SYS", rate_Bps)
    return tuple(rates_Bps)


def _add_devices(builder: _GraphBuilder, topology: Topology) -> dict[str, str]:
    """Add everything on PCI; return the name of each device by bus id."""
    merged = merged_switches(topology.devices)
    with_nets = {net.bus_id for net in topology.nets}
    names: dict[str, str] = {}
    first_functions: dict[tuple[str, str], str] = {}
    for device in topology.devices:
        above = _above(device, merged, names)
        if device.bus_id in merged or device.kind in ("nvswitch", "cpu") or above is None:
            continue
        if device.kind == "gpu":
            names[device.bus_id] = f"GPU/{device.bus_id}"
        elif device.kind == "nic" or device.bus_id in with_nets:
            # The ports of one card share its link: NCCL's plug-in for InfiniBand puts all on the first function.
            known = first_functions.setdefault((device.bus_id.rpartition(".")[0], above), device.bus_id)
            names[device.bus_id] = f"NIC/{known}"
            if known != device.bus_id:
                continue
        else:
            names[device.bus_id] = f"PCI/{device.bus_id}"
        rate_Bps = link_Bps(device.link_speed, device.link_width)
        builder.both_ways(names[device.bus_id], above, "PCI", rate_Bps)
    return names


def _above(device: PciDevice, merged: dict[str, str], names: dict[str, str]) -> str | None:
    """Return what a device hangs below; None where that is not in the graph or cannot have devices below it."""
    parent = device.parent
    while parent in merged:
        parent = merged[parent]
    if parent is None:
        return f"CPU/{device.numa}"
    above = names.get(parent)
    return above if above is not None and above.startswith("PCI/") else None


def merged_switches(devices: tuple[PciDevice, ...]) -> dict[str, str]:
    """Return the lower levels of Broadcom switches by bus id, each with the upper level that takes its devices."""
    merged: dict[str, str] = {}
    identities = {device.bus_id: _identity(device) for device in devices}
    for device in devices:
        if device.parent is None or device.parent in merged:
            continue
        above, below = identities.get(device.parent), identities[device.bus_id]
        if device.kind == "switch" and above is not None and (above, below) in _BROADCOM:
            merged[device.bus_id] = device.parent
    return merged


def _identity(device: PciDevice) -> int | None:
    parts = (device.vendor, device.device, device.subsystem_vendor, device.subsystem_device)
    identity = 0
    for part in parts:
        if part is None or _HEXADECIMAL.fullmatch(part) is None:
            return None
        identity = identity << 16 | int(part, 16)
    return identity >> 12


def _add_nets(builder: _GraphBuilder, topology: Topology, names: dict[str, str]) -> tuple[str, ...]:
    ports: list[str] = []
    for name, net in zip(port_names(topology), topology.nets, strict=True):
        nic = names.get(net.bus_id) if net.bus_id is not None else None
        if nic is None or not nic.startswith("NIC/"):
            nic = f"NIC/numa{net.numa}"
            if nic not in builder.rates:
                builder.both_ways(nic, f"CPU/{net.numa}", "PCI", LOCAL_Bps)
        builder.both_ways(f"NET/{name}", nic, "NET", net_Bps(net))
        ports.append(f"NET/{name}")
    with_nets = {names.get(net.bus_id) for net in topology.nets if net.bus_id is not None}
    bare = dict.fromkeys(name for name in names.values() if name.startswith("NIC/") and name not in with_nets)
    return (*ports, *bare)


def port_names(topology: Topology) -> tuple[str, ...]:
    """Return a name of its own for each port: the second of the same name gets `#2`."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for net in topology.nets:
        name = net.name or net.bus_id or "unnamed"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(names)


def net_Bps(net: Net) -> float:
    """Return what NCCL counts for a port in one direction."""
    speed_Mbps = net.speed_Mbps if net.speed_Mbps is not None and net.speed_Mbps > 0 else NO_SPEED_Mbps
    return speed_Mbps * 1e6 / 8


def _add_nvlinks(builder: _GraphBuilder, topology: Topology, names: dict[str, str], nccl: Nccl) -> None:
    gpus: dict[str, Gpu] = {gpu.bus_id: gpu for gpu in topology.gpus}
    for link in topology.nvlinks:
        source, gpu = names.get(link.gpu), gpus.get(link.gpu)
        if source is None or gpu is None:
            continue
        rate_Bps = link_rate_Bps(link, gpu, nccl)
        if link.target in gpus or link.kind == "xgmi" or (link.target_class or "").startswith(_TARGET_GPU):
            # Each GPU lists its own side; a peer that is not here is left out.
            if link.target in gpus and link.target in names and link.target != link.gpu:
                builder.one_way(source, names[link.target], "NVL", rate_Bps)
        elif (link.target_class or "").startswith(_TARGET_CPU):
            builder.both_ways(source, _own_cpu(builder, source), "NVL", rate_Bps)
        else:
            builder.both_ways(source, NVSWITCHES, "NVL", rate_Bps)
    kind: LinkType = "C2C" if nccl >= _C2C_SINCE else "NVL"
    for chip in topology.chip_links:
        source = names.get(chip.gpu)
        if source is not None:
            builder.both_ways(source, _own_cpu(builder, source), kind, chip.count * chip.link_MBps * 1e6)


def _own_cpu(builder: _GraphBuilder, name: str) -> str:
    while name in builder.up:
        name = builder.up[name]
    return name


def link_words(topology: Topology) -> str:
    """Return the name of the links between GPUs, in the plural: NVIDIA's where nothing says otherwise."""
    return "XGMI links" if any(link.kind == "xgmi" for link in topology.nvlinks) else "NVLinks"

"""How two topologies differ by meaning: in what NCCL would see, whatever the files look like.

A file and NCCL's own dump of the node it was used on come out equal: what one leaves out NCCL detects, what NCCL does
not use or writes over does not count, and switches count by the ways that lead through them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec import structs

from busbw.base.cpus import format_cpu_list
from busbw.base.units import format_rate
from busbw.model.topology import (
    Gpu,
    Group,
    Net,
    NumaNode,
    NvLink,
    Path,
    PciDevice,
    Topology,
    TopologyComparison,
    TopologyDifference,
)
from busbw.topo.buses import lane_units, real_family
from busbw.topo.paths.graph import cpu_link_Bps
from busbw.topo.paths.paths import direct_paths

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


S = TypeVar("S")
T = TypeVar("T")


@dataclass(slots=True)
class DifferenceTally:
    """Differences that count, those left to detection, and those that NCCL does not use."""

    differences: list[TopologyDifference] = field(default_factory=list)
    detected: list[TopologyDifference] = field(default_factory=list)
    unused: list[TopologyDifference] = field(default_factory=list)

    def compare(
        self,
        group: Group,
        subject: str,
        what: str,
        values: tuple[T | None, T | None],
        words: Callable[[T], str] = str,
    ) -> None:
        """Note two values that differ; one that is missing is left to detection."""
        if values[0] != values[1]:
            found = _difference(group, subject, what, values, words)
            (self.detected if None in values else self.differences).append(found)

    def pass_over(self, group: Group, subject: str, what: str, values: tuple[T | None, T | None]) -> None:
        """Note two values that differ, and that NCCL does not use."""
        if values[0] != values[1] and None not in values:
            self.unused.append(_difference(group, subject, what, values, str))


def both(read: Callable[[S], T], first: S, second: S) -> tuple[T, T]:
    """Return the same value of two things."""
    return read(first), read(second)


def _difference(
    group: Group, subject: str, what: str, values: tuple[T | None, T | None], words: Callable[[T], str]
) -> TopologyDifference:
    first, second = (None if value is None else words(value) for value in values)
    return TopologyDifference(group=group, subject=subject, what=what, first=first, second=second)


# What NCCL takes for a port without a rate, in 10^6 bits per second.
_NO_RATE_Mbps = 10_000
_SWITCHES = "switches"
_GPU_CLASS = "0x03"
_CPU_CLASS = "0x068001"


def compare_nvlinks(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare the NVLinks of each GPU by where they lead; NCCL looks for those of a GPU without any."""
    gpus = {gpu.bus_id for gpu in first.gpus} & {gpu.bus_id for gpu in second.gpus}
    is_xgmi = any(link.kind == "xgmi" for topology in (first, second) for link in topology.nvlinks)
    group: Group = "XGMI links" if is_xgmi else "NVLinks"
    for bus_id in dict.fromkeys(gpu.bus_id for gpu in first.gpus if gpu.bus_id in gpus):
        ends = _nvlink_ends(first, bus_id), _nvlink_ends(second, bus_id)
        tally.compare(group, f"GPU {bus_id}", "to", ends, words=_end_words)


def _nvlink_ends(topology: Topology, bus_id: str) -> tuple[tuple[str, int], ...] | None:
    """Return where a GPU's links lead and how many: all switches are one to NCCL. None where it has none."""
    gpus = {gpu.bus_id for gpu in topology.gpus}
    counts: dict[str, int] = {}
    for link in topology.nvlinks:
        if link.gpu == bus_id:
            end = _nvlink_end(link, gpus)
            counts[end] = counts.get(end, 0) + link.count
    return tuple(sorted(counts.items())) or None


def _nvlink_end(link: NvLink, gpus: set[str]) -> str:
    target_class = link.target_class or ""
    if link.target in gpus or link.kind == "xgmi" or target_class.startswith(_GPU_CLASS):
        return f"GPU {link.target}"
    return "CPU" if target_class.startswith(_CPU_CLASS) else _SWITCHES


def _end_words(ends: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{end} x{count}" for end, count in ends)


def compare_chip_links(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare what joins each GPU to its own CPU; NCCL looks for it where a GPU has none."""
    rates = [
        {link.gpu: f"{link.count * link.link_MBps / 1000:g} GB/s" for link in topology.chip_links}
        for topology in (first, second)
    ]
    for bus_id in dict.fromkeys(gpu.bus_id for gpu in first.gpus):
        if bus_id in {gpu.bus_id for gpu in second.gpus}:
            tally.compare("C2C", f"GPU {bus_id}", "rate", (rates[0].get(bus_id), rates[1].get(bus_id)))


def compare_pci_links(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare the links between switches beside the tree; NCCL finds those of Broadcom's by itself."""
    devices = {device.bus_id for device in first.devices} & {device.bus_id for device in second.devices}
    for bus_id in dict.fromkeys(device.bus_id for device in first.devices if device.bus_id in devices):
        targets = _pci_ends(first, bus_id), _pci_ends(second, bus_id)
        tally.compare("PCIe links", f"switch {bus_id}", "to", targets, words=", ".join)


def _pci_ends(topology: Topology, bus_id: str) -> tuple[str, ...] | None:
    return tuple(sorted(link.target for link in topology.pci_links if link.device == bus_id)) or None


def compare_nets(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare ports of the same name; NCCL adds those a file lacks and drops those its network plug-in lacks."""
    # Of several with one name NCCL finds the first.
    here, there = ({net.name: net for net in topology.nets[::-1]} for topology in (first, second))
    for name in dict.fromkeys(net.name for net in (*first.nets, *second.nets)):
        one, other = here.get(name), there.get(name)
        if one is not None and other is not None:
            _compare_net(tally, one, other)
        else:
            places = (None if net is None else _place(net) for net in (one, other))
            tally.compare("ports", f"port {name}", "at", (next(places), next(places)))


def _place(net: Net) -> str:
    return f"NIC {card(net.bus_id)}" if net.bus_id is not None else f"NUMA node {net.numa}"


def _compare_net(tally: DifferenceTally, first: Net, second: Net) -> None:
    subject = f"port {first.name}"
    tally.compare("ports", subject, "at", both(_place, first, second))
    tally.compare("ports", subject, "rate", both(_rate_Mbps, first, second), words=lambda rate: f"{rate / 1000:g} Gb/s")
    latencies_us = first.latency_us, second.latency_us
    tally.compare("ports", subject, "latency", latencies_us, words=lambda latency_us: f"{latency_us:g} us")
    tally.compare("ports", subject, "GPUDirect", (first.gdr, second.gdr), words=_yes)
    tally.compare("ports", subject, "collectives", (first.coll, second.coll), words=_yes)
    tally.compare("ports", subject, "number", (first.port, second.port))
    tally.compare("ports", subject, "channels", (first.maxconn, second.maxconn))
    for name in sorted({*first.more, *second.more}):
        tally.compare("ports", subject, name, (first.more.get(name), second.more.get(name)))
    tally.pass_over("ports", subject, "guid", (first.guid, second.guid))
    tally.pass_over("ports", subject, "dev", (first.dev, second.dev))


def _rate_Mbps(net: Net) -> int | None:
    """Return a port's rate as NCCL takes it."""
    return net.speed_Mbps if net.speed_Mbps is None or net.speed_Mbps > 0 else _NO_RATE_Mbps


def _yes(holds: bool) -> str:  # noqa: FBT001 - a value like the others
    return "yes" if holds else "no"


_NAMES: dict[str, Group] = {"gpu": "GPUs", "nic": "NICs"}


def differences(first: Topology, second: Topology) -> tuple[TopologyDifference, ...]:
    """Return what NCCL would see differently; () where it would see the same."""
    return compare(first, second, ("A", "B")).differences


def compare(
    first: Topology, second: Topology, names: tuple[str, str], notes: tuple[str, ...] = ()
) -> TopologyComparison:
    """Return how two topologies differ, by the names they are to have."""
    first, second = aligned_kinds(first, second), aligned_kinds(second, first)
    tally = DifferenceTally()
    _compare_devices(tally, first, second)
    _compare_nodes(tally, first, second)
    _compare_ways(tally, first, second)
    _compare_gpus(tally, first, second)
    compare_nvlinks(tally, first, second)
    compare_chip_links(tally, first, second)
    compare_pci_links(tally, first, second)
    compare_nets(tally, first, second)
    return TopologyComparison(
        first=names[0],
        second=names[1],
        differences=tuple(tally.differences),
        detected=tuple(tally.detected),
        unused=tuple(tally.unused),
        notes=notes,
    )


def _ends(topology: Topology, kind: str) -> dict[str, PciDevice]:
    """Return the GPUs by bus id, or the NICs by card: the ports of a card share its first function."""
    found: dict[str, PciDevice] = {}
    for device in topology.devices:
        if device.kind == kind:
            found.setdefault(device.bus_id if kind == "gpu" else card(device.bus_id), device)
    return found


def _compare_devices(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare which GPUs and NICs there are, where they are, and their links."""
    for kind, group in _NAMES.items():
        here, there = _ends(first, kind), _ends(second, kind)
        for key in _together(here, there):
            one, other = here.get(key), there.get(key)
            subject = f"{group[:-1]} {(one or other).bus_id}"  # type: ignore[union-attr]  # one of the two has it
            if one is not None and other is not None:
                tally.compare(group, subject, "NUMA node", (one.numa, other.numa))
                _compare_link(tally, subject, one, other)
                _compare_identity(tally, group, subject, one, other)
            else:
                # A side without any GPU or NIC leaves all of them to detection.
                where = tally.differences if here and there else tally.detected
                where.append(TopologyDifference(group=group, subject=subject, first=_numa(one), second=_numa(other)))
    switches = {device.bus_id: device for device in first.devices if device.kind == "switch"}
    for device in second.devices:
        if device.kind == "switch" and device.bus_id in switches:
            _compare_link(tally, f"switch {device.bus_id}", switches[device.bus_id], device)


def _numa(device: PciDevice | None) -> str | None:
    return None if device is None else f"NUMA node {device.numa}"


def _compare_link(tally: DifferenceTally, subject: str, first: PciDevice, second: PciDevice) -> None:
    """Compare links by what NCCL reads: a text it does not know is Gen3, and a width of 0 is 16."""
    texts = {_units(device): device.link_speed for device in (first, second)}
    tally.compare(
        "PCIe links", subject, "speed", both(_units, first, second), words=lambda units: _speed(texts[units], units)
    )
    tally.compare("PCIe links", subject, "lanes", both(_lanes, first, second))


def _units(device: PciDevice) -> int | None:
    return None if device.link_speed is None else lane_units(device.link_speed)


def _lanes(device: PciDevice) -> int | None:
    return None if device.link_width is None else device.link_width or HIDDEN_WIDTH


def _speed(text: str | None, units: int) -> str:
    return f"{text or 'unknown'} ({format_rate(units * HIDDEN_WIDTH / 80 * 1e9)} at x16)"


def _compare_identity(tally: DifferenceTally, group: Group, subject: str, first: PciDevice, second: PciDevice) -> None:
    for name in ("device_class", "vendor", "device", "subsystem_vendor", "subsystem_device"):
        values: tuple[str | None, str | None] = (getattr(first, name), getattr(second, name))
        tally.pass_over(group, subject, name.replace("_", " "), both(_lower, *values))


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _compare_nodes(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare masks and processors of the NUMA nodes that GPUs or NICs are on; NCCL drops the others."""
    used = {device.numa for each in (first, second) for device in each.devices if device.kind in _NAMES}
    here, there = ({node.id: node for node in each.numa} for each in (first, second))
    for id_ in sorted(used & set(here) & set(there)):
        one, other, subject = here[id_], there[id_], f"NUMA node {id_}"
        tally.compare("CPU masks", subject, "CPUs", both(_cpus, one, other), words=_cpu_words)
        _compare_processors(tally, subject, one, other)


def _cpus(node: NumaNode) -> tuple[int, ...] | None:
    return None if node.cpus is None else tuple(sorted(set(node.cpus)))


def _cpu_words(cpus: tuple[int, ...]) -> str:
    return format_cpu_list(cpus) or "none"


def _compare_processors(tally: DifferenceTally, subject: str, first: NumaNode, second: NumaNode) -> None:
    """Compare processors as far as NCCL tells them apart: by maker, and Intel's by what joins the sockets."""
    tally.compare("processors", subject, "architecture", (first.architecture, second.architecture))
    tally.compare("processors", subject, "vendor", (first.vendor, second.vendor))
    models = both(_model, first, second)
    same_maker = (first.architecture, first.vendor) == (second.architecture, second.vendor)
    if same_maker and None not in models and cpu_link_Bps(first) != cpu_link_Bps(second):
        tally.compare("processors", subject, "model", models)
    else:
        tally.pass_over("processors", subject, "model", models)


def _model(node: NumaNode) -> str | None:
    if node.family is None or node.model is None:
        return None
    return f"family {real_family(node.vendor, node.family)} model {node.model}"


def _compare_ways(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare the ways over PCI between the GPUs and NICs that both have."""
    names = {card(device.bus_id): f"NIC {device.bus_id}" for device in _ends(first, "nic").values()}
    ways = [_ways(topology, names) for topology in aligned_trees(first, second)]
    for pair, way in ways[0].items():
        other = ways[1].get(pair)
        if other is not None and (way.type, way.bandwidth_Bps) != (other.type, other.bandwidth_Bps):
            tally.differences.append(
                TopologyDifference(
                    group="ways", subject=" to ".join(pair), first=_way_words(way), second=_way_words(other)
                )
            )


def _ways(topology: Topology, nics: Mapping[str, str]) -> dict[tuple[str, str], Path]:
    """Return the ways between GPUs, and from GPUs to NICs, by what both are called."""
    # In the same order on both sides: a pair is one, whichever of it is named first.
    names = {f"GPU/{bus_id}": f"GPU {bus_id}" for bus_id in sorted(_ends(topology, "gpu"))}
    names |= {f"NIC/{nic.bus_id}": nics[key] for key, nic in _ends(topology, "nic").items() if key in nics}
    paths = direct_paths(topology)
    found: dict[tuple[str, str], Path] = {}
    for source in names:
        for target in names:
            way = paths.get(source, {}).get(target)
            is_second = (names[target], names[source]) in found
            if way is not None and source != target and source.startswith("GPU/") and not is_second:
                found[names[source], names[target]] = way
    return found


def _way_words(way: Path) -> str:
    return f"{way.type} {format_rate(way.bandwidth_Bps)}" if way.type != "DIS" else way.type


def _compare_gpus(tally: DifferenceTally, first: Topology, second: Topology) -> None:
    """Compare what is said of GPUs beside their place."""
    there = {gpu.bus_id: gpu for gpu in second.gpus[::-1]}
    for gpu in first.gpus:
        other = there.pop(gpu.bus_id, None)
        if other is None:
            continue
        subject = f"GPU {gpu.bus_id}"
        tally.compare("GPUs", subject, "number", (gpu.dev, other.dev))
        tally.compare("GPUs", subject, "compute capability", (gpu.sm, other.sm), words=lambda sm: f"{sm / 10:.1f}")
        tally.compare("GPUs", subject, "processor", (gpu.gcn, other.gcn))
        tally.compare("GPUs", subject, "GPUDirect", (gpu.gdr, other.gdr), words=lambda gdr: "yes" if gdr else "no")
        tally.compare("GPUs", subject, "partition", (gpu.mlopart, other.mlopart))
        tally.pass_over("GPUs", subject, "rank", (gpu.rank, other.rank))


def _together(first: Mapping[str, object], second: Mapping[str, object]) -> Iterable[str]:
    """Return all keys, those of the first in its order and then the others."""
    return dict.fromkeys([*first, *second])

"""How two topologies differ by meaning: in what NCCL would see, whatever the files look like.

A file and NCCL's own dump of the node it was used on come out equal: what one leaves out NCCL detects, what NCCL does
not use or writes over does not count, and switches count by the ways that lead through them.
"""

from collections.abc import Iterable, Mapping

from busbw.base.cpus import format_cpu_list
from busbw.base.units import format_rate
from busbw.model.difference import Comparison, Difference, Group
from busbw.model.paths import Path
from busbw.model.topology import NumaNode, PciDevice, Topology
from busbw.topo.alignment import HIDDEN_WIDTH, aligned_kinds, aligned_trees, card
from busbw.topo.difference_links import compare_chip_links, compare_nets, compare_nvlinks, compare_pci_links
from busbw.topo.paths.constants import cpu_link_Bps
from busbw.topo.paths.paths import direct_paths
from busbw.topo.pcie import lane_units
from busbw.topo.processors import real_family
from busbw.topo.tally import Tally, both

_NAMES: dict[str, Group] = {"gpu": "GPUs", "nic": "NICs"}


def differences(first: Topology, second: Topology) -> tuple[Difference, ...]:
    """Return what NCCL would see differently; () where it would see the same."""
    return compare(first, second, ("A", "B")).differences


def compare(first: Topology, second: Topology, names: tuple[str, str], notes: tuple[str, ...] = ()) -> Comparison:
    """Return how two topologies differ, by the names they are to have."""
    first, second = aligned_kinds(first, second), aligned_kinds(second, first)
    tally = Tally()
    _compare_devices(tally, first, second)
    _compare_nodes(tally, first, second)
    _compare_ways(tally, first, second)
    _compare_gpus(tally, first, second)
    compare_nvlinks(tally, first, second)
    compare_chip_links(tally, first, second)
    compare_pci_links(tally, first, second)
    compare_nets(tally, first, second)
    return Comparison(
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


def _compare_devices(tally: Tally, first: Topology, second: Topology) -> None:
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
                where.append(Difference(group=group, subject=subject, first=_numa(one), second=_numa(other)))
    switches = {device.bus_id: device for device in first.devices if device.kind == "switch"}
    for device in second.devices:
        if device.kind == "switch" and device.bus_id in switches:
            _compare_link(tally, f"switch {device.bus_id}", switches[device.bus_id], device)


def _numa(device: PciDevice | None) -> str | None:
    return None if device is None else f"NUMA node {device.numa}"


def _compare_link(tally: Tally, subject: str, first: PciDevice, second: PciDevice) -> None:
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


def _compare_identity(tally: Tally, group: Group, subject: str, first: PciDevice, second: PciDevice) -> None:
    for name in ("device_class", "vendor", "device", "subsystem_vendor", "subsystem_device"):
        values: tuple[str | None, str | None] = (getattr(first, name), getattr(second, name))
        tally.pass_over(group, subject, name.replace("_", " "), both(_lower, *values))


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _compare_nodes(tally: Tally, first: Topology, second: Topology) -> None:
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


def _compare_processors(tally: Tally, subject: str, first: NumaNode, second: NumaNode) -> None:
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


def _compare_ways(tally: Tally, first: Topology, second: Topology) -> None:
    """Compare the ways over PCI between the GPUs and NICs that both have."""
    names = {card(device.bus_id): f"NIC {device.bus_id}" for device in _ends(first, "nic").values()}
    ways = [_ways(topology, names) for topology in aligned_trees(first, second)]
    for pair, way in ways[0].items():
        other = ways[1].get(pair)
        if other is not None and (way.type, way.bandwidth_Bps) != (other.type, other.bandwidth_Bps):
            tally.differences.append(
                Difference(group="ways", subject=" to ".join(pair), first=_way_words(way), second=_way_words(other))
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


def _compare_gpus(tally: Tally, first: Topology, second: Topology) -> None:
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

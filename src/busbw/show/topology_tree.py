"""A node as a tree of boxes: NUMA nodes, below them switches, GPUs and NICs, with what is written on each."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.cpus import format_cpu_list
from busbw.model.limit import ChannelPlan, PartName
from busbw.model.topology import Gpu, Net, NodeView, NumaNode, PciDevice, Topology
from busbw.topo.buses import link_Bps
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    LAST_OF_SERIES,
    Nccl,
    cpu_link_Bps,
    link_rate_Bps,
    link_words,
    net_Bps,
    port_names,
)
from busbw.topo.paths.paths import gpu_names

Kind = Literal["numa", "switch", "gpu", "nic", "other"]
# Where containers have interfaces of their own, NCCL writes down dozens.
_MOST_BARE = 8
# Deeper than this nothing real is; what a strange file nests deeper stands side by side.
DEEPEST = 8
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}
_DIGITS = re.compile(r"(\d+)$", re.ASCII)
# What topo.graph appends to the second port of a name.
_SAME_NAME = re.compile(r"#\d+$", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Box:
    """One part of a node, and what hangs below it."""

    kind: Kind
    title: str
    # Its bus id; the CPUs of a NUMA node.
    address: str = ""
    # The link upwards as NCCL counts it, in one direction; None: there is none, or nothing is known of it.
    link_Bps: float | None = None
    # What it can send to the network, in one direction, in words.
    ports: str = ""
    below: tuple["Box", ...] = ()


def boxes_of(topology: Topology) -> tuple[Box, ...]:
    """Return a box for each NUMA node, in the order of the topology, with everything below it."""
    shelves = _Shelves(topology)
    known = {numa.id for numa in topology.numa}
    homeless = sorted({device.numa for device in topology.devices} | {net.numa for net in topology.nets})
    numa_nodes = (*topology.numa, *(NumaNode(id=number) for number in homeless if number not in known))
    return tuple(
        Box(
            kind="numa",
            title=_numa_title(numa),
            address=_cpu_words(numa, topology),
            below=(*shelves.below(None, numa.id, 1), *shelves.loose(numa.id)),
        )
        for numa in numa_nodes
    )


class _Shelves:
    """Devices by what they hang below, and their names."""

    def __init__(self, topology: Topology) -> None:
        known = {device.bus_id for device in topology.devices}
        self.children: dict[tuple[str | None, int], list[PciDevice]] = {}
        for device in topology.devices:
            parent = device.parent if device.parent in known and device.parent != device.bus_id else None
            self.children.setdefault((parent, device.numa if parent is None else 0), []).append(device)
        self.gpus = gpu_names(topology.gpus)
        self.nets: dict[str | None, list[tuple[str, float]]] = {}
        self.without_card: dict[int, list[tuple[str, Net]]] = {}
        for name, net in zip(port_names(topology), topology.nets, strict=True):
            if net.bus_id in known:
                self.nets.setdefault(net.bus_id, []).append((name, net_Bps(net)))
            else:
                self.without_card.setdefault(net.numa, []).append((name, net))

    def below(self, parent: str | None, numa: int, depth: int) -> tuple[Box, ...]:
        """Return boxes for what hangs below a device or NUMA node; the ports of one card are one box."""
        found: list[Box] = []
        cards: dict[str, list[PciDevice]] = {}
        for device in self.children.get((parent, numa if parent is None else 0), []):
            is_nic = device.kind == "nic" or device.bus_id in self.nets
            cards.setdefault(device.bus_id.rpartition(".")[0] if is_nic else device.bus_id, []).append(device)
        for functions in cards.values():
            box = self._box(functions)
            inner = self.below(functions[0].bus_id, numa, depth + 1)
            if depth >= DEEPEST:
                found += [box, *inner]
            else:
                found.append(Box(**{**vars(box), "below": inner}))
        return tuple(found)

    def loose(self, numa: int) -> tuple[Box, ...]:
        """Return boxes for ports of which only the NUMA node is known; many that are on no device are one box."""
        ports = self.without_card.get(numa, [])
        bare = sum(net.bus_id is None for _name, net in ports)
        folded = bare > _MOST_BARE
        boxes = [
            Box(kind="nic", title=name, ports=_rate_words([net_Bps(net)]))
            for name, net in ports
            if net.bus_id is not None or not folded
        ]
        if folded:
            boxes.append(Box(kind="nic", title=f"{bare} interfaces without a PCI device"))
        return tuple(boxes)

    def _box(self, functions: list[PciDevice]) -> Box:
        device = functions[0]
        ports = [port for function in functions for port in self.nets.get(function.bus_id, [])]
        kind: Kind = "nic" if device.bus_id in self.nets else "switch" if device.kind == "switch" else "other"
        title = {"switch": "switch", "nvswitch": "NVSwitch", "cpu": "bridge"}.get(device.kind, "device")
        if device.bus_id in self.gpus or device.kind == "gpu":
            kind, title = "gpu", self.gpus.get(device.bus_id, "GPU")
        elif ports or device.kind == "nic":
            kind, title = "nic", _nic_title([name for name, _rate in ports], {each.bus_id for each in functions})
        last = functions[-1].bus_id.rpartition(".")[2]
        # Without a speed nothing is known; a text that NCCL does not know counts, and that is worth seeing.
        has_speed = device.link_speed is not None and (device.link_speed != "" or device.link_width)
        return Box(
            kind=kind,
            title=title,
            address=device.bus_id if len(functions) == 1 else f"{device.bus_id}-{last}",
            link_Bps=link_Bps(device.link_speed, device.link_width) if has_speed else None,
            ports=_rate_words([rate_Bps for _name, rate_Bps in ports]),
        )


def short_list(names: Sequence[str]) -> str:
    """Return names with runs drawn together: `mlx5_0-3`, `GPU0-7`, `eth0, mlx5_2`, `0000:0c:00.0 x2` without names."""
    bases = Counter(_SAME_NAME.sub("", name) for name in names)
    return _runs([base if count == 1 else f"{base} x{count}" for base, count in bases.items()])


def _runs(names: list[str]) -> str:
    parts: list[tuple[str, int, int] | str] = []
    for name in names:
        match = _DIGITS.search(name)
        # Bus ids end in digits too, and a long number is none that counts up.
        if (
            match is None
            or ":" in name
            or " " in name
            or len(match[1]) > 4
            or (match[1] != "0" and match[1].startswith("0"))
        ):
            parts.append(name)
            continue
        stem, number = name[: match.start()], int(match[1])
        last = parts[-1] if parts else None
        if isinstance(last, tuple) and last[0] == stem and last[2] + 1 == number:
            parts[-1] = (stem, last[1], number)
        else:
            parts.append((stem, number, number))
    return ", ".join(part if isinstance(part, str) else _run(*part) for part in parts)


def number_of(rate_Bps: float) -> str:
    """Return a rate in GB/s without the unit, in as few digits as tell it: `48`, `12.5`, `370.8`, `0.1`."""
    return f"{rate_Bps / 1e9:.1f}".removesuffix(".0")


def _nic_title(names: list[str], addresses: set[str]) -> str:
    # Ports without a name are called as the card, whose address stands beside it.
    named = [name for name in names if _SAME_NAME.sub("", name) not in addresses]
    return short_list(named) or "NIC"


def _run(stem: str, first: int, last: int) -> str:
    return f"{stem}{first}" if first == last else f"{stem}{first}-{last}"


def _rate_words(rates_Bps: list[float]) -> str:
    if not rates_Bps:
        return ""
    each = number_of(rates_Bps[0])
    if len(set(rates_Bps)) > 1:
        return "+".join(number_of(rate_Bps) for rate_Bps in rates_Bps)
    return each if len(rates_Bps) == 1 else f"{len(rates_Bps)}x{each}"


def _numa_title(numa: NumaNode) -> str:
    vendor = _VENDORS.get(numa.vendor or "", (numa.vendor or "").strip()) or (numa.architecture or "")
    name = f"NUMA {numa.id}" if numa.id >= 0 else "no NUMA"
    return f"{name}, {vendor}" if vendor else name


def _cpu_words(numa: NumaNode, topology: Topology) -> str:
    if numa.cpus is None:
        near = {device.near_cpus for device in topology.devices if device.numa == numa.id}
        return f"near CPUs {format_cpu_list(*near)}" if len(near) == 1 and near != {()} else "CPUs not given"
    return f"CPUs {format_cpu_list(numa.cpus)}" if numa.cpus else "no CPUs"


_SWITCHES = "NVSwitches"


def summary(topology: Topology) -> str:
    """Return the heading: what the node is called and how many of everything it has."""
    nics = sum(device.kind == "nic" for device in topology.devices)
    ports = _count(len(topology.nets), "port") if topology.nets else _count(nics, "NIC")
    addresses = len({gpu.bus_id for gpu in topology.gpus})
    shared = f", shared by {len(topology.gpus)} parts or ranks" if addresses < len(topology.gpus) else ""
    parts = [f"{_count(addresses, 'GPU')}{shared}", ports, _count(len(topology.numa), "NUMA node")]
    return f"{topology.name or 'node'}: {', '.join(parts)}"


def link_lines(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> tuple[str, ...]:
    """Return lines about NVLink, chip-to-chip links and the links between NUMA nodes, where there are any."""
    return (*_nvlink_lines(topology, nccl), *_chip_lines(topology), *_numa_lines(topology, nccl))


def release_of(view: NodeView) -> Nccl:
    """Return the release of NCCL whose rules a view follows."""
    numbers = [int(part) for part in view.release.split(".")]
    return numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else LAST_OF_SERIES


_PARTS: dict[PartName, str] = {
    "nvlink": "links of a GPU",
    "pair": "links of two GPUs",
    "slot": "slot of a GPU",
}


def ceiling_lines(view: NodeView) -> tuple[str, ...]:
    """Return what line rates allow a ring and a tree, as `busbw limit` says it, what NCCL plans, and why not more."""
    lines: list[str] = []
    bounds = {each.algorithm: each for each in view.bounds}
    counts = {str(each.algorithm): each for each in view.ceilings}
    plans = {str(each.algorithm): each for each in view.plans}
    for name in ("ring", "tree", "nvls"):
        said: list[str] = []
        bound, count, plan = bounds.get(name), counts.get(name), plans.get(name)
        if bound is not None and bound.busbw_Bps is not None:
            least = next(line for line in bound.lines if line.limits)
            why = f"{_PARTS.get(least.part, least.part)}, {least.figures.partition(' = ')[0]}"
            said.append(f"{bound.busbw_Bps / 1e9:.1f} GB/s of bus bandwidth at best, by line rates ({why})")
        if plan is not None:
            said.append(f"NCCL plans {plan_words(plan)}")
        if count is not None:
            unit = "" if said else " of bus bandwidth"
            who = "its links carry" if plan is not None else "NCCL counts"
            said.append(f"{who} {count.busbw_Bps / 1e9:.1f} GB/s{unit} at most: {count.formula}")
        lines += [f"{f'{name}:' if place == 0 else '':<6}{line}" for place, line in enumerate(said)]
    return tuple(lines)


def plan_words(plan: ChannelPlan) -> str:
    """Return a plan in words: `4 channels x 12 GB/s, 48.0 GB/s of bus bandwidth, over paths up to PHB`."""
    rate = f", {plan.busbw_Bps / 1e9:.1f} GB/s of bus bandwidth" if plan.busbw_Bps is not None else ""
    return f"{_count(plan.channels, 'channel')} x {plan.channel_Bps / 1e9:g} GB/s{rate}, over paths up to {plan.type}"


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _nvlink_lines(topology: Topology, nccl: Nccl) -> Iterator[str]:
    names = gpu_names(topology.gpus)
    gpus: dict[str, Gpu] = {gpu.bus_id: gpu for gpu in topology.gpus}
    counts: dict[str, Counter[str]] = {}
    rates: dict[str, float] = {}
    word = link_words(topology).removesuffix("s").removesuffix(" link")
    for link in topology.nvlinks:
        if link.target not in gpus and (link.kind == "xgmi" or (link.target_class or "").startswith("0x03")):
            peer = f"absent {link.target}"
        else:
            peer = names.get(link.target, _SWITCHES if not (link.target_class or "").startswith("0x068001") else "CPU")
        counts.setdefault(link.gpu, Counter())[peer] += link.count
        if link.gpu in gpus:
            rates[link.gpu] = rates.get(link.gpu, 0.0) + link_rate_Bps(link, gpus[link.gpu], nccl)
    # GPUs whose links go the same way share a line.
    alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for bus_id in names:
        if bus_id in counts:
            alike.setdefault(tuple(counts[bus_id].items()), []).append(bus_id)
    if _is_full_mesh(counts, len(gpus)):
        count = next(iter(counts.values())).most_common(1)[0][1]
        rate_Bps = rates[topology.nvlinks[0].gpu] / (len(gpus) - 1)
        yield f"{word}: every pair of GPUs, {_count(count, 'link')}, {number_of(rate_Bps)}"
        return
    for peers, members in alike.items():
        words = ", ".join(f"{count} to {peer}" for peer, count in peers)
        who = short_list([names[member] for member in members]) + (" each" if len(members) > 1 else "")
        yield f"{word}: {who} {words}, {number_of(rates[members[0]])}{' in all' if len(peers) > 1 else ''}"


def _is_full_mesh(counts: dict[str, Counter[str]], gpus: int) -> bool:
    """Return whether every GPU has the same number of links to every other, and none elsewhere."""
    numbers = {number for peers in counts.values() for number in peers.values()}
    return (
        gpus > 2
        and len(counts) == gpus
        and len(numbers) == 1
        and all(len(peers) == gpus - 1 and all(peer.startswith("GPU") for peer in peers) for peers in counts.values())
    )


def _chip_lines(topology: Topology) -> Iterator[str]:
    rates = Counter(link.count * link.link_MBps * 1e6 for link in topology.chip_links)
    for rate_Bps, count in rates.items():
        yield f"NVLink-C2C: {_count(count, 'GPU')} to the own CPU, {number_of(rate_Bps)}"


def _numa_lines(topology: Topology, nccl: Nccl) -> Iterator[str]:
    if len(topology.numa) > 1:
        rates = sorted({cpu_link_Bps(numa, nccl) for numa in topology.numa})
        words = " or ".join(number_of(rate_Bps) if rate_Bps < 1e12 else "no known limit" for rate_Bps in rates)
        yield f"between NUMA nodes: {words}"

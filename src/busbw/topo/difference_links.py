"""How the links of two topologies differ: NVLink, C2C, links between switches, and ports."""

from busbw.model.difference import Group
from busbw.model.topology import Net, NvLink, Topology
from busbw.topo.alignment import card
from busbw.topo.tally import Tally, both

# What NCCL takes for a port without a rate, in 10^6 bits per second.
_NO_RATE_Mbps = 10_000
_SWITCHES = "switches"
_GPU_CLASS = "0x03"
_CPU_CLASS = "0x068001"


def compare_nvlinks(tally: Tally, first: Topology, second: Topology) -> None:
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


def compare_chip_links(tally: Tally, first: Topology, second: Topology) -> None:
    """Compare what joins each GPU to its own CPU; NCCL looks for it where a GPU has none."""
    rates = [
        {link.gpu: f"{link.count * link.link_MBps / 1000:g} GB/s" for link in topology.chip_links}
        for topology in (first, second)
    ]
    for bus_id in dict.fromkeys(gpu.bus_id for gpu in first.gpus):
        if bus_id in {gpu.bus_id for gpu in second.gpus}:
            tally.compare("C2C", f"GPU {bus_id}", "rate", (rates[0].get(bus_id), rates[1].get(bus_id)))


def compare_pci_links(tally: Tally, first: Topology, second: Topology) -> None:
    """Compare the links between switches beside the tree; NCCL finds those of Broadcom's by itself."""
    devices = {device.bus_id for device in first.devices} & {device.bus_id for device in second.devices}
    for bus_id in dict.fromkeys(device.bus_id for device in first.devices if device.bus_id in devices):
        targets = _pci_ends(first, bus_id), _pci_ends(second, bus_id)
        tally.compare("PCIe links", f"switch {bus_id}", "to", targets, words=", ".join)


def _pci_ends(topology: Topology, bus_id: str) -> tuple[str, ...] | None:
    return tuple(sorted(link.target for link in topology.pci_links if link.device == bus_id)) or None


def compare_nets(tally: Tally, first: Topology, second: Topology) -> None:
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


def _compare_net(tally: Tally, first: Net, second: Net) -> None:
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

"""What joins the GPUs and the NUMA nodes of one node, in a few lines."""

from collections import Counter
from collections.abc import Iterator

from busbw.model.topology import Gpu, Topology
from busbw.show.topology_tree import number_of, short_list
from busbw.topo.paths.constants import cpu_link_Bps, link_rate_Bps
from busbw.topo.paths.link_words import link_words
from busbw.topo.paths.nearest import gpu_names

_SWITCHES = "NVSwitches"


def summary(topology: Topology) -> str:
    """Return the heading: what the node is called and how many of everything it has."""
    nics = sum(device.kind == "nic" for device in topology.devices)
    ports = _count(len(topology.nets), "port") if topology.nets else _count(nics, "NIC")
    addresses = len({gpu.bus_id for gpu in topology.gpus})
    shared = f", shared by {len(topology.gpus)} parts or ranks" if addresses < len(topology.gpus) else ""
    parts = [f"{_count(addresses, 'GPU')}{shared}", ports, _count(len(topology.numa), "NUMA node")]
    return f"{topology.name or 'node'}: {', '.join(parts)}"


def link_lines(topology: Topology) -> tuple[str, ...]:
    """Return lines about NVLink, chip-to-chip links and the links between NUMA nodes, where there are any."""
    return (*_nvlink_lines(topology), *_chip_lines(topology), *_numa_lines(topology))


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _nvlink_lines(topology: Topology) -> Iterator[str]:
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
            rates[link.gpu] = rates.get(link.gpu, 0.0) + link_rate_Bps(link, gpus[link.gpu])
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


def _numa_lines(topology: Topology) -> Iterator[str]:
    if len(topology.numa) > 1:
        rates = sorted({cpu_link_Bps(numa) for numa in topology.numa})
        words = " or ".join(number_of(rate_Bps) if rate_Bps < 1e12 else "no known limit" for rate_Bps in rates)
        yield f"between NUMA nodes: {words}"

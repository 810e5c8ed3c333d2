"""What the links of an InfiniBand fabric say: hosts and their adapters, leaves, hops, and links below their neighbours.

Where hosts stand is asked of a file of either kind, this or Slurm's topology.conf. A leaf is a switch with hosts. Hops
are cables on the shortest way: 2 below one leaf, 4 through one switch above.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.base.hostlist import is_host_name
from busbw.base.text import counted
from busbw.fabric.ib_topology import LANE_RATES, IbEnd, IbFabric, IbLink, IbNode, is_ib_topology, read_ib_topology
from busbw.fabric.places import Endpoint, Places, members_text
from busbw.fabric.slurm_topology import MOST_BYTES, placed, read_tree
from busbw.facts.rules import finding
from busbw.model.finding import Finding

# What adapters are called whose host has not set a description, and the switches' own ends for SHARP.
_NO_HOST = re.compile(r"MT\d{4,5}\b.*|Mellanox\b.*|.*\bAggregation Node\b.*|localhost\b.*|ConnectX.*|\(none\).*")
# Of devices as older start scripts number them: mlx5_3 is HCA-4 (rdma-core, rdma-ndd; MLNX_OFED, openibd).
_NUMBERED = re.compile(r"(?:mlx\d|mthca|qib|hfi1)_(\d{1,3})")
# A link is below its neighbours where so many of them, and at least this many, are all faster.
_MOST_OF = 2 / 3
# Distances are looked for from every leaf: 65,536 hosts below 16 each.
_MOST_LEAVES = 4096
_LEAST_NEIGHBOURS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class IbAdapter:
    """An adapter of a host with a link. `device`: what its description calls it; None: nothing."""

    host: str
    device: str | None
    # Keys of the switches at its ports, in the order of its ports.
    leaves: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class IbHosts:
    """The hosts of a fabric."""

    # By host, in the order of their names.
    adapters: dict[str, tuple[IbAdapter, ...]]
    # How many adapters have a link and no description that names a host.
    unnamed: int


def described(name: str) -> tuple[str, str | None] | None:
    """Return the host and the device that a description names, `node07 mlx5_0`; None where it names none."""
    words = name.strip().strip("'").split()
    if not words or len(words) > 2 or _NO_HOST.fullmatch(name.strip()) or not is_host_name(words[0]):
        return None
    return words[0], words[1] if len(words) == 2 else None


def ib_hosts(fabric: IbFabric) -> IbHosts:
    """Return the hosts with their adapters; what no description names is counted."""
    at: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for link in fabric.links:
        for end, far in ((link.one, link.other), (link.other, link.one)):
            if fabric.nodes[end.node].kind == "host" and fabric.nodes[far.node].kind == "switch":
                at[end.node].append((end.port, far.node))
    found: dict[str, list[IbAdapter]] = defaultdict(list)
    unnamed = 0
    for key in sorted(at):
        named = described(fabric.nodes[key].name)
        if named is None:
            unnamed += "Aggregation Node" not in fabric.nodes[key].name
            continue
        leaves = tuple(switch for _port, switch in sorted(at[key]))
        found[named[0]].append(IbAdapter(host=named[0], device=named[1], leaves=leaves))
    ordered = {host: tuple(sorted(found[host], key=lambda each: each.device or "")) for host in sorted(found)}
    return IbHosts(adapters=ordered, unnamed=unnamed)


def switch_distances(fabric: IbFabric, start: str) -> dict[str, int]:
    """Return the cables between a switch and each switch that is reached through switches alone."""
    return _distances(_switch_neighbours(fabric), start)


def _switch_neighbours(fabric: IbFabric) -> dict[str, set[str]]:
    beside: dict[str, set[str]] = {key: set() for key, node in fabric.nodes.items() if node.kind != "host"}
    for link in fabric.links:
        if link.one.node in beside and link.other.node in beside:
            beside[link.one.node].add(link.other.node)
            beside[link.other.node].add(link.one.node)
    return beside


def _distances(beside: Mapping[str, set[str]], start: str) -> dict[str, int]:
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        for near in beside.get(at, ()):
            if near not in found:
                found[near] = found[at] + 1
                waiting.append(near)
    return found


def hop_count(fabric: IbFabric, one: str, other: str) -> int | None:
    """Return the cables on the shortest way between two hosts; None where there is none.

    Raises InputError for a host that the fabric does not have.
    """
    hosts = ib_hosts(fabric)
    ends = [_adapters_of(hosts, Endpoint(node=name), fabric.where) for name in (one, other)]
    starts, goals = ({leaf for each in end for leaf in each.leaves} for end in ends)
    beside = _switch_neighbours(fabric)
    ways = [far for start in sorted(starts) for leaf, far in _distances(beside, start).items() if leaf in goals]
    return min(ways) + 2 if ways else None


def placed_by_links(places: Places, fabric: IbFabric) -> Places:
    """Return the places with the leaves that the links show, and leaves of a pod as a group.

    An endpoint that is tested as a whole and has adapters at several leaves stands below all of them together. Raises
    InputError for a host that the fabric does not have.
    """
    hosts = ib_hosts(fabric)
    missing = [node for node in places.nodes if _known_name(hosts, node) is None]
    if missing:
        hint = (
            f"{counted(hosts.unnamed, 'adapter')} without a host's name in it: rdma-ndd sets it"
            if hosts.unnamed
            else None
        )
        raise InputError(
            f"{counted(len(missing), 'tested host')} not in the topology: {members_text(missing)}",
            where=fabric.where,
            hint=hint,
        )
    below = [
        tuple(dict.fromkeys(leaf for each in _adapters_of(hosts, end, fabric.where) for leaf in each.leaves))
        for end in places.endpoints
    ]
    used = tuple(dict.fromkeys(below))
    return Places(
        endpoints=places.endpoints,
        leaves=tuple(used.index(each) for each in below),
        leaf_names=_leaf_names(fabric, used),
        groups=_groups(fabric, used),
    )


def _known_name(hosts: IbHosts, node: str) -> str | None:
    """Return what the fabric calls a host: the same name, or the only one that is alike before its first point."""
    if node in hosts.adapters:
        return node
    short = node.partition(".")[0]
    alike = [each for each in hosts.adapters if each.partition(".")[0] == short]
    return alike[0] if len(alike) == 1 else None


def _adapters_of(hosts: IbHosts, end: Endpoint, where: str) -> tuple[IbAdapter, ...]:
    """Return the adapter of an endpoint, or all of its host where the endpoint names none of them."""
    known = _known_name(hosts, end.node)
    if known is None:
        raise InputError(f"no host {end.node} in the topology", where=where)
    every = hosts.adapters[known]
    if end.rail is None:
        return every
    numbered = _NUMBERED.fullmatch(end.rail)
    names = {end.rail, f"HCA-{int(numbered[1]) + 1}" if numbered is not None else end.rail}
    return tuple(each for each in every if each.device in names) or every


def _leaf_names(fabric: IbFabric, used: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return a name for each set of leaves: descriptions where they differ, else with the key behind."""
    twice = {name for name, count in Counter(each.name for each in fabric.nodes.values()).items() if count > 1}

    def name_of(key: str) -> str:
        node = fabric.nodes[key]
        word = re.sub(r"[^A-Za-z0-9_.-]+", "-", node.name.split(";")[-1].split(":")[0]).strip("-") or key
        return f"{word}-{key.removeprefix('S-').lstrip('0')}" if node.name in twice or not node.name else word

    names = [name_of(each[0]) if len(each) == 1 else f"{name_of(each[0])}-and-{len(each) - 1}-more" for each in used]
    counts = Counter(names)
    return tuple(name if counts[name] == 1 else f"{name}-{at}" for at, name in enumerate(names))


def _groups(fabric: IbFabric, used: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return the group of each leaf: leaves that are as near as any two are in this fabric are in one."""
    beside = _switch_neighbours(fabric)
    firsts = [each[0] for each in used]
    if len(set(firsts)) > _MOST_LEAVES:
        raise InputError(f"{len(set(firsts))} leaves are over the limit of {_MOST_LEAVES}", where=fabric.where)
    reach = {first: _distances(beside, first) for first in dict.fromkeys(firsts)}
    apart = [far for first in reach for other, far in reach[first].items() if other in reach and other != first]
    nearest = min(apart, default=0)
    group: dict[str, int] = {}
    for first in reach:
        if first in group:
            continue
        group[first] = number = len(set(group.values()))
        waiting = [first]
        while waiting:
            at = waiting.pop()
            for other in reach:
                if other not in group and reach[at].get(other, nearest + 1) <= nearest:
                    group[other] = number
                    waiting.append(other)
    return tuple(group[first] for first in firsts)


def slow_links(fabric: IbFabric) -> tuple[Finding, ...]:
    """Return the links that run at fewer lanes or a lower speed than most like them at their ends."""
    beside: dict[str, list[IbLink]] = defaultdict(list)
    for link in fabric.links:
        if rate_bps(link) is not None:
            for end in (link.one, link.other):
                beside[_site(fabric.nodes[end.node])].append(link)
    made = []
    for link in fabric.links:
        rate = rate_bps(link)
        if rate is None:
            continue
        kind = _reach(fabric, link)
        near = {
            id(each): each
            for end in (link.one, link.other)
            for each in beside[_site(fabric.nodes[end.node])]
            if each is not link and _reach(fabric, each) == kind
        }.values()
        faster = [each for each in near if (rate_bps(each) or 0.0) > rate]
        if len(faster) >= _LEAST_NEIGHBOURS and len(faster) >= _MOST_OF * len(near):
            made.append(_slow(fabric, link, faster, len(near)))
    return tuple(made)


def _site(node: IbNode) -> str:
    """Return what gathers the links of a switch, or of all adapters of a host."""
    named = described(node.name) if node.kind == "host" else None
    return f"host {named[0]}" if named is not None else f"node {node.key}"


def _reach(fabric: IbFabric, link: IbLink) -> bool:
    """Whether a link has a host at one end: links between switches are compared with their own kind."""
    return "host" in (fabric.nodes[link.one.node].kind, fabric.nodes[link.other.node].kind)


def rate_bps(link: IbLink) -> float | None:
    """Return what a link carries on the wire; None where it does not say."""
    return link.width * link.lane_bps if link.width is not None and link.lane_bps is not None else None


def link_speed(link: IbLink) -> str:
    """Return width and speed as the field writes them, `4x HDR`; `?` for what is not known."""
    names = {rate: name for name, rate in LANE_RATES.items()}
    # iblinkinfo prints FDR10 and QDR by rate, and other rates as they are.
    speed = "?" if link.lane_bps is None else names.get(link.lane_bps, f"{link.lane_bps / 1e9:g} Gb/s a lane")
    return f"{link.width if link.width is not None else '?'}x {speed}"


def end_name(fabric: IbFabric, end: IbEnd) -> str:
    """Return `node07 mlx5_0 port 1`, `leaf3 port 12`."""
    return f"{fabric.nodes[end.node].name or end.node} port {end.port}"


def _slow(fabric: IbFabric, link: IbLink, faster: Sequence[IbLink], near: int) -> Finding:
    usual = Counter(link_speed(each) for each in faster).most_common(1)[0][0]
    ends = f"{end_name(fabric, link.one)} to {end_name(fabric, link.other)}"
    # A host's end first.
    if fabric.nodes[link.other.node].kind == "host":
        ends = f"{end_name(fabric, link.other)} to {end_name(fabric, link.one)}"
    return finding(
        "FAB013",
        what=ends,
        speed=link_speed(link),
        usual=usual,
        evidence=f"{len(faster)} of {counted(near, 'link')} like it at its ends are faster, most of them {usual}",
        fix="reseat the cable and train the link again (ibportstate LID PORT reset); if it stays so, swap the cable",
        look="iblinkinfo",
        confidence="likely",
    )


@dataclass(frozen=True, kw_only=True)
class KnownTopology:
    """The places with their leaves, and of an InfiniBand fabric its links and what is wrong with them."""

    places: Places
    fabric: IbFabric | None = None
    findings: tuple[Finding, ...] = ()


def placed_by_text(places: Places, text: str, where: str) -> KnownTopology:
    """Return the places as a file has them; which kind it is follows from its content.

    Raises InputError for what is none of them, and for a host that it does not have.
    """
    if is_ib_topology(text):
        fabric = read_ib_topology(text, where)
        return KnownTopology(places=placed_by_links(places, fabric), fabric=fabric, findings=slow_links(fabric))
    if len(text) > MOST_BYTES:
        raise InputError(f"{len(text)} characters are too many for a topology.conf", where=where)
    return KnownTopology(places=placed(places, read_tree(text, where)))

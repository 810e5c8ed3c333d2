"""What a file says about itself where nothing is there to compare with: order, symmetry, distance."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from itertools import groupby
from typing import TypeVar

from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.topo.buses import bus_key
from busbw.topo.file.document import Element, read_integer
from busbw.topo.reference import TopologyReference, guid_numbers
from busbw.topo.rules.subject import WORDS, Kind, NetElement, PciElement, TopologySubject, is_rccls

_LEAST_SWITCHES = 3
_BOTH: tuple[Kind, ...] = ("gpu", "nic")


def evenness(subject: TopologySubject) -> Iterator[Finding]:
    """Yield what stands out: possible in a real machine, and often a mistake."""
    for kind in _BOTH:
        devices = [device for device in subject.devices if device.kind == kind and device.bus_id is not None]
        yield from _apart(subject, devices)
        yield from _uneven_nodes(subject, kind, devices)
    yield from _uneven_switches(subject)


def distance(subject: TopologySubject) -> Iterator[Finding]:
    """Yield GPUs that are too far from every NIC for GPUDirect RDMA, where both are able to do it.

    Of RCCL's files nothing: it has distances of its own.
    """
    nics = [nic for nic in subject.devices if nic.kind == "nic" and _is_able(nic.element, "nic", "net")]
    near = {id(nic.node) for nic in nics}
    near |= {id(net.node) for net in subject.nets if net.device is None and _has_gdr(net.element)}
    gpus = [gpu for gpu in subject.of_kind("gpu") if near and _is_able(gpu.element, "gpu") and not is_rccls(gpu)]
    for gpu in gpus:
        if id(gpu.node) not in near:
            yield finding(
                "TOP070",
                evidence=f"NUMA node {gpu.node.id} has no NIC",
                place=subject.place(gpu.element),
                confidence="certain",
                effect="NCCL copies through host memory unless NCCL_NET_GDR_LEVEL=SYS",
                bus_id=gpu.bus_id or "?",
            )
    yield from _flat(subject, [gpu for gpu in gpus if id(gpu.node) in near], nics)


def _flat(subject: TopologySubject, gpus: list[PciElement], nics: list[PciElement]) -> Iterator[Finding]:
    """Yield one note where every way between GPUs and NICs leads through a CPU, and no chip-to-chip link helps."""
    beside_nics = {id(switch) for nic in nics for switch in _above(nic)}
    has_chip_links = any(element.name == "c2c" for gpu in gpus for element in gpu.element.walk())
    if (
        not gpus
        or not nics
        or has_chip_links
        or any(id(switch) in beside_nics for gpu in gpus for switch in _above(gpu))
    ):
        return
    yield finding(
        "TOP075",
        evidence=f"a CPU is on every way (GPUs: {len(gpus)}, NICs: {len(nics)})",
        fix="in a virtual machine: write the host's switches, as ffff:ff:01.0 and on, into a file for NCCL_TOPO_FILE",
        place=subject.place(gpus[0].element),
        confidence="certain",
        effect="NCCL copies through host memory unless NCCL_NET_GDR_LEVEL=PHB",
    )


def _above(device: PciElement) -> Iterator[PciElement]:
    while device.parent is not None:
        device = device.parent
        yield device


def _is_able(device: Element, *way: str) -> bool:
    """Return whether one of the elements that this way leads to can do GPUDirect RDMA, or nothing is said of it."""
    ends = [device]
    for name in way:
        ends = [child for end in ends for child in end.named(name)]
    return not ends or any(_has_gdr(end) for end in ends)


def _has_gdr(element: Element) -> bool:
    return read_integer(element.value("gdr")) != 0


def _apart(subject: TopologySubject, devices: list[PciElement]) -> Iterator[Finding]:
    """Yield devices of a node whose others are all elsewhere in the order of addresses."""
    buses = {bus_key(device.bus_id or "") for device in devices}
    # On one bus, a virtual machine's, the order means nothing.
    if len(buses) < len(devices) / 2 or len(devices) < _LEAST_SWITCHES:
        return
    ordered = sorted(devices, key=lambda device: device.bus_id or "")
    runs = [(node, list(run)) for node, run in groupby(ordered, key=lambda device: device.node.id)]
    counts = Counter(node for node, _run in runs)
    longest: dict[int | None, int] = defaultdict(int)
    for node, run in runs:
        longest[node] = max(longest[node], len(run))
    for place, (node, run) in enumerate(runs):
        inside = 0 < place < len(runs) - 1 and runs[place - 1][0] == runs[place + 1][0]
        if (counts[node] > 1 and len(run) < longest[node]) or (inside and counts[node] == 1 and len(run) == 1):
            yield finding(
                "TOP071",
                evidence=f"in the order of addresses it stands among those of NUMA node {_between(runs, place)}",
                place=subject.place(run[0].element),
                confidence="possible",
                effect="NCCL obeys the file",
                kind=WORDS[run[0].kind or ""],
                bus_id=run[0].bus_id or "?",
            )


def _between(runs: list[tuple[int | None, list[PciElement]]], place: int) -> str:
    beside = runs[place - 1] if place > 0 else runs[place + 1]
    return str(beside[0])


def _uneven_nodes(subject: TopologySubject, kind: Kind, devices: list[PciElement]) -> Iterator[Finding]:
    counts = Counter(device.node.id for device in devices)
    used = {device.node.id for device in subject.devices if device.kind in _BOTH}
    # Fewer devices than nodes cannot be even.
    if len(devices) < len(used) or len({counts[node] for node in used}) < 2:
        return
    shown = ", ".join(f"{counts[node]} on NUMA node {node}" for node in sorted(used, key=str))
    yield finding(
        "TOP072",
        evidence="machines for collectives are nearly always even",
        place=subject.place(subject.document.root),
        confidence="possible",
        effect="NCCL obeys the file",
        kind=f"{WORDS[kind]}s",
        what=shown,
    )


def _uneven_switches(subject: TopologySubject) -> Iterator[Finding]:
    """Yield the switch, of those directly below the NUMA nodes, that carries other numbers than all others."""
    contents: dict[int, Counter[str]] = defaultdict(Counter)
    tops: dict[int, PciElement] = {}
    for device in subject.devices:
        top = device
        while top.parent is not None:
            top = top.parent
        if top.kind == "switch" and device.kind in ("gpu", "nic"):
            tops[id(top)] = top
            contents[id(top)][device.kind] += 1
    shapes = Counter((content["gpu"], content["nic"]) for content in contents.values())
    if len(tops) < _LEAST_SWITCHES or len(shapes) != 2:
        return
    (usual, votes), (odd, exceptions) = shapes.most_common(2)
    # Switches of NICs alone are fine.
    if exceptions > 1 or votes < _LEAST_SWITCHES - 1 or not odd[0]:
        return
    switch = next(tops[key] for key, content in contents.items() if (content["gpu"], content["nic"]) == odd)
    yield finding(
        "TOP072",
        evidence=f"switch {switch.bus_id or '?'} stands out",
        place=subject.place(switch.element),
        confidence="possible",
        effect="NCCL obeys the file",
        kind="devices",
        what=f"{odd[0]} GPUs and {odd[1]} NICs below one switch, {usual[0]} and {usual[1]} below {votes} others",
    )


K = TypeVar("K", bound=Hashable)
_TIMES = {2: "two", 3: "three", 4: "four"}


def identity(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield what NCCL finds twice under one name, and what tells hosts apart."""
    yield from _twice(subject)
    hosts = {node.host for node in subject.nodes if node.host is not None}
    if len(hosts) > 1:
        second = next(node for node in subject.nodes if node.host not in (None, subject.nodes[0].host))
        yield finding(
            "TOP034",
            evidence=f"{len(hosts)} different host_hash; from here on another host than {subject.nodes[0].host}",
            fix="keep the cpu elements of one host_hash and delete the others",
            place=subject.place(second.element, "host_hash"),
            confidence="certain",
            effect="NCCL overwrites every host_hash with its own host's",
            hosts=len(hosts),
        )
    yield from _guids(subject, reference)


def _twice(subject: TopologySubject) -> Iterator[Finding]:
    devices: dict[tuple[str | None, str], list[Element]] = defaultdict(list)
    for device in subject.devices:
        if device.bus_id is not None:
            devices[device.node.host, device.bus_id].append(device.element)
    nets: dict[tuple[str | None, str], list[NetElement]] = defaultdict(list)
    for net in subject.nets:
        if name := net.element.value("name"):
            nets[net.node.host, name].append(net)
    nodes: dict[tuple[str | None, str], list[Element]] = defaultdict(list)
    for node in subject.nodes:
        if node.id is not None:
            nodes[node.host, str(node.id)].append(node.element)
    yield from _repeated(subject, "TOP031", "busid", devices)
    own = {key: [net.element for net in found] for key, found in nets.items() if not _is_every_ranks(subject, found)}
    yield from _repeated(subject, "TOP032", "name", own)
    yield from _repeated(subject, "TOP033", "numaid", nodes)


def _is_every_ranks(subject: TopologySubject, found: list[NetElement]) -> bool:
    """Return whether a net stands once below each NUMA node with GPUs: every rank puts one without a device there."""
    nodes = [id(net.node) for net in found]
    with_gpus = {id(gpu.node) for gpu in subject.of_kind("gpu") if gpu.node.host == found[0].node.host}
    return all(net.device is None for net in found) and len(set(nodes)) == len(nodes) and with_gpus <= set(nodes)


def _repeated(
    subject: TopologySubject, code: str, attribute: str, found: dict[tuple[str | None, str], list[Element]]
) -> Iterator[Finding]:
    for (_host, value), elements in found.items():
        if len(elements) < 2:
            continue
        yield finding(
            code,
            evidence=f"first in line {elements[0].line}",
            place=subject.place(elements[1], attribute),
            confidence="certain",
            effect="NCCL takes the first",
            value=value,
            times=_TIMES.get(len(elements), str(len(elements))),
        )


def _guids(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    known = [net for net in subject.nets if guid_numbers(net.element.value("guid"))]
    stamped = next((node for node in subject.nodes if node.host is not None), None)
    if known and reference is not None and reference.guids:
        strange = [net for net in known if not reference.guids & set(guid_numbers(net.element.value("guid")))]
        if strange:
            yield finding(
                "TOP036",
                evidence=f"the first is {strange[0].element.value('guid')} of {strange[0].name}",
                fix="leave guid out: NCCL asks the NIC",
                place=subject.place(strange[0].element, "guid"),
                confidence="certain",
                effect="NCCL believes the file",
                what=f"{len(strange)} of {len(known)} nets",
            )
        return
    what = [f"{len(known)} GUID{'s' if len(known) > 1 else ''}"] if known else []
    what += ["host_hash"] if stamped is not None else []
    if not what:
        return
    place = subject.place(known[0].element, "guid") if known else None
    if place is None and stamped is not None:
        place = subject.place(stamped.element, "host_hash")
    yield finding(
        "TOP035",
        evidence="right on the host it was written on; leave it out of a file for many",
        place=place,
        confidence="certain",
        effect="NCCL believes GUIDs, and overwrites host_hash" if known else "NCCL overwrites host_hash",
        what=" and ".join(what),
    )

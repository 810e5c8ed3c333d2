"""What a file says about itself where nothing is there to compare with: order, symmetry, distance."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.addresses import bus_key
from busbw.topo.file.document import Element
from busbw.topo.file.numerals import read_integer
from busbw.topo.rules.subject import WORDS, Device, Kind, Subject, is_rccls

_LEAST_SWITCHES = 3
_BOTH: tuple[Kind, ...] = ("gpu", "nic")


def evenness(subject: Subject) -> Iterator[Finding]:
    """Yield what stands out: possible in a real machine, and often a mistake."""
    for kind in _BOTH:
        devices = [device for device in subject.devices if device.kind == kind and device.bus_id is not None]
        yield from _apart(subject, devices)
        yield from _uneven_nodes(subject, kind, devices)
    yield from _uneven_switches(subject)


def distance(subject: Subject) -> Iterator[Finding]:
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
                where=subject.where(gpu.element),
                confidence="certain",
                effect="NCCL copies through host memory unless NCCL_NET_GDR_LEVEL=SYS",
                bus_id=gpu.bus_id or "?",
            )
    yield from _flat(subject, [gpu for gpu in gpus if id(gpu.node) in near], nics)


def _flat(subject: Subject, gpus: list[Device], nics: list[Device]) -> Iterator[Finding]:
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
        where=subject.where(gpus[0].element),
        confidence="certain",
        effect="NCCL copies through host memory unless NCCL_NET_GDR_LEVEL=PHB",
    )


def _above(device: Device) -> Iterator[Device]:
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


def _apart(subject: Subject, devices: list[Device]) -> Iterator[Finding]:
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
                where=subject.where(run[0].element),
                confidence="possible",
                effect="NCCL obeys the file",
                kind=WORDS[run[0].kind or ""],
                bus_id=run[0].bus_id or "?",
            )


def _between(runs: list[tuple[int | None, list[Device]]], place: int) -> str:
    beside = runs[place - 1] if place > 0 else runs[place + 1]
    return str(beside[0])


def _uneven_nodes(subject: Subject, kind: Kind, devices: list[Device]) -> Iterator[Finding]:
    counts = Counter(device.node.id for device in devices)
    used = {device.node.id for device in subject.devices if device.kind in _BOTH}
    # Fewer devices than nodes cannot be even.
    if len(devices) < len(used) or len({counts[node] for node in used}) < 2:
        return
    shown = ", ".join(f"{counts[node]} on NUMA node {node}" for node in sorted(used, key=str))
    yield finding(
        "TOP072",
        evidence="machines for collectives are nearly always even",
        where=subject.where(subject.document.root),
        confidence="possible",
        effect="NCCL obeys the file",
        kind=f"{WORDS[kind]}s",
        what=shown,
    )


def _uneven_switches(subject: Subject) -> Iterator[Finding]:
    """Yield the switch, of those directly below the NUMA nodes, that carries other numbers than all others."""
    contents: dict[int, Counter[str]] = defaultdict(Counter)
    tops: dict[int, Device] = {}
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
        where=subject.where(switch.element),
        confidence="possible",
        effect="NCCL obeys the file",
        kind="devices",
        what=f"{odd[0]} GPUs and {odd[1]} NICs below one switch, {usual[0]} and {usual[1]} below {votes} others",
    )

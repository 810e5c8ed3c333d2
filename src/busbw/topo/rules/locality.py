"""Where devices are: held against the right machine."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from busbw.base.text import listed
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.topo.buses import card
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.subject import WORDS, PciElement, TopologySubject

# From the node in the file to the node it is in truth.
Moves = dict[int, int]


def true_node(device: PciElement, reference: TopologyReference) -> int | None:
    """Return the NUMA node of a device in the right machine; None where it is not known."""
    if device.bus_id is None:
        return None
    if device.kind != "nic" and device.bus_id in reference.gpus:
        return reference.gpus[device.bus_id]
    return reference.nics.get(card(device.bus_id)) if device.kind != "gpu" else None


def moved_masks(subject: TopologySubject, reference: TopologyReference) -> Moves:
    """Return the nodes whose mask is that of another node of the right machine."""
    owners = {frozenset(cpus): number for number, cpus in reference.masks.items()}
    found: Moves = {}
    for node in subject.nodes:
        owner = owners.get(frozenset(node.cpus or ()))
        if node.id is not None and owner is not None and owner != node.id:
            found[node.id] = owner
    return found


def moved_devices(devices: list[PciElement], reference: TopologyReference) -> Moves:
    """Return the nodes all of whose devices belong to one other node, where these nodes only change places."""
    truths: dict[int, set[int]] = defaultdict(set)
    for device in devices:
        truth = true_node(device, reference)
        if truth is not None and device.node.id is not None:
            truths[device.node.id].add(truth)
    whole = {node: next(iter(found)) for node, found in truths.items() if len(found) == 1}
    moved = {node: truth for node, truth in whole.items() if node != truth}
    # A node that goes where another stays, or where two go, has not changed places.
    while True:
        kept = {node: truth for node, truth in moved.items() if truth in moved}
        kept = {node: truth for node, truth in kept.items() if list(kept.values()).count(truth) == 1}
        if kept == moved:
            return moved
        moved = kept


def relabelled(subject: TopologySubject, reference: TopologyReference | None) -> frozenset[int]:
    """Return the nodes whose masks and devices are both those of one other node: only their numbers changed places."""
    if reference is None:
        return frozenset()
    masks = moved_masks(subject, reference)
    placed = moved_devices([device for device in subject.devices if device.kind in ("gpu", "nic")], reference)
    return frozenset(node for node, truth in placed.items() if masks.get(node) == truth)


def misnumbered(subject: TopologySubject, reference: TopologyReference) -> dict[int, int]:
    """Return the true nodes of `cpu` elements with another number, by their identity.

    All of such an element's devices are of one other node, and no element has that node's number, or only one that
    has another number in truth: nodes counted from 1 are one slip.
    """
    found = {key: next(iter(own)) for key, own in _truths(subject, reference).items() if len(own) == 1}
    owners = Counter(found.values())
    taken = Counter(node.id for node in subject.nodes)
    waiting = {
        id(node.element): node.id
        for node in subject.nodes
        if owners[found.get(id(node.element), -1)] == 1 and found[id(node.element)] != node.id
    }
    rights: dict[int, int] = {}
    while free := [key for key in waiting if not taken[found[key]]]:
        rights |= {key: found[key] for key in free}
        taken.subtract([waiting.pop(key) for key in free])
    return rights


def numbering(subject: TopologySubject, numbers: dict[int, int], reference: TopologyReference) -> Iterator[Finding]:
    """Yield one finding for all `cpu` elements with another node's number."""
    wrong = [node for node in subject.nodes if id(node.element) in numbers and node.id is not None]
    if not wrong:
        return
    rights = [(node, numbers[id(node.element)]) for node in wrong]
    fix = ", ".join(f'numaid="{right}" in line {node.element.line}' for node, right in rights)
    shown = ", ".join(dict.fromkeys(str(node.id) for node in wrong))
    yield finding(
        "TOP052",
        evidence="; ".join(
            f"all devices of line {node.element.line} are of its node {right}" for node, right in rights
        ),
        fix=fix if len(rights) > 1 else f'numaid="{rights[0][1]}"',
        place=subject.place(wrong[0].element, "numaid"),
        confidence=reference.confidence,
        effect=_OBEYS,
        value=shown,
        name=reference.name,
        truth=", ".join(str(right) for _node, right in rights),
    )


def lumped(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield one finding where all devices are on one NUMA node, and the right machine has them on several."""
    truths = _truths(subject, reference)
    if len(truths) != 1:
        return
    ((key, nodes),) = truths.items()
    if len(nodes) < _LEAST_NODES:
        return
    node = next(node for node in subject.nodes if id(node.element) == key)
    on = {
        number: [device.bus_id or "?" for device in subject.devices if true_node(device, reference) == number]
        for number in sorted(nodes)
    }
    yield finding(
        "TOP053",
        evidence="; ".join(f"node {number} has {listed(devices, _MOST_NAMED)}" for number, devices in on.items()),
        fix=f"a cpu element for each of numaid {_numbers(frozenset(nodes))}, with its mask and its devices",
        place=subject.place(node.element, "numaid"),
        confidence=reference.confidence,
        effect="NCCL sends the threads of every GPU to the same CPUs, and takes no way for one between sockets",
        name=reference.name,
        count=len(nodes),
    )


def _truths(subject: TopologySubject, reference: TopologyReference) -> dict[int, set[int]]:
    """Return the true nodes of the devices of each `cpu` element, by its identity, where any is known."""
    truths: dict[int, set[int]] = defaultdict(set)
    for device in subject.devices:
        if device.kind in ("gpu", "nic") and (truth := true_node(device, reference)) is not None:
            truths[id(device.node.element)].add(truth)
    return truths


_OBEYS = "NCCL obeys: what the file says of a device wins over what the machine says"
_MOST_NAMED = 4


def locality(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield devices that are on another NUMA node, or beside another NIC, than in the right machine."""
    numbers = relabelled(subject, reference)
    if numbers:
        first = next(node for node in subject.nodes if node.id in numbers)
        yield finding(
            "TOP069",
            evidence=f"devices and masks of each are those of another node of {reference.name}",
            fix="exchange the numaid, nothing else",
            place=subject.place(first.element, "numaid"),
            confidence=reference.confidence,
            effect="NCCL takes the masks with the devices, and adds what it detects below the other node",
            nodes=_numbers(numbers),
        )
    devices = [device for device in subject.devices if device.kind in ("gpu", "nic") and device.node.id not in numbers]
    gpus = moved_devices([device for device in devices if device.kind == "gpu"], reference)
    nics = moved_devices([device for device in devices if device.kind == "nic"], reference)
    if gpus or nics:
        yield from _exchanged(subject, devices, reference, gpus, nics)
    for device in devices:
        exchanged = gpus if device.kind == "gpu" else nics
        truth = true_node(device, reference)
        if truth is not None and truth != device.node.id and device.node.id not in exchanged:
            yield _misplaced(subject, device, truth, reference)
    yield from _neighbours(subject, reference)


def _exchanged(
    subject: TopologySubject,
    devices: list[PciElement],
    reference: TopologyReference,
    gpus: dict[int, int],
    nics: dict[int, int],
) -> Iterator[Finding]:
    """Yield one finding for each way in which devices changed places."""
    together = {node: truth for node, truth in gpus.items() if nics.get(node) == truth}
    rest = [
        ("GPUs and NICs", together),
        ("GPUs", {node: truth for node, truth in gpus.items() if node not in together}),
        ("NICs", {node: truth for node, truth in nics.items() if node not in together}),
    ]
    for words, moves in rest:
        if not moves:
            continue
        kinds = [kind for kind in ("gpu", "nic") if WORDS[kind] in words]
        first = next(device for device in devices if device.node.id in moves and device.kind in kinds)
        node = first.node.id or 0
        named = [device.bus_id or "?" for device in devices if device.node.id == node and device.kind == first.kind]
        yield finding(
            "TOP060",
            evidence=f"node {node} has {listed(named, _MOST_NAMED)}; {reference.name} has them on node {moves[node]}",
            fix="exchange the contents of the cpu elements, and leave their masks",
            place=subject.place(first.element),
            confidence=reference.confidence,
            effect=_OBEYS,
            devices=words,
            nodes=_numbers(frozenset(moves)),
        )


def _misplaced(subject: TopologySubject, device: PciElement, truth: int, reference: TopologyReference) -> Finding:
    return finding(
        "TOP061",
        evidence=f"{reference.name} has it on node {truth}",
        fix=f'move the element below <cpu numaid="{truth}">',
        place=subject.place(device.element),
        confidence=reference.confidence,
        effect=_OBEYS,
        device=WORDS[device.kind or ""],
        bus_id=device.bus_id or "?",
        node=device.node.id if device.node.id is not None else "?",
        truth=truth,
    )


def _neighbours(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield GPUs whose nearest NICs are others than in the right machine."""
    # A GPU that is called a NIC has a finding of its own.
    nics = [
        device
        for device in subject.devices
        if device.kind == "nic" and device.bus_id is not None and device.bus_id not in reference.gpus
    ]
    present = {card(device.bus_id or "") for device in nics}
    if any(true_node(nic, reference) not in (None, nic.node.id) for nic in nics):
        return
    for gpu in subject.of_kind("gpu"):
        right = reference.nearest.get(gpu.bus_id or "", frozenset()) & present
        found = _below_a_switch(gpu, nics)
        beside = found or frozenset(card(nic.bus_id or "") for nic in nics if nic.node is gpu.node)
        # On another node its own finding says so.
        if not beside or true_node(gpu, reference) not in (None, gpu.node.id):
            continue
        if not right or right & beside:
            yield from _switches(subject, gpu, reference, found, present)
            continue
        yield finding(
            "TOP068",
            evidence=f"{_cards(beside)}; {reference.name} has {_cards(right)}",
            fix=f"move the GPU below the switch of {_cards(right)}",
            place=subject.place(gpu.element),
            confidence=reference.confidence,
            effect=_OBEYS,
            bus_id=gpu.bus_id or "?",
        )


def _switches(
    subject: TopologySubject, gpu: PciElement, reference: TopologyReference, found: frozenset[str], present: set[str]
) -> Iterator[Finding]:
    """Yield a GPU that shares switches with fewer or more NICs than in the right machine."""
    right = reference.switched.get(gpu.bus_id or "", frozenset()) & present
    for code, cards, effect in (
        ("TOP078", right - found, "NCCL copies through host memory between them unless NCCL_NET_GDR_LEVEL=PHB"),
        ("TOP079", found - right, _OBEYS),
    ):
        if right and cards:
            yield finding(
                code,
                evidence=f"{_cards(found) or 'none'} below its switch; {reference.name} has {_cards(right)}",
                place=subject.place(gpu.element),
                confidence=reference.confidence,
                effect=effect,
                bus_id=gpu.bus_id or "?",
                nics=_cards(cards),
            )


def _below_a_switch(gpu: PciElement, nics: list[PciElement]) -> frozenset[str]:
    """Return the cards that share the lowest switch with a GPU; none where it shares no switch."""
    above = gpu.parent
    while above is not None:
        below = frozenset(card(nic.bus_id or "") for nic in nics if _is_below(nic, above))
        if below:
            return below
        above = above.parent
    return frozenset()


def _is_below(device: PciElement, switch: PciElement) -> bool:
    above = device.parent
    while above is not None and above is not switch:
        above = above.parent
    return above is switch


def _numbers(nodes: frozenset[int]) -> str:
    return ", ".join(str(node) for node in sorted(nodes))


def _cards(addresses: frozenset[str]) -> str:
    return listed([f"{address}.0" for address in sorted(addresses)], _MOST_NAMED)


# One node for the whole machine is how files are written by people who do not know better.
_LEAST_NODES = 2


def division(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield one note where each NUMA node of the file is several of the platform's, with all that belongs to them."""
    parts = _parts(subject, reference)
    if parts:
        first = next(node for node in subject.nodes if node.id in parts)
        shown = "; ".join(
            f"node {node} is {reference.name}'s {', '.join(map(str, sorted(truths)))}"
            for node, truths in sorted(parts.items())
        )
        yield finding(
            "TOP077",
            evidence=shown,
            fix="compare with lscpu on the machine",
            place=subject.place(first.element, "numaid"),
            confidence="likely",
            effect="right where the firmware is set so; NCCL obeys",
            count=len(parts),
            truth=len(reference.masks),
        )


def undivided(reference: TopologyReference) -> TopologyReference:
    """Return what holds whichever way the NUMA nodes are divided."""
    return replace(
        reference,
        gpus=dict.fromkeys(reference.gpus),
        nics=dict.fromkeys(reference.nics),
        masks={},
    )


def _parts(subject: TopologySubject, reference: TopologyReference) -> dict[int, set[int]]:
    """Return the platform's nodes that each node of the file holds whole; empty where that is not so.

    What a host says of itself is the division that it has.
    """
    if reference.kind == "host":
        return {}
    cpus = {node.id: frozenset(node.cpus or ()) for node in subject.nodes}
    parts: dict[int, set[int]] = defaultdict(set)
    for device in subject.devices:
        truth = true_node(device, reference)
        if truth is not None and device.node.id is not None:
            parts[device.node.id].add(truth)
    truths = [truth for own in parts.values() for truth in own]
    is_coarser = _LEAST_NODES <= len(parts) < len(truths) == len(set(truths))
    is_whole = all(
        truth in reference.masks and frozenset(reference.masks[truth]) <= cpus[node]
        for node, own in parts.items()
        for truth in own
    )
    return dict(parts) if is_coarser and is_whole else {}

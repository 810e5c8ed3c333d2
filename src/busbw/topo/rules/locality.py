"""Where devices are: held against the right machine."""

from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.addresses import card
from busbw.topo.reference import Reference
from busbw.topo.rules.placement import moved_devices, relabelled, true_node
from busbw.topo.rules.subject import WORDS, Device, Subject

_OBEYS = "NCCL obeys: what the file says of a device wins over what the machine says"
_MOST_NAMED = 4


def locality(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield devices that are on another NUMA node, or beside another NIC, than in the right machine."""
    numbers = relabelled(subject, reference)
    if numbers:
        first = next(node for node in subject.nodes if node.id in numbers)
        yield finding(
            "TOP069",
            evidence=f"devices and masks of each are those of another node of {reference.name}",
            fix="exchange the numaid, nothing else",
            where=subject.where(first.element, "numaid"),
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
    subject: Subject, devices: list[Device], reference: Reference, gpus: dict[int, int], nics: dict[int, int]
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
            evidence=f"node {node} has {_listed(named)}; {reference.name} has them on node {moves[node]}",
            fix="exchange the contents of the cpu elements, and leave their masks",
            where=subject.where(first.element),
            confidence=reference.confidence,
            effect=_OBEYS,
            devices=words,
            nodes=_numbers(frozenset(moves)),
        )


def _misplaced(subject: Subject, device: Device, truth: int, reference: Reference) -> Finding:
    return finding(
        "TOP061",
        evidence=f"{reference.name} has it on node {truth}",
        fix=f'move the element below <cpu numaid="{truth}">',
        where=subject.where(device.element),
        confidence=reference.confidence,
        effect=_OBEYS,
        device=WORDS[device.kind or ""],
        bus_id=device.bus_id or "?",
        node=device.node.id if device.node.id is not None else "?",
        truth=truth,
    )


def _neighbours(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield GPUs whose nearest NICs are others than in the right machine."""
    nics = [device for device in subject.devices if device.kind == "nic" and device.bus_id is not None]
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
            where=subject.where(gpu.element),
            confidence=reference.confidence,
            effect=_OBEYS,
            bus_id=gpu.bus_id or "?",
        )


def _switches(
    subject: Subject, gpu: Device, reference: Reference, found: frozenset[str], present: set[str]
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
                where=subject.where(gpu.element),
                confidence=reference.confidence,
                effect=effect,
                bus_id=gpu.bus_id or "?",
                nics=_cards(cards),
            )


def _below_a_switch(gpu: Device, nics: list[Device]) -> frozenset[str]:
    """Return the cards that share the lowest switch with a GPU; none where it shares no switch."""
    above = gpu.parent
    while above is not None:
        below = frozenset(card(nic.bus_id or "") for nic in nics if _is_below(nic, above))
        if below:
            return below
        above = above.parent
    return frozenset()


def _is_below(device: Device, switch: Device) -> bool:
    above = device.parent
    while above is not None and above is not switch:
        above = above.parent
    return above is switch


def _numbers(nodes: frozenset[int]) -> str:
    return ", ".join(str(node) for node in sorted(nodes))


def _cards(addresses: frozenset[str]) -> str:
    return _listed([f"{address}.0" for address in sorted(addresses)])


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more

"""Which devices and NUMA nodes there are: addresses held against the right machine."""

from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.addresses import card, moved
from busbw.topo.reference import Reference
from busbw.topo.rules.nets import ports_of_one_net
from busbw.topo.rules.subject import WORDS, Device, Subject

_SHIFTS = (-1, 1, -2, 2, -3, 3, -4, 4)
# One address alone may be a typing mistake.
_LEAST_STRANGERS = 2
# Of the addresses of a kind that a shift has to explain.
_ENOUGH = 0.75
_DROPS = "NCCL drops the entry, and finds the device by itself where the machine shows it"
_FINDS = "NCCL finds it by itself, and puts it where the machine shows it"


def another_machine(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield one finding where no address of the file is the right machine's: nothing else can be compared then."""
    gpus = [device for device in subject.devices if device.kind == "gpu" and device.bus_id is not None]
    nics = [device for device in subject.devices if device.kind == "nic" and device.bus_id is not None]
    devices = [*gpus, *nics]
    if len(devices) < _LEAST_STRANGERS or not (reference.has_all_gpus or reference.addresses):
        return
    # Root ports of one machine have addresses of GPUs of another, so they count only where no GPU is known.
    cards = {card(bus_id) for bus_id in reference.gpus or reference.addresses} | set(reference.nics)
    if any(card(device.bus_id or "") in cards for device in devices):
        return
    if _shift(gpus, set(reference.gpus)) or _shift(nics, set(reference.nics)):
        return
    addresses = [*reference.gpus] or [f"{address}.0" for address in reference.nics]
    example = f"; the first of {reference.name} is {min(addresses)}" if addresses else ""
    yield finding(
        "TOP076",
        evidence=f"{len(devices)} GPUs and NICs, the first of them {devices[0].bus_id}{example}",
        where=subject.where(subject.document.root),
        confidence=reference.confidence,
        effect="NCCL drops all of them and finds the machine's by itself; the file's CPU masks stay",
        name=reference.name,
    )


def strange_nodes(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield NUMA nodes of the file that the right machine does not have."""
    if reference.cpus is None or not reference.masks:
        return
    for node in subject.nodes:
        if node.id is not None and node.id >= 0 and node.id not in reference.masks:
            yield finding(
                "TOP073",
                evidence=f"{reference.name} has nodes {', '.join(str(known) for known in sorted(reference.masks))}",
                where=subject.where(node.element, "numaid"),
                confidence=reference.confidence,
                effect="NCCL obeys: what hangs below counts as another socket",
                node=node.id,
            )


def gpu_count(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield a number of GPUs that is not the right machine's, where its addresses are not known."""
    count = sum(device.kind == "gpu" for device in subject.devices)
    if count and reference.gpu_count is not None and count != reference.gpu_count:
        yield finding(
            "TOP074",
            evidence=f"{count} GPUs in the file; {reference.name} has {reference.gpu_count}",
            where=subject.where(subject.document.root),
            confidence=reference.confidence,
            effect="NCCL drops GPUs that do not exist, and finds those that are missing by itself",
            count=count,
            truth=reference.gpu_count,
        )


def presence(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield addresses that are others than those of the right machine, and what is missing."""
    gpus = [device for device in subject.devices if device.kind == "gpu" and device.bus_id is not None]
    nics = [device for device in subject.devices if device.kind == "nic" and device.bus_id is not None]
    shifts = {"gpu": _shift(gpus, set(reference.gpus)), "nic": _shift(nics, set(reference.nics))}
    if shifts["gpu"] or shifts["nic"]:
        yield from _shifted(subject, gpus, nics, shifts, reference)
    absent = _absent_nodes(subject, reference)
    yield from _missing_nodes(subject, absent, reference)
    if not shifts["gpu"]:
        for gpu in gpus:
            yield from _strange(subject, gpu, reference)
        yield from _missing_gpus(subject, gpus, absent, reference)
    for switch in subject.of_kind("switch"):
        if switch.bus_id in reference.gpus:
            yield from _strange(subject, switch, reference)
    if not shifts["nic"]:
        for nic in nics:
            yield from _strange(subject, nic, reference)
        yield from _missing_nics(subject, nics, absent, reference)


def _shift(devices: list[Device], known: set[str]) -> int:
    """Return the number of buses to add to the addresses so that they are known ones; 0 where that explains nothing."""
    if len(devices) < 2 or not known:
        return 0
    by_card = devices[0].kind == "nic"

    def matches(buses: int) -> int:
        addresses = (moved(device.bus_id or "", buses) for device in devices)
        return sum((card(address) if by_card else address) in known for address in addresses)

    as_written = matches(0)
    best = max(_SHIFTS, key=matches)
    enough = matches(best) >= _ENOUGH * len(devices) and matches(best) > as_written
    return best if enough else 0


def _shifted(
    subject: Subject, gpus: list[Device], nics: list[Device], shifts: dict[str, int], reference: Reference
) -> Iterator[Finding]:
    """Yield one finding for all devices that are off by the same number of buses."""
    for buses in sorted({shift for shift in shifts.values() if shift}):
        devices = [*(gpus if shifts["gpu"] == buses else []), *(nics if shifts["nic"] == buses else [])]
        first = devices[0]
        right = moved(first.bus_id or "", buses)
        how = f"{abs(buses)} {'added' if buses > 0 else 'subtracted'}"
        yield finding(
            "TOP062",
            evidence=f"{len(devices)} addresses are those of {reference.name} with {how}: {first.bus_id} for {right}",
            fix=f'busid="{right}", and so on',
            where=subject.where(first.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS,
            buses=f"{abs(buses)} bus{'es' if abs(buses) > 1 else ''}",
        )


def _strange(subject: Subject, device: Device, reference: Reference) -> Iterator[Finding]:
    bus_id = device.bus_id or ""
    gpu_cards = {card(known) for known in reference.gpus}
    other = "NIC" if card(bus_id) in reference.nics else "GPU" if card(bus_id) in gpu_cards else None
    if other is not None and other != WORDS[device.kind or ""]:
        yield finding(
            "TOP063",
            evidence=f"{reference.name} has a {other} at this address",
            where=subject.where(device.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS if device.kind in ("gpu", "nic") else "NCCL goes by what it finds at the address",
            kind=WORDS[device.kind or ""],
            bus_id=bus_id,
            truth=other,
        )
    elif other is None and _is_complete(device, reference):
        yield finding(
            "TOP064",
            evidence=f"{reference.name} has no device at this address",
            where=subject.where(device.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS,
            kind=WORDS[device.kind or ""],
            bus_id=bus_id,
        )


def _is_complete(device: Device, reference: Reference) -> bool:
    """Return whether an address that is not known is none; a platform's front-end NICs are published nowhere."""
    if reference.addresses:
        return device.bus_id not in reference.addresses
    if device.kind == "gpu":
        return reference.has_all_gpus
    has_nets = bool(device.element.named("nic"))
    return reference.has_all_nics and not has_nets


def _absent_nodes(subject: Subject, reference: Reference) -> frozenset[int]:
    needed = {node for node in [*reference.gpus.values(), *reference.nics.values()] if node is not None}
    return frozenset(needed - {node.id for node in subject.nodes if node.id is not None})


def _missing_nodes(subject: Subject, absent: frozenset[int], reference: Reference) -> Iterator[Finding]:
    # A host without NUMA has one node, -1.
    if not subject.nodes or any(node.id == -1 for node in subject.nodes):
        return
    for number in sorted(absent):
        gpus = [bus_id for bus_id, node in reference.gpus.items() if node == number]
        yield finding(
            "TOP067",
            evidence=f"{reference.name} has GPUs {', '.join(gpus)} on it"
            if gpus
            else f"{reference.name} has NICs on it",
            fix=f'add <cpu numaid="{number}" ...> with its devices',
            where=subject.where(subject.document.root),
            confidence=reference.confidence,
            effect=_FINDS,
            node=number,
        )


def _missing_gpus(
    subject: Subject, gpus: list[Device], absent: frozenset[int], reference: Reference
) -> Iterator[Finding]:
    present = {device.bus_id for device in subject.devices}
    # A file may have no GPUs on purpose, and correct the NICs only.
    if not gpus or not reference.has_all_gpus:
        return
    for bus_id, node in reference.gpus.items():
        if bus_id not in present and node not in absent:
            yield finding(
                "TOP065",
                evidence=f"{reference.name} has it{f' on node {node}' if node is not None else ''}",
                where=subject.where(subject.document.root),
                confidence=reference.confidence,
                effect=_FINDS,
                bus_id=bus_id,
            )


def _missing_nics(
    subject: Subject, nics: list[Device], absent: frozenset[int], reference: Reference
) -> Iterator[Finding]:
    present = {card(device.bus_id) for device in subject.devices if device.bus_id is not None}
    if not nics or not reference.has_all_nics or ports_of_one_net(subject, reference) > 1:
        return
    for address, node in reference.nics.items():
        if address not in present and node not in absent:
            yield finding(
                "TOP066",
                evidence=f"{reference.name} has it{f' on node {node}' if node is not None else ''}",
                where=subject.where(subject.document.root),
                confidence=reference.confidence,
                effect=_FINDS,
                bus_id=f"{address}.0",
            )

"""Addresses that are none, or stand twice, where the right machine tells which device is meant."""

import difflib
from collections import defaultdict
from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.topo.buses import card
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.subject import PciElement, TopologySubject

_LEAST_LIKENESS = 0.75


def mistyped(subject: TopologySubject, reference: TopologyReference) -> dict[int, str]:
    """Return the true address of devices with no address or one that stands twice, by the identity of their elements.

    It is a missing device's: the only one of its kind, or the one whose address is most like what stands there.
    """
    found: dict[int, str] = {}
    for kind in ("gpu", "nic"):
        devices = [device for device in subject.devices if device.kind == kind]
        missing = _missing(subject, kind, reference)
        for device in _wrong(devices, missing, reference):
            written = (device.element.value("busid") or "").lower()
            near = difflib.get_close_matches(written, missing, n=1, cutoff=_LEAST_LIKENESS)
            if near or len(missing) == 1:
                found[id(device.element)] = (near or missing)[0]
                missing.remove((near or missing)[0])
    return found


def repeated(subject: TopologySubject, rights: dict[int, str], reference: TopologyReference) -> Iterator[Finding]:
    """Yield one finding for each device that has the address of another."""
    for device in subject.devices:
        if id(device.element) in rights and device.bus_id is not None:
            right = rights[id(device.element)]
            yield finding(
                "TOP031",
                evidence=f"{reference.name} has {right} too, which is missing here",
                fix=f'busid="{right}"',
                place=subject.place(device.element, "busid"),
                confidence="likely",
                effect="NCCL takes the first",
                value=device.bus_id,
                times="two",
            )


def _missing(subject: TopologySubject, kind: str, reference: TopologyReference) -> list[str]:
    present = {device.bus_id for device in subject.devices if device.bus_id is not None}
    if kind == "gpu":
        return [address for address in reference.gpus if address not in present]
    cards = {card(address) for address in present}
    return [f"{address}.0" for address in reference.nics if address not in cards]


def _wrong(devices: list[PciElement], missing: list[str], reference: TopologyReference) -> Iterator[PciElement]:
    """Yield the devices without an address, and of two with one address that beside which the missing one belongs."""
    by_address: dict[str, list[PciElement]] = defaultdict(list)
    for device in devices:
        if device.bus_id is not None:
            by_address[device.bus_id].append(device)
        elif device.element.value("busid"):
            yield device
    for same in by_address.values():
        if len(same) == 2 and missing and same[0].node.host == same[1].node.host:
            beside = [device for device in same if any(_belongs(each, device, reference) for each in missing)]
            yield beside[0] if len(beside) == 1 else same[1]


def _belongs(address: str, device: PciElement, reference: TopologyReference) -> bool:
    """Return whether a device of the right machine hangs below one switch with what stands beside `device`."""
    above = device.parent.element.named("pci") if device.parent is not None else ()
    others = [other.value("busid") or "" for other in above if other is not device.element]
    return any(
        card(address) in reference.nearest.get(other, ()) or card(other) in reference.nearest.get(address, ())
        for other in others
    )

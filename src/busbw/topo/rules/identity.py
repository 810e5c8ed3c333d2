"""What stands twice, and what belongs to one host."""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import TypeVar

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.file.document import Element
from busbw.topo.reference import Reference, guid_numbers
from busbw.topo.rules.subject import Net, Subject

K = TypeVar("K", bound=Hashable)
_TIMES = {2: "two", 3: "three", 4: "four"}


def identity(subject: Subject, reference: Reference | None) -> Iterator[Finding]:
    """Yield what NCCL finds twice under one name, and what tells hosts apart."""
    yield from _twice(subject)
    hosts = {node.host for node in subject.nodes if node.host is not None}
    if len(hosts) > 1:
        second = next(node for node in subject.nodes if node.host not in (None, subject.nodes[0].host))
        yield finding(
            "TOP034",
            evidence=f"{len(hosts)} different host_hash; from here on another host than {subject.nodes[0].host}",
            fix="keep the cpu elements of one host_hash and delete the others",
            where=subject.where(second.element, "host_hash"),
            confidence="certain",
            effect="NCCL overwrites every host_hash with its own host's",
            hosts=len(hosts),
        )
    yield from _guids(subject, reference)


def _twice(subject: Subject) -> Iterator[Finding]:
    devices: dict[tuple[str | None, str], list[Element]] = defaultdict(list)
    for device in subject.devices:
        if device.bus_id is not None:
            devices[device.node.host, device.bus_id].append(device.element)
    nets: dict[tuple[str | None, str], list[Net]] = defaultdict(list)
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


def _is_every_ranks(subject: Subject, found: list[Net]) -> bool:
    """Return whether a net stands once below each NUMA node with GPUs: every rank puts one without a device there."""
    nodes = [id(net.node) for net in found]
    with_gpus = {id(gpu.node) for gpu in subject.of_kind("gpu") if gpu.node.host == found[0].node.host}
    return all(net.device is None for net in found) and len(set(nodes)) == len(nodes) and with_gpus <= set(nodes)


def _repeated(
    subject: Subject, code: str, attribute: str, found: dict[tuple[str | None, str], list[Element]]
) -> Iterator[Finding]:
    for (_host, value), elements in found.items():
        if len(elements) < 2:
            continue
        yield finding(
            code,
            evidence=f"first in line {elements[0].line}",
            where=subject.where(elements[1], attribute),
            confidence="certain",
            effect="NCCL takes the first",
            value=value,
            times=_TIMES.get(len(elements), str(len(elements))),
        )


def _guids(subject: Subject, reference: Reference | None) -> Iterator[Finding]:
    known = [net for net in subject.nets if guid_numbers(net.element.value("guid"))]
    stamped = next((node for node in subject.nodes if node.host is not None), None)
    if known and reference is not None and reference.guids:
        strange = [net for net in known if not reference.guids & set(guid_numbers(net.element.value("guid")))]
        if strange:
            yield finding(
                "TOP036",
                evidence=f"the first is {strange[0].element.value('guid')} of {strange[0].name}",
                fix="leave guid out: NCCL asks the NIC",
                where=subject.where(strange[0].element, "guid"),
                confidence="certain",
                effect="NCCL believes the file",
                what=f"{len(strange)} of {len(known)} nets",
            )
        return
    what = [f"{len(known)} GUID{'s' if len(known) > 1 else ''}"] if known else []
    what += ["host_hash"] if stamped is not None else []
    if not what:
        return
    place = subject.where(known[0].element, "guid") if known else None
    if place is None and stamped is not None:
        place = subject.where(stamped.element, "host_hash")
    yield finding(
        "TOP035",
        evidence="right on the host it was written on; leave it out of a file for many",
        where=place,
        confidence="certain",
        effect="NCCL believes GUIDs, and overwrites host_hash" if known else "NCCL overwrites host_hash",
        what=" and ".join(what),
    )

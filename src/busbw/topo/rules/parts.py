"""Parts that are others than the right machine's: processors, GPUs by ids and compute capability, numbers twice."""

import re
from collections import Counter
from collections.abc import Iterator

from busbw.facts.devices import device_kind
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.model.topology import NumaNode
from busbw.topo.buses import real_family
from busbw.topo.file.document import Element, read_integer
from busbw.topo.paths.graph import cpu_link_Bps
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.attributes import ARCHITECTURES, VENDORS
from busbw.topo.rules.subject import CpuElement, PciElement, TopologySubject, is_rccls


def parts(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield processors and GPUs that are others than the right machine's, and GPUs that differ from one another."""
    if reference is not None:
        yield from _processors(subject, reference)
        yield from _kinds(subject, reference)
    yield from _capabilities(subject, reference)
    yield from _numbers_twice(subject)


def _processors(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield one finding for all nodes with the same processor that is not the right machine's."""
    if reference.cpu_vendor is None:
        return
    right = NumaNode(
        id=0,
        architecture="x86_64",
        vendor=reference.cpu_vendor,
        family=reference.cpu_family,
        model=reference.cpu_model,
    )
    wrong: dict[tuple[str | None, int | None, int | None], list[CpuElement]] = {}
    yield from _architectures(subject, reference, right)
    for node in subject.nodes:
        vendor, number = node.element.value("vendor"), read_integer(node.element.value("modelid"))
        family = real_family(vendor, read_integer(node.element.value("familyid")))
        known = [(family, right.family), (number, right.model)]
        differs = vendor == right.vendor and any(one != two for one, two in known if None not in (one, two))
        if vendor in VENDORS and (vendor != right.vendor or differs):
            wrong.setdefault((vendor, family, number), []).append(node)
    for (vendor, family, number), nodes in wrong.items():
        stands = NumaNode(id=0, architecture="x86_64", vendor=vendor, family=family, model=number)
        rates_Bps = [cpu_link_Bps(each) for each in (stands, right)]
        yield finding(
            "TOP037" if vendor != right.vendor or rates_Bps[0] != rates_Bps[1] else "TOP055",
            evidence=f"{reference.name} has {_processor_words(right)}",
            fix=_processor_words(right),
            place=subject.place(nodes[0].element, "vendor" if vendor != right.vendor else "modelid"),
            confidence=reference.confidence,
            effect="none on the rates that NCCL counts"
            if rates_Bps[0] == rates_Bps[1]
            else f"NCCL counts {rates_Bps[0] / 1e9:g} GB/s between NUMA nodes instead of {rates_Bps[1] / 1e9:g}",
            what=_processor_words(stands),
            nodes=", ".join(str(node.id) for node in nodes),
        )


def _architectures(subject: TopologySubject, reference: TopologyReference, right: NumaNode) -> Iterator[Finding]:
    """Yield one finding for nodes of another architecture than the right machine's, which is known to be x86."""
    nodes = [node for node in subject.nodes if (node.element.value("arch") or "").startswith(ARCHITECTURES[1:])]
    if not nodes:
        return
    stands = nodes[0].element.value("arch") or ""
    rates_Bps = [cpu_link_Bps(each) for each in (NumaNode(id=0, architecture=stands), right)]
    yield finding(
        "TOP037",
        evidence=f"{reference.name} has {_processor_words(right)}",
        fix=f'arch="x86_64" {_processor_words(right)}',
        place=subject.place(nodes[0].element, "arch"),
        confidence=reference.confidence,
        effect=f"NCCL counts {rates_Bps[0] / 1e9:g} GB/s between NUMA nodes instead of {rates_Bps[1] / 1e9:g}",
        what=f'arch="{stands}"',
        nodes=", ".join(str(node.id) for node in nodes),
    )


def is_another_kind(device: PciElement, reference: TopologyReference) -> bool:
    """Return whether the PCI ids of a GPU are those of other GPUs than the platform's, which are NVIDIA's.

    Drivers of hosts name kinds that go by the same ids, A800 and A100.
    """
    vendor, number = device.element.value("vendor"), device.element.value("device")
    is_known = reference.kind != "host" and reference.sm is not None
    if device.kind != "gpu" or not is_known or reference.gpu_model is None or vendor is None:
        return False
    kind = device_kind(vendor, number)
    if kind is None:
        return read_integer(vendor) not in {_NVIDIA, 0, None}
    return not any(name in reference.gpu_model for name in re.findall(r"[A-Z]+[0-9]+\w*", kind.name))


def _kinds(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield one finding for all GPUs with the same ids, if these are not those of the right machine's GPUs."""
    found: dict[tuple[str, str], list[PciElement]] = {}
    for device in subject.devices:
        if is_another_kind(device, reference):
            ids = (device.element.value("vendor") or "", device.element.value("device") or "")
            found.setdefault(ids, []).append(device)
    for (vendor, number), devices in found.items():
        kind = device_kind(vendor, number)
        of = f", which is {kind.name}" if kind is not None else ""
        yield finding(
            "TOP056",
            evidence=f'vendor="{vendor}" device="{number}"{of}; {reference.name} has {reference.gpu_model}',
            fix="leave vendor and device out, if the file is for this machine",
            place=subject.place(devices[0].element, "vendor"),
            confidence=reference.confidence,
            effect="none: NCCL does not go by them",
            what=f"{len(devices)} GPUs" if len(devices) > 1 else f"GPU {devices[0].bus_id or '?'}",
        )


# Vendor of PCI devices.
_NVIDIA = 0x10DE


def _processor_words(node: NumaNode) -> str:
    numbers = [("familyid", node.family), ("modelid", node.model)]
    return " ".join([f'vendor="{node.vendor}"', *(f'{name}="{value}"' for name, value in numbers if value is not None)])


def right_capability(subject: TopologySubject, reference: TopologyReference | None) -> tuple[int, str] | None:
    """Return the compute capability of the machine's GPUs and why it is that: the right machine's, or of nearly all."""
    if reference is not None and reference.sm is not None:
        return reference.sm, f"{reference.name} has {reference.gpu_model or 'GPUs'} of sm {reference.sm}"
    counts = Counter(number for number, _gpu in _capabilities_of(subject))
    usual, votes = counts.most_common(1)[0] if counts else (0, 0)
    if votes < _LEAST_VOTES or 2 * votes <= counts.total():
        return None
    return usual, f"{votes} other GPUs of the file have sm {usual}"


def _capabilities_of(subject: TopologySubject) -> Iterator[tuple[int, Element]]:
    """Yield the compute capabilities; of RCCL's files none, since it counts compute units there."""
    for device in subject.devices:
        for gpu in () if is_rccls(device) else device.element.named("gpu"):
            if (number := read_integer(gpu.value("sm"))) is not None:
                yield number, gpu


def _capabilities(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield one finding for all GPUs with the same compute capability that is not the machine's, or the others'."""
    right = right_capability(subject, reference)
    found: dict[int, list[Element]] = {}
    for number, gpu in _capabilities_of(subject):
        found.setdefault(number, []).append(gpu)
    for number, gpus in found.items():
        if right is not None and number != right[0]:
            yield finding(
                "TOP038",
                evidence=right[1],
                fix=f'sm="{right[0]}"',
                place=subject.place(gpus[0], "sm"),
                confidence=reference.confidence if reference is not None else "likely",
                effect="NCCL counts an NVLink, and chooses channels and protocols, by it",
                value=number,
                what=f"{len(gpus)} GPUs" if len(gpus) > 1 else "a GPU",
                truth=right[0],
            )


# GPUs that have to agree before another one stands out.
_LEAST_VOTES = 3


def _numbers_twice(subject: TopologySubject) -> Iterator[Finding]:
    """Yield numbers of GPUs, and ranks, that several have. The ranks of one GPU share its number."""
    seen: dict[tuple[str, str | None, int], list[tuple[int, Element]]] = {}
    for device in subject.devices:
        for gpu in device.element.named("gpu"):
            for name in ("dev", "rank"):
                number = read_integer(gpu.value(name))
                if number is not None and number >= 0:
                    seen.setdefault((name, device.node.host, number), []).append((id(device.element), gpu))
    for (name, _host, number), places in seen.items():
        devices = [key for key, _gpu in places]
        if len(places) < 2 or (name == "dev" and len(set(devices)) == 1):
            continue
        taken = {value for kind, _other, value in seen if kind == name}
        free = next(value for value in range(len(subject.devices) + 1) if value not in taken)
        second = next((gpu for key, gpu in places if key != devices[0]), places[1][1])
        yield finding(
            "TOP039",
            evidence=f"first in line {places[0][1].line}",
            fix=f'{name}="{free}" if nothing else tells, or leave {name} out: NCCL fills it in',
            place=subject.place(second, name),
            confidence="certain",
            effect="NCCL takes the first GPU with the number"
            if name == "dev"
            else "NCCL replaces the ranks of GPUs of the job; in a graph file the first GPU with the rank counts",
            attribute=name,
            value=number,
            times=len(places),
        )

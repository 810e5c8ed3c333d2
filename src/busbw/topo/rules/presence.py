"""Which devices and NUMA nodes there are: addresses held against the right machine."""

from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.topo.buses import DOMAIN, card, moved
from busbw.topo.file.document import read_integer
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.subject import WORDS, NetElement, PciElement, TopologySubject

_LEAST_Mbps = 1_000
_MOST_Mbps = 1_600_000
_MOST_DIFFERENCE = 0.01
_LEAST_NICS = 2


def nets(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield what is wrong with the speeds of nets."""
    are_merged = reference is not None and ports_of_one_net(subject, reference) > 1
    for net in subject.nets:
        written = net.element.value("speed")
        if written is None:
            continue
        speed_Mbps = read_integer(written) or 0
        if speed_Mbps <= 0:
            yield finding(
                "TOP100",
                evidence=f'speed="{written}"',
                fix="leave it out: NCCL then asks the NIC",
                place=subject.place(net.element, "speed"),
                confidence="certain",
                effect="NCCL takes it for 10 Gb/s",
                name=net.name,
                value=written or '""',
            )
        elif not _LEAST_Mbps <= speed_Mbps <= _MOST_Mbps:
            yield finding(
                "TOP101",
                evidence=f'speed="{written}" is {speed_Mbps / 8000:g} GB/s; the unit is Mb/s',
                fix="leave it out: NCCL then asks the NIC",
                place=subject.place(net.element, "speed"),
                confidence="likely",
                effect="NCCL plans with it",
                name=net.name,
                value=f"{speed_Mbps} Mb/s",
            )
        elif reference is not None and not are_merged:
            yield from _other(subject, net, speed_Mbps, reference)


def without_gpudirect(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield one finding for the GPUs and one for the nets of a platform that the file keeps from GPUDirect RDMA.

    A host may lack the kernel module, and a machine with one NIC mostly has it for other traffic.
    """
    if reference is None or reference.kind == "host" or len(reference.nics) < _LEAST_NICS or not reference.gpus:
        return
    gpus = [
        gpu
        for device in subject.of_kind("gpu")
        if device.bus_id in reference.gpus
        for gpu in device.element.named("gpu")
    ]
    ports = [
        net.element
        for net in subject.nets
        if net.device is not None and card(net.device.bus_id or "") in reference.nics
    ]
    for word, elements in (("GPU", gpus), ("net", ports)):
        off = [element for element in elements if read_integer(element.value("gdr")) == 0]
        if off:
            yield finding(
                "TOP103",
                evidence=f"a dump of a job without GPUDirect RDMA has it; {reference.name} is known to do it",
                fix="leave gdr out: NCCL then asks the machine",
                place=subject.place(off[0], "gdr"),
                confidence="likely",
                effect="NCCL obeys, and copies through the memory of the host",
                what=f"{len(off)} of {len(elements)} {word}s",
            )


def ports_of_one_net(subject: TopologySubject, reference: TopologyReference) -> int:
    """Return how many ports of the right machine each net stands for: AWS's plug-in shows those of a GPU as one."""
    shares = set()
    for net in subject.nets:
        right_Mbps = _right_Mbps(net, reference)
        if right_Mbps is not None:
            shares.add((read_integer(net.element.value("speed")) or 0) / right_Mbps)
    share = shares.pop() if len(shares) == 1 else 1
    present = sum(_right_Mbps(net, reference) is not None for net in subject.nets)
    is_whole = share > 1 and len(reference.nics) % share == 0 and share * present <= len(reference.nics)
    return int(share) if is_whole else 1


def _right_Mbps(net: NetElement, reference: TopologyReference) -> int | None:
    if net.device is None or net.device.bus_id is None:
        return None
    key = card(net.device.bus_id)
    right_Mbps = reference.port_Mbps.get(key)
    return reference.port_Mbps.get(None) if right_Mbps is None and key in reference.nics else right_Mbps


def _other(
    subject: TopologySubject, net: NetElement, speed_Mbps: int, reference: TopologyReference
) -> Iterator[Finding]:
    right_Mbps = _right_Mbps(net, reference)
    if right_Mbps is None or abs(speed_Mbps - right_Mbps) <= right_Mbps * _MOST_DIFFERENCE:
        return
    yield finding(
        "TOP102",
        evidence=f'speed="{net.element.value("speed")}"; {reference.name} has {right_Mbps}',
        place=subject.place(net.element, "speed"),
        confidence=reference.confidence,
        effect=f"NCCL plans with {speed_Mbps / 8000:g} GB/s instead of {right_Mbps / 8000:g}",
        name=net.name,
        speed=f"{speed_Mbps / 1000:g} Gb/s",
        truth=f"{right_Mbps / 1000:g} Gb/s",
    )


_SHIFTS = (-1, 1, -2, 2, -3, 3, -4, 4)
# One address alone may be a typing mistake.
_LEAST_STRANGERS = 2
# Of the addresses of a kind that a shift has to explain.
_ENOUGH = 0.75
_DROPS = "NCCL drops the entry, and finds the device by itself where the machine shows it"
_FINDS = "NCCL finds it by itself, and puts it where the machine shows it"


def another_machine(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
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
        place=subject.place(subject.document.root),
        confidence=reference.confidence,
        effect="NCCL drops all of them and finds the machine's by itself; the file's CPU masks stay",
        name=reference.name,
    )


def strange_nodes(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield NUMA nodes of the file that the right machine does not have."""
    if reference.cpus is None or not reference.masks:
        return
    for node in subject.nodes:
        if node.id is not None and node.id >= 0 and node.id not in reference.masks:
            yield finding(
                "TOP073",
                evidence=f"{reference.name} has nodes {', '.join(str(known) for known in sorted(reference.masks))}",
                place=subject.place(node.element, "numaid"),
                confidence=reference.confidence,
                effect="NCCL obeys: what hangs below counts as another socket",
                node=node.id,
            )


def gpu_count(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield a number of GPUs that is not the right machine's, where its addresses are not known."""
    count = sum(device.kind == "gpu" for device in subject.devices)
    if count and reference.gpu_count is not None and count != reference.gpu_count:
        yield finding(
            "TOP074",
            evidence=f"{count} GPUs in the file; {reference.name} has {reference.gpu_count}",
            place=subject.place(subject.document.root),
            confidence=reference.confidence,
            effect="NCCL drops GPUs that do not exist, and finds those that are missing by itself",
            count=count,
            truth=reference.gpu_count,
        )


def presence(subject: TopologySubject, reference: TopologyReference) -> Iterator[Finding]:
    """Yield addresses that are others than those of the right machine, and what is missing."""
    gpus = [device for device in subject.devices if device.kind == "gpu" and device.bus_id is not None]
    nics = [device for device in subject.devices if device.kind == "nic" and device.bus_id is not None]
    absent = _absent_nodes(subject, reference)
    yield from _missing_nodes(subject, absent, reference)
    for gpu in gpus:
        yield from _strange(subject, gpu, reference)
    yield from _missing_gpus(subject, gpus, absent, reference)
    for switch in subject.of_kind("switch"):
        if switch.bus_id in reference.gpus:
            yield from _strange(subject, switch, reference)
    for nic in nics:
        yield from _strange(subject, nic, reference)
    yield from _missing_nics(subject, nics, absent, reference)


def _shift(devices: list[PciElement], known: set[str]) -> int:
    """Return the number of buses to add to the addresses so that they are known ones; 0 where that explains nothing."""
    if len(devices) < 2 or not known:
        return 0
    as_written = sum(_is_one_of(device, 0, known) for device in devices)
    best = max(_SHIFTS, key=lambda buses: sum(_is_one_of(device, buses, known) for device in devices))
    matched = sum(_is_one_of(device, best, known) for device in devices)
    return best if matched >= _ENOUGH * len(devices) and matched > as_written else 0


def _shift_of_domains(devices: list[PciElement], known: dict[str, int | None]) -> int:
    """Return the buses of a domain more or less, where that makes all addresses known ones; 0 where it does not.

    Domains are counted one after the other, so that most addresses are some device's as they are written: NUMA nodes
    tell one that is wrong from all that are.
    """
    if len(devices) < 2:
        return 0
    written = _in_place(devices, 0, known)
    for buses in (-DOMAIN, DOMAIN):
        of_shift = _in_place(devices, buses, known)
        if of_shift[0] == len(devices) and all(more > before for more, before in zip(of_shift, written, strict=True)):
            return buses
    return 0


def _in_place(devices: list[PciElement], buses: int, known: dict[str, int | None]) -> tuple[int, int]:
    """Return how many addresses are known ones, and how many of these lie on the right NUMA node."""
    count = right = 0
    for device in devices:
        address = moved(device.bus_id or "", buses)
        address = card(address) if device.kind == "nic" else address
        if address in known:
            count += 1
            right += known[address] is not None and known[address] == device.node.id
    return count, right


def _is_one_of(device: PciElement, buses: int, known: set[str]) -> bool:
    address = moved(device.bus_id or "", buses)
    return (card(address) if device.kind == "nic" else address) in known


# What is off: devices of one kind, and the buses to add.
Shifted = tuple[list[PciElement], int]


def shifted(subject: TopologySubject, reference: TopologyReference) -> tuple[Shifted, ...]:
    """Return the devices whose addresses are right but for a number of buses: all of a kind, or those nobody knows."""
    gpus, nics = ([each for each in subject.devices if each.kind == kind and each.bus_id] for kind in ("gpu", "nic"))
    found: list[Shifted] = []
    for devices, places in ((gpus, reference.gpus), (nics, reference.nics)):
        known = set(places)
        buses = _shift(devices, known) or _shift_of_domains(devices, places)
        if buses:
            found.append(([device for device in devices if _is_one_of(device, buses, known)], buses))
            continue
        there = {card(device.bus_id or "") for device in subject.devices if device.bus_id}
        missing = {address for address in known if (card(address) if devices is gpus else address) not in there}
        strange = [each for each in devices if any(True for _ in _strange(subject, each, reference))]
        best = max(_SHIFTS, key=lambda buses: sum(_is_one_of(each, buses, missing) for each in strange))
        off = [device for device in strange if _is_one_of(device, best, missing)]
        if off and len(off) >= _ENOUGH * len(strange):
            found.append((off, best))
    return tuple(found)


def off_by_buses(
    subject: TopologySubject, found: tuple[Shifted, ...], reference: TopologyReference
) -> Iterator[Finding]:
    """Yield one finding for all devices that are off by the same number of buses."""
    for buses in sorted({each for _devices, each in found}):
        devices = [device for of_kind, each in found if each == buses for device in of_kind]
        first = devices[0]
        rights = [(device.bus_id or "", moved(device.bus_id or "", buses)) for device in devices]
        what, steps = ("domain", abs(buses) // DOMAIN) if abs(buses) >= DOMAIN else ("bus", abs(buses))
        how = f"{steps} {'added' if buses > 0 else 'subtracted'}"
        many = f"{len(devices)} addresses are" if len(devices) > 1 else "the address is"
        each_one = ", ".join(f'busid="{right}" for {wrong}' for wrong, right in rights[:_MOST_OFFERED])
        each_one += ", and so on" if len(rights) > _MOST_OFFERED else ""
        yield finding(
            "TOP062",
            evidence=f"{many} {reference.name}'s with {how}: {rights[0][0]} for {rights[0][1]}",
            fix=each_one if len(devices) > 1 else f'busid="{rights[0][1]}"',
            place=subject.place(first.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS,
            buses=f"{steps} {what}{'es' if steps > 1 else ''}",
        )


def _strange(subject: TopologySubject, device: PciElement, reference: TopologyReference) -> Iterator[Finding]:
    bus_id = device.bus_id or ""
    gpu_cards = {card(known) for known in reference.gpus}
    other = "NIC" if card(bus_id) in reference.nics else "GPU" if card(bus_id) in gpu_cards else None
    if other is not None and other != WORDS[device.kind or ""]:
        yield finding(
            "TOP063",
            evidence=f"{reference.name} has a {other} at this address",
            fix=_right_addresses(subject, device, reference),
            place=subject.place(device.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS if device.kind in ("gpu", "nic") else "NCCL goes by what it finds at the address",
            kind=WORDS[device.kind or ""],
            bus_id=bus_id,
            truth=other,
        )
    elif other is None and _is_complete(device, reference):
        right = _only_missing_gpu(subject, reference) if device.kind == "gpu" else None
        yield finding(
            "TOP064",
            evidence=f"{reference.name} has no device at this address"
            + (f", and one at {right}, which is not in the file" if right else ""),
            fix=f'busid="{right}"' if right else None,
            place=subject.place(device.element, "busid"),
            confidence=reference.confidence,
            effect=_DROPS,
            kind=WORDS[device.kind or ""],
            bus_id=bus_id,
        )


def _only_missing_gpu(subject: TopologySubject, reference: TopologyReference) -> str | None:
    """Return the only address of a GPU that the file lacks, where one of its GPUs has a strange address."""
    gpus = {device.bus_id for device in subject.devices if device.kind == "gpu"}
    missing = [bus_id for bus_id in reference.gpus if bus_id not in gpus]
    strange = [bus_id for bus_id in gpus if bus_id not in reference.gpus]
    return missing[0] if reference.has_all_gpus and len(missing) == len(strange) == 1 else None


def _right_addresses(subject: TopologySubject, device: PciElement, reference: TopologyReference) -> str | None:
    """Return the addresses of this kind that the file lacks, as what may have been meant."""
    there = {card(each.bus_id) for each in subject.devices if each.bus_id is not None}
    if device.kind == "gpu":
        missing = [bus_id for bus_id in reference.gpus if card(bus_id) not in there]
    else:
        missing = [f"{address}.0" for address in reference.nics if address not in there]
    if device.kind == "switch":
        return "give the switch an address of its own, as ffff:ff:01.0"
    return " or ".join(f'busid="{bus_id}"' for bus_id in missing[:_MOST_OFFERED]) or "delete the element"


_MOST_OFFERED = 4


def _is_complete(device: PciElement, reference: TopologyReference) -> bool:
    """Return whether an address that is not known is none; a platform's front-end NICs are published nowhere."""
    if reference.addresses:
        return device.bus_id not in reference.addresses
    if device.kind == "gpu":
        return reference.has_all_gpus
    has_nets = bool(device.element.named("nic"))
    return reference.has_all_nics and not has_nets


def _absent_nodes(subject: TopologySubject, reference: TopologyReference) -> frozenset[int]:
    needed = {node for node in [*reference.gpus.values(), *reference.nics.values()] if node is not None}
    return frozenset(needed - {node.id for node in subject.nodes if node.id is not None})


def _missing_nodes(subject: TopologySubject, absent: frozenset[int], reference: TopologyReference) -> Iterator[Finding]:
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
            place=subject.place(subject.document.root),
            confidence=reference.confidence,
            effect=_FINDS,
            node=number,
        )


def _missing_gpus(
    subject: TopologySubject, gpus: list[PciElement], absent: frozenset[int], reference: TopologyReference
) -> Iterator[Finding]:
    present = {device.bus_id for device in subject.devices}
    # A file may have no GPUs on purpose, and correct the NICs only.
    if not gpus or not reference.has_all_gpus:
        return
    # A GPU with a strange address in its place has been told with this one.
    told = _only_missing_gpu(subject, reference)
    for bus_id, node in reference.gpus.items():
        if bus_id not in present and node not in absent and bus_id != told:
            yield finding(
                "TOP065",
                evidence=f"{reference.name} has it{f' on node {node}' if node is not None else ''}",
                place=subject.place(subject.document.root),
                confidence=reference.confidence,
                effect=_FINDS,
                bus_id=bus_id,
            )


def _missing_nics(
    subject: TopologySubject, nics: list[PciElement], absent: frozenset[int], reference: TopologyReference
) -> Iterator[Finding]:
    present = {card(device.bus_id) for device in subject.devices if device.bus_id is not None}
    if not nics or not reference.has_all_nics or ports_of_one_net(subject, reference) > 1:
        return
    for address, node in reference.nics.items():
        if address not in present and node not in absent:
            yield finding(
                "TOP066",
                evidence=f"{reference.name} has it{f' on node {node}' if node is not None else ''}",
                place=subject.place(subject.document.root),
                confidence=reference.confidence,
                effect=_FINDS,
                bus_id=f"{address}.0",
            )

"""PCIe links: texts and widths that NCCL misreads, and rates that the devices do not have."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from busbw.facts.devices import capability, device_kind
from busbw.facts.rules import finding
from busbw.model.finding import Confidence, Finding
from busbw.topo.buses import (
    WIDTHS,
    GENERATION_GTps,
    card,
    is_hidden,
    is_known_speed,
    lane_units,
    link_Bps,
    transfer_GTps,
)
from busbw.topo.comparison import HIDDEN_WIDTH
from busbw.topo.file.document import read_integer
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.parts import is_another_kind, right_capability
from busbw.topo.rules.subject import LINK_WORDS, WORDS, Link, PciElement, TopologySubject, is_rccls

_GB = 1e9
_OBEYS = "NCCL plans with what the file says"
# What NCCL counts for a lane, and the rate that it stands for: its units leave coding out.
_RATES_GTps = {15: 2.5, 30: 5.0, 60: 8.0, 120: 16.0, 240: 32.0, 480: 64.0}
# What the kernel says of a device where firmware tells it no NUMA node.
_NO_NUMA = -1
# The hosts of most GPUs that can do more are of Gen5.
_HOSTS_GTps = GENERATION_GTps[5]
# GPUs that have to agree before another one stands out.
_LEAST_VOTES = 3

_GENERATION = re.compile(r"(?:PCI-?e(?:xpress)?\s?)?gen\s?([1-6])", re.IGNORECASE)


def links(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield what is wrong with the links of PCI devices."""
    right = right_capability(subject, reference)
    for device in subject.devices:
        yield from _text(subject, device)
        yield from _width(subject, device)
        # What follows from a compute capability that is wrong itself is not said again.
        trusted = right is None or all(
            read_integer(gpu.value("sm")) in (None, right[0]) for gpu in device.element.named("gpu")
        )
        impossible = list(_impossible(subject, device, reference)) if trusted else []
        yield from impossible
        if reference is not None and not impossible:
            yield from _slower(subject, device, reference)
        elif reference is None and not impossible:
            yield from _unused(subject, device)
    yield from _bottlenecks(subject)
    yield from _odd(subject)


def _text(subject: TopologySubject, device: PciElement) -> Iterator[Finding]:
    written = device.element.value("link_speed")
    if written is None or is_known_speed(written):
        return
    generation = _GENERATION.fullmatch(written.strip())
    rate_GTps = GENERATION_GTps.get(int(generation[1])) if generation is not None else transfer_GTps(written)
    right = f'link_speed="{rate_GTps:.1f} GT/s PCIe"' if rate_GTps in GENERATION_GTps.values() else None
    kind = _by_kind(device)
    able = f'link_speed="{kind[0]:.1f} GT/s PCIe", if the slot is as fast as the device' if kind is not None else None
    yield finding(
        "TOP080",
        evidence=f'link_speed="{written}" of {device.name}',
        fix=right or able or ("leave it out: NCCL then asks the machine" if not written else None),
        place=subject.place(device.element, "link_speed"),
        confidence="certain",
        effect="NCCL takes it for 8 GT/s: 12 GB/s at 16 lanes",
        value=written or '""',
    )


def _width(subject: TopologySubject, device: PciElement) -> Iterator[Finding]:
    width = read_integer(device.element.value("link_width"))
    if width is None or width == 0 or width in WIDTHS:
        return
    yield finding(
        "TOP081",
        evidence=f'link_width="{device.element.value("link_width")}" of {device.name}; '
        f"{', '.join(str(known) for known in WIDTHS)} exist",
        place=subject.place(device.element, "link_width"),
        confidence="certain",
        effect=f"NCCL plans with {_rate_words(device)}",
        value=width,
    )


def _impossible(subject: TopologySubject, device: PciElement, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield a rate above what the device can do; NCCL's own word for it, since a text it misreads is not a rate."""
    if device.kind not in ("gpu", "nic"):
        return
    written = device.element.value("link_speed")
    if written is None or not is_known_speed(written):
        return
    rate_GTps = _RATES_GTps[lane_units(written)]
    known = _most(device, reference)
    if known is None or rate_GTps <= known[0]:
        return
    most_GTps, why, confidence = known
    yield finding(
        "TOP082",
        evidence=f'link_speed="{written}"; {why}',
        fix=f'link_speed="{most_GTps:.1f} GT/s PCIe"',
        place=subject.place(device.element, "link_speed"),
        confidence=confidence,
        effect=_OBEYS,
        device=WORDS[device.kind],
        bus_id=device.bus_id or "?",
        speed=f"{rate_GTps:g} GT/s",
    )


def _unused(subject: TopologySubject, device: PciElement) -> Iterator[Finding]:
    """Yield a GPU whose link is slower than it can do, in a machine that hides its NUMA nodes: likely a virtual one.

    One beside its CPU on a chip-to-chip link needs no more.
    """
    written = device.element.value("link_speed")
    known = _by_kind(device)
    has_chip_links = any(gpu.named("c2c") for gpu in device.element.named("gpu"))
    if device.kind != "gpu" or device.node.id != _NO_NUMA or known is None or has_chip_links:
        return
    if written is None or not is_known_speed(written):
        return
    rate_GTps = _RATES_GTps[lane_units(written)]
    if rate_GTps < min(known[0], _HOSTS_GTps):
        yield finding(
            "TOP087",
            evidence=f"{known[1]}: {known[0]:g} GT/s",
            place=subject.place(device.element, "link_speed"),
            confidence="certain",
            effect=_OBEYS,
            bus_id=device.bus_id or "?",
            speed=f"{rate_GTps:g} GT/s",
        )


def _most(device: PciElement, reference: TopologyReference | None) -> tuple[float, str, Confidence] | None:
    """Return the rate a device can do at most, why, and how sure that is."""
    if reference is None:
        return _by_kind(device)
    return (None if is_another_kind(device, reference) else _by_kind(device)) or _by_reference(device, reference)


def _by_kind(device: PciElement) -> tuple[float, str, Confidence] | None:
    element = device.element
    kind = device_kind(element.value("vendor"), element.value("device"))
    if kind is not None:
        return GENERATION_GTps[kind.generation], f"{kind.name} is PCIe Gen{kind.generation}", "certain"
    for gpu in element.named("gpu"):
        able = capability(read_integer(gpu.value("sm")))
        if able is not None:
            words = f'sm="{able.sm}" is {able.name}: PCIe Gen{able.generation}'
            return GENERATION_GTps[able.generation], words, "certain"
    return None


def _by_reference(device: PciElement, reference: TopologyReference) -> tuple[float, str, Confidence] | None:
    if device.bus_id is None:
        return None
    rate_GTps = reference.rates_GTps.get(device.bus_id)
    if rate_GTps is not None:
        return rate_GTps, f"the link of {reference.name} has {rate_GTps:g} GT/s", reference.confidence
    if reference.gpu_GTps is not None and _belongs(device, reference):
        what = f"with {reference.gpu_model}s " if reference.gpu_model else ""
        return reference.gpu_GTps, f"{reference.name} {what}has {reference.gpu_GTps:g} GT/s", reference.confidence
    return None


def _belongs(device: PciElement, reference: TopologyReference) -> bool:
    """Return whether a device is one of the right machine's; every GPU is where its addresses are not known."""
    bus_id = device.bus_id or ""
    if not reference.gpus and device.kind == "gpu":
        return True
    return bus_id in reference.gpus or card(bus_id) in reference.nics


def _slower(subject: TopologySubject, device: PciElement, reference: TopologyReference) -> Iterator[Finding]:
    """Yield a link that the file writes slower than the machine's; what the vendor's own file writes is meant so."""
    written = device.element.value("link_speed")
    if device.kind not in ("gpu", "nic") or written is None or not is_known_speed(written):
        return
    bus_id = device.bus_id or ""
    right_GTps = reference.rates_GTps.get(bus_id)
    if right_GTps is None and _belongs(device, reference):
        known_GTps = [rate for rate in (reference.written_GTps, reference.gpu_GTps) if rate is not None]
        right_GTps = min(known_GTps, default=None)
    if right_GTps is None:
        return
    rate_GTps = _RATES_GTps[lane_units(written)]
    width = read_integer(device.element.value("link_width")) or 16
    right_width = reference.link_width if _belongs(device, reference) and reference.link_width else width
    if rate_GTps >= right_GTps and width >= right_width:
        return
    yield finding(
        "TOP084",
        evidence=f"{rate_GTps:g} GT/s x{width}; {reference.name} has {right_GTps:g} GT/s x{right_width}",
        fix=f'link_speed="{right_GTps:.1f} GT/s PCIe" link_width="{right_width}"',
        place=subject.place(device.element, "link_speed" if rate_GTps < right_GTps else "link_width"),
        confidence=reference.confidence,
        effect=_OBEYS,
        device=WORDS[device.kind],
        bus_id=bus_id,
    )


def _odd(subject: TopologySubject) -> Iterator[Finding]:
    """Yield the GPUs whose links are slower than those of nearly all others in the file."""
    gpus = [gpu for gpu in subject.of_kind("gpu") if gpu.element.attribute("link_speed") is not None]
    rates = Counter(_known_Bps(gpu) for gpu in gpus)
    usual_Bps, votes = rates.most_common(1)[0] if rates else (0.0, 0)
    for gpu in gpus:
        # A width that PCIe does not have is said as such.
        is_wrong = bool(list(_width(subject, gpu)))
        if votes < _LEAST_VOTES or len(gpus) > 2 * votes or _known_Bps(gpu) >= usual_Bps or is_wrong:
            continue
        yield finding(
            "TOP085",
            evidence=f"{_rate_words(gpu)}; {usual_Bps / _GB:g} GB/s for {votes} others",
            place=subject.place(gpu.element, "link_speed"),
            confidence="likely",
            effect=_OBEYS,
            bus_id=gpu.bus_id or "?",
        )


def _bottlenecks(subject: TopologySubject) -> Iterator[Finding]:
    """Yield switches whose link up has half the bandwidth, or less, of a device's link below."""
    worst: dict[int, tuple[PciElement, PciElement]] = {}
    below: dict[int, set[str | None]] = {}
    for device in subject.devices:
        above = device.parent
        while above is not None:
            below.setdefault(id(above), set()).add(device.kind)
            kept = worst.get(id(above))
            if _is_narrower(above, device) and (kept is None or _known_Bps(kept[1]) < _known_Bps(device)):
                worst[id(above)] = above, device
            above = above.parent
    has_nics = any(device.kind == "nic" for device in subject.devices)
    for switch, device in worst.values():
        yield _bottleneck(subject, switch, device, stays_below=not has_nics or {"gpu", "nic"} <= below[id(switch)])


def _is_narrower(switch: PciElement, device: PciElement) -> bool:
    if device.kind not in ("gpu", "nic") or None in (each.element.attribute("link_speed") for each in (switch, device)):
        return False
    return _known_Bps(switch) <= _known_Bps(device) / 2


def _bottleneck(subject: TopologySubject, switch: PciElement, device: PciElement, *, stays_below: bool) -> Finding:
    """Return a warning where GPUs reach NICs over the link only, and it is slower than one generation makes it."""
    narrow = _rate_words(switch)
    # AMD's GPUs have a bridge of their own, and count a link to it that is faster than their slot.
    is_grave = not stays_below and not is_rccls(device) and _known_Bps(switch) <= _known_Bps(device) / 4
    what = "between the GPUs and NICs that it parts" if is_grave else "out of this switch, to CPUs and other switches,"
    speed, width = device.element.value("link_speed") or "", _width_of(device)
    wide = f' link_width="{width}"' if _width_of(switch) < width else ""
    return finding(
        "TOP083" if is_grave else "TOP086",
        evidence=f"{_link_words(switch)}: {narrow}; {device.name} below it {_rate_words(device)}",
        fix=f'link_speed="{speed}"{wide}, if the slot is as fast as the device' if is_known_speed(speed) else None,
        place=subject.place(switch.element, "link_speed"),
        confidence="likely" if is_grave else "certain",
        effect=f"NCCL plans what goes {what} with {narrow} in all",
        bus_id=switch.bus_id or "?",
    )


def _width_of(device: PciElement) -> int:
    return read_integer(device.element.value("link_width")) or HIDDEN_WIDTH


def _link_words(device: PciElement) -> str:
    return f"{device.element.value('link_speed') or 'no speed'} x{_width_of(device)}"


def _known_Bps(device: PciElement) -> float:
    return link_Bps(device.element.value("link_speed"), read_integer(device.element.value("link_width")))


def _rate_words(device: PciElement) -> str:
    return f"{_known_Bps(device) / _GB:g} GB/s"


_GPUS = ("0x03", "0x12")
_SWITCH = "0x0680"
# GPUs that have to agree before another one stands out.
_NVLINKS_LEAST_VOTES = 2


def nvlinks(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield what is wrong with NVLinks."""
    by_gpu: dict[int, list[Link]] = defaultdict(list)
    for link in subject.links:
        by_gpu[id(link.gpu)].append(link)
    addresses = {device.bus_id for device in subject.devices}
    for link in subject.links:
        yield from _one(subject, link, addresses)
    for element in subject.document.root.walk():
        count = read_integer(element.value("count"))
        words = LINK_WORDS.get(element.name)
        if words is not None and count is not None and count <= 0:
            yield finding(
                "TOP095",
                evidence=f'count="{element.value("count")}" in <{element.name}>',
                place=subject.place(element, "count"),
                confidence="certain",
                effect=f"{words.library} plans with a link without bandwidth, and looks for no other",
                value=count,
                links=words.several,
            )
    yield from _directions(subject, by_gpu)
    yield from _totals(subject, by_gpu, reference)
    yield from _none(subject, by_gpu)


def _one(subject: TopologySubject, link: Link, addresses: set[str | None]) -> Iterator[Finding]:
    tclass = link.element.value("tclass") or ""
    if link.target == link.gpu.bus_id:
        yield finding(
            "TOP090",
            evidence=f'target="{link.target}" is the GPU itself',
            fix=_remedy(link),
            place=subject.place(link.element, "target"),
            confidence="certain",
            effect=_hides(link),
            bus_id=link.target,
            link=link.words.one,
        )
    elif (
        link.target not in addresses
        and (link.element.name == "xgmi" or not (is_hidden(link.target) or tclass.startswith(_SWITCH)))
        and link.element.attribute("target") is not None
    ):
        yield finding(
            "TOP091",
            evidence=f"{link.gpu.name} lists {link.count or 0} links to it, of class {tclass or 'not given'}",
            fix=_remedy(link),
            place=subject.place(link.element, "target"),
            confidence="certain" if tclass.startswith(_GPUS) else "possible",
            effect=f"{link.words.library} drops the link; {_hides(link)}",
            target=link.target,
            link=link.words.one,
        )


def _directions(subject: TopologySubject, by_gpu: dict[int, list[Link]]) -> Iterator[Finding]:
    """Yield pairs of GPUs that do not agree on the links between them; a GPU without any is left to detection."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Link] = {}
    speaking: set[str] = set()
    for links in by_gpu.values():
        for link in links:
            source = link.gpu.bus_id
            if source is not None and link.target != source:
                speaking.add(source)
                counts[source, link.target] += max(link.count or 0, 0)
                first.setdefault((source, link.target), link)
    for (source, target), count in counts.items():
        back = counts.get((target, source), 0)
        # Each pair once, from its first GPU, or from the only one that names the other.
        if target not in speaking or count == back or ((target, source) in counts and source > target):
            continue
        yield finding(
            "TOP092",
            evidence=f"{count} one way, {back} back",
            place=subject.place(first[source, target].element, "count"),
            confidence="certain",
            effect=f"{first[source, target].words.library} plans each direction with its own rate",
            first=source,
            second=target,
            links=first[source, target].words.several,
        )


def _totals(
    subject: TopologySubject, by_gpu: dict[int, list[Link]], reference: TopologyReference | None
) -> Iterator[Finding]:
    totals = {key: sum(max(link.count or 0, 0) for link in links) for key, links in by_gpu.items()}
    usual = Counter(totals.values()).most_common(1)
    right = right_capability(subject, reference)
    for key, links in by_gpu.items():
        gpu, total = links[0].gpu, totals[key]
        most = _nvlinks_most(gpu, reference, right[0] if right is not None else None)
        if most is not None and total > most:
            yield finding(
                "TOP093",
                evidence=" + ".join(f"{link.count or 0} to {link.target}" for link in links),
                fix=f'count="{most}"' if len(links) == 1 else _remedy(links[0]),
                place=subject.place(links[0].element, "count"),
                confidence="certain",
                effect=f"{links[0].words.library} multiplies the count with the rate of one link",
                bus_id=gpu.bus_id or "?",
                count=total,
                most=most,
                links=links[0].words.several,
            )
            continue
        if any(link.target == gpu.bus_id for link in links):
            continue
        known = reference.nvlinks_per_gpu if reference is not None and gpu.bus_id in reference.gpus else None
        confidence: Confidence = reference.confidence if reference is not None and known is not None else "likely"
        whole = known or (usual[0][0] if usual and 2 * usual[0][1] > len(totals) and len(totals) > 2 else None)
        if whole is not None and total < whole:
            yield finding(
                "TOP094",
                evidence=f"{reference.name} has {known}" if reference is not None and known else "as the others list",
                fix=_remedy(links[0]),
                place=subject.place(links[0].element, "count"),
                confidence=confidence,
                effect=_hides(links[0]),
                bus_id=gpu.bus_id or "?",
                count=total,
                all=whole,
                links=links[0].words.several,
            )


def _none(subject: TopologySubject, by_gpu: dict[int, list[Link]]) -> Iterator[Finding]:
    """Yield GPUs without NVLinks where most of their host have some to NVSwitches, which join all GPUs of a machine."""
    switched = {key for key, links in by_gpu.items() if any(_is_to_a_switch(link) for link in links)}
    for gpu in subject.of_kind("gpu"):
        if id(gpu) in by_gpu or not gpu.element.named("gpu"):
            continue
        others = [other for other in subject.of_kind("gpu") if other.node.host == gpu.node.host and other is not gpu]
        with_links = sum(id(other) in switched for other in others)
        if with_links < _NVLINKS_LEAST_VOTES or 2 * with_links <= len(others):
            continue
        yield finding(
            "TOP096",
            evidence=f"{with_links} of the {len(others)} other GPUs have some",
            fix=f"on the machine: nvidia-smi nvlink --status -i {gpu.bus_id}",
            place=subject.place(gpu.element.named("gpu")[0]),
            confidence="likely",
            effect="in a dump: NCCL saw none, and lays no ring over NVLink; in a file for NCCL: it looks for them",
            bus_id=gpu.bus_id or "?",
        )


def _hides(link: Link) -> str:
    return f"{link.words.library} does not look for {link.words.several} of a GPU that has one in the file"


def _remedy(link: Link) -> str:
    return f"delete the {link.element.name} elements: {link.words.library} then finds the links by itself"


def _is_to_a_switch(link: Link) -> bool:
    return is_hidden(link.target) or (link.element.value("tclass") or "").startswith(_SWITCH)


def _nvlinks_most(gpu: PciElement, reference: TopologyReference | None, right_sm: int | None) -> int | None:
    """Return how many NVLinks a GPU can have; None where the file does not say what it is.

    `right_sm` is the compute capability that it has by the machine or its neighbours: the file may say another.
    """
    if reference is not None and reference.nvlinks_per_gpu is not None and gpu.bus_id in reference.gpus:
        return reference.nvlinks_per_gpu
    for element in gpu.element.named("gpu"):
        sm = read_integer(element.value("sm"))
        able = capability(sm if right_sm is None else right_sm)
        if able is not None and sm is not None:
            return able.nvlinks
    return None

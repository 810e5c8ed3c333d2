"""PCIe links: texts and widths that NCCL misreads, and rates that the devices do not have."""

from collections import Counter
from collections.abc import Iterator

from busbw.facts.devices import capability, device_kind
from busbw.facts.findings import finding
from busbw.model.finding import Confidence, Finding
from busbw.topo.addresses import card
from busbw.topo.alignment import HIDDEN_WIDTH
from busbw.topo.file.numerals import read_integer
from busbw.topo.pcie import WIDTHS, GENERATION_GTps, is_known_speed, lane_units, link_Bps, transfer_GTps
from busbw.topo.reference import Reference
from busbw.topo.rules.subject import WORDS, Device, Subject, is_rccls

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


def links(subject: Subject, reference: Reference | None) -> Iterator[Finding]:
    """Yield what is wrong with the links of PCI devices."""
    for device in subject.devices:
        yield from _text(subject, device)
        yield from _width(subject, device)
        impossible = list(_impossible(subject, device, reference))
        yield from impossible
        if reference is not None and not impossible:
            yield from _slower(subject, device, reference)
        elif reference is None and not impossible:
            yield from _unused(subject, device)
    yield from _bottlenecks(subject)
    yield from _odd(subject)


def _text(subject: Subject, device: Device) -> Iterator[Finding]:
    written = device.element.value("link_speed")
    if written is None or is_known_speed(written):
        return
    rate_GTps = transfer_GTps(written)
    right = f'link_speed="{rate_GTps:.1f} GT/s PCIe"' if rate_GTps in GENERATION_GTps.values() else None
    kind = _by_kind(device)
    able = f'link_speed="{kind[0]:.1f} GT/s PCIe", if the slot is as fast as the device' if kind is not None else None
    yield finding(
        "TOP080",
        evidence=f'link_speed="{written}" of {device.name}',
        fix=right or able or ("leave it out: NCCL then asks the machine" if not written else None),
        where=subject.where(device.element, "link_speed"),
        confidence="certain",
        effect="NCCL takes it for 8 GT/s: 12 GB/s at 16 lanes",
        value=written or '""',
    )


def _width(subject: Subject, device: Device) -> Iterator[Finding]:
    width = read_integer(device.element.value("link_width"))
    if width is None or width == 0 or width in WIDTHS:
        return
    yield finding(
        "TOP081",
        evidence=f'link_width="{device.element.value("link_width")}" of {device.name}; '
        f"{', '.join(str(known) for known in WIDTHS)} exist",
        where=subject.where(device.element, "link_width"),
        confidence="certain",
        effect=f"NCCL plans with {_rate_words(device)}",
        value=width,
    )


def _impossible(subject: Subject, device: Device, reference: Reference | None) -> Iterator[Finding]:
    """Yield a rate above what the device can do; NCCL's own word for it, since a text it misreads is no rate."""
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
        where=subject.where(device.element, "link_speed"),
        confidence=confidence,
        effect=_OBEYS,
        device=WORDS[device.kind],
        bus_id=device.bus_id or "?",
        speed=f"{rate_GTps:g} GT/s",
    )


def _unused(subject: Subject, device: Device) -> Iterator[Finding]:
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
            where=subject.where(device.element, "link_speed"),
            confidence="certain",
            effect=_OBEYS,
            bus_id=device.bus_id or "?",
            speed=f"{rate_GTps:g} GT/s",
        )


def _most(device: Device, reference: Reference | None) -> tuple[float, str, Confidence] | None:
    """Return the rate a device can do at most, why, and how sure that is."""
    return _by_kind(device) or (_by_reference(device, reference) if reference is not None else None)


def _by_kind(device: Device) -> tuple[float, str, Confidence] | None:
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


def _by_reference(device: Device, reference: Reference) -> tuple[float, str, Confidence] | None:
    if device.bus_id is None:
        return None
    rate_GTps = reference.rates_GTps.get(device.bus_id)
    if rate_GTps is not None:
        return rate_GTps, f"the link of {reference.name} has {rate_GTps:g} GT/s", reference.confidence
    if reference.gpu_GTps is not None and _belongs(device, reference):
        what = f"with {reference.gpu_model}s " if reference.gpu_model else ""
        return reference.gpu_GTps, f"{reference.name} {what}has {reference.gpu_GTps:g} GT/s", reference.confidence
    return None


def _belongs(device: Device, reference: Reference) -> bool:
    """Return whether a device is one of the right machine's; every GPU is where its addresses are not known."""
    bus_id = device.bus_id or ""
    if not reference.gpus and device.kind == "gpu":
        return True
    return bus_id in reference.gpus or card(bus_id) in reference.nics


def _slower(subject: Subject, device: Device, reference: Reference) -> Iterator[Finding]:
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
        where=subject.where(device.element, "link_speed" if rate_GTps < right_GTps else "link_width"),
        confidence=reference.confidence,
        effect=_OBEYS,
        device=WORDS[device.kind],
        bus_id=bus_id,
    )


def _odd(subject: Subject) -> Iterator[Finding]:
    """Yield the GPUs whose links are slower than those of nearly all others in the file."""
    gpus = [gpu for gpu in subject.of_kind("gpu") if gpu.element.attribute("link_speed") is not None]
    rates = Counter(_known_Bps(gpu) for gpu in gpus)
    usual_Bps, votes = rates.most_common(1)[0] if rates else (0.0, 0)
    for gpu in gpus:
        if votes < _LEAST_VOTES or len(gpus) > 2 * votes or _known_Bps(gpu) >= usual_Bps:
            continue
        yield finding(
            "TOP085",
            evidence=f"{_rate_words(gpu)}; {usual_Bps / _GB:g} GB/s for {votes} others",
            where=subject.where(gpu.element, "link_speed"),
            confidence="likely",
            effect=_OBEYS,
            bus_id=gpu.bus_id or "?",
        )


def _bottlenecks(subject: Subject) -> Iterator[Finding]:
    """Yield switches whose link up has half the bandwidth, or less, of a device's link below."""
    worst: dict[int, tuple[Device, Device]] = {}
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


def _is_narrower(switch: Device, device: Device) -> bool:
    if device.kind not in ("gpu", "nic") or None in (each.element.attribute("link_speed") for each in (switch, device)):
        return False
    return _known_Bps(switch) <= _known_Bps(device) / 2


def _bottleneck(subject: Subject, switch: Device, device: Device, *, stays_below: bool) -> Finding:
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
        where=subject.where(switch.element, "link_speed"),
        confidence="likely" if is_grave else "certain",
        effect=f"NCCL plans what goes {what} with {narrow} in all",
        bus_id=switch.bus_id or "?",
    )


def _width_of(device: Device) -> int:
    return read_integer(device.element.value("link_width")) or HIDDEN_WIDTH


def _link_words(device: Device) -> str:
    return f"{device.element.value('link_speed') or 'no speed'} x{_width_of(device)}"


def _known_Bps(device: Device) -> float:
    return link_Bps(device.element.value("link_speed"), read_integer(device.element.value("link_width")))


def _rate_words(device: Device) -> str:
    return f"{_known_Bps(device) / _GB:g} GB/s"

"""Finding what is wrong with an NCCL topology file."""

import shlex
from dataclasses import dataclass

from msgspec import structs

from busbw.facts.devices import device_kind
from busbw.facts.rules import finding
from busbw.model.finding import Finding, by_place
from busbw.model.platform import Platform
from busbw.topo.buses import card, moved
from busbw.topo.file.document import TopologyDocument, read_integer
from busbw.topo.file.meant import meant
from busbw.topo.reference import TopologyReference, reference_of_platform
from busbw.topo.rules.addresses import mistyped, repeated
from busbw.topo.rules.attributes import attributes, emptiness, syntax
from busbw.topo.rules.consistency import distance, evenness, identity
from busbw.topo.rules.links import links, nvlinks
from busbw.topo.rules.locality import division, locality, lumped, misnumbered, numbering, undivided
from busbw.topo.rules.masks import masks
from busbw.topo.rules.parts import parts
from busbw.topo.rules.presence import (
    another_machine,
    gpu_count,
    nets,
    off_by_buses,
    presence,
    shifted,
    strange_nodes,
    without_gpudirect,
)
from busbw.topo.rules.subject import Corrections, PciElement, TopologySubject, subject_of

# A dump of a whole NVLink domain has this many elements; NCCL gives up long before, and pairs of elements take longer.
_MOST_ELEMENTS = 4_096
_LONGEST = 300
_UNCLOSED = {"mismatched-tag", "stray-closing-tag"}
# Where one of these is found, what follows from it is not said again.
_PLACES = {"TOP060", "TOP061", "TOP062", "TOP063", "TOP067", "TOP078"}


def check(document: TopologyDocument, reference: TopologyReference | None = None) -> tuple[Finding, ...]:
    """Return what is wrong with a topology file, in the order of the file.

    `reference` is the machine that it is for; without one, conclusions rest on what the file says about itself, and
    each says how sure it is.
    """
    stands = subject_of(document)
    subject = subject_of(meant(document))
    found = [*syntax(stands), *emptiness(subject)]
    if _size(subject) > _MOST_ELEMENTS:
        found += attributes(subject)
    elif any(remark.kind in _UNCLOSED for remark in document.remarks):
        # Where a device hangs is a guess then.
        found += [*attributes(subject), *masks(subject, reference)]
    else:
        causes, right, known = _causes(subject, reference)
        found += [*attributes(subject, _rights(subject, reference)), *causes, *_meanings(right, known)]
    return tuple(_clipped(each) for each in sorted(found, key=by_place))


def _causes(
    subject: TopologySubject, reference: TopologyReference | None
) -> tuple[list[Finding], TopologySubject, TopologyReference | None]:
    """Return slips that would look like many, the file without them, and what it can be held against then."""
    if reference is None:
        return [], subject, None
    strange = list(another_machine(subject, reference))
    if strange:
        return strange, subject, None
    typed = mistyped(subject, reference) if _is_one_host(subject) else {}
    repeats = list(repeated(subject, typed, reference))
    if typed:
        subject = subject_of(subject.document, Corrections(addresses=typed))
    off = shifted(subject, reference)
    found = [*repeats, *off_by_buses(subject, off, reference)]
    rights = typed | {id(each.element): moved(each.bus_id or "", buses) for devices, buses in off for each in devices}
    targets = {each.bus_id or "": rights[id(each.element)] for devices, _buses in off for each in devices}
    right = subject_of(subject.document, Corrections(addresses=rights, targets=targets)) if off else subject
    if not _is_one_host(subject):
        return found, right, reference
    numbers = misnumbered(right, reference)
    found += numbering(right, numbers, reference)
    if numbers:
        corrections = Corrections(numbers=numbers, addresses=rights, targets=targets)
        right = subject_of(subject.document, corrections)
    divided = [*lumped(right, reference)] or [*division(right, reference)]
    return [*found, *divided], right, undivided(reference) if divided else reference


def _rights(subject: TopologySubject, reference: TopologyReference | None) -> Corrections:
    """Return the numbers and addresses that a file lacks or has mistyped, as far as the right machine tells them."""
    if reference is None or not _is_one_host(subject):
        return Corrections()
    return Corrections(numbers=misnumbered(subject, reference), addresses=mistyped(subject, reference))


def _size(subject: TopologySubject) -> int:
    return len(subject.nodes) + len(subject.devices) + len(subject.links) + len(subject.nets)


def _meanings(subject: TopologySubject, reference: TopologyReference | None) -> list[Finding]:
    """Return what is wrong with what elements say together."""
    found = [
        *identity(subject, reference),
        *parts(subject, reference),
        *masks(subject, reference),
        *links(subject, reference),
        *nvlinks(subject, reference),
        *nets(subject, reference),
        *without_gpudirect(subject, reference),
    ]
    if _is_one_host(subject):
        found += _places(subject, reference)
    return found


def _is_one_host(subject: TopologySubject) -> bool:
    return len({node.host for node in subject.nodes if node.host is not None}) <= 1


def _places(subject: TopologySubject, reference: TopologyReference | None) -> list[Finding]:
    """Return what is wrong with where devices are."""
    if reference is None:
        return [*evenness(subject), *distance(subject)]
    nodes = list(strange_nodes(subject, reference))
    if not (reference.gpus or reference.nics):
        return [*nodes, *gpu_count(subject, reference), *evenness(subject), *distance(subject)]
    found = [*nodes, *presence(subject, reference), *locality(subject, reference)]
    return found if any(each.code in _PLACES for each in found) else [*found, *distance(subject)]


def _clipped(found: Finding) -> Finding:
    """Return a finding that can be printed, whatever the file holds."""
    long = {
        name: f"{text[:_LONGEST]}..."
        for name in ("title", "evidence", "fix")
        if (text := getattr(found, name)) is not None and len(text) > _LONGEST
    }
    return structs.replace(found, **long) if long else found


# Of the addresses of the file, and of the GPUs of the platform: fewer is no resemblance.
_ENOUGH = 0.6
# A virtual machine with one or two GPUs has addresses that many have.
_LEAST_ADDRESSES = 4
# Of all addresses of file and platform: so many decide, whatever the file says of processor or GPUs.
_NEARLY_ALL = 0.9
_SHIFTS = (0, -1, 1, -2, 2, -3, 3, -4, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resemblance:
    """The platform whose addresses are most like those of a file."""

    reference: TopologyReference
    # In words, as "8 of 8 GPUs and 8 of 8 NICs".
    reason: str
    # Ids of the platforms that fit as well.
    also: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    platform: Platform
    reference: TopologyReference
    # From 0 to 1, and whether ids of devices and of the processor agree.
    share: float
    agreements: int
    gpus: int
    nics: int


def candidate_addresses(document: TopologyDocument) -> frozenset[str]:
    """Return the addresses that a platform may have which the file is like: its own, and those some buses away."""
    return frozenset(
        moved(device.bus_id, buses)
        for device in subject_of(document).devices
        if device.kind in ("gpu", "nic") and device.bus_id is not None
        for buses in _SHIFTS
    )


def resemblance(document: TopologyDocument, platforms: tuple[Platform, ...]) -> Resemblance | None:
    """Return the platform that a file is most like; None where there is none that it is like enough."""
    subject = subject_of(document)
    devices = [device for device in subject.devices if device.kind in ("gpu", "nic") and device.bus_id is not None]
    if len(devices) < _LEAST_ADDRESSES:
        return None
    fits = [fit for platform in platforms if (fit := _fit(subject, devices, platform)) is not None]
    if not fits:
        return None
    # Among equals the plainest name: variants of a machine carry longer ones.
    best = max(fits, key=lambda fit: (fit.share, fit.agreements, -len(fit.platform.id)))
    also = [fit for fit in fits if fit is not best and (fit.share, fit.agreements) == (best.share, best.agreements)]
    gpus = sum(device.kind == "gpu" for device in devices)
    shares = [(best.gpus, gpus, "GPUs"), (best.nics, len(devices) - gpus, "NICs")]
    words = " and ".join(f"{matched} of {count} {kind}" for matched, count, kind in shares if count)
    return Resemblance(
        reference=best.reference,
        reason=f"{words} have its addresses",
        also=tuple(fit.platform.id for fit in also),
    )


# Of the addresses of the file: fewer in common is chance.
_NOTABLE = 1 / 3


def partial_resemblance(document: TopologyDocument, platforms: tuple[Platform, ...]) -> tuple[Finding, ...]:
    """Return a note on the platform that has some of a file's addresses, though too few to hold the file against it."""
    subject = subject_of(document)
    devices = [device for device in subject.devices if device.kind in ("gpu", "nic") and device.bus_id is not None]
    counts: dict[str, int] = {}
    fitting: dict[str, int] = {}
    for platform in platforms:
        if any(place.bus_id for place in platform.gpus):
            matched = _matches(devices, reference_of_platform(platform, "resembles"), 0)
            if matched >= max(_LEAST_ADDRESSES, _NOTABLE * len(devices)):
                counts[platform.id] = matched
                fitting[platform.id] = _agreements(subject, platform) - _strangeness(subject, platform)
    if not counts:
        return ()
    most = max(counts.values())
    # Among equals what the file says of processor and GPUs decides, then the plainest name.
    best, *others = sorted(
        (name for name, count in counts.items() if count == most), key=lambda name: (-fitting[name], len(name))
    )
    also = f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} them too"
    return (
        finding(
            "TOP054",
            evidence=also if others else "no platform has more of them",
            fix=f"if it is for one: busbw topo check {shlex.quote(document.where)} --platform {best}",
            place=subject.place(subject.document.root),
            confidence="possible",
            effect="none by itself: the file was held against nothing but itself",
            count=most,
            all=len(devices),
            name=best,
        ),
    )


def _fit(subject: TopologySubject, devices: list[PciElement], platform: Platform) -> _Fit | None:
    """Return how well a platform fits; None where it does not, or is ruled out."""
    if not any(place.bus_id for place in platform.gpus):
        return None
    reference = reference_of_platform(platform, "resembles")
    gpus, nics = ([device for device in devices if device.kind == kind] for kind in ("gpu", "nic"))
    matched = max(
        _matches(gpus, reference, of_gpus) + _matches(nics, reference, of_nics)
        for buses in _SHIFTS
        # One kind of devices may be off, or both by the same.
        for of_gpus, of_nics in ((buses, buses), (buses, 0), (0, buses))
    )
    known = len(reference.gpus) + len(reference.nics)
    if matched < _ENOUGH * len(devices) or matched < _LEAST_ADDRESSES or matched < _ENOUGH * len(reference.gpus):
        return None
    strangeness = _strangeness(subject, platform)
    share = 2 * matched / (len(devices) + known)
    if strangeness and share < (_NEARLY_ALL if strangeness == 1 else 1):
        return None
    return _Fit(
        platform=platform,
        reference=reference,
        share=share,
        agreements=_agreements(subject, platform) - strangeness,
        gpus=_matches(gpus, reference, 0),
        nics=_matches(nics, reference, 0),
    )


def _matches(devices: list[PciElement], reference: TopologyReference, buses: int) -> int:
    return sum(_is_known(device, reference, buses) for device in devices)


def _is_known(device: PciElement, reference: TopologyReference, buses: int) -> bool:
    """Return whether the machine has something at an address, whatever it is; if the address was moved, of its kind."""
    address = moved(device.bus_id or "", buses)
    is_gpu = address in reference.gpus
    is_nic = card(address) in reference.nics
    if buses == 0:
        return is_gpu or is_nic
    return is_gpu if device.kind == "gpu" else is_nic


def _strangeness(subject: TopologySubject, platform: Platform) -> int:
    """Return whether the processor, the GPUs, or both, are others than the platform's: 0, 1, 2.

    They may be slips in a file whose addresses are the platform's, and another machine where some are not.
    """
    vendors = {vendor for node in subject.nodes if (vendor := node.element.value("vendor")) is not None}
    other_processor = bool(vendors) and platform.cpu.vendor is not None and platform.cpu.vendor not in vendors
    capabilities = {
        read_integer(gpu.value("sm")) for device in subject.devices for gpu in device.element.named("gpu")
    } - {None}
    other_gpus = bool(capabilities) and platform.gpu.sm is not None and platform.gpu.sm not in capabilities
    return other_processor + other_gpus


def _agreements(subject: TopologySubject, platform: Platform) -> int:
    """Return how many kinds of ids in the file are those of the platform."""
    count = 0
    for device in subject.devices:
        vendor, number = device.element.value("vendor"), device.element.value("device")
        if device.kind == "gpu" and vendor and number:
            written = f"{vendor}:{number}".lower().replace("0x", "")
            count += any(written == known.lower()[: len(written)] for known in platform.match.gpu_devices)
            kind = device_kind(vendor, number)
            count += kind is not None and kind.name in (platform.gpu.model or "")
            break
    models = {read_integer(node.element.value("modelid")) for node in subject.nodes} - {None}
    return count + (platform.cpu.model_number is not None and platform.cpu.model_number in models)

"""Which platform a topology file is for, told from its PCI addresses."""

from dataclasses import dataclass

from busbw.facts.devices import device_kind
from busbw.model.platform import Platform
from busbw.topo.bus_ids import card, moved
from busbw.topo.file.document import TopologyDocument, read_integer
from busbw.topo.reference import TopologyReference, reference_of_platform
from busbw.topo.rules.subject import PciElement, TopologySubject, subject_of

# Of the addresses of the file, and of the GPUs of the platform: fewer is no resemblance.
_ENOUGH = 0.6
# A virtual machine with one or two GPUs has addresses that many have.
_LEAST_ADDRESSES = 4
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


def _fit(subject: TopologySubject, devices: list[PciElement], platform: Platform) -> _Fit | None:
    """Return how well a platform fits; None where it does not, or is ruled out."""
    if not any(place.bus_id for place in platform.gpus) or _is_ruled_out(subject, platform):
        return None
    reference = reference_of_platform(platform, "resembles")
    buses = max(_SHIFTS, key=lambda buses: _matches(devices, reference, buses))
    matched = _matches(devices, reference, buses)
    known = len(reference.gpus) + len(reference.nics)
    if matched < _ENOUGH * len(devices) or matched < _LEAST_ADDRESSES or matched < _ENOUGH * len(reference.gpus):
        return None
    return _Fit(
        platform=platform,
        reference=reference,
        share=2 * matched / (len(devices) + known),
        agreements=_agreements(subject, platform),
        gpus=sum(_is_known(device, reference, 0) for device in devices if device.kind == "gpu"),
        nics=sum(_is_known(device, reference, 0) for device in devices if device.kind == "nic"),
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


def _is_ruled_out(subject: TopologySubject, platform: Platform) -> bool:
    """Return whether the processor or the GPUs in the file are others than the platform's."""
    vendors = {vendor for node in subject.nodes if (vendor := node.element.value("vendor")) is not None}
    if vendors and platform.cpu.vendor is not None and platform.cpu.vendor not in vendors:
        return True
    capabilities = {
        read_integer(gpu.value("sm")) for device in subject.devices for gpu in device.element.named("gpu")
    } - {None}
    return bool(capabilities) and platform.gpu.sm is not None and platform.gpu.sm not in capabilities


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

"""The ladder: firmware, then the cloud's metadata service, then hardware, then `unknown`."""

from msgspec import structs

from busbw.base.value import Value
from busbw.facts.clouds import cloud_of
from busbw.machine.detect.hardware import PlatformFit, compare, fit, is_comparable, known_by_hardware
from busbw.machine.detect.names import (
    MachineName,
    firmware_evidence,
    metadata_evidence,
    name_in_metadata,
    platforms_called,
    platforms_like,
    size_called,
    type_in_firmware,
)
from busbw.machine.detect.parts import Part, PartComparison, compute_ports, gpus_of, listed
from busbw.model.finding import Confidence
from busbw.model.host import Answer, Candidate, Contradiction, Detection, Evidence, Hardware, Standing
from busbw.model.platform import Platform

# The number of ports says it better, and a driver that is not told to names NICs as it likes.
_NOT_REPORTED: frozenset[Part] = frozenset({"NIC names", "host name"})
_FIXES: dict[Part, str] = {
    "GPU kind": "the platform may have been misnamed: busbw platform detect --explain",
    "GPU count": "nvidia-smi -L; look for Xid 79 in the kernel's log, then restart or replace the node",
    "NIC ports": "ibstat; look at the cable and at the kernel's log, then restart or replace the node",
    "NIC addresses": "lspci; look at the kernel's log, then restart or replace the node",
    "NUMA CPUs": "do not use masks or a topology file of this platform here: busbw topo make --here",
}


def contradictions(
    size: Platform, comparisons: tuple[PartComparison, ...], hardware: Hardware
) -> tuple[Contradiction, ...]:
    """Return where a host differs from its platform in the size it has, with what to do about it."""
    found = []
    counted = {each.part for each in comparisons if each.verdict == "differs"}
    for each in comparisons:
        told_already = each.part == "NIC addresses" and "NIC ports" in counted
        if each.verdict == "differs" and each.part not in _NOT_REPORTED and not told_already:
            found.append(Contradiction(part=each.part, text=each.text, fix=_fix(each, hardware)))
    if not gpus_of(hardware) and size.gpu.count and "GPU count" not in counted:
        text = f"no GPU can be seen, of {size.gpu.count}"
        found.append(Contradiction(part="GPU count", text=text, fix="load the driver, or give the container its GPUs"))
    down = [port.name for port in compute_ports(size, hardware) if port.up is False]
    if down:
        text = f"{len(down)} of the compute NIC's ports {'is' if len(down) == 1 else 'are'} down: {listed(down)}"
        found.append(Contradiction(part="NIC ports", text=text, fix=_FIXES["NIC ports"]))
    return tuple(found)


def _fix(comparison: PartComparison, hardware: Hardware) -> str | None:
    if comparison.part == "GPU count" and hardware.container is not None:
        return f"a container ({hardware.container}) may be given fewer than the host has: look on the host"
    return _FIXES.get(comparison.part)


_STANDINGS: tuple[Standing, ...] = ("matches", "possible", "near_miss")


class _Verdict(Value, kw_only=True, frozen=True):
    """What a rung makes of it; `found` None: it knows that it is no platform of the catalogue, or not which."""

    found: PlatformFit | None
    because: str
    confidence: Confidence | None = None


def detect(hardware: Hardware, answers: tuple[Answer, ...], platforms: tuple[Platform, ...]) -> Detection:
    """Return which of `platforms` a host is, with what speaks for it, or `unknown`: never a guess.

    `answers` are those of metadata services, others are passed over. A name that firmware or service give is believed,
    also where GPUs or NICs are missing: that is damage, and becomes a contradiction. Without a name only hardware that
    no other platform has is enough; a kind of GPU never is.
    """
    cloud = cloud_of(hardware.dmi)
    fits = tuple(fit(platform, hardware) for platform in platforms)
    name = _name(hardware, answers)
    verdict = _by_name(name, fits) if name is not None else _by_hardware(fits, hardware)
    found = verdict.found
    if found is not None and name is not None:
        # The name says which size it is.
        size = size_called(found.platform, name.name)
        found = structs.replace(found, comparisons=compare(size, hardware))
    candidates = _candidates(fits, found, name)
    return Detection(
        platform=found.platform.id if found is not None else None,
        confidence=verdict.confidence,
        because=verdict.because,
        rung=None if found is None else name.rung if name is not None else "hardware",
        sku=name.name if name is not None else None,
        cloud=cloud.id if cloud is not None else name.cloud.id if name is not None else None,
        evidence=(
            *firmware_evidence(hardware.dmi),
            *metadata_evidence(answers, cloud),
            *_hardware_evidence(verdict, found, name, candidates),
        ),
        candidates=candidates,
        contradictions=()
        if found is None
        else contradictions(
            found.platform if name is None else size_called(found.platform, name.name), found.comparisons, hardware
        ),
    )


def _name(hardware: Hardware, answers: tuple[Answer, ...]) -> MachineName | None:
    """Return what firmware or metadata service call the machine: the service's word first, it is asked for this."""
    cloud = cloud_of(hardware.dmi)
    answered = name_in_metadata(answers, cloud)
    name = type_in_firmware(hardware.dmi)
    if answered is not None or cloud is None or name is None:
        return answered
    return MachineName(name=name, cloud=cloud, rung="firmware")


def _by_name(name: MachineName, fits: tuple[PlatformFit, ...]) -> _Verdict:
    """Return the platform with the name that the machine is called by."""
    says = f"the metadata service of {name.cloud.name} says" if name.rung == "metadata" else "the firmware says"
    platforms = tuple(each.platform for each in fits)
    called = {each.id for each in platforms_called(name, platforms)}
    exact = [each for each in fits if each.platform.id in called]
    if len(exact) > 1:
        exact = [each for each in exact if not each.is_ruled_out]
    if len(exact) == 1:
        confidence: Confidence = "likely" if _has_other_gpus(exact[0].comparisons) else "certain"
        return _Verdict(found=exact[0], because=f"{says} {name.name}", confidence=confidence)
    wide = {each.id for each in platforms_like(name, platforms)} if not called else set()
    like = [each for each in fits if each.platform.id in wide and not each.is_ruled_out]
    if len(like) == 1:
        return _Verdict(found=like[0], because=f"{says} {name.name}, which a pattern of it takes", confidence="likely")
    if called or like:
        several = ", ".join(sorted(called or {each.platform.id for each in like}))
        return _Verdict(found=None, because=f"{says} {name.name}, which several platforms are called: {several}")
    return _Verdict(found=None, because=f"{says} {name.name}, which no platform here is called")


def _has_other_gpus(comparisons: tuple[PartComparison, ...]) -> bool:
    return any(each.decisive and each.part == "GPU kind" for each in comparisons)


def _by_hardware(fits: tuple[PlatformFit, ...], hardware: Hardware) -> _Verdict:
    """Return the platform that the hardware is known by."""
    known = known_by_hardware(fits, hardware)
    if known is not None:
        return _Verdict(found=known[0], because=known[1], confidence="likely")
    possible = sorted(each.platform.id for each in fits if is_comparable(each) and not each.differing)
    if len(possible) == 1:
        return _Verdict(found=None, because=f"it may be {possible[0]}, and what was seen fits other machines too")
    if possible:
        return _Verdict(found=None, because=f"{len(possible)} platforms fit what was seen: {', '.join(possible)}")
    return _Verdict(found=None, because="neither firmware nor hardware is that of a platform here")


def _candidates(
    fits: tuple[PlatformFit, ...], found: PlatformFit | None, name: MachineName | None
) -> tuple[Candidate, ...]:
    """Return every platform with something telling in common, best first."""
    made = []
    for each in fits:
        is_found = found is not None and each.platform.id == found.platform.id
        if is_found or is_comparable(each):
            made.append(_candidate(found if is_found and found is not None else each, name, is_found=is_found))
    order = {standing: place for place, standing in enumerate(_STANDINGS)}
    return tuple(sorted(made, key=lambda each: (order[each.standing], len(each.differs), each.platform)))


def _candidate(each: PlatformFit, name: MachineName | None, *, is_found: bool) -> Candidate:
    texts = {
        verdict: tuple(comparison.text for comparison in each.comparisons if comparison.verdict == verdict)
        for verdict in ("agrees", "differs", "unseen")
    }
    differs = texts["differs"]
    if name is not None and not is_found:
        differs = (f"it is called {name.name}", *differs)
    return Candidate(
        platform=each.platform.id,
        standing="matches" if is_found else "near_miss" if differs else "possible",
        agrees=texts["agrees"],
        differs=differs,
        unseen=texts["unseen"],
    )


def _hardware_evidence(
    verdict: _Verdict, found: PlatformFit | None, name: MachineName | None, candidates: tuple[Candidate, ...]
) -> tuple[Evidence, ...]:
    """Return what the third rung says, or that it was not needed."""
    if name is not None:
        seen = "not needed: the machine is called by its name"
        return (Evidence(rung="hardware", seen=seen, says="nothing"),)
    if found is None:
        near = sum(each.standing != "possible" for each in candidates)
        says = f"unknown; {len(candidates) - near} platforms are possible, {near} are near misses"
        return (Evidence(rung="hardware", seen=verdict.because, says=says),)
    seen = "; ".join(each.text for each in found.comparisons if each.verdict == "agrees")
    return (Evidence(rung="hardware", seen=seen, says=f"{found.platform.id}: {verdict.because}"),)

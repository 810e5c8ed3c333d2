"""The ladder: firmware, then the cloud's metadata service, then hardware, then `unknown`."""

from msgspec import structs

from busbw.base.text import listed
from busbw.base.value import Value
from busbw.facts.clouds import cloud_of
from busbw.machine.detect.names import (
    MachineName,
    firmware,
    firmware_evidence,
    metadata_evidence,
    name_in_metadata,
    platforms_called,
    platforms_like,
    size_called,
    sizes_of,
    type_in_firmware,
)
from busbw.machine.detect.parts import (
    Part,
    PartComparison,
    compute_ports,
    gpus,
    gpus_of,
    has_own_names,
    nics,
    processors,
)
from busbw.model.finding import Confidence
from busbw.model.host import Answer, Candidate, Contradiction, Detection, Evidence, Hardware, Standing
from busbw.model.platform import Platform

_NIC_PARTS: tuple[Part, ...] = ("NIC names", "NIC addresses", "NIC ports")
# What makes a platform worth a word; NICs, and CPUs of machines with GPUs, are alike everywhere.
_TELLING: dict[str, frozenset[Part]] = {
    "gpu": frozenset({"GPU kind", "GPU addresses"}),
    "cpu": frozenset({"CPU kind"}),
}
# What machines of one cloud have in common when they differ in their GPUs only.
_COMMON: frozenset[Part] = frozenset({"GPU count", "NIC names", "NIC addresses", "NIC ports", "NUMA CPUs"})


class PlatformFit(Value, kw_only=True, frozen=True):
    """A platform, in the size that fits best, held against a host."""

    # As in the catalogue.
    platform: Platform
    comparisons: tuple[PartComparison, ...]

    @property
    def agreeing(self) -> frozenset[Part]:
        """The parts that are as published."""
        return frozenset(each.part for each in self.comparisons if each.verdict == "agrees")

    @property
    def differing(self) -> tuple[PartComparison, ...]:
        """What is not as published."""
        return tuple(each for each in self.comparisons if each.verdict == "differs")

    @property
    def is_ruled_out(self) -> bool:
        """Whether the host cannot be this platform."""
        return any(each.decisive for each in self.differing)

    @property
    def is_alike(self) -> bool:
        """Whether the host has what the platform is known for: its GPUs or, without any, its processors."""
        return bool(self.agreeing & _TELLING[self.platform.kind])


def fit(platform: Platform, hardware: Hardware) -> PlatformFit:
    """Hold a platform against a host, in whichever of its sizes fits best."""
    fits = [PlatformFit(platform=platform, comparisons=compare(size, hardware)) for size in sizes_of(platform)]
    return min(fits, key=lambda each: (each.is_ruled_out, len(each.differing), -len(each.agreeing)))


def compare(size: Platform, hardware: Hardware) -> tuple[PartComparison, ...]:
    """Return every published fact of one size held against a host, firmware first."""
    first = firmware(size, hardware.dmi)
    rest = (*gpus(size, hardware), *nics(size, hardware), *processors(size, hardware))
    return rest if first is None else (first, *rest)


def is_comparable(found: PlatformFit) -> bool:
    """Whether a host has enough in common with a platform for a word about it."""
    if "firmware" in found.agreeing:
        return found.is_alike or found.platform.match.service is None or len(found.agreeing & _COMMON) > 1
    return found.is_alike


def known_by_hardware(fits: tuple[PlatformFit, ...], hardware: Hardware) -> tuple[PlatformFit, str] | None:
    """Return the one platform that the hardware is known by, and how; None where it is none, or not one alone."""
    possible = tuple(each for each in fits if not each.is_ruled_out)
    known = [(each, how) for each in possible if (how := _how(each, possible, hardware)) is not None]
    if len(known) != 1:
        return None
    found = known[0][0]
    # A whole map with names of its own needs no such caution.
    rivals = [other for other in possible if "firmware" in found.agreeing and _is_rival(other, found)]
    return known[0] if not rivals else None


def _how(found: PlatformFit, possible: tuple[PlatformFit, ...], hardware: Hardware) -> str | None:
    """Return by which facts a platform is known; None by none."""
    if found.is_alike and _is_alone_by("host name", found, possible):
        return "its kind of hardware is here, and the host has a name of this platform alone"
    return _how_in_cloud(found, possible) if "firmware" in found.agreeing else _how_by_map(found, hardware)


def _how_in_cloud(found: PlatformFit, possible: tuple[PlatformFit, ...]) -> str | None:
    """Return by which facts a platform is known where the firmware agrees."""
    agreeing = found.agreeing
    if found.platform.match.service is None and _is_alone_by("firmware", found, possible):
        return "the firmware's words are those of this platform alone"
    if {"GPU addresses", "GPU kind"} <= agreeing or {"GPU addresses", "NIC addresses"} <= agreeing:
        return "GPUs of this kind are at exactly its PCI addresses, in its cloud"
    if not found.differing and _is_whole(found):
        return "everything that is published of it agrees, in its cloud"
    return None


def _how_by_map(found: PlatformFit, hardware: Hardware) -> str | None:
    """Return by which facts a platform is known where no firmware speaks for it.

    Boards of one maker look alike: only a whole map with names of its own is enough.
    """
    mapped = {"GPU addresses", "GPU kind", "GPU count"} <= found.agreeing
    own_names = has_own_names(found.platform) and {"NIC names", "NUMA CPUs"} <= found.agreeing
    if mapped and own_names and not found.differing and cloud_of(hardware.dmi) is None:
        return "GPUs, NICs and CPUs are numbered exactly as in its map, and the NICs have its names"
    return None


def _is_alone_by(part: Part, found: PlatformFit, possible: tuple[PlatformFit, ...]) -> bool:
    return [each.platform.id for each in possible if part in each.agreeing] == [found.platform.id]


def _is_whole(found: PlatformFit) -> bool:
    """Whether kind and number of GPUs, or of CPUs, and the NICs were all seen and agree."""
    agreeing = found.agreeing
    counted = (
        {"CPU kind", "CPU count"} <= agreeing if found.platform.kind == "cpu" else {"GPU kind", "GPU count"} <= agreeing
    )
    return counted and any(part in agreeing for part in _NIC_PARTS)


def _is_rival(other: PlatformFit, known: PlatformFit) -> bool:
    """Whether another platform may be it too: its kind of hardware is here, and nothing published of it differs.

    Little may be published of it: what nobody has written down cannot tell two machines apart.
    """
    if other.platform.id == known.platform.id or other.differing:
        return False
    return "firmware" in other.agreeing and other.is_alike


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
    """What a rung makes of it; `found` None: it knows that it is not a platform of the catalogue, or not which."""

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

"""The third rung: what the hardware looks like, and when that is enough to know a platform by.

No scores: a platform is known by its hardware when one of a few sets of facts agrees, nothing rules it out, and no
other platform fits as well.
"""

from busbw.base.value import Value
from busbw.facts.clouds import cloud_of
from busbw.machine.detect.names import firmware, sizes_of
from busbw.machine.detect.parts import Part, PartComparison, gpus, has_own_names, nics, processors
from busbw.model.host import Hardware
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

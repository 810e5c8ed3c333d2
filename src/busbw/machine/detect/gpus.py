"""The GPUs of a host held against those of a platform."""

import re

from busbw.facts.accelerators import gpus_on_bus
from busbw.machine.detect.parts import Comparison, agrees, differs, listed, matches, rules_out, unseen
from busbw.model.host import Hardware, HostGpu
from busbw.model.platform import Platform

# H100, GH200, MI300X, V100: what a maker's name for a GPU has in common with its model.
_MODEL = re.compile(r"(?<![A-Za-z0-9])[A-Z]{1,3}\d{2,4}[A-Z]?(?![A-Za-z0-9])")
# Sold as 80 GB, a GPU shows 81559 MiB.
_MEMORY_TOLERANCE = 0.12


def gpus_of(hardware: Hardware) -> tuple[HostGpu, ...]:
    """Return the GPUs that the driver knows or, without one, that the bus shows."""
    return hardware.gpus or gpus_on_bus(hardware.pci)


def gpus(platform: Platform, hardware: Hardware) -> list[Comparison]:
    """Compare kind, number and addresses."""
    here = gpus_of(hardware)
    if platform.gpu.count == 0:
        return [rules_out("GPU count", f"{len(here)} GPUs are here, and it has none")] if here else []
    if not here:
        # With the bus in view, none is none; a container may show neither.
        if hardware.pci and hardware.container is None:
            return [differs("GPU count", f"none of {platform.gpu.count} GPUs is here")]
        return [unseen("GPU kind", f"no GPU can be seen, of {platform.gpu.count}")]
    found = [_kind(platform, hardware, here), _count(platform, here), _addresses(platform, here)]
    return [each for each in found if each is not None]


def _kind(platform: Platform, hardware: Hardware, here: tuple[HostGpu, ...]) -> Comparison | None:
    names = sorted({gpu.name for gpu in here if gpu.name})
    wanted = listed(platform.match.gpu_names) or platform.gpu.model or ""
    by_name = [_is_called(platform, name) for name in names]
    if False in by_name:
        return rules_out("GPU kind", f"GPU is {listed(names)}, not {wanted}")
    devices = _devices(hardware, here)
    published = {":".join(each.lower().split(":")[:2]) for each in platform.match.gpu_devices}
    if published and devices and not devices <= published:
        return rules_out("GPU kind", f"GPU has PCI id {listed(sorted(devices))}, not {listed(sorted(published))}")
    memory = next((gpu.memory_bytes for gpu in here if gpu.memory_bytes), None)
    sold = platform.gpu.memory_bytes
    if sold and memory and abs(memory / sold - 1) > _MEMORY_TOLERANCE:
        return rules_out("GPU kind", f"GPU has {_gb(memory)} of memory, not {_gb(sold)}")
    if True in by_name or (published and devices):
        return agrees("GPU kind", f"GPU is {listed(names) or listed(sorted(devices))}")
    return unseen("GPU kind", f"the name of the GPUs cannot be seen ({wanted})") if wanted and not names else None


def _is_called(platform: Platform, name: str) -> bool | None:
    """Whether a GPU has one of the platform's names or, where none is published, its model's; None: not published."""
    if platform.match.gpu_names:
        return matches(name, platform.match.gpu_names)
    models = set(_MODEL.findall((platform.gpu.model or "").upper()))
    return bool(models & set(_MODEL.findall(name.upper()))) if models else None


def _devices(hardware: Hardware, here: tuple[HostGpu, ...]) -> set[str]:
    addresses = {gpu.bus_id for gpu in here}
    functions = (each for each in hardware.pci if each.bus_id in addresses)
    return {f"{each.vendor.removeprefix('0x')}:{each.device.removeprefix('0x')}".lower() for each in functions}


def _count(platform: Platform, here: tuple[HostGpu, ...]) -> Comparison:
    wanted = platform.gpu.count
    if len(here) == wanted:
        return agrees("GPU count", f"{wanted} GPUs")
    if len(here) > wanted:
        return rules_out("GPU count", f"{len(here)} GPUs are here, and it has {wanted}")
    lost = sorted(_published_addresses(platform) - _addresses_of(here))
    named = f": {listed(lost)} {'is' if len(lost) == 1 else 'are'} missing" if len(lost) == wanted - len(here) else ""
    return differs("GPU count", f"{len(here)} of {wanted} GPUs are here{named}")


def _addresses(platform: Platform, here: tuple[HostGpu, ...]) -> Comparison | None:
    published, seen = _published_addresses(platform), _addresses_of(here)
    if not published:
        return None
    if strange := sorted(seen - published) if len(published) == platform.gpu.count else sorted(published - seen):
        whose = "not one of its addresses" if len(published) == platform.gpu.count else "missing"
        return differs("GPU addresses", f"GPU at {listed(strange)}: {whose}")
    if seen == published:
        return agrees("GPU addresses", f"the GPUs are at its {len(published)} PCI addresses")
    if len(published) < platform.gpu.count:
        return unseen("GPU addresses", f"only {len(published)} of its {platform.gpu.count} GPU addresses are published")
    # How many are missing says the count.
    return unseen("GPU addresses", f"{len(seen)} of its {len(published)} GPU addresses are in use")


def _published_addresses(platform: Platform) -> set[str]:
    return {place.bus_id.lower() for place in platform.gpus if place.bus_id is not None}


def _addresses_of(here: tuple[HostGpu, ...]) -> set[str]:
    return {gpu.bus_id.lower() for gpu in here}


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.0f} GB"

"""The parts of a host held against those of a platform: processors and memory, GPUs, NICs."""

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.text import listed
from busbw.base.value import Value
from busbw.facts.devices import gpus_on_bus
from busbw.model.host import Hardware, HostGpu, HostPort
from busbw.model.platform import Platform

Part = Literal[
    "firmware", "architecture", "GPU kind", "GPU count", "GPU addresses", "NIC names", "NIC addresses", "NIC ports",
    "NUMA nodes", "NUMA CPUs", "CPU kind", "CPU count", "memory", "host name", "name",
]  # fmt: skip


class PartComparison(Value, kw_only=True, frozen=True):
    """What came of it. Nothing is compared that the platform's file does not say."""

    part: Part
    # unseen: the host does not show it.
    verdict: Literal["agrees", "differs", "unseen"]
    text: str
    # Whether a difference rules the platform out; others may be damage, a container's doing, or a setting.
    decisive: bool = False


def agrees(part: Part, text: str) -> PartComparison:
    """Return that the host is as published."""
    return PartComparison(part=part, verdict="agrees", text=text)


def unseen(part: Part, text: str) -> PartComparison:
    """Return that the host does not show what is published."""
    return PartComparison(part=part, verdict="unseen", text=text)


def differs(part: Part, text: str) -> PartComparison:
    """Return that the host is not as published, for which there may be a reason."""
    return PartComparison(part=part, verdict="differs", text=text)


def rules_out(part: Part, text: str) -> PartComparison:
    """Return that the host cannot be this platform."""
    return PartComparison(part=part, verdict="differs", text=text, decisive=True)


def matches(text: str, globs: Iterable[str]) -> bool:
    """Whether one of `globs` fits the whole of `text`, without regard to case."""
    return any(fnmatchcase(text.strip().lower(), glob.strip().lower()) for glob in globs)


# H100, GH200, MI300X, V100: what a maker's name for a GPU has in common with its model.
_MODEL = re.compile(r"(?<![A-Za-z0-9])[A-Z]{1,3}\d{2,4}[A-Z]?(?![A-Za-z0-9])")
# Sold as 80 GB, a GPU shows 81559 MiB.
_MEMORY_TOLERANCE = 0.12


def gpus_of(hardware: Hardware) -> tuple[HostGpu, ...]:
    """Return the GPUs that the driver knows or, without one, that the bus shows."""
    return hardware.gpus or gpus_on_bus(hardware.pci)


def gpus(platform: Platform, hardware: Hardware) -> list[PartComparison]:
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


def _kind(platform: Platform, hardware: Hardware, here: tuple[HostGpu, ...]) -> PartComparison | None:
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


def _count(platform: Platform, here: tuple[HostGpu, ...]) -> PartComparison:
    wanted = platform.gpu.count
    if len(here) == wanted:
        return agrees("GPU count", f"{wanted} GPUs")
    if len(here) > wanted:
        return rules_out("GPU count", f"{len(here)} GPUs are here, and it has {wanted}")
    lost = sorted(_published_addresses(platform) - _addresses_of(here))
    named = f": {listed(lost)} {'is' if len(lost) == 1 else 'are'} missing" if len(lost) == wanted - len(here) else ""
    return differs("GPU count", f"{len(here)} of {wanted} GPUs are here{named}")


def _addresses(platform: Platform, here: tuple[HostGpu, ...]) -> PartComparison | None:
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


_KINDS = ("InfiniBand", "RoCE", "EFA", "Slingshot")
# A rate is exact but for rounding.
_RATE_TOLERANCE = 0.02
# Names that any machine with such cards may have: they tell nothing.
_COMMON_NAMES = ("mlx5_bond_0", "ibp24s0", "ens1", "cxi0", "hsn0", *(f"mlx5_{number}" for number in range(32)))
_NIC_CLASS = "0x02"


def nics(platform: Platform, hardware: Hardware) -> list[PartComparison]:
    """Compare names, addresses, number and rate of the ports that collectives use."""
    found = [_names(platform, hardware), _nics_addresses(platform, hardware), _ports(platform, hardware)]
    return [each for each in found if each is not None]


def has_own_names(platform: Platform) -> bool:
    """Whether the NICs have names that say whose machine it is, as Azure's `mlx5_ib0` do and `mlx5_0` does not."""
    globs = platform.match.rdma_names
    return bool(globs) and not any(matches(name, globs) for name in _COMMON_NAMES)


def compute_ports(platform: Platform, hardware: Hardware) -> tuple[HostPort, ...]:
    """Return the ports that are the platform's compute NICs: by address, by name, or by the kind of fabric."""
    slots = {_slot(address) for address in _nics_published_addresses(platform)}
    by_address = tuple(port for port in hardware.ports if _slot(port.bus_id or "") in slots)
    # Of some platforms only a few addresses are published: these do not tell the other ports.
    if by_address and all(place.bus_id is not None for place in platform.nics):
        return by_address
    by_name = tuple(port for port in hardware.ports if matches(port.name, platform.match.rdma_names))
    if by_name:
        return by_name
    kind = platform.fabric.kind
    return tuple(port for port in hardware.ports if port.kind == kind and kind in _KINDS)


def missing_ports(platform: Platform, hardware: Hardware) -> tuple[str, ...]:
    """Return which published compute NICs are not here, by name or else by address, where that can be told.

    A port of a card may be published at the card's first function, and be at its second.
    """
    here = compute_ports(platform, hardware)
    names = {port.name for port in here}
    on_slot = Counter(_slot(port.bus_id) for port in here if port.bus_id is not None)
    missing = []
    for place in platform.nics:
        label = place.name or place.bus_id or ""
        if place.bus_id is None:
            missing += [label] if place.name is not None and place.name not in names else []
        elif on_slot[_slot(place.bus_id)] == 0:
            missing.append(label)
        else:
            on_slot[_slot(place.bus_id)] -= 1
    return tuple(dict.fromkeys(missing))


def _names(platform: Platform, hardware: Hardware) -> PartComparison | None:
    globs = platform.match.rdma_names
    if not globs:
        return None
    rdma = [port.name for port in hardware.ports if port.kind != "Ethernet"]
    named = [port.name for port in hardware.ports if matches(port.name, globs)]
    if named:
        return agrees("NIC names", f"NICs are called {listed(named, 2)}")
    if not rdma:
        return unseen("NIC names", f"no RDMA device can be seen ({listed(globs, 2)})")
    return differs("NIC names", f"NICs are called {listed(rdma, 2)}, not {listed(globs, 2)}")


def _nics_addresses(platform: Platform, hardware: Hardware) -> PartComparison | None:
    published = _nics_published_addresses(platform)
    if not published:
        return None
    if not hardware.pci:
        return unseen("NIC addresses", "the PCI bus cannot be seen")
    here = {each.bus_id.lower() for each in hardware.pci if each.device_class.startswith(_NIC_CLASS)}
    lost = sorted(published - here)
    if not lost:
        return agrees("NIC addresses", f"NICs are at {len(published)} of its {len(published)} published PCI addresses")
    return differs("NIC addresses", f"no NIC at {listed(lost)}")


def _ports(platform: Platform, hardware: Hardware) -> PartComparison | None:
    wanted, rate_bps = platform.nic.ports, platform.nic.port_bps
    if not wanted:
        return None
    at = f" of {rate_bps / 1e9:g} Gb/s" if rate_bps else ""
    here = compute_ports(platform, hardware)
    if not here and (platform.fabric.kind not in _KINDS or not hardware.ports or hardware.container is not None):
        return unseen("NIC ports", f"no compute NIC can be told from others ({_ports_in_words(wanted)}{at})")
    slow = [port for port in here if rate_bps and port.rate_bps and _is_other(port.rate_bps, rate_bps)]
    if slow:
        runs = "runs" if len(slow) == 1 else "run"
        shown = f"{listed(port.name for port in slow)} {runs} at {(slow[0].rate_bps or 0) / 1e9:g} Gb/s"
        return differs("NIC ports", f"{shown}, not {(rate_bps or 0) / 1e9:g}")
    if len(here) == wanted:
        return agrees("NIC ports", f"{_ports_in_words(wanted)}{at}")
    lost = missing_ports(platform, hardware)
    named = f": {listed(lost)} {'is' if len(lost) == 1 else 'are'} missing" if lost and len(here) < wanted else ""
    if not here:
        return differs("NIC ports", f"none of its {_ports_in_words(wanted)}{at} is here")
    return differs("NIC ports", f"{len(here)} of {_ports_in_words(wanted)}{at} are here{named}")


def _slot(bus_id: str) -> str:
    return bus_id.lower().rpartition(".")[0]


def _is_other(rate_bps: float, wanted_bps: float) -> bool:
    return abs(rate_bps / wanted_bps - 1) > _RATE_TOLERANCE


def _ports_in_words(number: int) -> str:
    return f"{number} port" if number == 1 else f"{number} ports"


def _nics_published_addresses(platform: Platform) -> set[str]:
    return {place.bus_id.lower() for place in platform.nics if place.bus_id is not None}


# 7V73X, 8480C, 9V33X: what maker and cloud both call a processor.
_PROCESSORS_MODEL = re.compile(r"(?<![A-Za-z0-9])\d[0-9A-Z]{3,5}\+?(?![A-Za-z0-9])")
# A kernel keeps some memory for itself; what is sold as 480 GiB shows 449.
_EXACT_TOLERANCE = 0.06
_SOLD_TOLERANCE = 0.10


def processors(platform: Platform, hardware: Hardware) -> list[PartComparison]:
    """Compare architecture, processors, NUMA nodes, memory and the host's name."""
    found = [
        _architecture(platform, hardware),
        _processors_kind(platform, hardware),
        _processors_count(platform, hardware),
        _numa_nodes(platform, hardware),
        _numa_cpus(platform, hardware),
        _memory(platform, hardware),
        _host_name(platform, hardware),
    ]
    return [each for each in found if each is not None]


def _architecture(platform: Platform, hardware: Hardware) -> PartComparison | None:
    wanted, here = platform.match.architecture, hardware.architecture
    if wanted is None or here is None:
        return None
    text = f"the architecture is {here}"
    return agrees("architecture", text) if wanted == here else rules_out("architecture", f"{text}, not {wanted}")


def _processors_kind(platform: Platform, hardware: Hardware) -> PartComparison | None:
    cpu = platform.cpu
    here = (hardware.cpu_vendor, hardware.cpu_family, hardware.cpu_model_number)
    published = (cpu.vendor, cpu.family, cpu.model_number)
    pairs = [(a, b) for a, b in zip(published, here, strict=True) if a is not None and b is not None]
    models, seen = (
        set(_PROCESSORS_MODEL.findall(cpu.model or "")),
        set(_PROCESSORS_MODEL.findall(hardware.cpu_model or "")),
    )
    shown = hardware.cpu_model or f"family {hardware.cpu_family} model {hardware.cpu_model_number}"
    text = f"the processor is {shown}"
    if any(a != b for a, b in pairs):
        wanted = cpu.model or f"family {cpu.family} model {cpu.model_number}"
        return rules_out("CPU kind", f"{text}, not {wanted}")
    if models and seen and not models & seen:
        # Clouds give several processors under one name of a GPU machine; a CPU machine is its processor.
        return (rules_out if platform.kind == "cpu" else differs)("CPU kind", f"{text}, not {cpu.model}")
    return agrees("CPU kind", text) if models & seen or len(pairs) == len(published) else None


def _processors_count(platform: Platform, hardware: Hardware) -> PartComparison | None:
    published = platform.cpu.threads or platform.cpu.cores
    if published is None or not hardware.cpus:
        return None
    here = {len(hardware.cpus)} | ({hardware.cores} if hardware.cores and platform.cpu.threads is None else set())
    if published in here:
        return agrees("CPU count", f"{published} CPUs")
    return differs("CPU count", f"{len(hardware.cpus)} CPUs are here, and it has {published}")


def _numa_nodes(platform: Platform, hardware: Hardware) -> PartComparison | None:
    wanted = platform.cpu.numa_nodes
    here = sum(1 for node in hardware.numa if node.cpus)
    if wanted is None or not hardware.numa:
        return None
    if here == wanted:
        return agrees("NUMA nodes", f"{here} NUMA nodes")
    return differs("NUMA nodes", f"{here} NUMA nodes with CPUs are here, and it has {wanted}")


def _numa_cpus(platform: Platform, hardware: Hardware) -> PartComparison | None:
    published = {place.id: parse_cpu_list(place.cpus) for place in platform.numa if place.cpus is not None}
    here = {node.id: node.cpus for node in hardware.numa}
    if not published:
        return None
    if not here:
        return unseen("NUMA CPUs", "no NUMA node can be seen")
    for number, cpus in published.items():
        if here.get(number) != cpus:
            seen = format_cpu_list(here[number]) if here.get(number) else "none"
            return differs("NUMA CPUs", f"NUMA node {number} has CPUs {seen}, not {format_cpu_list(cpus or ())}")
    return agrees("NUMA CPUs", f"NUMA nodes {listed(map(str, published), 8)} have the published CPUs")


def _memory(platform: Platform, hardware: Hardware) -> PartComparison | None:
    exact = platform.match.memory_bytes
    wanted, tolerance = (exact, _EXACT_TOLERANCE) if exact else (platform.cpu.memory_bytes, _SOLD_TOLERANCE)
    here = _memory_of_cpus(hardware)
    if not wanted or not here:
        return None
    text = f"{here / 2**30:.0f} GiB of memory"
    if abs(here / wanted - 1) <= tolerance:
        return agrees("memory", text)
    return differs("memory", f"{text} are here, and it has {wanted / 2**30:.0f} GiB")


def _memory_of_cpus(hardware: Hardware) -> int | None:
    """Return the memory of the nodes with CPUs: on Grace Hopper the kernel counts that of the GPUs as its own too."""
    of_cpus = [node.memory_bytes for node in hardware.numa if node.cpus]
    known = [size_bytes for size_bytes in of_cpus if size_bytes]
    return sum(known) if known and len(known) == len(of_cpus) else hardware.memory_bytes


def _host_name(platform: Platform, hardware: Hardware) -> PartComparison | None:
    globs = platform.match.hostnames
    if globs and matches(hardware.hostname, globs):
        return agrees("host name", f"the host is called like {listed(globs, 2)}")
    return None

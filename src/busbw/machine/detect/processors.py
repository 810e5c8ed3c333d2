"""Processors, NUMA nodes and memory of a host held against those of a platform."""

import re

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.machine.detect.parts import Comparison, agrees, differs, listed, matches, rules_out, unseen
from busbw.model.host import Hardware
from busbw.model.platform import Platform

# 7V73X, 8480C, 9V33X: what maker and cloud both call a processor.
_MODEL = re.compile(r"(?<![A-Za-z0-9])\d[0-9A-Z]{3,5}\+?(?![A-Za-z0-9])")
# A kernel keeps some memory for itself; what is sold as 480 GiB shows 449.
_EXACT_TOLERANCE = 0.06
_SOLD_TOLERANCE = 0.10


def processors(platform: Platform, hardware: Hardware) -> list[Comparison]:
    """Compare architecture, processors, NUMA nodes, memory and the host's name."""
    found = [
        _architecture(platform, hardware),
        _kind(platform, hardware),
        _count(platform, hardware),
        _numa_nodes(platform, hardware),
        _numa_cpus(platform, hardware),
        _memory(platform, hardware),
        _host_name(platform, hardware),
    ]
    return [each for each in found if each is not None]


def _architecture(platform: Platform, hardware: Hardware) -> Comparison | None:
    wanted, here = platform.match.architecture, hardware.architecture
    if wanted is None or here is None:
        return None
    text = f"the architecture is {here}"
    return agrees("architecture", text) if wanted == here else rules_out("architecture", f"{text}, not {wanted}")


def _kind(platform: Platform, hardware: Hardware) -> Comparison | None:
    cpu = platform.cpu
    here = (hardware.cpu_vendor, hardware.cpu_family, hardware.cpu_model_number)
    published = (cpu.vendor, cpu.family, cpu.model_number)
    pairs = [(a, b) for a, b in zip(published, here, strict=True) if a is not None and b is not None]
    models, seen = set(_MODEL.findall(cpu.model or "")), set(_MODEL.findall(hardware.cpu_model or ""))
    shown = hardware.cpu_model or f"family {hardware.cpu_family} model {hardware.cpu_model_number}"
    text = f"the processor is {shown}"
    if any(a != b for a, b in pairs):
        wanted = cpu.model or f"family {cpu.family} model {cpu.model_number}"
        return rules_out("CPU kind", f"{text}, not {wanted}")
    if models and seen and not models & seen:
        # Clouds give several processors under one name of a GPU machine; a CPU machine is its processor.
        return (rules_out if platform.kind == "cpu" else differs)("CPU kind", f"{text}, not {cpu.model}")
    return agrees("CPU kind", text) if models & seen or len(pairs) == len(published) else None


def _count(platform: Platform, hardware: Hardware) -> Comparison | None:
    published = platform.cpu.threads or platform.cpu.cores
    if published is None or not hardware.cpus:
        return None
    here = {len(hardware.cpus)} | ({hardware.cores} if hardware.cores and platform.cpu.threads is None else set())
    if published in here:
        return agrees("CPU count", f"{published} CPUs")
    return differs("CPU count", f"{len(hardware.cpus)} CPUs are here, and it has {published}")


def _numa_nodes(platform: Platform, hardware: Hardware) -> Comparison | None:
    wanted = platform.cpu.numa_nodes
    here = sum(1 for node in hardware.numa if node.cpus)
    if wanted is None or not hardware.numa:
        return None
    if here == wanted:
        return agrees("NUMA nodes", f"{here} NUMA nodes")
    return differs("NUMA nodes", f"{here} NUMA nodes with CPUs are here, and it has {wanted}")


def _numa_cpus(platform: Platform, hardware: Hardware) -> Comparison | None:
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


def _memory(platform: Platform, hardware: Hardware) -> Comparison | None:
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


def _host_name(platform: Platform, hardware: Hardware) -> Comparison | None:
    globs = platform.match.hostnames
    if globs and matches(hardware.hostname, globs):
        return agrees("host name", f"the host is called like {listed(globs, 2)}")
    return None

"""All checks of a node, in the order in which they are shown."""

from collections.abc import Callable

from busbw.machine.health import gpus, libraries, pci, ports, system
from busbw.machine.health.node import ExaminedNode
from busbw.model.finding import HostCheck

CHECKS: tuple[Callable[[ExaminedNode], HostCheck], ...] = (
    system.platform,
    gpus.present,
    gpus.memory_health,
    gpus.clocks,
    gpus.persistence,
    gpus.partitions,
    gpus.nvlinks,
    pci.peers,
    pci.access_control,
    pci.iommu,
    pci.pcie_links,
    ports.link_states,
    ports.link_rates,
    ports.port_errors,
    ports.packet_sizes,
    ports.verbs_devices,
    gpus.gpu_direct,
    libraries.plugin,
    libraries.resolution,
    libraries.versions,
    libraries.named_files,
    system.locked_memory,
    system.shared_memory,
    system.open_files,
    system.numa_balancing,
    system.allowed_cpus,
    system.cpu_frequency,
    system.clock,
)


def examine(node: ExaminedNode) -> tuple[HostCheck, ...]:
    """Return what each check says of a node."""
    return tuple(check(node) for check in CHECKS)

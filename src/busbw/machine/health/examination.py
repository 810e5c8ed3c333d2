"""All checks of a node, in the order in which they are shown."""

from collections.abc import Callable

from busbw.machine.health import gpu_direct, gpus, kernel, kind, libraries, pci, pci_access, ports, system
from busbw.machine.health.node import Node
from busbw.model.host_check import HostCheck

CHECKS: tuple[Callable[[Node], HostCheck], ...] = (
    kind.platform,
    gpus.present,
    gpus.memory_health,
    gpus.clocks,
    gpus.persistence,
    gpus.partitions,
    gpus.nvlinks,
    pci_access.peers,
    pci_access.access_control,
    pci_access.iommu,
    pci.pcie_links,
    ports.link_states,
    ports.link_rates,
    ports.port_errors,
    ports.packet_sizes,
    ports.verbs_devices,
    gpu_direct.gpu_direct,
    libraries.plugin,
    libraries.resolution,
    libraries.versions,
    libraries.named_files,
    system.locked_memory,
    system.shared_memory,
    system.open_files,
    kernel.numa_balancing,
    kernel.allowed_cpus,
    kernel.cpu_frequency,
    kernel.clock,
)


def examine(node: Node) -> tuple[HostCheck, ...]:
    """Return what each check says of a node."""
    return tuple(check(node) for check in CHECKS)

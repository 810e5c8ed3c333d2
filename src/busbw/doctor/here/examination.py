"""All checks of a node, in the order in which they are shown."""

from collections.abc import Callable

from busbw.doctor.here import gpu_direct, gpus, kernel, kind, libraries, memory, pci_access, pcie_links, ports
from busbw.doctor.here.node import Node
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
    pcie_links.pcie_links,
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
    memory.locked_memory,
    memory.shared_memory,
    memory.open_files,
    kernel.numa_balancing,
    kernel.allowed_cpus,
    kernel.cpu_frequency,
    kernel.clock,
)


def examine(node: Node) -> tuple[HostCheck, ...]:
    """Return what each check says of a node."""
    return tuple(check(node) for check in CHECKS)

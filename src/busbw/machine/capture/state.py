"""Files of the kernel that say how a host is set and how its devices are doing."""

from busbw.machine.capture.files import Collection
from busbw.machine.read.pci_config import acs_of
from busbw.machine.read.state import ERROR_COUNTERS, HARDWARE_COUNTERS

_PCI = "/sys/bus/pci/devices"
_RDMA = "/sys/class/infiniband"
_BRIDGE = "0x0604"
# Displays, processing accelerators and networks: what sends to another device.
_SENDERS = ("0x03", "0x12", "0x02")
_MOST_PORTS = 16


def take_state(taken: Collection) -> None:
    """Take settings of the kernel, error counters of RDMA ports, and what IOMMU and ACS do to devices."""
    taken.file("/proc/sys/kernel/numa_balancing")
    taken.file("/proc/uptime")
    for bus_id in taken.names(_PCI):
        _function(taken, f"{_PCI}/{bus_id}")
    for device in taken.names(_RDMA):
        for port in taken.names(f"{_RDMA}/{device}/ports")[:_MOST_PORTS]:
            folder = f"{_RDMA}/{device}/ports/{port}"
            taken.under(f"{folder}/counters", ERROR_COUNTERS)
            taken.under(f"{folder}/hw_counters", HARDWARE_COUNTERS)


def _function(taken: Collection, folder: str) -> None:
    device_class = taken.file(f"{folder}/class") or ""
    if device_class.startswith(_BRIDGE):
        # All of it would hold serial numbers.
        taken.binary(f"{folder}/config", keep=acs_of)
    elif device_class.startswith(_SENDERS):
        group = taken.link(f"{folder}/iommu_group")
        if group is not None:
            taken.file(f"/sys/kernel/iommu_groups/{group.rpartition('/')[2]}/type")

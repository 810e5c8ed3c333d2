"""What stands between two PCI devices: access control, the IOMMU, the driver."""

from busbw.machine.health.node import Node, bridges_above, fault, fine, found, listed, skipped, unknown
from busbw.model.host_check import HostCheck

# P2P request redirect, P2P completion redirect, P2P egress control.
_REDIRECTS = 0x04 | 0x08 | 0x20


def access_control(node: Node) -> HostCheck:
    """Check that no bridge above a GPU or NIC sends their traffic to each other through the root complex (ACS)."""
    name, look = "PCI access control (ACS)", "sudo lspci -vvv | grep -i acsctl"
    if not _has_gpus_on_pcie(node):
        return skipped(name, "no GPU, or GPUs that are linked to their CPUs and need it, with ATS", look=look)
    if node.hardware.hypervisor is not None:
        return unknown(name, "a virtual machine: the bridges that count are the hypervisor's", look=look)
    bridges = bridges_above(node.hardware, iter(_ends(node)))
    redirecting = [each for each in bridges if (node.state.acs.get(each) or 0) & _REDIRECTS]
    unread = [each for each in bridges if each not in node.state.acs]
    if not redirecting and (unread or not bridges):
        because = f"{len(unread)} of {len(bridges)} bridges above GPUs and NICs could not be read; only root may"
        return unknown(name, because, look=look)
    if not redirecting:
        return fine(name, f"off on all {len(bridges)} bridges above GPUs and NICs", look=look)
    shown = listed(f"{each} (ACSCtl {node.state.acs[each]:#06x})" for each in redirecting)
    fix = (
        f"sudo setpci -s {redirecting[0]} ECAP_ACS+0x6.w=0000, for each after every start, or no IO virtualization "
        "in the BIOS; not on a host of virtual machines"
    )
    made = fault("HOST010", count=len(redirecting), evidence=shown, fix=fix, look=look, confidence="likely")
    return found(name, made, look=look)


def iommu(node: Node) -> HostCheck:
    """Check that the IOMMU translates nothing of GPUs and NICs."""
    name, look = "IOMMU", "cat /sys/bus/pci/devices/*/iommu_group/type | sort | uniq -c; cat /proc/cmdline"
    if not _has_gpus_on_pcie(node):
        return skipped(name, "no GPU, or GPUs that are linked to their CPUs, which translates by design", look=look)
    if node.state.uptime_s is None:
        return unknown(name, "the snapshot does not hold it", look=look)
    ends = set(_ends(node))
    translated = sorted(
        each for each, kind in node.state.iommu.items() if each in ends and kind.upper().startswith("DMA")
    )
    if not translated:
        words = "passes everything through" if node.state.iommu else "off, or not shown"
        return fine(name, words, look=look)
    evidence = f"group type {node.state.iommu[translated[0]]} for {listed(iter(translated))}"
    fix = "iommu=pt on the kernel's command line (intel_iommu=on iommu=pt), or off in the BIOS; then restart"
    made = fault("HOST011", count=len(translated), evidence=evidence, fix=fix, look=look, confidence="possible")
    return found(name, made, look=look)


def _has_gpus_on_pcie(node: Node) -> bool:
    return bool(node.hardware.gpus) and not any(gpu.chip_links for gpu in node.hardware.gpus)


def _ends(node: Node) -> tuple[str | None, ...]:
    """Return the addresses of what sends: GPUs, and NICs of the fabric."""
    return (*(gpu.bus_id for gpu in node.hardware.gpus), *(port.bus_id for port in node.ports))


def peers(node: Node) -> HostCheck:
    """Check that the driver lets GPUs reach each other's memory."""
    name, look = "GPU peer access", "nvidia-smi topo -p2p r"
    if len(node.nvidia_gpus) < 2:
        return skipped(name, "fewer than two NVIDIA GPUs", look=look)
    denied = node.state.peers_denied
    if denied is None:
        return unknown(name, "nvidia-smi topo -p2p did not say", look=look)
    if not denied:
        return fine(name, f"between all {len(node.nvidia_gpus)} GPUs", look=look)
    if all(why == "GNS" for _first, _second, why in denied):
        return skipped(name, "this kind of GPU has none (GNS): NCCL copies through host memory", look=look)
    evidence = listed(f"{first}-{second} {why}" for first, second, why in denied)
    fix = "CNS: chipset, ACS or IOMMU; in a container give it all GPUs; see dmesg"
    return found(name, fault("HOST012", count=len(denied), evidence=evidence, fix=fix, look=look), look=look)

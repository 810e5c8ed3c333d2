"""PCIe: links as wide and fast as both ends can be, and what stands between two devices."""

import re

from busbw.machine.health.node import (
    ExaminedNode,
    bridges_above,
    fault,
    fine,
    found,
    listed,
    port_name,
    skipped,
    unknown,
)
from busbw.model.finding import Finding, HostCheck
from busbw.model.host import HostGpu, HostPort, PciFunction

_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")
_LOOK = "nvidia-smi -q | grep -A 12 'GPU Link Info'; sudo lspci -vv | grep -e LnkCap: -e LnkSta:"


def pcie_links(node: ExaminedNode) -> HostCheck:
    """Check width and speed of each link against what both its ends could."""
    name = "PCIe links"
    pci = {function.bus_id: function for function in node.hardware.pci}
    # A GPU with links to its own CPU sends nothing over PCIe.
    gpus = [gpu for gpu in node.hardware.gpus if not gpu.chip_links]
    nics = {port.bus_id: port for port in node.ports if port.bus_id in pci}
    if not gpus and not nics:
        return skipped(name, "neither GPU nor NIC on PCIe", look=_LOOK)
    findings = [made for gpu in gpus for made in _gpu(gpu)]
    findings += [made for address, port in nics.items() for made in _nic(port, pci[address or ""])]
    if findings:
        return found(name, *findings, look=_LOOK)
    unseen = [f"GPU {gpu.index}" for gpu in gpus if gpu.link_width is None or gpu.max_link_width is None]
    unseen += [port.name for address, port in nics.items() if not _is_known(pci[address or ""])]
    if unseen:
        return unknown(name, f"nothing says how wide the link of {', '.join(unseen[:4])} is", look=_LOOK)
    return fine(name, f"as wide and fast as they can be: GPUs {len(gpus)}, NICs {len(nics)}", look=_LOOK)


def _is_known(function: PciFunction) -> bool:
    return function.link_width is not None and function.max_link_width is not None


def _gpu(gpu: HostGpu) -> list[Finding]:
    name, made = f"GPU {gpu.index} ({gpu.bus_id})", []
    if gpu.link_width and gpu.max_link_width and gpu.link_width < gpu.max_link_width:
        made.append(_narrow(name, gpu.link_width, gpu.max_link_width))
    now, most = gpu.link_generation, gpu.max_link_generation
    if now is not None and most is not None and now < most:
        made.append(
            fault(
                "HOST015",
                device=name,
                evidence=f"generation {now} of {most}",
                fix="look again while the GPU works; if it stays so: BIOS, riser, or the slot",
                look=_LOOK,
                confidence="possible",
            )
        )
    return made


def _nic(port: HostPort, function: PciFunction) -> list[Finding]:
    name, made = f"{port_name(port)} ({function.bus_id})", []
    width, most = function.link_width, function.max_link_width
    if width is not None and most is not None and width < most:
        made.append(_narrow(name, width, most))
    now, could = (_SPEED.match(speed or "") for speed in (function.link_speed, function.max_link_speed))
    if now is not None and could is not None and float(now[1]) < float(could[1]):
        made.append(
            fault(
                "HOST014",
                device=name,
                evidence=f"{now[1]} of {could[1]} GT/s a lane; the slot may offer no more",
                fix="reseat the card; look at the slot and at the BIOS's limit for it",
                look=_LOOK,
                confidence="likely",
            )
        )
    return made


def _narrow(name: str, width: int, most: int) -> Finding:
    return fault(
        "HOST013",
        device=name,
        width=width,
        most=most,
        evidence=f"{width} of {most} lanes are up",
        fix="reseat the card and its riser; a slot that is wired with fewer lanes stays so",
        look=_LOOK,
        confidence="likely",
    )


# P2P request redirect, P2P completion redirect, P2P egress control.
_REDIRECTS = 0x04 | 0x08 | 0x20


def access_control(node: ExaminedNode) -> HostCheck:
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


def iommu(node: ExaminedNode) -> HostCheck:
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


def _has_gpus_on_pcie(node: ExaminedNode) -> bool:
    return bool(node.hardware.gpus) and not any(gpu.chip_links for gpu in node.hardware.gpus)


def _ends(node: ExaminedNode) -> tuple[str | None, ...]:
    """Return the addresses of what sends: GPUs, and NICs of the fabric."""
    return (*(gpu.bus_id for gpu in node.hardware.gpus), *(port.bus_id for port in node.ports))


def peers(node: ExaminedNode) -> HostCheck:
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

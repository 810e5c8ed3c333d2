"""The PCIe links of GPUs and NICs: as wide and as fast as both ends can be."""

import re

from busbw.machine.health.node import Node, fault, fine, found, port_name, skipped, unknown
from busbw.model.finding import Finding
from busbw.model.host import HostGpu, HostPort, PciFunction
from busbw.model.host_check import HostCheck

_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")
_LOOK = "nvidia-smi -q | grep -A 12 'GPU Link Info'; sudo lspci -vv | grep -e LnkCap: -e LnkSta:"


def pcie_links(node: Node) -> HostCheck:
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

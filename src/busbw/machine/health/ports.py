"""The ports of the fabric: up, as fast as they should be, without errors, and usable from here."""

import re

from busbw.base.text import listed
from busbw.facts.port_counters import PortCounter, port_counters
from busbw.machine.health.node import (
    ExaminedNode,
    bridges_above,
    fault,
    fine,
    found,
    port_name,
    skipped,
    unknown,
)
from busbw.model.finding import Finding, HostCheck
from busbw.model.host import HostGpu, HostPort, PciFunction, PortState

_NO_PORTS = "no port of a fabric"
# A rate is exact but for rounding.
_RATE_TOLERANCE = 0.02
# The largest RDMA packet, and the Ethernet frame that it takes.
_RDMA_MTU_BYTES = 4096
_ROCE_MTU_BYTES = 4200
_LEAST_FAST_BPS = 100e9
_S_PER_HOUR = 3_600
_S_PER_DAY = 86_400


def link_states(node: ExaminedNode) -> HostCheck:
    """Check that every port is up."""
    name, look = "fabric ports", "ibstat; cat /sys/class/infiniband/*/ports/*/state"
    if not node.ports:
        return skipped(name, _NO_PORTS, look=look)
    states = {(state.name, state.port): state for state in node.state.ports}
    down = [port for port in node.ports if port.up is False]
    made = [
        fault(
            "HOST021",
            device=port_name(port),
            evidence=_down(states.get((port.name, port.port))),
            fix=_cure(states.get((port.name, port.port))),
            look=look,
        )
        for port in down
    ]
    if made:
        return found(name, *made, look=look)
    if any(port.up is None for port in node.ports):
        unseen = listed(port_name(port) for port in node.ports if port.up is None)
        return unknown(name, f"nothing says whether {unseen} is up", look=look)
    return fine(name, f"{len(node.ports)} up", look=look)


def _down(state: PortState | None) -> str:
    if state is None or state.state is None:
        return "the port is down"
    return f"state {state.state}" + (f", physical state {state.physical}" if state.physical else "")


def _cure(state: PortState | None) -> str:
    if state is not None and state.physical == "LinkUp" and state.state in ("INIT", "ARMED"):
        return "the cable is fine, and no subnet manager has set the port up: sminfo; look at the fabric's manager"
    return "look at the cable and its transceiver (mlxlink -d DEVICE -m), at the switch's port, and at dmesg"


def link_rates(node: ExaminedNode) -> HostCheck:
    """Check the rate of each port against its platform's, or else against its fellows'."""
    name, look = "fabric rates", "cat /sys/class/infiniband/*/ports/*/rate"
    up = [port for port in node.ports if port.up is not False]
    if not up:
        return skipped(name, _NO_PORTS + " that is up", look=look)
    published_bps = node.platform.nic.port_bps if node.platform is not None else None
    known = [port for port in up if port.rate_bps is not None]
    if not known:
        return unknown(name, "no port says its rate", look=look)
    most_bps = published_bps or max(port.rate_bps or 0 for port in known)
    slow = [port for port in known if (port.rate_bps or 0) < most_bps * (1 - _RATE_TOLERANCE)]
    against = f"{node.platform.id} has" if published_bps and node.platform is not None else "the fastest here has"
    made = [
        fault(
            "HOST022",
            device=port_name(port),
            rate=f"{(port.rate_bps or 0) / 1e9:g}",
            most=f"{most_bps / 1e9:g}",
            evidence=f"{(port.rate_bps or 0) / 1e9:g} Gb/s; {against} {most_bps / 1e9:g}",
            fix="mlxlink -d DEVICE: trained at fewer lanes or a lower speed? reseat or swap the cable",
            look=look,
            confidence="certain" if published_bps else "likely",
        )
        for port in slow
    ]
    if made:
        return found(name, *made, look=look)
    if len(known) < len(up) or (published_bps is None and len(known) == 1):
        return unknown(name, "nothing says what rate to expect, or a port does not say its own", look=look)
    return fine(name, f"{most_bps / 1e9:g} Gb/s, on each of {len(known)}", look=look)


def port_errors(node: ExaminedNode) -> HostCheck:
    """Check the error counters of each port."""
    name, look = "fabric errors", "perfquery -x; grep . /sys/class/infiniband/*/ports/*/counters/*err*"
    used = {(port.name, port.port) for port in node.rdma_ports}
    if not used:
        return skipped(name, "no port of InfiniBand or RoCE", look=look)
    states = [state for state in node.state.ports if (state.name, state.port) in used]
    if not any(state.errors for state in states):
        return unknown(name, "the counters cannot be read", look=look)
    made = [
        fault(
            "HOST023",
            device=state.name if state.port == 1 else f"{state.name}:{state.port}",
            evidence=", ".join(_total(each, state.errors[each.name]) for each in high)
            + _since(node, max(state.errors[each.name] for each in high)),
            fix="perfquery -R sets them to zero; if they grow with the next job, swap cable and transceiver",
            look=look,
            confidence="possible",
        )
        for state in states
        if (high := _high(state))
    ]
    if made:
        return found(name, *made, look=look)
    return fine(name, f"none above its threshold, on each of {len(states)}{_congestion(states)}", look=look)


def _high(state: PortState) -> list[PortCounter]:
    """Return the counters of a port that are above the total from which infiniband-diags reports one."""
    declared = (port_counters().get(("rdma", name)) for name in state.errors)
    return [each for each in declared if each is not None and each.total is not None
            and state.errors[each.name] > each.total]  # fmt: skip


def _total(counter: PortCounter, count: int) -> str:
    ends = counter.most is not None and count >= counter.most
    return f"{counter.name} {count}" + (", its maximum: it may have been more" if ends else "")


def _since(node: ExaminedNode, count: int) -> str:
    """Return the rate that a count comes to at least: nothing says when the counters last were 0."""
    uptime_s = node.state.uptime_s
    if not uptime_s:
        return ""
    rate = f"{count * _S_PER_HOUR / uptime_s:.3g} an hour since the host came up {uptime_s / _S_PER_DAY:.1f} days ago"
    return f"; {rate}, and more if they were set to 0 after that"


def _congestion(states: list[PortState]) -> str:
    """Return what ports counted of congestion: it is no error, and tells a slow job from a bad port."""
    counted = [
        f"{state.name} {name} {count}"
        for state in states
        for name, count in state.errors.items()
        if count and (known := port_counters().get(("rdma", name))) is not None and known.kind == "congestion"
    ]
    return f"; congestion since they were 0: {listed(counted, most=3)}" if counted else ""


def packet_sizes(node: ExaminedNode) -> HostCheck:
    """Check that the ports take packets of 4096 bytes."""
    name, look = "fabric MTU", "ibv_devinfo | grep active_mtu; ip link"
    ports = [port for port in node.rdma_ports if (port.rate_bps or 0) >= _LEAST_FAST_BPS and _counts(node, port)]
    if not ports:
        return skipped(name, "no fast port of InfiniBand or RoCE", look=look)
    unseen = [port for port in ports if port.mtu_bytes is None]
    small = [port for port in ports if port.mtu_bytes is not None and port.mtu_bytes < _needed(port)]
    made = [
        fault(
            "HOST024",
            device=port_name(port),
            evidence=f"{port.kind}: MTU {port.mtu_bytes} of {_needed(port)}",
            fix="InfiniBand: the subnet manager; RoCE: ip link set DEVICE mtu 4220, or 9000, as the switches have it",
            look=look,
            confidence="likely",
        )
        for port in small
    ]
    if made:
        return found(name, *made, look=look)
    if unseen:
        return unknown(name, f"ibv_devinfo does not say it of {listed(port_name(port) for port in unseen)}", look=look)
    return fine(name, f"{ports[0].mtu_bytes} bytes", look=look)


def _counts(node: ExaminedNode, port: HostPort) -> bool:
    """Whether a port belongs to a fabric: RoCE in a virtual machine is mostly its ordinary network."""
    published = node.platform is not None and node.platform.fabric.kind == "RoCE"
    return port.kind == "InfiniBand" or node.hardware.hypervisor is None or published


def _needed(port: HostPort) -> int:
    return _RDMA_MTU_BYTES if port.kind == "InfiniBand" else _ROCE_MTU_BYTES


def verbs_devices(node: ExaminedNode) -> HostCheck:
    """Check that programs here can open the RDMA devices."""
    name, look = "RDMA devices", "ls -l /dev/infiniband"
    if not node.rdma_ports:
        return skipped(name, "no port of InfiniBand or RoCE", look=look)
    if node.state.has_verbs_devices is None:
        return unknown(name, "/dev/infiniband was not looked at", look=look)
    if node.state.has_verbs_devices:
        return fine(name, "under /dev/infiniband", look=look)
    evidence = f"{len(node.rdma_ports)} ports under /sys/class/infiniband, and no uverbs device under /dev/infiniband"
    fix = "docker run --device=/dev/infiniband; Kubernetes: ask for the RDMA resource; else modprobe ib_uverbs"
    return found(name, fault("HOST025", evidence=evidence, fix=fix, look=look), look=look)


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
    evidence = f"group type {node.state.iommu[translated[0]]} for {listed(translated)}"
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

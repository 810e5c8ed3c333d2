"""The ports of the fabric: up, as fast as they should be, without errors, and usable from here."""

from busbw.machine.health.node import ExaminedNode, fault, fine, found, listed, port_name, skipped, unknown
from busbw.model.finding import HostCheck
from busbw.model.host import HostPort, PortState

_NO_PORTS = "no port of a fabric"
# A rate is exact but for rounding.
_RATE_TOLERANCE = 0.02
# What infiniband-diags ships as thresholds of its own checks.
_THRESHOLDS = {
    "symbol_error": 10,
    "link_error_recovery": 10,
    "link_downed": 10,
    "port_rcv_errors": 10,
    "port_rcv_remote_physical_errors": 100,
    "port_xmit_discards": 100,
    "local_link_integrity_errors": 10,
    "excessive_buffer_overrun_errors": 10,
}
# The largest RDMA packet, and the Ethernet frame that it takes.
_RDMA_MTU_BYTES = 4096
_ROCE_MTU_BYTES = 4200
_LEAST_FAST_BPS = 100e9
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
    made = []
    for state in states:
        high = {each: count for each, count in state.errors.items() if count > _THRESHOLDS.get(each, 2**64)}
        if high:
            made.append(
                fault(
                    "HOST023",
                    device=state.name if state.port == 1 else f"{state.name}:{state.port}",
                    evidence=", ".join(f"{each} {count}" for each, count in high.items()) + _since(node),
                    fix="perfquery -R sets them to zero; if they grow with the next job, swap cable and transceiver",
                    look=look,
                    confidence="possible",
                )
            )
    return (
        found(name, *made, look=look)
        if made
        else fine(name, f"none above its threshold, on each of {len(states)}", look=look)
    )


def _since(node: ExaminedNode) -> str:
    uptime_s = node.state.uptime_s
    return f"; the host has been up for {uptime_s / _S_PER_DAY:.1f} days" if uptime_s is not None else ""


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

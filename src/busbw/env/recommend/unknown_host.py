"""A host that is no platform anybody has described: as much of one as its hardware shows."""

from collections import Counter

from busbw.model.host import Hardware, HostPort
from busbw.model.platform import FabricKind, GpuKind, NicKind, Platform, PlatformSetting, PlatformSource

_SOURCE = "this-host"
# Networks that NCCL uses for data, by the name of their kind.
_VERBS = ("InfiniBand", "RoCE")
_FAST = (*_VERBS, "EFA", "Slingshot")


def platform_of_host(hardware: Hardware) -> Platform:
    """Return a platform that says of a host what its hardware shows: GPUs, ports for data, their kind of network."""
    ports = _data_ports(hardware)
    kind = ports[0].kind if ports else None
    first = hardware.gpus[0] if hardware.gpus else None
    return Platform(
        id="generic",
        names=("generic",),
        provider="any",
        kind="gpu",
        status="read from the hardware of this host",
        gpu=GpuKind(
            model=first.name if first is not None else None,
            count=len(hardware.gpus),
            sm=first.sm if first is not None else None,
            source=(_SOURCE,),
        ),
        nic=NicKind(ports=len(ports) or None, names=",".join(port.name for port in ports) or None, source=(_SOURCE,)),
        fabric=FabricKind(kind=kind, source=(_SOURCE,)),
        settings=(*_device_order(hardware), *_port_list(hardware, ports)),
        sources=(PlatformSource(id=_SOURCE, reference=f"the hardware of {hardware.hostname or 'this host'}"),),
    )


def _data_ports(hardware: Hardware) -> tuple[HostPort, ...]:
    """Return the ports that collectives should use: of those that are not down, the fastest of the commonest kind."""
    usable = [port for port in hardware.ports if port.kind in _FAST and port.up is not False]
    if not usable:
        return ()
    fastest = max(port.rate_bps or 0.0 for port in usable)
    best = [port for port in usable if (port.rate_bps or 0.0) == fastest]
    kind = Counter(port.kind for port in best).most_common(1)[0][0]
    return tuple(port for port in best if port.kind == kind)


def _device_order(hardware: Hardware) -> tuple[PlatformSetting, ...]:
    if len(hardware.gpus) < 2:
        return ()
    return (
        PlatformSetting(
            name="CUDA_DEVICE_ORDER",
            value="PCI_BUS_ID",
            scope="cuda",
            reason="Numbers GPUs by PCI address, as nvidia-smi does.",
            source=(_SOURCE,),
        ),
    )


def _port_list(hardware: Hardware, ports: tuple[HostPort, ...]) -> tuple[PlatformSetting, ...]:
    """Return the list of ports, where the host has others that NCCL would take too."""
    others = [port for port in hardware.ports if port.kind in _VERBS and port not in ports]
    if not others or not ports or ports[0].kind not in _VERBS:
        return ()
    several = Counter(port.name for port in hardware.ports)
    names = [f"{port.name}:{port.port}" if several[port.name] > 1 else port.name for port in ports]
    left_out = ", ".join(sorted({port.name for port in others} - {port.name for port in ports})) or "its other ports"
    return (
        PlatformSetting(
            name="NCCL_IB_HCA",
            value=f"={','.join(names)}",
            scope="nccl",
            reason=f"The fastest ports, by their exact names; leaves out {left_out}, which are slower or down.",
            source=(_SOURCE,),
        ),
    )

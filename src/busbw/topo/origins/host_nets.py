"""The ports of a host that NCCL can send through."""

from collections import Counter
from collections.abc import Mapping

from busbw.model.host import Hardware, HostPort, PciFunction
from busbw.model.topology import Net
from busbw.topo.origins.host_tree import NO_NUMA

_NIC_CLASS = "0x02"
_VIRTIO = "0x1af4"
_GUID_DIGITS = 16
# A thousand times what the fastest ports do; a snapshot may hold any number.
_FASTEST_bps = 1e15


def nets_of(hardware: Hardware, functions: Mapping[str, PciFunction]) -> tuple[Net, ...]:
    """Return the ports that NCCL would use: those of RDMA devices, and only without any the network interfaces.

    Ports that are down are left out, as NCCL leaves them out. What NCCL_IB_HCA or NCCL_SOCKET_IFNAME choose is not
    applied here. `numa` is that of the port's own function; -1 for what has no place on the PCI bus.
    """
    ports = [port for port in hardware.ports if port.up is not False]
    rdma = [port for port in ports if port.kind != "Ethernet"]
    nets: list[Net] = []
    on_device: Counter[str] = Counter()
    guids: dict[str, str | None] = {}
    for dev, port in enumerate(rdma or ports):
        bus_id = _device_of(port, functions)
        before = on_device[bus_id] if bus_id is not None else 0
        if bus_id is not None:
            on_device[bus_id] += 1
            guids.setdefault(bus_id, _guid(port.guid))
        function = functions.get(bus_id or "")
        nets.append(
            Net(
                name=port.name,
                bus_id=bus_id,
                numa=function.numa if function is not None else NO_NUMA,
                dev=dev,
                speed_Mbps=_Mbps(port.rate_bps),
                # Ports of one card count on, whichever function they are on; an interface has none for NCCL.
                port=port.port + before if rdma else 0,
                guid=guids[bus_id] if bus_id is not None else _guid(port.guid),
            )
        )
    return tuple(nets)


def _device_of(port: HostPort, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the PCI device that NCCL puts a port at: the first function of its card, or of what it is a part of.

    A virtio interface has none: its device is on the virtio bus.
    """
    function = functions.get(port.bus_id or "")
    if function is None:
        return port.bus_id
    if function.vendor == _VIRTIO:
        return None
    if port.kind in ("InfiniBand", "RoCE"):
        bus = function.bus_id.rsplit(":", 1)[0]
        slot = function.bus_id.rsplit(".", 1)[0]
        for first in (f"{bus}:00.0", f"{slot}.0"):
            # Virtual functions belong to the card's physical one, where that is here too.
            if first in functions and functions[first].device_class.startswith(_NIC_CLASS):
                return first
    return function.bus_id


def _Mbps(rate_bps: float | None) -> int | None:
    """Return a rate as NCCL counts it; None for what no port can have."""
    return round(rate_bps / 1e6) if rate_bps is not None and 1e6 <= rate_bps <= _FASTEST_bps else None


def _guid(text: str | None) -> str | None:
    """Return a GUID as NCCL writes it: the bytes of `0x946dae030050709a` in the order of the machine, as a number."""
    digits = (text or "").replace(":", "").removeprefix("0x")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        return None
    return f"0x{int.from_bytes(raw, 'little'):x}" if len(digits) == _GUID_DIGITS else None

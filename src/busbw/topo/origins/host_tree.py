"""The PCI tree of a host as NCCL sees it, from what the kernel shows.

NCCL goes up two levels at a time: from a device past the port it is plugged into to the upstream side of the switch,
and from there past the root port to the CPU. So root ports and a switch's downstream ports never appear, and a switch
is the function of its upstream port. Source: src/graph/xml.cc of NCCL 2.18 to 2.30.
"""

from collections.abc import Mapping

from busbw.model.host import HostGpu, PciFunction
from busbw.model.topology import DeviceKind, PciDevice
from busbw.topo.pcie import GENERATION_GTps, speed_text, transfer_GTps

NO_NUMA = -1


def devices_above(
    ends: Mapping[str, DeviceKind], functions: Mapping[str, PciFunction], gpus: Mapping[str, HostGpu]
) -> tuple[PciDevice, ...]:
    """Return the devices at the bus ids `ends` and the switches above them, parents first.

    Ordered by NUMA node, then by bus id among the children of one device.
    """
    parents: dict[str, str | None] = {}
    tops: dict[str, str] = {}
    for end in ends:
        chain = _chain(end, functions)
        for lower, upper in zip(chain, [*chain[1:], None], strict=True):
            parents[lower] = upper
            tops[lower] = chain[-1]
    children: dict[str | None, list[str]] = {}
    for bus_id, parent in parents.items():
        children.setdefault(parent, []).append(bus_id)

    def numa(bus_id: str) -> int:
        return _numa(tops[bus_id], functions, gpus)

    ordered: list[str] = []
    waiting = sorted(children.get(None, ()), key=lambda bus_id: (numa(bus_id), bus_id), reverse=True)
    while waiting:
        bus_id = waiting.pop()
        ordered.append(bus_id)
        waiting += sorted(children.get(bus_id, ()), reverse=True)
    return tuple(
        _device(bus_id, parents[bus_id], numa(bus_id), ends.get(bus_id, "switch"), functions, gpus.get(bus_id))
        for bus_id in ordered
    )


def _chain(bus_id: str, functions: Mapping[str, PciFunction]) -> list[str]:
    """Return a device and the switches above it, lowest first."""
    chain = [bus_id]
    while (upper := _upper(chain[-1], functions)) is not None and upper not in chain:
        chain.append(upper)
    return chain


def _upper(bus_id: str, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the switch that NCCL puts above a device; None: its CPU."""
    function = functions.get(bus_id)
    port = functions.get(function.parent) if function is not None and function.parent is not None else None
    return port.parent if port is not None and port.parent in functions else None


def _numa(top: str, functions: Mapping[str, PciFunction], gpus: Mapping[str, HostGpu]) -> int:
    """Return the NUMA node of a device right below a CPU: what it says itself counts for all below it."""
    if top in functions:
        return functions[top].numa
    # Without sysfs the driver may still know where its GPU is.
    gpu = gpus.get(top)
    return gpu.numa if gpu is not None and gpu.numa is not None else NO_NUMA


def _device(
    bus_id: str,
    parent: str | None,
    numa: int,
    kind: DeviceKind,
    functions: Mapping[str, PciFunction],
    gpu: HostGpu | None,
) -> PciDevice:
    function = functions.get(bus_id)
    if function is None:
        speed, width = _link_of_driver(gpu)
        return PciDevice(bus_id=bus_id, parent=parent, numa=numa, kind=kind, link_speed=speed, link_width=width)
    port = functions.get(function.parent) if function.parent is not None else None
    speed, width = _link(function, port)
    driver_speed, driver_width = _link_of_driver(gpu)
    return PciDevice(
        bus_id=bus_id,
        parent=parent,
        numa=numa,
        kind=kind,
        device_class=function.device_class,
        vendor=function.vendor,
        device=function.device,
        subsystem_vendor=function.subsystem_vendor,
        subsystem_device=function.subsystem_device,
        link_speed=speed if speed is not None else driver_speed,
        link_width=width if width is not None else driver_width,
        host_bridge=_host_bridge(function, functions),
        near_cpus=function.local_cpus if numa == NO_NUMA else (),
    )


def _host_bridge(function: PciFunction, functions: Mapping[str, PciFunction]) -> str | None:
    """Return the root bus that a function is below; None where the way up ends at a bridge that is not shown."""
    seen = {function.bus_id}
    while function.parent is not None:
        upper = functions.get(function.parent)
        if upper is None or upper.bus_id in seen:
            return None
        seen.add(upper.bus_id)
        function = upper
    return function.bus_id.rpartition(":")[0]


def _link(function: PciFunction, port: PciFunction | None) -> tuple[str | None, int | None]:
    """Return speed and lanes of a link: the less of what the device and the port above it can do.

    Where the port is hidden, in virtual machines, NCCL writes 0 lanes and counts 16; here it is what the device says.
    """
    ends = [end for end in (function, port) if end is not None]
    speeds = [(rate, end.max_link_speed) for end in ends if (rate := _rate_GTps(end.max_link_speed)) is not None]
    widths = [end.max_link_width for end in ends if end.max_link_width]
    return min(speeds)[1] if speeds else None, min(widths, default=None)


def _rate_GTps(text: str | None) -> float | None:
    return transfer_GTps(text) if text is not None else None


def _link_of_driver(gpu: HostGpu | None) -> tuple[str | None, int | None]:
    """Return speed and lanes of a GPU's link as its driver has them."""
    if gpu is None:
        return None, None
    rate_GTps = GENERATION_GTps.get(gpu.max_link_generation or 0)
    return speed_text(rate_GTps) if rate_GTps is not None else None, gpu.max_link_width

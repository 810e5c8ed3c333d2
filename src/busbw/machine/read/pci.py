"""PCI functions, as /sys/bus/pci/devices and the targets of its links show them."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from busbw.base.value import Integer, Value
from busbw.machine.read.index import SnapshotIndex, bus_id, bus_ids, cpu_list, fields, first_number, last_bus_id, number
from busbw.model.host import HostPort, PciFunction, PortKind

_DEVICES = "/sys/bus/pci/devices"
# What the kernel says where no link is trained, or where a virtual machine hides it.
_NO_WIDTH = {0, 255}
# Eight GPUs with their switches, NICs and disks are some hundreds.
_MOST_FUNCTIONS = 4096


def pci_functions(index: SnapshotIndex) -> tuple[PciFunction, ...]:
    """Return the PCI functions by address. One without class, vendor or device is left out."""
    known = [(bus_id(name), name) for name in index.names(_DEVICES)[:_MOST_FUNCTIONS]]
    read = (_function(index, name, address) for address, name in known if address is not None)
    return tuple(sorted((one for one in read if one is not None), key=lambda one: natural_bus_id(one.bus_id)))


def natural_bus_id(address: str) -> tuple[int, str]:
    """Return what sorts PCI addresses as numbers: domains may have four digits or eight."""
    domain, _colon, rest = address.partition(":")
    return int(domain, 16), rest


def _function(index: SnapshotIndex, name: str, address: str) -> PciFunction | None:
    folder = f"{_DEVICES}/{name}"
    device_class, vendor, device = (index.text(f"{folder}/{each}") for each in ("class", "vendor", "device"))
    if device_class is None or vendor is None or device is None:
        return None
    # The device's own address ends the path, the bridge above stands before it.
    above = list(islice(bus_ids(index.link(folder)), 2))
    driver = index.link(f"{folder}/driver")
    numa = index.number(f"{folder}/numa_node")
    return PciFunction(
        bus_id=address,
        parent=above[1] if len(above) == 2 else None,
        device_class=device_class,
        vendor=vendor,
        device=device,
        subsystem_vendor=index.text(f"{folder}/subsystem_vendor"),
        subsystem_device=index.text(f"{folder}/subsystem_device"),
        numa=numa if numa is not None else -1,
        local_cpus=cpu_list(index.text(f"{folder}/local_cpulist")),
        driver=driver.rpartition("/")[2] if driver is not None else None,
        link_speed=shown_speed(index.text(f"{folder}/current_link_speed")),
        link_width=shown_lanes(index.number(f"{folder}/current_link_width")),
        max_link_speed=shown_speed(index.text(f"{folder}/max_link_speed")),
        max_link_width=shown_lanes(index.number(f"{folder}/max_link_width")),
    )


def shown_speed(text: str | None) -> str | None:
    """Return a speed as the kernel prints it; None where it is not known to it."""
    return None if text is None or text.lower().startswith("unknown") else text


def shown_lanes(lanes: int | None) -> int | None:
    """Return a number of lanes; None for what the kernel says where none are trained, or are hidden."""
    return None if lanes is None or lanes in _NO_WIDTH else lanes


_EXTENDED: Final = 0x100
_SPACE_BYTES: Final = 4096
_ACS_ID: Final = 0x000D
# As many four-byte capabilities as fit behind the first 256 bytes: a list that is longer goes in circles.
_MOST_CAPABILITIES: Final = 960
UNREAD: Final = "unread"
NONE: Final = "none"


def acs_of(config: bytes) -> str:
    """Return the ACS control word as four hexadecimal digits, `none` for a function without, else `unread`.

    Only root is shown more than the first 64 bytes, and only a PCIe machine has more than 256.
    """
    if len(config) < _SPACE_BYTES:
        return UNREAD
    at = _EXTENDED
    for _place in range(_MOST_CAPABILITIES):
        header = int.from_bytes(config[at : at + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return NONE
        if header & 0xFFFF == _ACS_ID:
            return f"{int.from_bytes(config[at + 6 : at + 8], 'little'):04x}"
        at = header >> 20
        if at < _EXTENDED or at > _SPACE_BYTES - 8:
            return NONE
    return NONE


def acs_word(text: str | None) -> int | None:
    """Return the control word that `acs_of` wrote; None for none and for what is no such word."""
    is_word = text is not None and len(text) == 4 and all(digit in "0123456789abcdef" for digit in text)
    return int(text, 16) if is_word and text is not None else None


_MOST_BLOCKS = 1024
_MAPPED = re.compile(r"\s*(?P<device>\S{1,64}) port (?P<port>\d{1,3}) ==> (?P<name>\S{1,64}) \(")
# A port that is down says 2.5, as one lane of SDR.
_GIGABITS = re.compile(r"\d{1,5}(?:\.\d{1,3})?")
# What the lanes of Slingshot are called: BS_200G, CK_400G.
_SLINGSHOT_SPEED = re.compile(r"(?:[A-Z]{2}_)?(\d{2,4})G?")


class CxiDevice(Value, kw_only=True, frozen=True):
    """One device of cxi_stat."""

    name: str
    bus_id: str | None
    interface: str | None
    rate_bps: float | None
    up: bool | None
    firmware: str | None
    mtu_bytes: Integer | None


def blocks(text: str, heading: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, lines) of the parts of a text that begin with a heading; the heading's first group is the name."""
    name: str | None = None
    lines: list[str] = []
    count = 0
    for line in text.splitlines():
        match = heading.match(line)
        if match is not None:
            if name is not None:
                yield name, "\n".join(lines)
            count += 1
            if count > _MOST_BLOCKS:
                return
            name, lines = match[1], []
        else:
            lines.append(line)
    if name is not None:
        yield name, "\n".join(lines)


def guid(text: str | None) -> str | None:
    """Return a GUID as 0x and sixteen digits; None for none, and for zero."""
    digits = (text or "").lower().replace(":", "").removeprefix("0x")
    return f"0x{digits}" if re.fullmatch(r"[0-9a-f]{16}", digits) and digits.strip("0") else None


def cxi_devices(text: str) -> tuple[CxiDevice, ...]:
    """Return the devices that cxi_stat lists."""
    found = []
    for name, lines in blocks(text, re.compile(r"\s*Device:\s*(\S{1,64})\s*$")):
        said = fields(lines)
        speed = _SLINGSHOT_SPEED.fullmatch(said.get("Link speed", ""))
        state = said.get("Link state")
        found.append(
            CxiDevice(
                name=name,
                bus_id=bus_id(said.get("PCIE slot", "")),
                interface=said.get("Network device"),
                rate_bps=int(speed[1]) * 1e9 if speed is not None else None,
                up=state.lower() == "up" if state is not None else None,
                firmware=said.get("FW Version"),
                mtu_bytes=number(said.get("Link MTU")),
            )
        )
    return tuple(found)


def ibdev2netdev(text: str) -> dict[tuple[str, int], str]:
    """Return the interface of each (RDMA device, port): rows `mlx5_0 port 1 ==> ib0 (Up)`."""
    matches = (_MAPPED.match(line) for line in text.splitlines())
    return {(match["device"], int(match["port"])): match["name"] for match in matches if match is not None}


def ibstat_ports(text: str, interfaces: Mapping[tuple[str, int], str]) -> tuple[HostPort, ...]:
    """Return the ports that ibstat lists, without their PCI addresses."""
    found = []
    for device, lines in blocks(text, re.compile(r"CA '([^']{1,64})'")):
        head = fields(lines)
        for port, block in blocks(lines, re.compile(r"\s*Port (\d{1,3}):\s*$")):
            said = fields(block)
            gigabits = _GIGABITS.match(said.get("Rate", ""))
            state = said.get("State")
            found.append(
                HostPort(
                    name=device,
                    port=int(port),
                    bus_id=None,
                    kind="InfiniBand" if said.get("Link layer") in ("InfiniBand", "IB") else "RoCE",
                    interface=interfaces.get((device, int(port))),
                    rate_bps=float(gigabits[0]) * 1e9 if gigabits is not None else None,
                    up=state == "Active" if state is not None else None,
                    guid=guid(head.get("System image GUID")),
                    firmware=head.get("Firmware version"),
                )
            )
    return tuple(found)


def ibv_mtus(text: str) -> dict[tuple[str, int], int]:
    """Return the active MTU in bytes of each (RDMA device, port), from `ibv_devinfo -v`."""
    found = {}
    for device, lines in blocks(text, re.compile(r"hca_id:\s*(\S{1,64})")):
        for port, block in blocks(lines, re.compile(r"\s*port:\s*(\d{1,3})\s*$")):
            mtu = first_number(fields(block).get("active_mtu"))
            if mtu is not None:
                found[device, int(port)] = mtu
    return found


_RDMA = "/sys/class/infiniband"
_CXI = "/sys/class/cxi"
_NET = "/sys/class/net"
_AMAZON = "0x1d0f"
# An interface that is down says -1, one of a virtual machine often 65535 or more.
_MOST_NET_MBPS = 10_000_000
_NO_SPEEDS = {65535, 2**32 - 1, 2**31 - 1}
_INFINIBAND_TYPE = 32


class _Interfaces:
    """The network interfaces of a host, and the PCI functions they belong to, also through a virtio device between."""

    def __init__(self, index: SnapshotIndex) -> None:
        self._places: dict[tuple[str, bool, int], str] = {}
        self.addresses: dict[str, str | None] = {}
        for name in index.names(_NET):
            folder = f"{_NET}/{name}"
            address = last_bus_id(index.link(folder)) or last_bus_id(index.link(f"{folder}/device"))
            self.addresses[name] = address
            place = index.number(f"{folder}/dev_port") or 0
            if address is not None:
                self._places.setdefault((address, _is_infiniband(index, name), place), name)

    def on(self, address: str | None, port: int, *, infiniband: bool) -> str | None:
        """Return the first interface on a port of a PCI function."""
        return self._places.get((address, infiniband, port - 1)) if address is not None else None


def ports(index: SnapshotIndex, pci: Mapping[str, PciFunction]) -> tuple[HostPort, ...]:
    """Return the ports: of RDMA devices by name, then Slingshot's, then interfaces that belong to none of these."""
    interfaces = _Interfaces(index)
    fast = (*_rdma_ports(index, pci, interfaces), *_cxi_ports(index, pci, interfaces))
    if not fast:
        fast = ibstat_ports(index.said("ibstat"), ibdev2netdev(index.output("ibdev2netdev")))
    taken = {port.bus_id for port in fast} - {None}
    names = {port.interface for port in fast} - {None}
    return (*fast, *_plain_ports(index, pci, interfaces, taken, names))


def _rdma_ports(index: SnapshotIndex, pci: Mapping[str, PciFunction], interfaces: _Interfaces) -> tuple[HostPort, ...]:
    mtus = ibv_mtus(index.said("ibv_devinfo"))
    tool = ibdev2netdev(index.output("ibdev2netdev"))
    found = []
    for device in index.names(_RDMA):
        folder = f"{_RDMA}/{device}"
        address = last_bus_id(index.link(f"{folder}/device")) or last_bus_id(index.link(folder))
        for name in index.names(f"{folder}/ports"):
            port = number(name)
            if port is None:
                continue
            at = f"{folder}/ports/{name}"
            kind = _kind(index, folder, at, pci.get(address or ""))
            interface = index.text(f"{at}/gid_attrs/ndevs/0") or tool.get((device, port))
            interface = interface or interfaces.on(address, port, infiniband=kind == "InfiniBand")
            mtu = mtus.get((device, port)) if kind != "RoCE" else _net_mtu(index, interface)
            found.append(
                HostPort(
                    name=device,
                    port=port,
                    bus_id=address,
                    kind=kind,
                    interface=interface,
                    rate_bps=_rate_bps(index.text(f"{at}/rate")),
                    up=_is_up(index.text(f"{at}/state")),
                    numa=_numa(pci, address),
                    guid=guid(index.text(f"{folder}/sys_image_guid")) or guid(index.text(f"{folder}/node_guid")),
                    firmware=index.text(f"{folder}/fw_ver"),
                    mtu_bytes=mtu,
                )
            )
    return tuple(found)


def _kind(index: SnapshotIndex, folder: str, port: str, function: PciFunction | None) -> PortKind:
    if function is not None and (function.driver == "efa" or function.vendor == _AMAZON):
        return "EFA"
    if index.text(f"{port}/link_layer") == "InfiniBand":
        return "InfiniBand"
    # iWARP is a type of its own, and neither needs nor has what RoCE does.
    return "Ethernet" if "RNIC" in (index.text(f"{folder}/node_type") or "") else "RoCE"


def _cxi_ports(index: SnapshotIndex, pci: Mapping[str, PciFunction], interfaces: _Interfaces) -> tuple[HostPort, ...]:
    said = {device.name: device for device in cxi_devices(index.output("cxi_stat"))}
    found = []
    for name in dict.fromkeys((*index.names(_CXI), *said)):
        tool = said.get(name)
        address = last_bus_id(index.link(f"{_CXI}/{name}/device")) or last_bus_id(index.link(f"{_CXI}/{name}"))
        address = address or (tool.bus_id if tool is not None else None)
        interface = interfaces.on(address, 1, infiniband=False) or (tool.interface if tool is not None else None)
        rate_bps = _net_rate_bps(index, interface)
        up = _net_is_up(index, interface)
        found.append(
            HostPort(
                name=name,
                port=1,
                bus_id=address,
                kind="Slingshot",
                interface=interface,
                rate_bps=tool.rate_bps if tool is not None and tool.rate_bps is not None else rate_bps,
                up=tool.up if tool is not None and tool.up is not None else up,
                numa=_numa(pci, address),
                firmware=tool.firmware if tool is not None else None,
                mtu_bytes=_net_mtu(index, interface),
            )
        )
    return tuple(found)


def _plain_ports(
    index: SnapshotIndex,
    pci: Mapping[str, PciFunction],
    interfaces: _Interfaces,
    taken: set[str | None],
    names: set[str | None],
) -> tuple[HostPort, ...]:
    """Return the interfaces of devices that are no port yet."""
    found = []
    for name, address in interfaces.addresses.items():
        if (address is not None and address in taken) or name in names or _is_infiniband(index, name):
            continue
        found.append(
            HostPort(
                name=name,
                port=1,
                bus_id=address,
                kind="Ethernet",
                interface=name,
                rate_bps=_net_rate_bps(index, name),
                up=_net_is_up(index, name),
                numa=_numa(pci, address),
                mtu_bytes=_net_mtu(index, name),
            )
        )
    return tuple(found)


def _is_infiniband(index: SnapshotIndex, interface: str) -> bool:
    return index.number(f"{_NET}/{interface}/type") == _INFINIBAND_TYPE


def _numa(pci: Mapping[str, PciFunction], address: str | None) -> int | None:
    function = pci.get(address or "")
    return function.numa if function is not None else None


def _rate_bps(text: str | None) -> float | None:
    match = re.match(r"(\d{1,5}(?:\.\d{1,3})?) Gb/sec", text or "")
    return float(match[1]) * 1e9 if match is not None else None


def _is_up(state: str | None) -> bool | None:
    return "ACTIVE" in state if state is not None else None


def _net_rate_bps(index: SnapshotIndex, interface: str | None) -> float | None:
    speed_Mbps = index.number(f"{_NET}/{interface}/speed")
    if speed_Mbps is None or not 0 < speed_Mbps <= _MOST_NET_MBPS or speed_Mbps in _NO_SPEEDS:
        return None
    return speed_Mbps * 1e6


def _net_is_up(index: SnapshotIndex, interface: str | None) -> bool | None:
    state = index.text(f"{_NET}/{interface}/operstate")
    return None if state in (None, "unknown") else state == "up"


def _net_mtu(index: SnapshotIndex, interface: str | None) -> int | None:
    return index.number(f"{_NET}/{interface}/mtu")

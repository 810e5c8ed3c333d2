"""What ibstat, ibdev2netdev, ibv_devinfo and cxi_stat print, for what the kernel's files do not say."""

import re
from collections.abc import Iterator, Mapping

from busbw.base.value import Integer, Value
from busbw.machine.read.index import bus_id, fields, first_number, number
from busbw.model.host import HostPort

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


def _blocks(text: str, heading: re.Pattern[str]) -> Iterator[tuple[str, str]]:
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
    for name, lines in _blocks(text, re.compile(r"\s*Device:\s*(\S{1,64})\s*$")):
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
    for device, lines in _blocks(text, re.compile(r"CA '([^']{1,64})'")):
        head = fields(lines)
        for port, block in _blocks(lines, re.compile(r"\s*Port (\d{1,3}):\s*$")):
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
    for device, lines in _blocks(text, re.compile(r"hca_id:\s*(\S{1,64})")):
        for port, block in _blocks(lines, re.compile(r"\s*port:\s*(\d{1,3})\s*$")):
            mtu = first_number(fields(block).get("active_mtu"))
            if mtu is not None:
                found[device, int(port)] = mtu
    return found

"""The statistics that a network driver keeps of an interface, as `ethtool -S` prints them, asked of the kernel itself.

The program ethtool need not be there, and none is started: a process that is split off below MPI may cost it
registered memory. `python -m busbw.rank.ethtool` prints them for this host, a heading before each interface.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

# linux/sockios.h, linux/ethtool.h: every user may ask these.
_SIOCETHTOOL = 0x8946
_GSSET_INFO, _GSTRINGS, _GSTATS = 0x37, 0x1B, 0x1D
_STATISTICS = 1
# struct ethtool_sset_info, ethtool_gstrings and ethtool_stats, up to what follows; struct ifreq.
_SET_INFO = struct.Struct("=IIQI")
_STRINGS_HEAD, _STATS_HEAD = struct.Struct("=III"), struct.Struct("=II")
_REQUEST = struct.Struct("16sP16x")
_NAME_BYTES = 32
_LONGEST_INTERFACE = 15
# mlx5 with a channel for each of 256 CPUs has about 12,000.
_MOST = 65_536


def driver_statistics(interface: str) -> dict[str, int]:
    """Return the driver's statistics of an interface by name; {} where it has none, or there is no such interface."""
    name = os.fsencode(interface)
    if not 0 < len(name) <= _LONGEST_INTERFACE:
        return {}
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asked:
        info = bytearray(_SET_INFO.pack(_GSSET_INFO, 0, 1 << _STATISTICS, 0))
        _ask(asked, name, info)
        _command, _reserved, mask, count = _SET_INFO.unpack(info)
        if not mask or not 0 < count <= _MOST:
            return {}
        strings = bytearray(_STRINGS_HEAD.pack(_GSTRINGS, _STATISTICS, count)) + bytes(_NAME_BYTES * count)
        _ask(asked, name, strings)
        values = bytearray(_STATS_HEAD.pack(_GSTATS, count)) + bytes(8 * count)
        _ask(asked, name, values)
        # A driver may have fewer by now; never more than there is room for.
        there = min(count, _STRINGS_HEAD.unpack_from(strings)[2], _STATS_HEAD.unpack_from(values)[1])
        numbers = struct.unpack_from(f"={there}Q", values, _STATS_HEAD.size)
        return dict(zip(_names(strings, there), numbers, strict=True))
    return {}


def _ask(asked: socket.socket, name: bytes, answer: bytearray) -> None:
    room = (ctypes.c_char * len(answer)).from_buffer(answer)
    fcntl.ioctl(asked, _SIOCETHTOOL, _REQUEST.pack(name, ctypes.addressof(room)))


def _names(strings: bytearray, count: int) -> Iterator[str]:
    for place in range(count):
        at = _STRINGS_HEAD.size + _NAME_BYTES * place
        yield bytes(strings[at : at + _NAME_BYTES]).split(b"\0")[0].decode("ascii", "replace").strip()


def network_ports(root: Path = Path("/")) -> dict[str, str]:
    """Return each interface but the loopback, and its port: `mlx5_0/1` of an adapter of RoCE, else itself."""
    classes = root / "sys/class"
    ports: dict[str, str] = {}
    for port in sorted(classes.glob("infiniband/*/ports/*")):
        with suppress(OSError):
            ports.setdefault((port / "gid_attrs/ndevs/0").read_text().strip(), f"{port.parent.parent.name}/{port.name}")
    interfaces = sorted(each.name for each in classes.glob("net/*"))
    return {name: ports.get(name, name) for name in interfaces if name != "lo"}


def ethtool_text(host: str, port: str, statistics: Mapping[str, int]) -> str:
    """Return statistics as `ethtool -S` prints them, below a line that says whose they are."""
    lines = "".join(f"     {name}: {value}\n" for name, value in statistics.items())
    return f"# {host} {port}\nNIC statistics:\n{lines}"


def main() -> int:
    """Print the statistics of every interface that has a device of its own."""
    for interface, port in network_ports().items():
        has_device = Path("/sys/class/net", interface, "device").exists()
        if has_device and (statistics := driver_statistics(interface)):
            sys.stdout.write(ethtool_text(socket.gethostname(), port, statistics))
    return 0


if __name__ == "__main__":
    sys.exit(main())

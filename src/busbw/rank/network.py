"""Bytes this rank has sent over TCP, asked of its own sockets: what others send on the same machine does not count."""

import os
import socket
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from busbw.model.machine import CountersRead
from busbw.rank.ethtool import driver_statistics, network_ports

# tcpi_bytes_acked in struct tcp_info (linux/tcp.h, since 4.1).
_ACKNOWLEDGED = struct.Struct("=Q")
_ACKNOWLEDGED_OFFSET = 120
_TCP_INFO_BYTES = 256
LOOPBACK = "lo"


def sent_bytes() -> dict[str, int]:
    """Return the bytes that peers have acknowledged, by way: `lo` for peers on this host, else the local address."""
    totals: dict[str, int] = {}
    for connection in _connections():
        with suppress(OSError):
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            if len(info) >= _ACKNOWLEDGED_OFFSET + _ACKNOWLEDGED.size:
                way = _way(connection)
                totals[way] = totals.get(way, 0) + _ACKNOWLEDGED.unpack_from(info, _ACKNOWLEDGED_OFFSET)[0]
    return totals


def sent_since(before: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the bytes sent each way since `before`; ways without traffic are left out."""
    now = sent_bytes()
    return tuple((way, now[way] - before.get(way, 0)) for way in sorted(now) if now[way] > before.get(way, 0))


def _connections() -> Iterator[socket.socket]:
    """Yield this process's connected TCP sockets, each as a duplicate that is closed afterwards."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError, ValueError):
            number = int(entry.name)
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as connection:
                family = connection.family in (socket.AF_INET, socket.AF_INET6)
                if family and connection.type == socket.SOCK_STREAM:
                    yield connection


def _way(connection: socket.socket) -> str:
    local, peer = str(connection.getsockname()[0]), str(connection.getpeername()[0])
    return LOOPBACK if local == peer or peer.startswith(("127.", "::1", "::ffff:127.")) else local


# Everything of these; of a plain interface only what tells traffic and loss.
_RDMA = ("counters", "hw_counters")
_PLAIN = (
    "rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors", "tx_carrier_errors",
    "rx_crc_errors", "rx_missed_errors", "rx_fifo_errors",
)  # fmt: skip
# Of Slingshot's adapter, which has more than a thousand: the link, time-outs, and what had to be refused or sent again.
_CASSINI = ("hni_*", "pct_*_timeouts", "pct_no_*_nacks", "pct_retry_srb_requests")
# Of what a driver keeps (`ethtool -S`), mostly of its queues: pauses, discards, marks, and errors of the link.
_DRIVER = (
    "*_pause", "*pause_frames", "*pause_storm*", "*_pfc_ena_frames*", "*_xoff*", "*discard*", "*_marked", "*_err*_phy",
    "*crc*", "*fcs*", "link_down*", "*out_of_buffer", "*pci_signal*", "*allowance_exceeded",
)  # fmt: skip
_MOST = 2000
# A counter of InfiniBand is a question to the firmware: what is not read by then is left out.
_LIMIT_S = 0.25


def host_counters() -> CountersRead:
    """Return the counters of this host's network ports, and when they were read."""
    try:
        uptime_s = float(Path("/proc/uptime").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        uptime_s = None
    virtual = virtual_interfaces()
    end_s = time.monotonic() + _LIMIT_S
    counters = {key: count for key, count in read_counters().items() if key.split(" ")[0] not in virtual}
    for interface, port in network_ports().items():
        if interface not in virtual and time.monotonic() <= end_s:
            counters |= driver_counters(port, driver_statistics(interface))
    return CountersRead(host=socket.gethostname(), unix_s=time.time(), uptime_s=uptime_s, counters=counters)


def driver_counters(port: str, statistics: Mapping[str, int]) -> dict[str, int]:
    """Return of a driver's statistics what tells of the link and of congestion, as counters of a port."""
    # Those of the kernel's files stand under their own names.
    return {
        f"{port} {name}": count
        for name, count in statistics.items()
        if name not in _PLAIN and any(fnmatchcase(name, form) for form in _DRIVER)
    }


def virtual_interfaces(root: Path = Path("/")) -> frozenset[str]:
    """Return the interfaces without a device of their own, where others have one: bridges, ends of containers."""
    interfaces = root / "sys/class/net"
    names = _names(interfaces)
    physical = {name for name in names if (interfaces / name / "device").exists()}
    return frozenset(set(names) - physical if physical else ())


def read_counters(root: Path = Path("/")) -> dict[str, int]:
    """Return every counter by name, `mlx5_0/1 port_xmit_data`; what cannot be read is left out."""
    counters: dict[str, int] = {}
    end_s = time.monotonic() + _LIMIT_S
    for name, path in _paths(root):
        if len(counters) >= _MOST or time.monotonic() > end_s:
            break
        with suppress(OSError, ValueError):
            counters[name] = _number(path)
    return counters


def _number(path: str) -> int:
    """Return the number in a small file."""
    # There are hundreds, and Path.read_bytes takes several times as long; a pipe among them would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # The telemetry of Cassini adds the time behind an "@".
        return int(os.read(descriptor, 64).split(b"@")[0])
    finally:
        os.close(descriptor)


def _paths(root: Path) -> Iterator[tuple[str, str]]:
    classes = root / "sys/class"
    for port in sorted(classes.glob("infiniband/*/ports/*")):
        for folder in _RDMA:
            for name in _names(port / folder):
                yield f"{port.parent.parent.name}/{port.name} {name}", f"{port}/{folder}/{name}"
    for device in sorted(classes.glob("cxi/*/device/telemetry")):
        for name in _names(device):
            if any(fnmatchcase(name, form) for form in _CASSINI):
                yield f"{device.parent.parent.name} {name}", f"{device}/{name}"
    for device in sorted((root / "run/cxi").glob("cxi*")):
        # Slingshot's retry handler.
        yield from ((f"{device.name} rh:{name}", f"{device}/{name}") for name in _names(device))
    for interface in _names(classes / "net"):
        if interface != "lo":
            at = f"{classes}/net/{interface}"
            yield f"{interface} carrier_changes", f"{at}/carrier_changes"
            yield from ((f"{interface} {name}", f"{at}/statistics/{name}") for name in _PLAIN)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; [] where there is none."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return []

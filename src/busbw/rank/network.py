"""Bytes this rank has sent over TCP, asked of its own sockets: what others send on the same machine does not count."""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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


_CLASS = Path("/sys/class")
# Everything of these; of a plain interface only what tells traffic and loss.
_RDMA = ("counters", "hw_counters")
_PLAIN = ("rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors", "tx_carrier_errors")
_MOST = 2000


def read_counters() -> dict[str, int]:
    """Return every counter by name, `mlx5_0/1 port_xmit_data`; what cannot be read is left out."""
    counters: dict[str, int] = {}
    for name, path in _paths():
        if len(counters) >= _MOST:
            break
        try:
            # The telemetry of Cassini adds the time behind an "@".
            counters[name] = int(path.read_bytes()[:64].split(b"@")[0])
        except (OSError, ValueError):
            continue
    return counters


def _paths() -> Iterator[tuple[str, Path]]:
    for port in sorted(_CLASS.glob("infiniband/*/ports/*")):
        for folder in _RDMA:
            for path in sorted(port.glob(f"{folder}/*")):
                yield f"{port.parent.parent.name}/{port.name} {path.name}", path
    for device in sorted(_CLASS.glob("cxi/*/device/telemetry")):
        for path in sorted(device.glob("hni_*")):
            yield f"{device.parent.parent.name} {path.name}", path
    for interface in sorted(_CLASS.glob("net/*")):
        if interface.name != "lo":
            for name in _PLAIN:
                yield f"{interface.name} {name}", interface / "statistics" / name

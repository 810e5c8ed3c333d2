"""Counters of this host's network devices: what the kernel says was sent, received, dropped and waited for."""

from collections.abc import Iterator
from pathlib import Path

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

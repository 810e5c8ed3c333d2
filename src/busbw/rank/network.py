"""Bytes that left each network interface of this host, as the kernel counts them."""

from pathlib import Path

_TRANSMITTED_FIELD = 8


def transmitted_bytes() -> dict[str, int]:
    """Return the bytes sent by each interface since boot; empty where the kernel does not say."""
    try:
        lines = Path("/proc/net/dev").read_text(encoding="ascii", errors="replace").splitlines()[2:]
    except OSError:
        return {}
    counters = {}
    for line in lines:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        if len(fields) > _TRANSMITTED_FIELD and fields[_TRANSMITTED_FIELD].isdigit():
            counters[name.strip()] = int(fields[_TRANSMITTED_FIELD])
    return counters


def sent_since(before: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the bytes each interface sent since `before`, interfaces without traffic left out."""
    now = transmitted_bytes()
    return tuple((name, now[name] - before[name]) for name in sorted(now) if now[name] > before.get(name, now[name]))

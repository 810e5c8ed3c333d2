"""The counters of network ports that a snapshot holds, by port and name."""

import datetime as dt
import re

from busbw.machine.read.index import number
from busbw.model.host import Snapshot
from busbw.model.port_counters import CountersRead

_PATHS = (
    re.compile(r"/sys/class/infiniband/([^/]{1,64})/ports/(\d{1,3})/(?:hw_)?counters/([^/]{1,80})"),
    re.compile(r"/sys/class/cxi/([^/]{1,64})/device/telemetry/()([^/]{1,80})"),
    re.compile(r"/run/cxi/([^/]{1,64})/()([^/]{1,80})"),
    re.compile(r"/sys/class/net/([^/]{1,64})/()(?:statistics/([^/]{1,80})|(carrier_changes))"),
)
_RETRIES = "/run/cxi/"
_UPTIME = re.compile(r"\d{1,12}(?:\.\d{1,3})?")


def counters_of(snapshot: Snapshot) -> CountersRead:
    """Return the counters of a captured host; what is no number is left out."""
    found: dict[str, int] = {}
    uptime_s: float | None = None
    for file in snapshot.files:
        if file.path == "/proc/uptime" and (match := _UPTIME.match(file.text or "")) is not None:
            uptime_s = float(match[0])
        key = _key(file.path)
        # Cassini's telemetry has the time behind an "@".
        value = number((file.text or "").split("@")[0]) if key is not None else None
        if key is not None and value is not None and value >= 0:
            found.setdefault(key, value)
    return CountersRead(host=snapshot.hostname, unix_s=_unix_s(snapshot.captured), uptime_s=uptime_s, counters=found)


def _key(path: str) -> str | None:
    for form in _PATHS:
        match = form.fullmatch(path)
        if match is not None:
            port = f"{match[1]}/{match[2]}" if match[2] else match[1]
            name = next(each for each in reversed(match.groups()) if each)
            return f"{port} {'rh:' if path.startswith(_RETRIES) else ''}{name}"
    return None


def _unix_s(captured: str) -> float | None:
    try:
        return dt.datetime.fromisoformat(captured).timestamp()
    except (ValueError, OverflowError):
        return None

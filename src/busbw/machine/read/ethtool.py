"""What `ethtool -S` prints of interfaces, each below a line that says whose it is: `# node07 eth0`.

The names are those of the drivers, and differ; of all of them what `data/port_counters.toml` knows is kept.
"""

import re

from busbw.base.errors import InputError
from busbw.facts.port_counters import port_counters
from busbw.model.machine import CountersRead

ETHTOOL_HINT = 'for i in eth0 eth1; do echo "# $(hostname) $i"; ethtool -S $i; done >> before.txt'
_WHOSE = re.compile(r"# ([A-Za-z0-9][A-Za-z0-9._-]{0,252}) ([A-Za-z0-9][A-Za-z0-9._:@/-]{0,79})")
_TITLE = "NIC statistics:"
# A driver may have a colon or spaces in a name: `rxq0: rx_bytes`, `[0]: rx_discards`.
_LINE = re.compile(r"(\S(?:[ -~]{0,60}\S)?): {0,20}(\d{1,20})", re.ASCII)
_NONE = "no stats available"
_MOST_PORTS = 65_536


def is_ethtool(text: str) -> bool:
    """Whether the first lines that say something are of `ethtool -S`, with or without whose they are."""
    first = [line.strip() for line in text[:65_536].split("\n") if line.strip()][:2]
    return _TITLE in first or (len(first) > 1 and _WHOSE.fullmatch(first[0]) is not None and first[1] == _NONE)


def read_ethtool(text: str, where: str) -> tuple[CountersRead, ...]:
    """Return the known counters of each interface that has some. Raises InputError for anything else in it.

    A port is named as its heading does, `eth0`, or `mlx5_0/1` for the interface of an adapter of RoCE.
    """
    known = {name for owner, name in port_counters() if owner == "net"}
    found: list[CountersRead] = []
    whose: re.Match[str] | None = None
    counters: dict[str, int] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if (heading := _WHOSE.fullmatch(line)) is not None:
            found += _read(whose, counters)
            whose, counters = heading, {}
        elif line in ("", _TITLE, _NONE):
            if line == _TITLE and whose is None:
                raise InputError("nothing says whose these are", where=f"{where}:{number}", hint=ETHTOOL_HINT)
        elif (match := _LINE.fullmatch(line)) is not None and whose is not None:
            if match[1] in known and (value := int(match[2])) < 2**63:
                counters[f"{whose[2]} {match[1]}"] = value
        else:
            raise InputError(f"{line[:60]!r} is no line of ethtool -S", where=f"{where}:{number}", hint=ETHTOOL_HINT)
        if len(found) > _MOST_PORTS:
            raise InputError(f"more than {_MOST_PORTS} interfaces", where=f"{where}:{number}")
    return (*found, *_read(whose, counters))


def _read(whose: re.Match[str] | None, counters: dict[str, int]) -> tuple[CountersRead, ...]:
    return (CountersRead(host=whose[1], counters=counters),) if whose is not None and counters else ()

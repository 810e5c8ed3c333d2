"""What `perfquery` prints of ports anywhere in an InfiniBand fabric, and whose ports they are by a topology.

Several outputs may follow each other in one text. `-x` gives counters of 64 bits. Sums over all ports of a switch
(`-a`, port 255) are not taken: they name no port.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import structs

from busbw.base.errors import InputError
from busbw.fabric.ib_links import described, end_name
from busbw.fabric.ib_topology import IbEnd, IbFabric
from busbw.facts.port_counters import perfquery_names
from busbw.model.machine import CountersRead

_MOST_PORTS = 1_048_576
_ALL_PORTS = 255
_TITLE = re.compile(r"# Port (extended )?counters: (?:Lid (\d{1,5})|(DR path [^()]{1,200}?)) port (\d{1,3})(?: \(.*)?")
_LINE = re.compile(r"([A-Za-z0-9]{1,60}):\.*(0x[0-9a-fA-F]{1,16}|\d{1,20})")
# A heading of perfquery about something else: its lines are passed over.
_OTHER = re.compile(r"# .*")


def is_perfquery(text: str) -> bool:
    """Whether the first line that says something is a heading of perfquery about counters."""
    first = next((line.strip() for line in text[:65_536].split("\n") if line.strip()), "")
    return _TITLE.fullmatch(first) is not None


def read_perfquery(text: str, where: str) -> tuple[CountersRead, ...]:
    """Return the counters of each port, of hosts that are named `lid 6`. Raises InputError for anything else in it."""
    found: list[CountersRead] = []
    at: re.Match[str] | None = None
    counters: dict[str, int] = {}
    known = perfquery_names()
    for number, line in _lines(text):
        title = _TITLE.fullmatch(line)
        if title is not None or _OTHER.fullmatch(line):
            found += _read(at, counters)
            at, counters = title, {}
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(
                f"{line[:60]!r} is no line of perfquery", where=f"{where}:{number}", hint="perfquery LID PORT >> FILE"
            )
        name, value = known.get(match[1]), int(match[2], 16 if match[2].startswith("0x") else 10)
        if at is not None and name is not None and value < 2**63:
            counters[name] = value
        if len(found) > _MOST_PORTS:
            raise InputError(f"more than {_MOST_PORTS} ports", where=f"{where}:{number}")
    found += _read(at, counters)
    if not found:
        raise InputError("no counters of a port in it", where=where, hint="perfquery LID PORT, of single ports")
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.split("\n"), start=1):
        # What libraries say on the side goes to the same terminal.
        if raw.strip() and not raw.startswith(("ibwarn:", "perfquery:")):
            yield number, raw.strip()


def _read(title: re.Match[str] | None, counters: dict[str, int]) -> Iterator[CountersRead]:
    if title is None or not counters or int(title[4]) == _ALL_PORTS:
        return
    host = f"lid {int(title[2])}" if title[2] is not None else title[3]
    yield CountersRead(
        host=host,
        counters={f"/{int(title[4])} {name}": value for name, value in counters.items()},
        extended=title[1] is not None,
    )


def named_by(readings: Sequence[CountersRead], fabric: IbFabric) -> tuple[CountersRead, ...]:
    """Return readings with the hosts and switches of a topology in the place of LIDs, and the far end of each port."""
    ends: dict[tuple[str, str], tuple[IbEnd, IbEnd]] = {}
    for link in fabric.links:
        for end, far in ((link.one, link.other), (link.other, link.one)):
            if end.lid is not None:
                ends[f"lid {end.lid}", f"/{end.port}"] = (end, far)
    return tuple(_named(each, ends, fabric) for each in readings)


def _named(reading: CountersRead, ends: dict[tuple[str, str], tuple[IbEnd, IbEnd]], fabric: IbFabric) -> CountersRead:
    ports = {key.rpartition(" ")[0] for key in reading.counters}
    known = {port: ends[reading.host, port] for port in ports if (reading.host, port) in ends}
    if not known:
        return reading
    node = fabric.nodes[next(iter(known.values()))[0].node]
    named = described(node.name) if node.kind == "host" else None
    host, device = (named[0], named[1] or "") if named is not None else (node.name or node.key, "")
    return structs.replace(
        reading,
        host=host,
        counters={f"{device}{key}": value for key, value in reading.counters.items()},
        linked={f"{device}{port}": end_name(fabric, far) for port, (_end, far) in known.items()},
    )

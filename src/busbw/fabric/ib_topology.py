"""What `ibnetdiscover`, `iblinkinfo` and opensm say of an InfiniBand fabric: its nodes, its links, width and speed.

Blocks of `ibnetdiscover` (the form that ibsim reads too), lines of `iblinkinfo` below the heading of their node, and
opensm's `opensm-subnet.lst`. Which of them a text is follows from the text. Ports without a link are passed over.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from busbw.base.errors import InputError

MOST_BYTES = 2**28
_MOST_NODES = 131_072
_MOST_LINKS = 1_048_576
# Lines that are longer are none of these programs': a description has 64 bytes.
_LONGEST_LINE = 512

NodeKind = Literal["host", "switch", "router"]
# Bits per second of a lane on the wire, by the name that ibnetdiscover has for it.
LANE_RATES = {
    "SDR": 2.5e9, "DDR": 5e9, "QDR": 10e9, "FDR10": 10.3125e9, "FDR": 14.0625e9, "EDR": 25.78125e9, "HDR": 53.125e9,
    "NDR": 106.25e9, "XDR": 212.5e9,
}  # fmt: skip
_KINDS: dict[str, NodeKind] = {
    "Switch": "switch", "Ca": "host", "Hca": "host", "Rt": "router", "CA": "host", "Router": "router",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class IbNode:
    """A switch or an adapter. `key` tells it from all others: its GUID, or what the text calls it."""

    key: str
    kind: NodeKind
    # Its description, `node07 mlx5_0`; "": none.
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IbEnd:
    """One end of a link: a node, its port, and the port's address in the subnet (LID); None: not known."""

    node: str
    port: int
    lid: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IbLink:
    """A cable. `width` in lanes, `lane_bps`: on the wire, None: not said."""

    one: IbEnd
    other: IbEnd
    width: int | None
    lane_bps: float | None


@dataclass(frozen=True, kw_only=True)
class IbFabric:
    """All that was read of a fabric; each link once."""

    nodes: dict[str, IbNode]
    links: tuple[IbLink, ...]
    where: str


_Found = tuple[IbNode | None, IbLink | None]
_Reader = Callable[[str, str], Iterator[tuple[int, _Found]]]
_HEAD = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d{1,3})\s*"([^"]{1,64})"(?:[^#]*#\s*"([^"]{0,80})")?(.*)')
_PORT = re.compile(
    r'\[(\d{1,3})\](?:\([0-9a-fA-F]{1,16}\))?\s*"([^"]{1,64})"\[(\d{1,3})\](?:\([0-9a-fA-F]{1,16}\))?(?:\s*#(.*))?'
)
_RATE = re.compile(r"\b(\d{1,2})x([A-Z]{3}(?:10)?)\b")
_LIDS = re.compile(r"\blid (\d{1,5})\b")
# ibnetdiscover's lines of what it found out about the node that follows.
_ABOUT = re.compile(r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|DDR|chassis|Chassis)\b.*", re.IGNORECASE)


def is_ib_topology(text: str) -> bool:
    """Whether the first line that says something is one of these programs', and not one of Slurm's file."""
    for raw in text[:65_536].split("\n"):
        line = raw.strip()
        if line and not line.startswith("#"):
            return any(form.fullmatch(line) for form in (_HEAD, _ABOUT, _TITLE, _PAIR))
    return "Topology file: generated on" in text[:4096]


def read_ib_topology(text: str, where: str) -> IbFabric:
    """Return the fabric that a text describes.

    Raises InputError with the line for what none of these programs prints, a link that its two ends describe
    differently, and a port with two links.
    """
    nodes: dict[str, IbNode] = {}
    links: dict[tuple[str, int], IbLink] = {}
    for number, (node, link) in _reader(text, where)(text, where):
        at = f"{where}:{number}"
        if node is not None and node.key not in nodes:
            nodes[node.key] = node
        if link is not None:
            _keep(links, link, at)
        if len(nodes) > _MOST_NODES or len(links) > 2 * _MOST_LINKS:
            raise InputError(f"more than {_MOST_NODES} nodes or {_MOST_LINKS} links", where=at)
    if not links:
        raise InputError(
            "no link in it", where=where, hint="the output of ibnetdiscover or iblinkinfo, run where both are allowed"
        )
    for end, link in links.items():
        for each in (link.one, link.other):
            if each.node not in nodes:
                raise InputError(f"{end[0][:60]} is linked to {each.node[:60]}, which no line describes", where=where)
    return IbFabric(nodes=nodes, links=tuple(dict.fromkeys(links.values())), where=where)


def _reader(text: str, where: str) -> _Reader:
    """Return the reader of a text by its first line that says something."""
    first = next((line for _number, line in _lines(text, where)), "")
    return _ports if _TITLE.fullmatch(first) else _pairs if _PAIR.fullmatch(first) else _blocks


def _keep(links: dict[tuple[str, int], IbLink], link: IbLink, at: str) -> None:
    """Keep a link under both its ends; what the second line about it says has to be the same link."""
    for end, far in ((link.one, link.other), (link.other, link.one)):
        known = links.get((end.node, end.port))
        if known is None:
            continue
        ends = {(each.node, each.port) for each in (known.one, known.other)}
        if ends != {(end.node, end.port), (far.node, far.port)}:
            raise InputError(f"port {end.port} of {end.node[:60]} has two links", where=at)
    first, second = ((each.node, each.port) for each in (link.one, link.other))
    if first == second:
        raise InputError(f"port {link.one.port} of {link.one.node[:60]} is linked to itself", where=at)
    known = links.get(first)
    merged = link if known is None else _merged(known, link)
    links[first] = links[second] = merged


def _merged(known: IbLink, again: IbLink) -> IbLink:
    """Return a link as both lines about it say it: LIDs from either, and of widths and rates the lower."""
    lids = {(each.node, each.port): each.lid for each in (again.one, again.other)}
    ends = [
        each if each.lid is not None else IbEnd(node=each.node, port=each.port, lid=lids[each.node, each.port])
        for each in (known.one, known.other)
    ]
    widths = [each for each in (known.width, again.width) if each is not None]
    rates = [each for each in (known.lane_bps, again.lane_bps) if each is not None]
    return IbLink(one=ends[0], other=ends[1], width=min(widths, default=None), lane_bps=min(rates, default=None))


def _lines(text: str, where: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are no comment, without the spaces around them, and their numbers."""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if len(line) > _LONGEST_LINE:
            raise InputError(f"a line of {len(line)} characters", where=f"{where}:{number}")
        if line and not line.startswith("#"):
            yield number, line


def _blocks(text: str, where: str) -> Iterator[tuple[int, _Found]]:
    """Yield nodes and links of ibnetdiscover's blocks: a heading, then a line for each port with a link."""
    node: IbNode | None = None
    own_lid: int | None = None
    for number, line in _lines(text, where):
        head = _HEAD.fullmatch(line)
        if head is not None:
            node = IbNode(key=head[3], kind=_KINDS[head[1]], name=(head[4] or head[3]).strip())
            found = _LIDS.search(head[5])
            own_lid = int(found[1]) if found is not None else None
            yield number, (node, None)
            continue
        port = _PORT.fullmatch(line)
        if port is not None and node is not None:
            yield number, (None, _block_link(node, own_lid, port))
        elif port is not None or not _ABOUT.fullmatch(line):
            raise InputError(
                f"{line[:60]!r} is no line of ibnetdiscover",
                where=f"{where}:{number}",
                hint="ibnetdiscover > fabric.txt, iblinkinfo > fabric.txt, or Slurm's topology.conf",
            )


def _block_link(node: IbNode, own_lid: int | None, port: re.Match[str]) -> IbLink:
    said = re.sub(r'"[^"]*"', '""', port[4] or "")
    rate, lids = _RATE.search(said), [int(each) for each in _LIDS.findall(said)]
    if node.kind == "switch":
        mine, far = own_lid, lids[0] if lids else None
    else:
        # `# lid 8 lmc 0 "leaf1" lid 2 4xQDR`: its own, then the switch's.
        mine, far = (*lids, None, None)[:2]
    return IbLink(
        one=IbEnd(node=node.key, port=int(port[1]), lid=mine),
        other=IbEnd(node=port[2], port=int(port[3]), lid=far),
        width=int(rate[1]) if rate is not None else None,
        lane_bps=LANE_RATES.get(rate[2]) if rate is not None else None,
    )


_TITLE = re.compile(r"(CA|Switch|Router):\s*(?:0x[0-9a-fA-F]{1,16}\s+)?(\S.{0,80}?):")
_ROW = re.compile(
    r"(?:0x[0-9a-fA-F]{1,16}\s+)?(?P<lid>\d{1,5})\s+(?P<port>\d{1,3})\[[^\]]{0,8}\]\s*==\((?P<state>[^)]*)\)==>"
    r'\s*(?:(?P<far_lid>\d{1,5})\s+(?P<far_port>\d{1,3}))?\[[^\]]{0,8}\]\s*"[^"]*"\s*\(.*'
)
_UP = re.compile(r"\s*(\d{1,2})X\s+(?:([0-9.]{1,10}) Gbps|([A-Z]{3}10))\s+\w{1,12}\s*/\s*\w{1,12}\s*")


def _ports(text: str, where: str) -> Iterator[tuple[int, _Found]]:
    """Yield nodes and links of iblinkinfo. A node is known by its LID: an adapter's heading has no GUID."""
    heading: re.Match[str] | None = None
    for number, line in _lines(text, where):
        title = _TITLE.fullmatch(line)
        if title is not None:
            heading = title
            continue
        row = _ROW.fullmatch(line)
        if row is None or heading is None:
            raise InputError(
                f"{line[:60]!r} is no line of iblinkinfo", where=f"{where}:{number}", hint="iblinkinfo without -l"
            )
        state = _UP.fullmatch(row["state"])
        key = f"lid {int(row['lid'])}"
        yield number, (IbNode(key=key, kind=_KINDS[heading[1]], name=heading[2].strip()), None)
        if row["far_lid"] is not None and state is not None:
            yield number, (None, _port_link(row, state))


def _port_link(row: re.Match[str], state: re.Match[str]) -> IbLink:
    lid, far_lid = int(row["lid"]), int(row["far_lid"])
    return IbLink(
        one=IbEnd(node=f"lid {lid}", port=int(row["port"]), lid=lid),
        other=IbEnd(node=f"lid {far_lid}", port=int(row["far_port"]), lid=far_lid),
        width=int(state[1]),
        lane_bps=_lane(state[2]) if state[2] is not None else LANE_RATES.get(state[3]),
    )


def _lane(text: str) -> float | None:
    """Return what a lane carries by a number of Gb/s; None for what is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value * 1e9 if 0 < value < 10_000 else None


_SIDE = (
    r"\{ (CA|SW|RT)(?:-SM)? Ports:[0-9a-fA-F]{2} .{0,200}?NodeGUID:([0-9a-fA-F]{16}) [^{}]{0,200}\{([^{}]{0,80})\} "
    r"LID:([0-9a-fA-F]{4}) PN:([0-9a-fA-F]{2}) \}"
)
_PAIR = re.compile(rf"{_SIDE} {_SIDE} PHY=(\d{{1,2}})x LOG=\w{{1,12}} SPD=([0-9.]{{1,6}})\s*")
# opensm writes speeds rounded.
_SPD = {"14": 14.0625e9, "25": 25.78125e9, "50": 53.125e9, "100": 106.25e9, "200": 212.5e9}
_SIDES: dict[str, NodeKind] = {"CA": "host", "SW": "switch", "RT": "router"}


def _pairs(text: str, where: str) -> Iterator[tuple[int, _Found]]:
    """Yield nodes and links of opensm-subnet.lst: a line has both ends of a link, with LIDs and ports in hex."""
    for number, line in _lines(text, where):
        pair = _PAIR.fullmatch(line)
        if pair is None:
            raise InputError(f"{line[:60]!r} is no line of opensm-subnet.lst", where=f"{where}:{number}")
        ends = []
        for at in (0, 5):
            kind, guid, name, lid, port = pair.groups()[at : at + 5]
            yield number, (IbNode(key=guid.lower(), kind=_SIDES[kind], name=name.strip()), None)
            ends.append(IbEnd(node=guid.lower(), port=int(port, 16), lid=int(lid, 16)))
        lane = _SPD.get(pair[12], _lane(pair[12]))
        yield number, (None, IbLink(one=ends[0], other=ends[1], width=int(pair[11]), lane_bps=lane))

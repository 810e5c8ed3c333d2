"""From `Channel ...` lines to who reaches whom by what, within nodes and between them."""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from busbw.logs.lines import NAMELESS_HOST
from busbw.logs.ranks import Member, People, words
from busbw.logs.reader import LogReader
from busbw.logs.state import Seat, State
from busbw.model.finding import LoggedTraffic

Place = Literal["within nodes", "between nodes", "unknown"]
_NET = re.compile(r"(?P<net>(?:NET|COLLNET)/[^/]{1,60})/(?P<nic>\d{1,4})(?P<rest>.*)", re.ASCII)

# What NCCL called it before 2.12.
_OLD_NAMES = {"direct shared memory": "SHM"}
_OF_ONE_HOST = ("P2P/", "SHM", *_OLD_NAMES)


@dataclass(slots=True)
class Way:
    """One kind of connection and everybody who has one."""

    via: str
    place: Place
    lines: int = 0
    pairs: set[tuple[int, int]] = field(default_factory=set)
    members: set[Member] = field(default_factory=set)
    nics: set[int] = field(default_factory=set)

    @property
    def network(self) -> str | None:
        """The network's name; None: it is no network."""
        return self.via.split("/")[1] if self.via.startswith(("NET/", "COLLNET/")) else None

    @property
    def is_direct(self) -> bool:
        """Whether the NIC reads and writes the GPU's memory."""
        return "/GDRDMA" in self.via

    def value(self) -> LoggedTraffic:
        """Return it for the diagnosis."""
        return LoggedTraffic(
            via=self.via,
            place=self.place,
            lines=self.lines,
            pairs=len(self.pairs),
            ranks=words(self.members),
            nics=tuple(sorted(self.nics)),
        )


def lines_of(ways: Iterable[Way]) -> str:
    """Return how many connections some ways are, in words."""
    lines = sum(way.lines for way in ways)
    return f"{lines} connection{'s' if lines != 1 else ''}"


def ways_of(reader: LogReader, state: State, people: People, nodes: int | None) -> tuple[Way, ...]:
    """Return every kind of connection, most used first. `nodes`: as NCCL counts them."""
    found: dict[tuple[str, Place], Way] = {}
    names = reader.sieve.ways()
    connections = reader.sieve.connections()
    joined = frozenset(
        reader.speaker(speaker)[0] for speaker, way, *_ in connections if names[way].startswith(_OF_ONE_HOST)
    )
    peers = _Peers(state, nodes, joined)
    for speaker, way, sender, receiver, count in connections:
        host, pid, device = reader.speaker(speaker)
        process = state.known(host, pid)
        if process is None:
            continue
        seat = process.seats.get(device) or Seat(device)
        match = _NET.fullmatch(names[way])
        via = match["net"] + match["rest"] if match is not None else _OLD_NAMES.get(names[way], names[way])
        place = peers.place(host, seat, sender, receiver, via)
        kept = found.setdefault((via, place), Way(via, place))
        kept.lines += count
        kept.pairs.add((sender, receiver))
        kept.members.update(people.of_seat(process, seat))
        if match is not None:
            kept.nics.add(int(match["nic"]))
    return tuple(sorted(found.values(), key=lambda each: (each.place, -each.lines, each.via)))


class _Peers:
    """Finds out on which host the other end of a connection is."""

    def __init__(self, state: State, nodes: int | None, joined: Container[str]) -> None:
        self._hosts: Mapping[str, Mapping[int, str]] = state.communicators
        self._nodes = nodes
        # Hosts whose ranks reach each other without the network: what goes over it there leaves the host.
        self._joined = joined
        # Communicators without an id: rank to host, where it is the same in all of one size.
        loose: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for process in state.processes.values():
            for seat in process.seats.values():
                for communicator, rank, ranks in seat.ranks:
                    if communicator is None:
                        loose[ranks][rank].add(process.host)
        self._loose = loose

    def place(self, host: str, seat: Seat, sender: int, receiver: int, via: str) -> Place:
        """Return where a connection goes that `host` tells of."""
        # NCCL counts hosts whose GPUs NVLinks join as one node.
        if self._nodes == 1 and "MNNVL" not in via:
            return "within nodes"
        # Lines that have lost their host tell nothing of where a peer is.
        known = seat.ranks if host != NAMELESS_HOST else []
        found = {
            peer == host
            for communicator, own, ranks in known
            if own in (sender, receiver)
            and (peer := self._peer(communicator, ranks, receiver if own == sender else sender)) is not None
        }
        if len(found) == 1:
            return "within nodes" if found.pop() else "between nodes"
        if found:
            return "unknown"
        if via.startswith(("P2P/", "SHM")):
            return "unknown" if "MNNVL" in via else "within nodes"
        return "between nodes" if self._nodes is not None or host in self._joined else "unknown"

    def _peer(self, communicator: str | None, ranks: int, rank: int) -> str | None:
        if communicator is not None:
            return self._hosts.get(communicator, {}).get(rank)
        hosts = self._loose.get(ranks, {}).get(rank, set())
        return next(iter(hosts)) if len(hosts) == 1 else None

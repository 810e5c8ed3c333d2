"""Everything a rule may ask about one job, worked out once."""

import fnmatch
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from busbw.base.text import listed
from busbw.facts.platforms import all_platforms
from busbw.logs.excerpts import Excerpt, without_lines
from busbw.logs.lines import NAMELESS_HOST
from busbw.logs.pages import page_lines
from busbw.logs.reader import LogReader
from busbw.logs.state import Process, Seat, State
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import FilePlace, HeldValue, LoggedFact, LoggedTraffic
from busbw.model.platform import Platform

# A rank of the largest communicator, or, where that is not known, `host:pid`.
Member = int | str
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class RankIndex:
    """The ranks of the largest communicator."""

    ranks: int | None
    # Rank to the process and the seat that it is.
    seats: Mapping[int, tuple[Process, Seat]]
    by_process: Mapping[str, tuple[int, ...]]

    def of_process(self, process: Process) -> tuple[Member, ...]:
        """Return the ranks of a process, or its name."""
        return self.by_process.get(process.name) or (process.name,)

    def of_seat(self, process: Process, seat: Seat) -> tuple[Member, ...]:
        """Return the rank at a seat; where that is not known, what the process is."""
        rank = _world_rank(seat, self.ranks)
        return (rank,) if rank is not None else self.of_process(process)

    def of_name(self, name: str, device: str | None) -> tuple[Member, ...]:
        """Return the ranks of `host:pid`: that on the device, if there is one."""
        every = self.by_process.get(name, ())
        on_device = [rank for rank in every if self.seats[rank][1].device == device]
        return tuple(on_device) or every or (name,)


def rank_index_of(state: State) -> RankIndex:
    """Return who the ranks are; a launcher's tag tells where NCCL does not."""
    sizes = [size for process in state.processes.values() for seat in process.seats.values() for *_, size in seat.ranks]
    most = max(sizes, default=None)
    seats: dict[int, tuple[Process, Seat]] = {}
    by_process: dict[str, list[int]] = {}
    for process in state.processes.values():
        for seat in process.seats.values():
            ranks = [rank for _communicator, rank, size in seat.ranks if size == most]
            # A process has one rank; lines that have lost their process may be of many.
            for rank in ranks if process.host == NAMELESS_HOST else ranks[:1]:
                seats.setdefault(rank, (process, seat))
                by_process.setdefault(process.name, []).append(rank)
        if process.name not in by_process and process.tagged_rank is not None:
            by_process[process.name] = [process.tagged_rank]
            seat = next(iter(process.seats.values()), Seat("-1"))
            seats.setdefault(process.tagged_rank, (process, seat))
    return RankIndex(most, seats, {name: tuple(sorted(set(ranks))) for name, ranks in by_process.items()})


def words(members: Iterable[Member]) -> str:
    """Return who it is: `ranks 0-3, 7`, and processes by their names, at most eight places."""
    every = set(members)
    ranks = sorted(each for each in every if isinstance(each, int))
    names = sorted(each for each in every if isinstance(each, str))
    parts = list(_spans(ranks))
    shown = ", ".join(parts[:_MOST_NAMED])
    if len(parts) > _MOST_NAMED:
        shown += f" and more ({len(ranks)} in all)"
    text = f"rank{'s' if len(ranks) > 1 else ''} {shown}" if ranks else ""
    if names:
        text += (", " if text else "") + listed(names, _MOST_NAMED)
    return text


def _spans(ranks: list[int]) -> Iterable[str]:
    start = previous = None
    for rank in [*ranks, None]:
        if start is not None and previous is not None and (rank is None or rank != previous + 1):
            yield str(start) if start == previous else f"{start}-{previous}"
            start = None
        start = rank if start is None else start
        previous = rank


def _world_rank(seat: Seat, most: int | None) -> int | None:
    return next((rank for _communicator, rank, size in seat.ranks if size == most), None)


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


def ways_of(reader: LogReader, state: State, rank_index: RankIndex, nodes: int | None) -> tuple[Way, ...]:
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
        kept.members.update(rank_index.of_seat(process, seat))
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


_NIC = re.compile(r"\[\d+\]([^:\s]{1,80}):\d+/(\w+)", re.ASCII)
_LINKS = {"InfiniBand": "IB", "RoCE": "RoCE"}
_MOST = 6


class Look(NamedTuple):
    """What a log shows of the machine."""

    gpus: frozenset[str]
    # Names of the RDMA devices, and their kinds of link: IB, RoCE.
    nics: frozenset[str]
    links: frozenset[str]
    hosts: frozenset[str]
    ranks_per_node: int


class Fitting(NamedTuple):
    """The platforms that a log fits, and by what."""

    platforms: tuple[Platform, ...] = ()
    because: str = ""


def look_of(facts: Mapping[str, Iterable[str]], hosts: frozenset[str], ranks_per_node: int) -> Look:
    """Return what the facts of a job show."""
    devices = [match for value in facts.get("NICs", ()) for match in _NIC.finditer(value)]
    return Look(
        gpus=frozenset(facts.get("GPU", ())),
        nics=frozenset(part for match in devices for part in match[1].split("+")),
        links=frozenset(match[2] for match in devices),
        hosts=hosts,
        ranks_per_node=ranks_per_node,
    )


def fitting(look: Look) -> Fitting:
    """Return the platforms that nothing in the log speaks against and its NICs, or its GPUs and hosts, speak for."""
    if not look.nics and not look.gpus:
        return Fitting()
    found = [(platform, signs) for platform in all_platforms() if (signs := _signs(platform, look))]
    best = max((len(signs) for _platform, signs in found), default=0)
    chosen = [(platform, signs) for platform, signs in found if len(signs) == best]
    if not chosen or len(chosen) > _MOST:
        return Fitting()
    return Fitting(tuple(platform for platform, _signs in chosen), " and ".join(chosen[0][1]))


def _signs(platform: Platform, look: Look) -> tuple[str, ...]:
    """Return what speaks for a platform; empty where something speaks against it, or too little for it."""
    match = platform.match
    if platform.kind != "gpu" or platform.gpu.count < max(look.ranks_per_node, 1) or _is_other(platform, look):
        return ()
    signs = []
    if match.rdma_names and look.nics and len(look.nics) == platform.nic.ports:
        signs.append(f"{len(look.nics)} NICs with the names of that machine ({', '.join(sorted(look.nics)[:3])}...)")
    if match.hostnames and look.hosts and _all_match(look.hosts, match.hostnames):
        signs.append(f"hosts with names as {min(look.hosts)}")
    if match.gpu_names and look.gpus:
        if not signs:
            return ()
        signs.append(f"the GPU {min(look.gpus)}")
    return tuple(signs)


def _is_other(platform: Platform, look: Look) -> bool:
    match = platform.match
    link = _LINKS.get(platform.fabric.kind or "")
    return (
        bool(look.gpus and match.gpu_names and not _all_match(look.gpus, match.gpu_names))
        or bool(look.nics and match.rdma_names and not _all_match(look.nics, match.rdma_names))
        or bool(look.nics and len(look.nics) > (platform.nic.ports or len(look.nics)))
        or bool(look.links and link is not None and look.links != {link})
        or bool(look.links and platform.fabric.kind not in {None, *_LINKS})
    )


def _all_match(texts: Iterable[str], globs: tuple[str, ...]) -> bool:
    return all(any(fnmatch.fnmatchcase(text.lower(), glob.lower()) for glob in globs) for text in texts)


# Of so many nodes at most one is odd.
_ONE_OF = 4
# So many lines from the end of a source, what a program says is mostly of its end.
_NEAR_END = 60
# Or is the last that it says.
_LAST_LINES = 1
# Name to value to those who have it.
Table = Mapping[str, Mapping[str, tuple[Member, ...]]]


@dataclass(frozen=True, slots=True)
class JobLogs:
    """One job."""

    state: State
    rank_index: RankIndex
    hosts: frozenset[str]
    # As NCCL counts them; None: it does not say.
    nodes: int | None
    facts: Table
    settings: Table
    ways: tuple[Way, ...]
    events: tuple[TroubleEvent, ...]
    sources: tuple[str, ...]
    platform: Platform | None
    # Without a platform: those that the log looks like.
    fitting: Fitting
    # Lines of each source.
    lengths: tuple[int, ...]
    # Pieces of the sources as they are.
    excerpts: tuple[Excerpt, ...]

    @property
    def spans_nodes(self) -> bool:
        """Whether the job runs on several nodes."""
        return (self.nodes or len(self.hosts)) > 1 or any(way.place == "between nodes" for way in self.ways)

    @property
    def is_set_up(self) -> bool:
        """Whether every rank that logged has its communicators: what closes then may close at the end of the job."""
        seats = [seat for process in self.state.processes.values() for seat in process.seats.values()]
        return any(seat.done for seat in seats) and all(seat.done >= seat.started for seat in seats)

    def hosts_of(self, members: Iterable[Member]) -> frozenset[str]:
        """Return the hosts of those ranks."""
        return frozenset(
            self.rank_index.seats[member][0].host
            for member in members
            if isinstance(member, int) and member in self.rank_index.seats
        )

    def are_few_nodes(self, members: Iterable[Member]) -> bool:
        """Whether those are the ranks of a small part of the nodes; of three nodes nobody can say which is odd."""
        hosts = self.hosts_of(members)
        return bool(hosts) and len(hosts) * _ONE_OF <= len(self.hosts_of(self.rank_index.seats))

    def has(self, name: str) -> Mapping[str, tuple[Member, ...]]:
        """Return the values of a fact, and who has each."""
        return self.facts.get(name, {})

    def setting(self, name: str) -> str | None:
        """Return the value of a variable that NCCL says it took; one of them, where ranks differ."""
        return next(iter(self.settings.get(name, {})), None)

    def who(self, event: TroubleEvent) -> tuple[Member, ...]:
        """Return whom an event comes from."""
        if event.process is not None:
            return self.rank_index.of_name(event.process, event.device)
        if event.rank is not None:
            return (event.rank,)
        named = self._process_of(event)
        return self.rank_index.of_process(named) if named is not None else ()

    def _process_of(self, event: TroubleEvent) -> Process | None:
        """Return the process whose id a launcher names, where only one that logged has it."""
        pid = event.groups.get("pid")
        if pid is None:
            return None
        found = [process for process in self.state.processes.values() if process.pid == pid]
        on_host = [process for process in found if process.host == event.host]
        found = on_host or found
        return found[0] if len(found) == 1 else None

    def is_near_end(self, event: TroubleEvent) -> bool:
        """Whether little comes after an event in its source."""
        return event.source >= len(self.lengths) or self.lengths[event.source] - event.line <= _NEAR_END

    def is_last(self, event: TroubleEvent) -> bool:
        """Whether as good as nothing comes after the last line of an event in its source."""
        last = max(event.line, event.last)
        return event.source >= len(self.lengths) or self.lengths[event.source] - last <= _LAST_LINES

    def place_of(self, event: TroubleEvent) -> FilePlace:
        """Return the line of an event."""
        return FilePlace(file=self.sources[min(event.source, len(self.sources) - 1)], line=event.line)


def missing_ranks(case: JobLogs) -> set[int]:
    """Return the ranks of which nothing is in the log."""
    if case.rank_index.ranks is None:
        return set()
    return set(range(case.rank_index.ranks)) - set(case.rank_index.seats)


def case_of(
    reader: LogReader,
    state: State,
    events: tuple[TroubleEvent, ...],
    *,
    sources: tuple[str, ...],
    platform: Platform | None,
) -> JobLogs:
    """Return a job that a reader has read; `state` and `events`: what of it belongs to this job."""
    lengths, kept = tuple(reader.lengths), tuple(reader.excerpts.kept)
    of_pages = page_lines(kept, lengths)
    rank_index = rank_index_of(state)
    nodes = state.nodes(rank_index.ranks)
    hosts = frozenset(process.host for process in state.processes.values())
    facts = _facts(state, rank_index)
    look = look_of(facts, hosts, -(-(rank_index.ranks or 0) // nodes) if nodes else 0)
    return JobLogs(
        state=state,
        rank_index=rank_index,
        hosts=hosts,
        nodes=nodes,
        facts=facts,
        settings=_settings(state, rank_index),
        ways=ways_of(reader, state, rank_index, nodes),
        events=tuple(each for each in events if (each.source, each.line) not in of_pages),
        sources=sources,
        platform=platform,
        fitting=fitting(look) if platform is None else Fitting(),
        lengths=lengths,
        excerpts=without_lines(kept, of_pages),
    )


def facts_in(table: Table) -> tuple[LoggedFact, ...]:
    """Return a table as values, the most common first."""
    return tuple(
        LoggedFact(
            name=name,
            values=tuple(
                HeldValue(value=value, who=words(who), count=len(set(who)))
                for value, who in sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
            ),
        )
        for name, values in sorted(table.items())
    )


def _facts(state: State, rank_index: RankIndex) -> Table:
    found: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for process in state.processes.values():
        _add(found, process.facts.items(), rank_index.of_process(process))
        for seat in process.seats.values():
            _add(found, seat.facts.items(), rank_index.of_seat(process, seat))
    if state.bare_version is not None and "version" not in found:
        found["version"][state.bare_version] = ["one rank, which does not say who it is"]
    for model in state.gpu_models:
        found["GPU"][model].append("a benchmark's list of devices")
    return _frozen(found)


def _settings(state: State, rank_index: RankIndex) -> Table:
    found: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for process in state.processes.values():
        _add(found, process.settings.items(), rank_index.of_process(process))
    return _frozen(found)


def _add(found: dict[str, dict[str, list[Member]]], items: Iterable[tuple[str, str]], who: tuple[Member, ...]) -> None:
    for name, value in items:
        # The address is another on every node.
        shown = value.split(":", 1)[0] if name == "bootstrap" else value
        found[name][shown].extend(who)


def _frozen(found: Mapping[str, Mapping[str, list[Member]]]) -> Table:
    return {name: {value: tuple(who) for value, who in values.items()} for name, values in found.items()}

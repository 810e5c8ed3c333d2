"""Everything a rule may ask about one job, worked out once."""

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from busbw.facts.platforms import all_platforms
from busbw.logs.ranks import Member, People, people_of, words
from busbw.logs.reader import LogReader
from busbw.logs.state import Process, State
from busbw.logs.traffic import Way, ways_of
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import HeldValue, LoggedFact
from busbw.model.platform import Platform

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
# Name to value to those who have it.
Table = Mapping[str, Mapping[str, tuple[Member, ...]]]


@dataclass(frozen=True, slots=True)
class JobLogs:
    """One job."""

    state: State
    people: People
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

    @property
    def spans_nodes(self) -> bool:
        """Whether the job runs on several nodes."""
        return (self.nodes or len(self.hosts)) > 1 or any(way.place == "between nodes" for way in self.ways)

    def hosts_of(self, members: Iterable[Member]) -> frozenset[str]:
        """Return the hosts of those ranks."""
        return frozenset(
            self.people.seats[member][0].host
            for member in members
            if isinstance(member, int) and member in self.people.seats
        )

    def are_few_nodes(self, members: Iterable[Member]) -> bool:
        """Whether those are the ranks of a small part of the nodes; of three nodes nobody can say which is odd."""
        hosts = self.hosts_of(members)
        return bool(hosts) and len(hosts) * _ONE_OF <= len(self.hosts_of(self.people.seats))

    def has(self, name: str) -> Mapping[str, tuple[Member, ...]]:
        """Return the values of a fact, and who has each."""
        return self.facts.get(name, {})

    def setting(self, name: str) -> str | None:
        """Return the value of a variable that NCCL says it took; one of them, where ranks differ."""
        return next(iter(self.settings.get(name, {})), None)

    def who(self, event: TroubleEvent) -> tuple[Member, ...]:
        """Return whom an event comes from."""
        if event.process is not None:
            return self.people.of_name(event.process, event.device)
        if event.rank is not None:
            return (event.rank,)
        named = self._process_of(event)
        return self.people.of_process(named) if named is not None else ()

    def _process_of(self, event: TroubleEvent) -> Process | None:
        """Return the process whose id a launcher names, where only one that logged has it."""
        pid = event.groups.get("pid")
        if pid is None:
            return None
        found = [process for process in self.state.processes.values() if process.pid == pid]
        on_host = [process for process in found if process.host == event.host]
        found = on_host or found
        return found[0] if len(found) == 1 else None

    def place(self, event: TroubleEvent) -> str:
        """Return `file:line` of an event."""
        return f"{self.sources[min(event.source, len(self.sources) - 1)]}:{event.line}"


def case_of(
    reader: LogReader,
    state: State,
    events: tuple[TroubleEvent, ...],
    *,
    sources: tuple[str, ...],
    platform: Platform | None,
) -> JobLogs:
    """Return a job that a reader has read; `state` and `events`: what of it belongs to this job."""
    people = people_of(state)
    nodes = state.nodes(people.ranks)
    hosts = frozenset(process.host for process in state.processes.values())
    facts = _facts(state, people)
    look = look_of(facts, hosts, -(-(people.ranks or 0) // nodes) if nodes else 0)
    return JobLogs(
        state=state,
        people=people,
        hosts=hosts,
        nodes=nodes,
        facts=facts,
        settings=_settings(state, people),
        ways=ways_of(reader, state, people, nodes),
        events=events,
        sources=sources,
        platform=platform,
        fitting=fitting(look) if platform is None else Fitting(),
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


def _facts(state: State, people: People) -> Table:
    found: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for process in state.processes.values():
        _add(found, process.facts.items(), people.of_process(process))
        for seat in process.seats.values():
            _add(found, seat.facts.items(), people.of_seat(process, seat))
    if state.bare_version is not None and "version" not in found:
        found["version"][state.bare_version] = ["one rank, which does not say who it is"]
    for model in state.gpu_models:
        found["GPU"][model].append("a benchmark's list of devices")
    return _frozen(found)


def _settings(state: State, people: People) -> Table:
    found: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for process in state.processes.values():
        _add(found, process.settings.items(), people.of_process(process))
    return _frozen(found)


def _add(found: dict[str, dict[str, list[Member]]], items: Iterable[tuple[str, str]], who: tuple[Member, ...]) -> None:
    for name, value in items:
        # The address is another on every node.
        shown = value.split(":", 1)[0] if name == "bootstrap" else value
        found[name][shown].extend(who)


def _frozen(found: Mapping[str, Mapping[str, list[Member]]]) -> Table:
    return {name: {value: tuple(who) for value, who in values.items()} for name, values in found.items()}

"""Everything a rule may ask about one job, worked out once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from busbw.logs.fitting import Fitting, fitting, look_of
from busbw.logs.ranks import Member, People, people_of, words
from busbw.logs.reader import LogReader
from busbw.logs.state import Process, State
from busbw.logs.traffic import Way, ways_of
from busbw.logs.troubles import Event
from busbw.model.diagnosis import Fact, Held
from busbw.model.platform import Platform

# Of so many nodes at most one is odd.
_ONE_OF = 4
# Name to value to those who have it.
Table = Mapping[str, Mapping[str, tuple[Member, ...]]]


@dataclass(frozen=True, slots=True)
class Case:
    """One job."""

    state: State
    people: People
    hosts: frozenset[str]
    # As NCCL counts them; None: it does not say.
    nodes: int | None
    facts: Table
    settings: Table
    ways: tuple[Way, ...]
    events: tuple[Event, ...]
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

    def who(self, event: Event) -> tuple[Member, ...]:
        """Return whom an event comes from."""
        if event.process is not None:
            return self.people.of_name(event.process, event.device)
        if event.rank is not None:
            return (event.rank,)
        named = self._process_of(event)
        return self.people.of_process(named) if named is not None else ()

    def _process_of(self, event: Event) -> Process | None:
        """Return the process whose id a launcher names, where only one that logged has it."""
        pid = event.groups.get("pid")
        if pid is None:
            return None
        found = [process for process in self.state.processes.values() if process.pid == pid]
        on_host = [process for process in found if process.host == event.host]
        found = on_host or found
        return found[0] if len(found) == 1 else None

    def place(self, event: Event) -> str:
        """Return `file:line` of an event."""
        return f"{self.sources[min(event.source, len(self.sources) - 1)]}:{event.line}"


def case_of(
    reader: LogReader,
    state: State,
    events: tuple[Event, ...],
    *,
    sources: tuple[str, ...],
    platform: Platform | None,
) -> Case:
    """Return a job that a reader has read; `state` and `events`: what of it belongs to this job."""
    people = people_of(state)
    nodes = state.nodes(people.ranks)
    hosts = frozenset(process.host for process in state.processes.values())
    facts = _facts(state, people)
    look = look_of(facts, hosts, -(-(people.ranks or 0) // nodes) if nodes else 0)
    return Case(
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


def facts_in(table: Table) -> tuple[Fact, ...]:
    """Return a table as values, the most common first."""
    return tuple(
        Fact(
            name=name,
            values=tuple(
                Held(value=value, who=words(who), count=len(set(who)))
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

"""The diagnosis of a job: what its logs say, what is wrong with it, and the answer in one sentence."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs, case_of, facts_in, words
from busbw.logs.failure_rules import failure_findings
from busbw.logs.network_rules import network_findings
from busbw.logs.node_rules import channel_findings, node_findings
from busbw.logs.rank_rules import difference_findings, oddity_findings, ras_findings, warning_findings
from busbw.logs.reader import LogReader
from busbw.logs.state import Process, State
from busbw.logs.tables import table_findings
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Diagnosis, Finding, LoggedChoice, Trouble, Verdict
from busbw.model.platform import Platform

_CHOICE = re.compile(
    r"(?P<what>\w{1,40}): (?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w{1,30}) proto (?P<proto>\w{1,20})", re.ASCII
)
# Older versions print numbers.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


def choices_of(messages: list[tuple[str, int]]) -> tuple[LoggedChoice, ...]:
    """Return what was chosen, by collective and size; `messages` with how often each came."""
    counts: Counter[tuple[str, int, str, str]] = Counter()
    for message, count in messages:
        match = _CHOICE.search(message)
        if match is not None:
            algorithm, protocol = _name(match["algo"], _ALGORITHMS), _name(match["proto"], _PROTOCOLS)
            counts[match["what"], int(match["size"]), algorithm, protocol] += count
    return tuple(
        LoggedChoice(collective=what, size_bytes=size, algorithm=algorithm, protocol=protocol, lines=lines)
        for (what, size, algorithm, protocol), lines in sorted(counts.items())
    )


def _name(text: str, names: tuple[str, ...]) -> str:
    return names[int(text)] if text.isdigit() and int(text) < len(names) else text.upper()


@dataclass(slots=True)
class LoggedLaunch:
    """Processes that belong together, and the line where the first of them begins."""

    line: int
    names: set[str] = field(default_factory=set)
    # Line of the last communicator that one of them began or made.
    made: int = 0
    communicators: set[str] = field(default_factory=set)
    ranks: set[tuple[int, int]] = field(default_factory=set)

    def add(self, process: Process) -> None:
        """Take a process in."""
        self.names.add(process.name)
        self.made = max(self.made, process.made)
        self.communicators |= _communicators(process)
        self.ranks |= _ranks(process)


def launches_of(state: State) -> tuple[LoggedLaunch, ...]:
    """Return the launches in one source, in the order of their first lines; one, where nothing tells them apart."""
    found: list[LoggedLaunch] = []
    silent: list[Process] = []
    for process in sorted(state.processes.values(), key=lambda each: each.first):
        if not process.made:
            silent.append(process)
        elif found and not _is_another(process, found[-1]):
            found[-1].add(process)
        else:
            found.append(LoggedLaunch(process.first))
            found[-1].add(process)
    for process in silent:
        _launch_at(found, process.first, LoggedLaunch(process.first)).add(process)
    return tuple(found)


def launch_number(launches: Iterable[LoggedLaunch], line: int) -> int:
    """Return which launch a line of a launcher is of: the last that had begun."""
    return max((number for number, launch in enumerate(launches) if launch.line <= line), default=0)


def _is_another(process: Process, launch: LoggedLaunch) -> bool:
    """Whether a process begins after a launch had made all it made, and shares nothing with it."""
    own, ranks = _communicators(process), _ranks(process)
    if process.first <= launch.made or own & launch.communicators or not ranks:
        return False
    # Old versions give communicators no id: then only a rank that was there before tells.
    return bool(ranks & launch.ranks) or bool(own and launch.communicators)


def _launch_at(launches: list[LoggedLaunch], line: int, otherwise: LoggedLaunch) -> LoggedLaunch:
    if not launches:
        launches.append(otherwise)
    return launches[launch_number(launches, line)]


def _communicators(process: Process) -> set[str]:
    return {name for seat in process.seats.values() for name, _rank, _size in seat.ranks if name is not None}


def _ranks(process: Process) -> set[tuple[int, int]]:
    """Return the ranks of a process with the sizes; who is alone may be one of many that were not joined."""
    return {(size, rank) for seat in process.seats.values() for _name, rank, size in seat.ranks if size > 1}


_FAILED = frozenset({"LOG030", "LOG031", "LOG032", "LOG033", "LOG036", "LOG037", "LOG038", "LOG049"})
# Notes for which the answer is not "ok".
_OPEN = ("LOG050", "LOG046")
# What shows that traffic takes a slower way than the machine has; of the lines of LOG040 some do.
_SLOWER = frozenset(
    {"LOG001", "LOG003", "LOG004", "LOG005", "LOG007", "LOG010", "LOG012", "LOG015", "LOG016", "LOG017"}
)
_ORDER = {"error": 0, "warn": 1, "note": 2}
_MOST_LAUNCHES = 16
_LONGEST_LINE = "a line of more than 1 MiB was left out"


def diagnose(
    reader: LogReader, sources: tuple[str, ...], *, platform: Platform | None = None, unread: tuple[str, ...] = ()
) -> Diagnosis:
    """Return what the logs that `reader` has read say. `unread`: what of the sources could not be read, and why."""
    if reader.sieve.too_long:
        unread = (*unread, f"{_LONGEST_LINE}, {reader.sieve.too_long} times")
    monitor = tuple(ras_findings(reader.ras, sources))
    judged = [_judged(case, unread, monitor) for case in _cases(reader, sources, platform)]
    case, found, verdict = next((each for each in reversed(judged) if each.verdict.outcome == "failed"), judged[-1])
    if len(judged) > 1:
        found = (*found, _several(judged, case))
    return Diagnosis(
        sources=sources,
        lines=reader.sieve.lines,
        nccl_lines=reader.nccl_lines,
        unread=unread,
        platform=platform.id if platform is not None else None,
        hosts=len(case.hosts),
        processes=len(case.state.processes),
        ranks=case.rank_index.ranks,
        ranks_seen=len(case.rank_index.seats),
        nodes=case.nodes,
        communicators=len(case.state.communicators),
        facts=facts_in(case.facts),
        environment=facts_in(case.settings),
        traffic=tuple(way.value() for way in case.ways),
        choices=choices_of(reader.sieve.choices()),
        troubles=_troubles(case),
        findings=found,
        verdict=verdict,
    )


class _Judged(NamedTuple):
    case: JobLogs
    findings: tuple[Finding, ...]
    verdict: Verdict


def _cases(reader: LogReader, sources: tuple[str, ...], platform: Platform | None) -> Iterator[JobLogs]:
    """Yield every launch in the log, or the one there is."""
    reader.meet_all()
    reader.state.settle()
    reader.troubles.settle()
    events = tuple(reader.troubles.events.values())
    launches = launches_of(reader.state) if len(sources) == 1 else ()
    if len(launches) < 2:
        yield case_of(reader, reader.state, events, sources=sources, platform=platform)
        return
    for number, launch in list(enumerate(launches))[-_MOST_LAUNCHES:]:
        own = tuple(
            event
            for event in events
            if (event.process in launch.names if event.process else launch_number(launches, event.line) == number)
        )
        yield case_of(reader, reader.state.part(launch.names), own, sources=sources, platform=platform)


def _judged(case: JobLogs, unread: tuple[str, ...], monitor: tuple[Finding, ...]) -> _Judged:
    found = [
        *monitor,
        *failure_findings(case),
        *network_findings(case),
        *node_findings(case),
        *channel_findings(case),
        *difference_findings(case),
        *oddity_findings(case),
        *warning_findings(case, unread),
    ]
    found += table_findings(case, is_failed=any(each.code in _FAILED for each in found))
    found.sort(key=lambda each: (_ORDER[each.severity], each.code not in _FAILED))
    return _Judged(case, tuple(found), _verdict(case, found))


def _several(judged: list[_Judged], shown: JobLogs) -> Finding:
    launches = "; ".join(
        f"line {min(process.first for process in each.case.state.processes.values())}: "
        f"{each.case.rank_index.ranks} ranks, "
        f"{each.verdict.outcome.replace('_', ' ')}{' (this one)' if each.case is shown else ''}"
        for each in judged
    )
    return finding(
        "LOG043",
        evidence=launches,
        fix="give busbw the lines of one launch to see another",
        confidence="likely",
        count=len(judged),
    )


def _troubles(case: JobLogs) -> tuple[Trouble, ...]:
    kinds: dict[str, list[TroubleEvent]] = defaultdict(list)
    for event in case.events:
        kinds[event.kind].append(event)
    made = []
    for events in kinds.values():
        first = min(events, key=lambda event: (event.time or "", event.source, event.line))
        who = [member for event in events for member in case.who(event)]
        ranks = [member for member in case.who(first) if isinstance(member, int)]
        made.append(
            Trouble(
                what=first.what,
                pattern=first.pattern.id if first.pattern is not None else None,
                role=first.pattern.role if first.pattern is not None else "unknown",
                text=first.text,
                place=case.place_of(first),
                time=first.time,
                host=first.host,
                rank=ranks[0] if len(ranks) == 1 else None,
                lines=sum(event.count for event in events),
                processes=len({event.process for event in events if event.process is not None}),
                who=words(who),
            )
        )
    return tuple(made)


def _verdict(case: JobLogs, found: list[Finding]) -> Verdict:
    serious = [each for each in found if each.is_serious]
    codes = tuple(dict.fromkeys(each.code for each in serious))
    failures = [each for each in found if each.code in _FAILED]
    if failures:
        return Verdict(outcome="failed", sentence=_sentence(failures[0]), because=codes)
    if serious:
        slow_lines = {event.what for event in case.events if event.pattern is not None and event.pattern.slows}
        shown = [each for each in serious if each.code in _SLOWER or each.title in slow_lines]
        more = f" ({len(serious) - 1} more)" if len(serious) > 1 else ""
        if shown:
            return Verdict(outcome="slow", sentence=f"{_sentence(shown[0])}{more}", because=codes)
        return Verdict(
            outcome="cannot_tell",
            sentence=f"the log does not show whether the job is slow, but {_sentence(serious[0])}{more}",
            because=codes,
        )
    if not case.ways and not case.has("network"):
        said = next((each for each in found if each.code == "LOG048"), None)
        return Verdict(
            outcome="cannot_tell",
            sentence=f"the log does not say whether a job failed, but {_sentence(said)}"
            if said is not None
            else "the log does not say how ranks reach each other: run with NCCL_DEBUG=INFO",
            because=(said.code,) if said is not None else (),
        )
    untested = next((each for code in _OPEN for each in found if each.code == code), None)
    if untested is not None:
        return Verdict(
            outcome="cannot_tell",
            sentence=f"{_praise(case)}; but {untested.title}: {untested.effect}",
            because=(untested.code,),
        )
    return Verdict(outcome="ok", sentence=_praise(case))


def _sentence(found: Finding) -> str:
    return f"{found.title}{f': {found.effect}' if found.effect else ''}"


def _praise(case: JobLogs) -> str:
    networks = sorted({way.network for way in case.ways if way.network is not None and way.place == "between nodes"})
    inside = sorted({way.via.split("/")[0] for way in case.ways if way.place == "within nodes"})
    joined = any(way.place == "between nodes" and "MNNVL" in way.via for way in case.ways)
    parts = ["NVLinks between hosts"] if joined else []
    if networks:
        parts.append(f"{' and '.join(networks)} between nodes")
    if inside:
        parts.append(
            f"{' and '.join(inside)} within them" if networks or joined else f"{' and '.join(inside)} within the node"
        )
    return f"nothing is wrong in what the log says{': ' + ', '.join(parts) if parts else ''}"

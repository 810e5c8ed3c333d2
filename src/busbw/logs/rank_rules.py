"""Rules about ranks that are not like the others: versions and settings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from busbw.base.text import listed
from busbw.facts.rules import finding
from busbw.logs.case import JobLogs, Member, words
from busbw.logs.differentials import differential_of
from busbw.logs.lines import DIRECT
from busbw.logs.ras import OperationLevel, RasReport, RasReports
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import FilePlace, Finding

# Rank 0 alone has a use for them, or the launcher gives every rank its own.
_DIFFER_RIGHTLY = frozenset(
    {
        "NCCL_COMM_ID",
        "NCCL_DEBUG_FILE",
        "NCCL_GRAPH_DUMP_FILE",
        "NCCL_GRAPH_DUMP_FILE_RANK",
        "NCCL_HOSTID",
        "NCCL_RAS_ADDR",
        "NCCL_TOPO_DUMP_FILE",
        "NCCL_TOPO_DUMP_FILE_RANK",
    }
)
# Who has no network to set up reads none of them.
_READ_BY_SOME = ("NCCL_IB_", "NCCL_NET", "NCCL_SOCKET_", "NCCL_NSOCKS", "NCCL_GDR", "NCCL_TUNER", "NCCL_COLLNET")
_FEW = 3


def difference_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield in what ranks differ that should be alike."""
    versions = {value.split("+")[0]: who for value, who in case.has("version").items()}
    if len(versions) > 1:
        yield finding(
            "LOG020",
            evidence="; ".join(f"{value}: {words(who)}" for value, who in _common_first(versions)),
            fix="make every rank load the same libnccl.so.2: compare images, LD_LIBRARY_PATH and LD_PRELOAD",
            confidence="certain",
        )
    for name, values in sorted(case.settings.items()):
        if name in _DIFFER_RIGHTLY:
            continue
        if len(values) > 1:
            yield _unequal(name, values)
        elif not case.state.leaves_out:
            yield from _alone(case, name, values)


def _unequal(name: str, values: Mapping[str, tuple[Member, ...]]) -> Finding:
    shown = "; ".join(f'"{value}": {words(who)}' for value, who in _common_first(values)[:4])
    return finding(
        "LOG021",
        evidence=shown,
        fix=f"set {name} alike on every rank, or on none",
        confidence="certain",
        name=name,
    )


def _alone(case: JobLogs, name: str, values: Mapping[str, tuple[Member, ...]]) -> Iterator[Finding]:
    """Yield where a few ranks take a variable that the others do not speak of, or the other way round.

    NCCL says what it took when it first needs it, so that one silent rank proves little.
    """
    value = next(iter(values))
    # A process is where a variable is set; those that make no communicator need none.
    settled = {
        process.name: case.rank_index.of_process(process)
        for process in case.state.processes.values()
        if any(seat.started for seat in process.seats.values())
    }
    having = {process.name for process in case.state.processes.values() if name in process.settings} & set(settled)
    lacking = set(settled) - having
    few = having if len(having) <= len(lacking) else lacking
    if not having or not lacking or len(settled) < 2 or (len(few) > _FEW and not _is_one_host(case, few)):
        return
    members = {member for each in few for member in settled[each]}
    if few is having and (0 in members or _are_first_of_hosts(case, few)):
        return
    doubtful = name.startswith(_READ_BY_SOME) or len(settled) == 2
    setting = f'{name} = "{value}"'
    seen = (
        f"{setting} only from {words(members)}, of {len(settled)} processes"
        if few is having
        else f"{setting} from {len(having)} processes, and not from {words(members)}"
    )
    yield finding(
        "LOG022" if doubtful else "LOG021",
        evidence=seen,
        fix=f"set {name} alike on every rank, or on none",
        confidence="possible" if doubtful else "likely",
        name=name,
    )


def _are_first_of_hosts(case: JobLogs, names: set[str]) -> bool:
    """Whether processes are those of the lowest rank of each of their hosts: what is needed once a node they read."""
    first: dict[str, tuple[int, str]] = {}
    by_host: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for rank, (process, _seat) in case.rank_index.seats.items():
        by_host[process.host].append((rank, process.name))
    for host, every in by_host.items():
        first[host] = min(every)
    return bool(first) and names <= {name for _rank, name in first.values()} and len(case.hosts) > 1


def _is_one_host(case: JobLogs, names: set[str]) -> bool:
    """Whether processes are those of one host, of several."""
    return len(case.hosts) > 2 and len({case.state.processes[name].host for name in names}) == 1


def _common_first(values: Mapping[str, tuple[Member, ...]]) -> list[tuple[str, tuple[Member, ...]]]:
    return sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))


# What nodes of one job have alike where they are made alike.
_OF_NODES = (
    "CUDA driver",
    "MSCCL",
    "MSCCL++",
    "NICs",
    "NVLS",
    "bootstrap",
    "dma-buf",
    "libfabric provider",
    "net plugin",
    "net plugin file",
    "topology file",
    "tuner",
)
# Those that a rank may lack, and what then decides for it.
_LACKED = ("MSCCL", "MSCCL++", "net plugin", "net plugin file", "topology file", "tuner")
# Shorter waits are usual: libraries are loaded, files are read.
_LONG_S = 10.0


def oddity_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield who differs from most others."""
    for name, values in sorted(case.facts.items()):
        if name in _OF_NODES or name.startswith(DIRECT):
            yield from _differing(case, name, values)
    yield from _late(case)


def _differing(case: JobLogs, name: str, values: Mapping[str, tuple[Member, ...]]) -> Iterator[Finding]:
    if name == "NICs" and len({value.count("[") for value in values}) > 1:
        return  # different numbers have a finding of their own
    most = max(values, key=lambda value: len(values[value]))
    odd = {value: who for value, who in values.items() if value != most}
    lacking = _lacking(case, values) if name in _LACKED and not case.state.leaves_out else frozenset()
    members = {member for who in odd.values() for member in who} | lacking
    if not members or not case.are_few_nodes(members):
        return
    shown = "; ".join(f"{value}: {words(who)}" for value, who in sorted(odd.items())[:4])
    without = f"{'; ' if shown else ''}none: {words(lacking)}" if lacking else ""
    yield finding(
        "LOG023",
        evidence=f"{most}: {words(values[most])}; {shown}{without}",
        fix="compare these nodes with the others: image, driver, environment, devices",
        confidence="certain",
        name="bootstrap interface" if name == "bootstrap" else name,
    )


def _lacking(case: JobLogs, values: Mapping[str, tuple[Member, ...]]) -> frozenset[Member]:
    having = {member for who in values.values() for member in who}
    return frozenset(case.rank_index.seats) - having


def _late(case: JobLogs) -> Iterator[Finding]:
    """Yield who let the others wait: all wait for the last in the bootstrap, which is short for the last alone."""
    waits = {
        rank: seat.wait.time_s
        for rank, (_process, seat) in case.rank_index.seats.items()
        if seat.wait is not None and seat.wait.ranks == case.rank_index.ranks
    }
    if len(waits) < 3:
        return
    usual = median(waits.values())
    late = {member: wait for member, wait in waits.items() if wait < usual / 2}
    if usual < _LONG_S or not late or len(late) * 2 > len(waits):
        return
    yield finding(
        "LOG024",
        evidence=f"most waited {usual:.0f} s for all to come, {words(late)} {max(late.values()):.0f} s at most",
        fix="look at what these ranks did before: loading the program from a slow file system, a busy or slow host",
        confidence="likely",
        who=words(late),
        late_s=f"{usual - min(late.values()):.0f}",
    )


_MOST_UNKNOWN = 5


def warning_findings(case: JobLogs, unread: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what NCCL warns of while the job goes on."""
    known: dict[str, list[TroubleEvent]] = defaultdict(list)
    strange: dict[str, list[TroubleEvent]] = defaultdict(list)
    for event in case.events:
        is_said = event.role in {"notice", "aside"} and "library" not in event.groups
        if is_said and event.pattern is not None and not event.fatal:
            known[event.what].append(event)
        elif event.role == "unknown" and not event.fatal:
            strange[event.kind].append(event)
    for what, events in known.items():
        pattern = events[0].pattern
        if pattern is not None:
            causes = differential_of(case, events[0])
            yield finding(
                "LOG040" if pattern.role == "notice" else "LOG044",
                evidence=f"{_who(case, events)}: {events[0].text}",
                fix=None if causes else events[0].fix(is_amd=case.state.is_amd),
                effect=pattern.cause,
                place=case.place_of(events[0]),
                confidence="certain",
                causes=causes,
                what=what,
            )
    yield from _unknown(case, sorted(strange.values(), key=lambda events: -len(events)))
    for why in unread:
        yield finding("LOG042", evidence=why, fix="give busbw the whole file", confidence="certain")


def _unknown(case: JobLogs, kinds: list[list[TroubleEvent]]) -> Iterator[Finding]:
    """Yield warnings that nobody knows, those of most processes first; the rest is counted."""
    for events in kinds[:_MOST_UNKNOWN]:
        lines = sum(event.count for event in events)
        many = f"{lines} lines of this form, the first: " if lines > 1 else ""
        yield finding(
            "LOG041",
            evidence=f"{_who(case, events)}: {many}{events[0].text}",
            fix="look for the words in NCCL's issues; NCCL_DEBUG=INFO shows what stands around them",
            place=case.place_of(events[0]),
            confidence="possible",
        )
    rest = kinds[_MOST_UNKNOWN:]
    if rest:
        lines = sum(event.count for events in rest for event in events)
        yield finding(
            "LOG041",
            evidence=f"{len(rest)} more kinds of warnings, {lines} lines, the first: {rest[0][0].text}; "
            "--json has them all",
            place=case.place_of(rest[0][0]),
            confidence="possible",
        )


def _who(case: JobLogs, events: list[TroubleEvent]) -> str:
    return words({member for event in events for member in case.who(event)}) or "somebody"


_MOST_SHOWN = 8


def ras_findings(reports: RasReports, sources: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what the latest report complains of."""
    report = reports.latest
    if report is None:
        return
    place = FilePlace(file=sources[min(report.source, len(sources) - 1)], line=report.line)
    if report.lost or report.is_dead:
        yield _lost(report, place)
    for (communicator, operation), levels in report.levels.items():
        if len(levels) > 1:
            before = reports.before.levels.get((communicator, operation)) if reports.before is not None else None
            yield _apart(operation, levels, place, stands_still=before == levels)


def _lost(report: RasReport, place: FilePlace) -> Finding:
    shown = listed(report.lost, _MOST_SHOWN, between="; ")
    state = "dead: no answer for a minute" if report.is_dead else "no answer to this query"
    return finding(
        "LOG038",
        evidence=f"{shown or 'the report does not name it'}; {state}",
        fix="look at that process and its host: is it there, `py-spy dump --pid PID`, `dmesg | grep -i -e oom -e xid`; "
        "then ask ncclras again",
        place=place,
        confidence="certain" if report.is_dead else "likely",
    )


def _apart(operation: str, levels: Sequence[OperationLevel], place: FilePlace, *, stands_still: bool) -> Finding:
    least, most = (choose(level.count for level in levels) for choose in (min, max))
    behind = [level for level in levels if level.count < most]
    named = [place for level in behind for place in level.named]
    nodes = sorted({node for _rank, node in named})
    who = (
        f"{words(rank for rank, _node in named)} on {listed(nodes, _MOST_SHOWN)}"
        if named
        else f"{sum(level.ranks for level in behind)} ranks, which the report does not name (ncclras -v does)"
    )
    counts = ", ".join(
        f"{level.ranks} rank{'s' if level.ranks > 1 else ''} at {level.count}"
        for level in sorted(levels, key=lambda level: level.count)
    )
    still = "; the report before says the same" if stands_still else ""
    return finding(
        "LOG039" if stands_still or most - least > 1 else "LOG045",
        evidence=f"{operation}: {counts}{still}; behind: {who}",
        fix="ask ncclras again some seconds later: counts that stand still are of a job that hangs; then "
        "`py-spy dump --pid PID` on ranks that are behind",
        place=place,
        confidence="likely" if stands_still else "possible",
    )

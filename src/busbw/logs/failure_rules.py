"""Rules about jobs that failed or hang: the first error, ranks that left without a word, ranks that wait."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs, Member, words
from busbw.logs.network_rules import NEVER_MADE, STORE, unreachable_finding
from busbw.logs.rank_rules import difference_findings, oddity_findings
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Confidence, Finding

# A transfer that was under way when another one failed.
_FLUSHED = "5"
# The program gave up, was told to end, or had its pipe closed: there is a reason elsewhere.
_LED_THERE = frozenset({"1", "2", "6", "13", "15", "Aborted", "SIGABRT", "SIGTERM", "SIGINT", "SIGHUP"})
# The NIC gave up on a transfer.
_TRANSFERS = frozenset({"completion-error", "completion-queue-error", "retry-exceeded"})
# How many lines further a warning stands that says what a call was made for.
_CLOSE = 8
_DATED = re.compile(r"\d{4}-")


@dataclass(frozen=True, slots=True)
class FirstError:
    """The first error of a job. `rivals`: others that may have come first."""

    event: TroubleEvent
    confidence: Confidence
    how: str
    rivals: tuple[TroubleEvent, ...] = ()


def first_error(case: JobLogs) -> FirstError | None:
    """Return what went wrong first; None when no line tells of it."""
    candidates = [event for event in case.events if _may_be_first(event)]
    deaths = [event for event in candidates if event.role == "death"]
    found = [event for event in candidates if event.role != "death"]
    others = [event for event in found if event.pattern is None or not event.pattern.last_resort]
    # A rank that is killed ends the connections of the others, which the NIC reports as failed transfers; and when a
    # rank fails in any other way, the launcher kills the rest.
    network_only = all(event.pattern is not None and event.pattern.id in _TRANSFERS for event in others)
    chosen = _named(deaths) if deaths and network_only else others
    if not chosen and _has_ended(case):
        chosen = [event for event in found if event.pattern is None or not event.pattern.vague] or found
    return _earliest(_without_vague(chosen)) if chosen else None


def _has_ended(case: JobLogs) -> bool:
    """Whether something tells that the program ended badly, so that an error of any kind may be why.

    Programs catch errors and print them, and go on.
    """
    return any(
        event.role in {"follower", "death", "timeout"}
        or event.fatal
        or (
            event.pattern is not None and event.pattern.last_resort and case.is_near_end(event) and not _is_set_up(case)
        )
        for event in case.events
    )


def followers(case: JobLogs, first: FirstError | None) -> tuple[TroubleEvent, ...]:
    """Return the events that only follow from something else."""
    return tuple(
        event
        for event in case.events
        if event.role in {"follower", "origin", "death"} and (first is None or event is not first.event)
    )


def _may_be_first(event: TroubleEvent) -> bool:
    if "xid" in event.groups and not (event.code is not None and event.code.is_hardware):
        return False
    if event.role == "origin":
        return event.groups.get("status") != _FLUSHED and (event.fatal or not event.quiet)
    if event.role == "death":
        return event.groups.get("signal") not in _LED_THERE
    return event.role in {"unknown", "notice", "aside"} and event.fatal


def _named(deaths: list[TroubleEvent]) -> list[TroubleEvent]:
    """Return those that say who died, if there are any: the scheduler says first that somebody did.

    Of two for one process that with the rank counts.
    """
    ranked = {event.groups.get("pid") for event in deaths if event.rank is not None} - {None}
    return [
        event
        for event in deaths
        if event.rank is not None or (event.groups.get("pid") not in ranked and (event.host or "pid" in event.groups))
    ] or deaths


def _without_vague(events: list[TroubleEvent]) -> list[TroubleEvent]:
    """Return events without those that a later one of the same process explains."""
    of_process: dict[str | None, list[TroubleEvent]] = defaultdict(list)
    for event in events:
        of_process[event.process].append(event)
    return [
        event
        for event in events
        if event.pattern is None
        or not event.pattern.vague
        or not any(_explains(other, event) for other in of_process[event.process])
    ]


def _explains(other: TroubleEvent, vague: TroubleEvent) -> bool:
    return (
        other.source == vague.source
        and 0 < other.line - vague.line <= _CLOSE
        and other.pattern is not None
        and not other.pattern.vague
    )


def _earliest(events: list[TroubleEvent]) -> FirstError:
    if len(events) == 1:
        return FirstError(events[0], "likely", "it is the only line that tells of a cause")
    if all(event.time is not None and _DATED.match(event.time) for event in events):
        return _by_time(events)
    if len({event.source for event in events}) == 1:
        ordered = sorted(events, key=lambda event: event.line)
        return FirstError(
            ordered[0],
            "likely",
            "it is the first in the log that tells of a cause",
            _of_others(ordered[0], ordered[1:]),
        )
    if len({event.process for event in events}) == 1:
        first = min(events, key=lambda event: (event.source, event.line))
        return FirstError(first, "likely", "the others of its kind are from the same process")
    first = min(events, key=lambda event: (event.source, event.line))
    return FirstError(first, "possible", "the files have no times to order them by", _of_others(first, events))


def _by_time(events: list[TroubleEvent]) -> FirstError:
    ordered = sorted(events, key=lambda event: (event.time or "", event.source, event.line))
    first = ordered[0]
    same = [event for event in ordered[1:] if event.time == first.time]
    if not same or {event.source for event in same} == {first.source}:
        how = f"it has the earliest time, {first.time}"
        how += ", and comes first of those in the log" if same else ""
        return FirstError(first, "likely", how, _of_others(first, same))
    return FirstError(first, "possible", f"several have the earliest time, {first.time}", _of_others(first, same))


def _of_others(first: TroubleEvent, events: Iterable[TroubleEvent]) -> tuple[TroubleEvent, ...]:
    return tuple(event for event in events if event.process != first.process or event.process is None)


_STATUS = {
    "1": "local length",
    "2": "local queue pair operation",
    "4": "local protection: memory that is not registered",
    "9": "invalid request at the other end",
    "10": "access refused at the other end: registration, ACS",
    "11": "operation failed at the other end",
    "12": "no answer after all retries: a link that is down or loses packets, a GID index or an MTU that does not fit "
    "the other end, no route, or a peer that is gone",
    "13": "the other end was never ready",
    "22": "general",
}
_STATUS_FIX = {
    "4": "test with NCCL_NET_GDR_LEVEL=LOC: if that helps, GPUDirect RDMA is at fault (nvidia_peermem, ACS, driver)",
    "9": "test with NCCL_NET_GDR_LEVEL=LOC: if that helps, GPUDirect RDMA is at fault (nvidia_peermem, ACS, driver)",
    "10": "test with NCCL_NET_GDR_LEVEL=LOC: if that helps, GPUDirect RDMA is at fault (nvidia_peermem, ACS, driver)",
}
# Some come at every end of a job, when one rank closes before another.
# PyTorch tries its store again and again while it starts.
_AT_EVERY_END = frozenset({"peer-gone", "connect-failed", STORE})
# They tell that somebody else is gone; other lines that only follow tell that something has failed.
_LOST = frozenset({"peer-gone", *NEVER_MADE, "proxy-failed", "detected-elsewhere"})
# Collectives to which every rank brings equally much.
_OF_ONE_SIZE = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE"})
_MOST_RIVALS = 4
_LONGEST_LINE = 80
# They name no cause, and say where to look for it.
_SAY_WHERE = frozenset({"watchdog-stuck", "mpi-not-started"})
_RETRY_EXCEEDED = "12"
_LOOK_AT_LINK = "the link at both ends: ibstat, perfquery, mlxlink; NCCL_IB_TIMEOUT=22 waits longer and hides a bad one"
_LOOK_AT_MTU = (
    "the MTU: ibv_devinfo must show the same active_mtu at both ends, and the switches between must carry it "
    "(RoCE: ping -M do -s 8972 ADDRESS for 9000)"
)


def failure_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield why a job failed or hangs."""
    first = first_error(case)
    timeouts = [event for event in case.events if event.role == "timeout"]
    if first is not None:
        yield _first(case, first)
    silent = _silent(case) if first is None else None
    # Who waited in vain is told for itself.
    if silent is not None and not (timeouts and silent.code == "LOG036"):
        yield silent
    if timeouts:
        yield _waiting(case, timeouts)
    if first is None and silent is None and not timeouts and not case.state.leaves_out:
        yield from _unfinished(case)
    yield from _alone(case)


def _names(case: JobLogs, events: list[TroubleEvent]) -> str:
    """Return who says each of some lines, or the line, and where; of many, the first."""
    return ", ".join(
        f"{words(case.who(each)) or _cut(each.text)} ({case.place_of(each)})" for each in events[:_MOST_RIVALS]
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."


def _first(case: JobLogs, first: FirstError) -> Finding:
    event = first.event
    who = case.who(event)
    rest = followers(case, first)
    others = [each for each in first.rivals if not who or case.who(each) != who]
    rivals = {member for each in others for member in case.who(each)}
    behind = {member for each in rest for member in case.who(each)} - set(who) - rivals
    said = f"{words(who) or 'the rank is not named'}{f' on {event.host}' if event.host else ''}: {event.text}"
    words_on = [said, first.how]
    what, fix = _what(case, event)
    same = [each for each in others if _what(case, each)[0] == what]
    own = [each for each in others if each not in same]
    if same:
        words_on.append(f"the same is said by {_names(case, same)}")
    if own:
        words_on.append(f"others with a cause of their own: {_names(case, own)}")
    if behind:
        words_on.append(f"{words(behind)} only followed")
    if event.pattern is not None and event.pattern.disagree is not None:
        causes = disagreement_causes(case, event)
        words_on.append(
            "why, the likeliest first: " + "; ".join(f"({n}) {each.words}" for n, each in enumerate(causes, 1))
        )
        fix = "; ".join(f"({number}) {each.fix}" for number, each in enumerate(causes, 1) if each.fix)
    if event.pattern is not None and event.pattern.id == "driver-too-old":
        words_on += _versions_of_cuda(case)
    return finding(
        "LOG030",
        evidence="; ".join(words_on),
        fix=fix,
        place=case.place_of(event),
        confidence=first.confidence,
        what=what,
    )


def _what(case: JobLogs, event: TroubleEvent) -> tuple[str, str | None]:
    if event.pattern is None:
        return "NCCL stopped with a warning that busbw does not know", None
    fix = event.fix(is_amd=case.state.is_amd)
    status = event.groups.get("status", _RETRY_EXCEEDED if event.pattern.id == "retry-exceeded" else None)
    if status == _RETRY_EXCEEDED:
        fix = _after_retries(case, event)
    if status is None:
        return event.what, fix if event.stage is not None else f"{fix} ({event.cause})"
    return f"{event.what}, status {status}: {_STATUS.get(status, 'see ibv_wc_status')}", _STATUS_FIX.get(status, fix)


def _after_retries(case: JobLogs, event: TroubleEvent) -> str:
    """Return what to look at when a transfer got no answer: the link, the GID index and the MTU."""
    index = case.setting("NCCL_IB_GID_INDEX")
    given = f'NCCL_IB_GID_INDEX = "{index}"' if index is not None else "NCCL_IB_GID_INDEX"
    gid = (
        f"the GID index: show_gids at both ends must have a RoCE v2 address of one network there ({given}; unset it "
        "with NCCL 2.21 and later, which finds it; UCX_IB_GID_INDEX for UCX)"
    )
    named = " ".join([*case.has("NICs"), event.text])
    if "RoCE" in named:
        looks = (gid, _LOOK_AT_MTU, _LOOK_AT_LINK)
    elif "/IB" in named.replace("NET/IB", ""):
        only = (
            f"the GID index: {given} is for RoCE, and for InfiniBand behind a router; leave it unset within one subnet"
        )
        looks = (_LOOK_AT_LINK, _LOOK_AT_MTU, only)
    else:
        looks = (_LOOK_AT_LINK, gid, _LOOK_AT_MTU)
    return "; then ".join(looks)


_RELEASE = re.compile(r"\+cuda(\d+\.\d+)")


def _versions_of_cuda(case: JobLogs) -> list[str]:
    """Return, as far as the log says, which CUDA the driver supports and which this NCCL was built for."""
    numbers = [int(value[:9]) for value in case.has("CUDA driver") if value.isdecimal()]
    found = [f"the driver supports CUDA {number // 1000}.{number % 1000 // 10}" for number in numbers]
    built = sorted({match[1] for value in case.has("version") if (match := _RELEASE.search(value)) is not None})
    return [*found, *(f"this NCCL was built for CUDA {release}" for release in built)]


class DisagreementCause(NamedTuple):
    """Why two ends may not fit together. `weight`: 0 the log shows it, 1 hints at it, 2 open, 3 speaks against it."""

    weight: int
    words: str
    fix: str | None


_RELAXED = "NCCL_IB_PCI_RELAXED_ORDERING"


def disagreement_causes(case: JobLogs, event: TroubleEvent) -> tuple[DisagreementCause, ...]:
    """Return every cause for which two ends disagree, the likeliest by what the log shows first."""
    if event.pattern is not None and event.pattern.disagree == "calls":
        # Whoever says this has compared the calls themselves.
        return (_program(case, were_compared=True),)
    causes = (_settings(case), _versions(case), _program(case, were_compared=False), _relaxed_ordering(case, event))
    return tuple(sorted(causes, key=lambda each: each.weight))


def _is_whole(case: JobLogs) -> bool:
    """Whether every rank told of its version and settings, so that a difference would be seen."""
    told = sum(len(who) for who in case.has("version").values())
    return not case.state.leaves_out and not _missing(case) and case.rank_index.ranks is not None and told > 1


def _settings(case: JobLogs) -> DisagreementCause:
    differing = [each for each in difference_findings(case) if each.code in {"LOG021", "LOG022"}]
    differing += [each for each in oddity_findings(case) if each.code == "LOG023" and "version" not in each.title]
    if differing:
        first = min(differing, key=lambda each: each.code)
        return DisagreementCause(
            0 if first.code == "LOG021" else 1,
            f"{first.title}: {first.evidence}",
            first.fix,
        )
    if _is_whole(case):
        return DisagreementCause(3, "settings that differ between ranks: the log shows none", None)
    return DisagreementCause(
        2,
        "settings that differ between ranks (NCCL_BUFFSIZE, NCCL_PROTO, NCCL_ALGO, numbers of channels, a plug-in)",
        "compare `env | grep NCCL_` of the ranks, or their logs with NCCL_DEBUG=INFO",
    )


def _versions(case: JobLogs) -> DisagreementCause:
    versions = {value.split("+")[0]: who for value, who in case.has("version").items()}
    if len(versions) > 1:
        shown = "; ".join(f"{value}: {words(who)}" for value, who in sorted(versions.items()))
        return DisagreementCause(
            0, f"ranks run different versions of NCCL: {shown}", "make every rank load the same libnccl.so.2"
        )
    if versions and _is_whole(case):
        return DisagreementCause(3, f"different versions of NCCL: all that say it have {next(iter(versions))}", None)
    return DisagreementCause(
        2, "versions of NCCL that differ between ranks", "compare 'NCCL version' of all ranks: images, LD_LIBRARY_PATH"
    )


def _program(case: JobLogs, *, were_compared: bool) -> DisagreementCause:
    kinds = {event.pattern.id for event in case.events if event.pattern is not None}
    shown = were_compared or bool(kinds & {"collective-mismatch", "desync", "window-mismatch"})
    return DisagreementCause(
        0 if shown else 1 if _is_whole(case) else 2,
        "a fault of the program: ranks call other collectives or sizes, or in another order",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL finds it in PyTorch; NCCL_DEBUG_SUBSYS=COLL logs every call",
    )


def _relaxed_ordering(case: JobLogs, event: TroubleEvent) -> DisagreementCause:
    value = case.setting(_RELAXED)
    off = "mlxconfig -d DEVICE query PCI_WR_ORDERING must say per_mkey"
    if "NET/IB" not in event.text and "Socket" in " ".join((event.text, *case.has("network"))):
        return DisagreementCause(3, "relaxed ordering of PCIe writes: not over sockets", None)
    if value == "1":
        return DisagreementCause(1, f'relaxed ordering: {_RELAXED} = "1"', f"test with {_RELAXED}=0; {off}")
    if value == "0":
        return DisagreementCause(2, f'relaxed ordering that the NIC forces, although {_RELAXED} = "0"', off)
    return DisagreementCause(
        2, "relaxed ordering of PCIe writes that the NIC forces on NCCL", f"{off}; test with {_RELAXED}=0"
    )


def _silent(case: JobLogs) -> Finding | None:
    """Return that somebody left without a word, where the others only report that."""
    reports = [event for event in case.events if event.role == "follower"]
    if not reports:
        return None
    is_certain = any(event.fatal for event in reports) or any(
        event.pattern is not None and event.pattern.id not in _AT_EVERY_END for event in reports
    )
    if not is_certain and _is_set_up(case):
        return None
    if not any(event.pattern is not None and event.pattern.id in _LOST for event in reports):
        return _unexplained(case, reports)
    unreachable = unreachable_finding(case, reports)
    if unreachable is not None:
        return unreachable
    reporting: set[Member] = {member for event in reports for member in case.who(event)}
    hosts = _left_hosts(case, reports)
    quiet = {
        rank
        for rank, (process, _seat) in case.rank_index.seats.items()
        if rank not in reporting and (not hosts or process.host in hosts)
    }
    first = min(reports, key=lambda event: (event.time or "", event.source, event.line))
    missing = _missing(case)
    suspects = (
        f"; nothing of it from {words(quiet)}"
        if quiet
        else f"; of {words(missing)} nothing is in the log"
        if missing
        else ""
    )
    at = f" to {', '.join(sorted(hosts))}" if hosts else ""
    return finding(
        "LOG031",
        evidence=f"{words(reporting) or 'a launcher'}: connections{at} ended, and no line tells why{suspects}; "
        f"the first: {first.text}",
        fix="look at those hosts for a process that was killed: `dmesg | grep -i -e oom -e xid`; and at the end of "
        "what the ranks themselves printed",
        place=case.place_of(first),
        confidence="likely" if is_certain else "possible",
    )


def _unexplained(case: JobLogs, reports: list[TroubleEvent]) -> Finding:
    first = min(reports, key=lambda event: (event.source, event.line))
    return finding(
        "LOG036",
        evidence=f"{words(case.who(first)) or 'a launcher or a program'}: {first.text}",
        fix=first.pattern.fix
        if first.pattern is not None and first.pattern.id in _SAY_WHERE
        else "run again with NCCL_DEBUG=INFO, and look at what the program itself printed before this line",
        place=case.place_of(first),
        confidence="certain",
    )


def _is_set_up(case: JobLogs) -> bool:
    """Whether every rank that logged has its communicators: what closes then may close at the end of the job."""
    seats = [seat for process in case.state.processes.values() for seat in process.seats.values()]
    return any(seat.done for seat in seats) and all(seat.done >= seat.started for seat in seats)


def _left_hosts(case: JobLogs, reports: list[TroubleEvent]) -> set[str]:
    """Return the hosts whose addresses the reports name as gone."""
    host_at: dict[str, str] = {}
    for process in case.state.processes.values():
        address = process.facts.get("bootstrap", "").split(":", 1)[-1].split("<")[0]
        host_at[address] = process.host
        host_at[process.host] = process.host
    found = set()
    for event in reports:
        peer = event.groups.get("peer", "").rstrip(",.").split("<")[0]
        for name in (peer, peer.rsplit(":", 1)[0], peer.split(".")[0]):
            if name in host_at and host_at[name] != event.host:
                found.add(host_at[name])
    return found


def _waiting(case: JobLogs, timeouts: list[TroubleEvent]) -> Finding:
    calls: dict[tuple[int, str], set[Member]] = defaultdict(set)
    sizes: dict[tuple[int, str], set[str]] = defaultdict(set)
    # A rank that says its number alone waits in the call that others name.
    named = {event.groups["sequence"]: event.groups["operation"] for event in timeouts if "operation" in event.groups}
    for event in timeouts:
        number = event.groups["sequence"]
        call = int(number), event.groups.get("operation") or named.get(number, "a collective")
        calls[call].update(case.who(event))
        if "elements" in event.groups and call[1] in _OF_ONE_SIZE:
            sizes[call].add(event.groups["elements"])
    waiting = {member for who in calls.values() for member in who}
    absent = _absent(case, waiting)
    shown = "; ".join(
        f"{words(who) or 'ranks without a number'} in {operation} number {number}"
        for (number, operation), who in sorted(calls.items())[:_MOST_RIVALS]
    )
    behind = f"; {words(absent)} did not report: look there first" if absent and waiting else ""
    numbers = [number for number, _ in calls]
    if len(set(numbers)) < len(numbers):
        behind += "; one number is another collective on different ranks: their calls differ, or their process groups"
    elif any(len(of_call) > 1 for of_call in sizes.values()):
        behind += "; ranks give different sizes for one number: their calls differ, or their process groups"
    elif not behind and len(set(numbers)) > 1:
        behind = "; they are not at the same call: one is behind, or they wait in different process groups"
    return finding(
        "LOG032",
        evidence=f"{shown}{behind}",
        fix="`py-spy dump --pid PID` on the rank that is behind; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps what each "
        "did; a rank with fewer steps, as with data that does not divide evenly, leaves the others waiting: count them",
        place=case.place_of(timeouts[0]),
        confidence="likely" if absent and waiting and case.rank_index.ranks is not None else "possible",
    )


def _absent(case: JobLogs, waiting: set[Member]) -> set[int]:
    """Return the ranks that do not wait; where the log does not say how many there are, those between the waiting."""
    if case.rank_index.ranks is not None:
        return set(range(case.rank_index.ranks)) - waiting
    ranks = {member for member in waiting if isinstance(member, int)}
    between = set(range(max(ranks, default=0))) - ranks
    return between if len(between) < len(ranks) else set()


def _missing(case: JobLogs) -> set[int]:
    if case.rank_index.ranks is None:
        return set()
    return set(range(case.rank_index.ranks)) - set(case.rank_index.seats)


def _unfinished(case: JobLogs) -> Iterator[Finding]:
    begun = [
        (process, seat) for process in case.state.processes.values() for seat in process.seats.values() if seat.started
    ]
    stuck = [(process, seat) for process, seat in begun if seat.done < seat.started]
    missing = _missing(case)
    if stuck:
        who = {member for process, seat in stuck for member in case.rank_index.of_seat(process, seat)}
        also = f"; of {words(missing)} nothing is in the log" if missing else ""
        yield finding(
            "LOG033",
            evidence=f"{words(who)} began a communicator and did not finish it{also}",
            fix="look at the ranks that are missing; a firewall or a wrong NCCL_SOCKET_IFNAME keeps ranks apart",
            confidence="possible",
        )
    elif missing:
        yield finding(
            "LOG034",
            evidence=f"nothing is in the log of {words(missing)}",
            fix="give busbw the logs of all ranks: NCCL_DEBUG=INFO must reach every one",
            confidence="likely",
            seen=len(case.rank_index.seats),
            ranks=case.rank_index.ranks or 0,
        )


def _alone(case: JobLogs) -> Iterator[Finding]:
    """Yield that processes which were started together do not know of each other."""
    alone = [process for process in case.state.processes.values() if process.name in case.rank_index.by_process]
    if case.rank_index.ranks == 1 and len(alone) > 1:
        yield finding(
            "LOG035",
            evidence=f"{len(alone)} processes each made a communicator of rank 0 alone",
            fix="build nccl-tests with MPI=1; else start the program with torchrun, or with srun --mpi=pmix",
            confidence="likely",
        )
    elif case.state.greeted_alone > 1:
        yield finding(
            "LOG035",
            evidence=f"{case.state.greeted_alone} processes each say hello as number 0 of 1",
            fix="the launcher and the program's MPI are not one: compare `mpirun --version` with `ldd PROGRAM | grep "
            'libmpi` (mpi4py: python -c "from mpi4py import MPI; print(MPI.Get_library_version())"), and under Slurm '
            "start it with srun --mpi=pmix (or pmi2 for MPICH)",
            confidence="likely",
        )

"""Rules about jobs that failed or hang: the first error, ranks that left without a word, ranks that wait."""

from collections import defaultdict
from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs, Member, missing_ranks, words
from busbw.logs.causes import (
    buffer_words,
    disagreement_causes,
    provider_words,
    versions_of_cuda,
    what_happened,
)
from busbw.logs.crashes import stack_alone
from busbw.logs.differentials import differential_called, differential_of
from busbw.logs.first_error import FirstError, first_error, followers
from busbw.logs.network_rules import NEVER_MADE, STORE, unreachable_finding
from busbw.logs.sentences.reasons import (
    is_got_over,
    reason_at_end,
    reason_beside,
    reasons_near,
    said_before,
    tells_an_end,
    what_would_tell,
)
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Finding, RankedCause

# Some come at every end of a job, when one rank closes before another.
# PyTorch tries its store again and again while it starts.
_AT_EVERY_END = frozenset({"peer-gone", "connect-failed", STORE})
# They tell that somebody else is gone; other lines that only follow tell that something has failed.
_LOST = frozenset({"peer-gone", *NEVER_MADE, "proxy-failed", "detected-elsewhere"})
# Collectives to which every rank brings equally much.
_OF_ONE_SIZE = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE"})
_MOST_RIVALS = 4
_LONGEST_LINE = 80
_LONGEST_SAID = 240
_NO_NUMBER = -1
# They name no cause, and say where to look for it.
_SAY_WHERE = frozenset({"watchdog-stuck", "mpi-not-started"})


def failure_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield why a job failed or hangs."""
    first = first_error(case)
    first = reason_beside(case, first) or first
    if first is None and not case.state.processes and all(event.role in {"notice", "aside"} for event in case.events):
        first = reason_at_end(case)
    timeouts = [event for event in case.events if event.role == "timeout"]
    if first is not None and not timeouts and is_got_over(case, first):
        yield _got_over(case, first)
        first = None
    if first is not None:
        yield _first(case, first, "LOG030" if timeouts or tells_an_end(case, first) else "LOG048")
    silent = _silent(case) if first is None else None
    # Who waited in vain is told for itself.
    if silent is not None and not (timeouts and silent.code == "LOG036"):
        yield silent
    if timeouts:
        yield _waiting(case, timeouts)
    if first is None and silent is None and not timeouts and not case.state.leaves_out:
        yield from _unfinished(case)
    yield from _alone(case)
    if first is None and silent is None and not timeouts:
        yield from _stack(case)


def _stack(case: JobLogs) -> Iterator[Finding]:
    """Yield in which library a process was whose stack is all that the log holds."""
    found = stack_alone(case)
    if found is not None:
        code, frame = found
        causes = () if code.outcome is None else differential_called(case, code.outcome, frame.text)
        yield finding(
            "LOG048",
            evidence=f"{frame.text}; no line says whether the process crashed there or waits",
            fix=None if causes else f"{code.fix} ({code.cause})",
            place=case.place_of(frame),
            confidence="possible",
            causes=causes,
            what=f"a stack in {code.what}",
        )


def _names(case: JobLogs, events: list[TroubleEvent]) -> str:
    """Return who says each of some lines, or the line, and where; of many, the first."""
    return ", ".join(
        f"{words(case.who(each)) or _cut(each.text)} ({case.place_of(each)})" for each in events[:_MOST_RIVALS]
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."


def _first(case: JobLogs, first: FirstError, code: str) -> Finding:
    event = first.event
    who = case.who(event)
    rest = followers(case, first)
    others = [each for each in first.rivals if not who or case.who(each) != who]
    rivals = {member for each in others for member in case.who(each)}
    behind = {member for each in rest for member in case.who(each)} - set(who) - rivals
    said = f"{words(who) or 'the rank is not named'}{f' on {event.host}' if event.host else ''}: {event.text}"
    words_on = [said, first.how]
    what, fix = what_happened(case, event)
    same: list[TroubleEvent] = []
    own: list[TroubleEvent] = []
    for each in others:
        (same if what_happened(case, each)[0] == what else own).append(each)
    if same:
        words_on.append(f"the same is said by {_names(case, same)}")
    if own:
        words_on.append(f"others with a cause of their own: {_names(case, own)}")
    if behind:
        words_on.append(f"{words(behind)} only followed")
    causes = differential_of(case, event) or disagreement_causes(case, event)
    if event.pattern is not None and event.pattern.id == "driver-too-old":
        words_on += versions_of_cuda(case)
    beside, look_beside = _beside(case, event)
    words_on += beside
    fixes = [] if causes or fix is None else [fix]
    for found in (provider_words(case, event), buffer_words(case, event)):
        if found is not None:
            words_on.append(found[0])
            fixes.insert(0, found[1])
    return finding(
        code,
        evidence="; ".join(words_on),
        fix="; ".join(filter(None, ("; then: ".join(fixes), look_beside))) or None,
        place=case.place_of(event),
        confidence=first.confidence,
        causes=causes,
        what=what,
    )


def _beside(case: JobLogs, event: TroubleEvent) -> tuple[list[str], str | None]:
    """Return what stands near a line in words of programs that may be why, and what to do about that."""
    found = []
    before = said_before(case, event)
    if before is not None:
        found.append(f"above it stands, in words that busbw does not know: {before[:_LONGEST_SAID]}")
    near = reasons_near(case, event)
    if not near:
        return found, None
    found.append("beside it stands what may be the reason: " + "; ".join(each.what for each in near))
    return found, f"for what stands beside it: {'; '.join(each.fix(is_amd=False) or '' for each in near)}"


def _got_over(case: JobLogs, first: FirstError) -> Finding:
    what, fix = what_happened(case, first.event)
    return finding(
        "LOG047",
        evidence=first.event.text,
        fix=f"nothing, where the result is as it should be; else: {fix}",
        place=case.place_of(first.event),
        confidence="likely",
        what=what,
    )


def _silent(case: JobLogs) -> Finding | None:
    """Return that somebody left without a word, where the others only report that."""
    reports = [event for event in case.events if event.role == "follower"]
    if not reports:
        return None
    is_certain = any(event.fatal for event in reports) or any(
        event.pattern is not None and event.pattern.id not in _AT_EVERY_END for event in reports
    )
    if not is_certain and case.is_set_up:
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
    missing = missing_ranks(case)
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
        causes=differential_called(case, "peer-left", first.text),
    )


def _unexplained(case: JobLogs, reports: list[TroubleEvent]) -> Finding:
    first = min(reports, key=lambda event: (event.source, event.line))
    again = f"run again with {what_would_tell(reports)}, and look at what the program itself printed before this line"
    return finding(
        "LOG036",
        evidence=f"{words(case.who(first)) or 'a launcher or a program'}: {first.text}",
        fix=first.pattern.fix if first.pattern is not None and first.pattern.id in _SAY_WHERE else again,
        place=case.place_of(first),
        confidence="certain",
        causes=next((found for each in reports if (found := differential_of(case, each))), ()),
    )


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
    # A line that was shortened may have no number.
    calls: dict[tuple[int, str], set[Member]] = defaultdict(set)
    sizes: dict[tuple[int, str], set[str]] = defaultdict(set)
    # A rank that says its number alone waits in the call that others name.
    named = {
        event.groups.get("sequence"): event.groups["operation"] for event in timeouts if "operation" in event.groups
    }
    for event in timeouts:
        number = event.groups.get("sequence")
        call = int(number or _NO_NUMBER), event.groups.get("operation") or named.get(number, "a collective")
        calls[call].update(case.who(event))
        if "elements" in event.groups and call[1] in _OF_ONE_SIZE:
            sizes[call].add(event.groups["elements"])
    waiting = {member for who in calls.values() for member in who}
    absent = _absent(case, waiting)
    shown = "; ".join(
        f"{words(who) or 'ranks without a number'} in {operation}{f' number {number}' if number != _NO_NUMBER else ''}"
        for (number, operation), who in sorted(calls.items())[:_MOST_RIVALS]
    )
    behind = f"; {words(absent)} did not report: look there first" if absent and waiting else ""
    numbers = [number for number, _ in calls if number != _NO_NUMBER]
    differs = len(set(numbers)) < len(numbers) or any(len(of_call) > 1 for of_call in sizes.values())
    if len(set(numbers)) < len(numbers):
        behind += "; one number is another collective on different ranks: their calls differ, or their process groups"
    elif differs:
        behind += "; ranks give different sizes for one number: their calls differ, or their process groups"
    elif not behind and len(set(numbers)) > 1:
        behind = "; they are not at the same call: one is behind, or they wait in different process groups"
    fix = (
        "`py-spy dump --pid PID` on the rank that is behind; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 keeps what each "
        "did; a rank with fewer steps, as with data that does not divide evenly, leaves the others waiting: count them"
    )
    causes: tuple[RankedCause, ...] = ()
    if not behind and max(numbers, default=_NO_NUMBER) in {0, 1}:
        causes = differential_called(case, "first-call-waits")
        behind = "; it is the first call of its group, so that nothing has come through yet"
    elif not differs:
        causes = differential_called(case, "rank-missing")
    return finding(
        "LOG032",
        evidence=f"{shown}{behind}",
        fix=fix,
        place=case.place_of(timeouts[0]),
        confidence="likely" if absent and waiting and case.rank_index.ranks is not None else "possible",
        causes=causes,
    )


def _absent(case: JobLogs, waiting: set[Member]) -> set[int]:
    """Return the ranks that do not wait; where the log does not say how many there are, those between the waiting."""
    if case.rank_index.ranks is not None:
        return set(range(case.rank_index.ranks)) - waiting
    ranks = {member for member in waiting if isinstance(member, int)}
    between = set(range(max(ranks, default=0))) - ranks
    return between if len(between) < len(ranks) else set()


def _unfinished(case: JobLogs) -> Iterator[Finding]:
    begun = [
        (process, seat) for process in case.state.processes.values() for seat in process.seats.values() if seat.started
    ]
    stuck = [(process, seat) for process, seat in begun if seat.done < seat.started]
    missing = missing_ranks(case)
    if stuck:
        who = {member for process, seat in stuck for member in case.rank_index.of_seat(process, seat)}
        also = f"; of {words(missing)} nothing is in the log" if missing else ""
        fix = "look at the ranks that are missing; a firewall or a wrong NCCL_SOCKET_IFNAME keeps ranks apart"
        causes: tuple[RankedCause, ...] = ()
        if not missing and case.ways:
            causes = differential_called(case, "first-call-waits")
            also = "; all have come, and were connecting"
            fix = "look at the rank that finished last"
        yield finding(
            "LOG033",
            evidence=f"{words(who)} began a communicator and did not finish it{also}",
            fix=fix,
            confidence="possible",
            causes=causes,
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
    elif case.state.listed_alone > 1:
        yield finding(
            "LOG035",
            evidence=f"{case.state.listed_alone} processes of nccl-tests that ran at the same time each list "
            "themselves as rank 0",
            fix="build nccl-tests with MPI, after make clean where it was built without: make clean && make MPI=1 "
            "MPI_HOME=FOLDER; `ldd all_reduce_perf | grep libmpi` must show the MPI whose mpirun starts it",
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

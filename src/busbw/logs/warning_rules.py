"""Rules about warnings that do not end a job, and about logs that could not be read whole."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs
from busbw.logs.ranks import words
from busbw.logs.ras import OperationLevel, RasReport, RasReports
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Finding

_MOST_UNKNOWN = 5


def warning_findings(case: JobLogs, unread: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what NCCL warns of while the job goes on."""
    known: dict[str, list[TroubleEvent]] = defaultdict(list)
    strange: dict[str, list[TroubleEvent]] = defaultdict(list)
    for event in case.events:
        if event.role in {"notice", "aside"} and event.pattern is not None and not event.fatal:
            known[event.what].append(event)
        elif event.role == "unknown" and not event.fatal:
            strange[event.kind].append(event)
    for what, events in known.items():
        pattern = events[0].pattern
        if pattern is not None:
            yield finding(
                "LOG040" if pattern.role == "notice" else "LOG044",
                evidence=f"{_who(case, events)}: {events[0].text}",
                fix=events[0].fix(is_amd=case.state.is_amd),
                effect=pattern.cause,
                where=case.place(events[0]),
                confidence="certain",
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
            where=case.place(events[0]),
            confidence="possible",
        )
    rest = kinds[_MOST_UNKNOWN:]
    if rest:
        lines = sum(event.count for events in rest for event in events)
        yield finding(
            "LOG041",
            evidence=f"{len(rest)} more kinds of warnings, {lines} lines, the first: {rest[0][0].text}; "
            "--json has them all",
            where=case.place(rest[0][0]),
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
    where = f"{sources[min(report.source, len(sources) - 1)]}:{report.line}"
    if report.lost or report.is_dead:
        yield _lost(report, where)
    for (communicator, operation), levels in report.levels.items():
        if len(levels) > 1:
            before = reports.before.levels.get((communicator, operation)) if reports.before is not None else None
            yield _apart(operation, levels, where, stands_still=before == levels)


def _lost(report: RasReport, where: str) -> Finding:
    shown = "; ".join(report.lost[:_MOST_SHOWN])
    more = f"; and {len(report.lost) - _MOST_SHOWN} more" if len(report.lost) > _MOST_SHOWN else ""
    state = "dead: no answer for a minute" if report.is_dead else "no answer to this query"
    return finding(
        "LOG038",
        evidence=f"{shown or 'the report does not name it'}{more}; {state}",
        fix="look at that process and its host: is it there, `py-spy dump --pid PID`, `dmesg | grep -i -e oom -e xid`; "
        "then ask ncclras again",
        where=where,
        confidence="certain" if report.is_dead else "likely",
    )


def _apart(operation: str, levels: Sequence[OperationLevel], where: str, *, stands_still: bool) -> Finding:
    least, most = (choose(level.count for level in levels) for choose in (min, max))
    behind = [level for level in levels if level.count < most]
    named = [place for level in behind for place in level.named]
    nodes = sorted({node for _rank, node in named})
    who = (
        f"{words(rank for rank, _node in named)} on {', '.join(nodes[:_MOST_SHOWN])}"
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
        where=where,
        confidence="likely" if stands_still else "possible",
    )

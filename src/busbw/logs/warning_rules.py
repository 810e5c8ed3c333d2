"""Rules about warnings that do not end a job, and about logs that could not be read whole."""

from collections import defaultdict
from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.ranks import words
from busbw.logs.troubles import Event
from busbw.model.finding import Finding

_MOST_UNKNOWN = 5


def warning_findings(case: Case, unread: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what NCCL warns of while the job goes on."""
    known: dict[str, list[Event]] = defaultdict(list)
    strange: dict[str, list[Event]] = defaultdict(list)
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


def _unknown(case: Case, kinds: list[list[Event]]) -> Iterator[Finding]:
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


def _who(case: Case, events: list[Event]) -> str:
    return words({member for event in events for member in case.who(event)}) or "somebody"

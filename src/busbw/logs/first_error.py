"""Which line tells of what went wrong first, and which only follow from it."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from busbw.logs.case import Case
from busbw.logs.troubles import Event
from busbw.model.finding import Confidence

# A transfer that was under way when another one failed.
_FLUSHED = "5"
# Faults of the hardware among NVIDIA's Xid numbers; the others are a program's, or follow.
_HARDWARE_XIDS = frozenset({"48", "64", "74", "79", "94", "95", "119", "120", "140"})
# The program gave up, was told to end, or had its pipe closed: there is a reason elsewhere.
_LED_THERE = frozenset({"1", "2", "6", "13", "15", "Aborted", "SIGABRT", "SIGTERM", "SIGINT", "SIGHUP"})
# How many lines further a warning stands that says what a call was made for.
_CLOSE = 8
_DATED = re.compile(r"\d{4}-")


@dataclass(frozen=True, slots=True)
class FirstError:
    """The first error of a job. `rivals`: others that may have come first."""

    event: Event
    confidence: Confidence
    how: str
    rivals: tuple[Event, ...] = ()


def first_error(case: Case) -> FirstError | None:
    """Return what went wrong first; None when no line tells of it."""
    candidates = [event for event in case.events if _may_be_first(event)]
    deaths = [event for event in candidates if event.role == "death"]
    others = [event for event in candidates if event.role != "death"]
    # A rank that is killed ends the connections of the others, which the NIC reports as failed transfers; and when a
    # rank fails in any other way, the launcher kills the rest.
    network_only = all(event.pattern is not None and event.pattern.id == "completion-error" for event in others)
    chosen = _named(deaths) if deaths and network_only else others
    return _earliest(_without_vague(chosen)) if chosen else None


def followers(case: Case, first: FirstError | None) -> tuple[Event, ...]:
    """Return the events that only follow from something else."""
    return tuple(
        event
        for event in case.events
        if event.role in {"follower", "origin", "death"} and (first is None or event is not first.event)
    )


def _may_be_first(event: Event) -> bool:
    xid = event.groups.get("xid")
    if xid is not None and xid not in _HARDWARE_XIDS:
        return False
    if event.role == "origin":
        return event.groups.get("status") != _FLUSHED and (event.fatal or not event.quiet)
    if event.role == "death":
        return event.groups.get("signal") not in _LED_THERE
    return event.role in {"unknown", "notice", "aside"} and event.fatal


def _named(deaths: list[Event]) -> list[Event]:
    """Return those that say who died, if there are any: the scheduler says first that somebody did.

    Of two for one process that with the rank counts.
    """
    ranked = {event.groups.get("pid") for event in deaths if event.rank is not None} - {None}
    return [
        event
        for event in deaths
        if event.rank is not None or (event.groups.get("pid") not in ranked and (event.host or "pid" in event.groups))
    ] or deaths


def _without_vague(events: list[Event]) -> list[Event]:
    """Return events without those that a later one of the same process explains."""
    of_process: dict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        of_process[event.process].append(event)
    return [
        event
        for event in events
        if event.pattern is None
        or not event.pattern.vague
        or not any(_explains(other, event) for other in of_process[event.process])
    ]


def _explains(other: Event, vague: Event) -> bool:
    return (
        other.source == vague.source
        and 0 < other.line - vague.line <= _CLOSE
        and other.pattern is not None
        and not other.pattern.vague
    )


def _earliest(events: list[Event]) -> FirstError:
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


def _by_time(events: list[Event]) -> FirstError:
    ordered = sorted(events, key=lambda event: (event.time or "", event.source, event.line))
    first = ordered[0]
    same = [event for event in ordered[1:] if event.time == first.time]
    if not same or {event.source for event in same} == {first.source}:
        how = f"it has the earliest time, {first.time}"
        how += ", and comes first of those in the log" if same else ""
        return FirstError(first, "likely", how, _of_others(first, same))
    return FirstError(first, "possible", f"several have the earliest time, {first.time}", _of_others(first, same))


def _of_others(first: Event, events: Iterable[Event]) -> tuple[Event, ...]:
    return tuple(event for event in events if event.process != first.process or event.process is None)

"""Which line tells of what went wrong first, and which only follow from it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from busbw.doctor.case import Case
from busbw.doctor.troubles import Event
from busbw.model.finding import Confidence

# A transfer that was under way when another one failed.
_FLUSHED = "5"
# The program gave up, was told to end, or had its pipe closed: there is a reason elsewhere.
_LED_THERE = frozenset({"1", "2", "6", "13", "15", "Aborted"})
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
    chosen = deaths if deaths and network_only else others
    return _earliest(chosen) if chosen else None


def followers(case: Case, first: FirstError | None) -> tuple[Event, ...]:
    """Return the events that only follow from something else."""
    return tuple(
        event
        for event in case.events
        if event.role in {"follower", "origin", "death"} and (first is None or event is not first.event)
    )


def _may_be_first(event: Event) -> bool:
    if event.role == "origin":
        return event.groups.get("status") != _FLUSHED and (event.fatal or not event.quiet)
    if event.role == "death":
        return event.groups.get("signal") not in _LED_THERE
    return event.role in {"unknown", "notice", "aside"} and event.fatal


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

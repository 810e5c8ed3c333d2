"""Which of the lines of a job tells what went wrong first."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from busbw.logs.case import JobLogs
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Confidence

# A transfer that was under way when another one failed.
_FLUSHED = "5"
# The program gave up, was told to end, or had its pipe closed: there is a reason elsewhere.
_LED_THERE = frozenset({"1", "2", "6", "13", "15", "Aborted", "SIGABRT", "SIGTERM", "SIGINT", "SIGHUP"})
# The NIC gave up on a transfer.
_TRANSFERS = frozenset({"completion-error", "completion-queue-error", "retry-exceeded"})
# How many lines further a warning stands that says what a call was made for.
_CLOSE = 8
# How many lines before the word that something was lost, or was not started, stands why: where a line names what the
# system refused, or its words alone are known; of many hosts each has said its own.
_BEFORE_LOST = 30
_BEFORE_NOT_STARTED = 100
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
    candidates = _without_outcomes([event for event in case.events if _may_be_first(event)])
    deaths = [event for event in candidates if event.role == "death"]
    found = [event for event in candidates if event.role != "death"]
    others = [event for event in found if event.pattern is None or not event.pattern.last_resort]
    # A rank that is killed ends the connections of the others, which the NIC reports as failed transfers; and when a
    # rank fails in any other way, the launcher kills the rest.
    network_only = all(event.pattern is not None and event.pattern.id in _TRANSFERS for event in others)
    chosen = _named(deaths) if deaths and network_only else others
    if not chosen and _has_ended(case):
        found = _before_timeouts(case, found)
        chosen = [event for event in found if event.pattern is None or not event.pattern.vague] or found
    return _earliest(_without_vague(chosen)) if chosen else None


def _has_ended(case: JobLogs) -> bool:
    """Whether something tells that the program ended badly, so that an error of any kind may be why.

    Programs catch errors and print them, and go on.
    """
    return any(
        event.role in {"follower", "death", "timeout"}
        or event.fatal
        or (event.pattern is not None and event.pattern.outcome is not None and not event.pattern.last_resort)
        or (event.pattern is not None and event.pattern.last_resort and not case.is_set_up and _is_at_end(case, event))
        for event in case.events
    )


def _before_timeouts(case: JobLogs, events: list[TroubleEvent]) -> list[TroubleEvent]:
    """Return events without those of a log in which somebody had given up waiting before: that ends the program."""
    given_up: dict[int, int] = {}
    for event in case.events:
        if event.role == "timeout":
            given_up[event.source] = min(event.line, given_up.get(event.source, event.line))
    return [event for event in events if event.line < given_up.get(event.source, event.line + 1)]


def _is_at_end(case: JobLogs, event: TroubleEvent) -> bool:
    return case.is_last(event) if event.pattern is not None and event.pattern.needs_end else case.is_near_end(event)


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


def _without_outcomes(events: list[TroubleEvent]) -> list[TroubleEvent]:
    """Return events without those that tell what came of another one.

    A launcher says at its end that a daemon, a container or a library was not started, and lists what it may be; the
    shell, ssh or the runtime has said why before. What was refused long before is no reason.
    """
    outcomes = [event for event in events if _outcome(event) is not None]
    causes = [event for event in events if _outcome(event) is None]
    unexplained = [event for event in outcomes if not any(_is_reason(cause, event) for cause in causes)]
    last: dict[int, int] = defaultdict(int)
    for outcome in unexplained:
        last[outcome.source] = max(last[outcome.source], outcome.line)
    kept = {id(event) for event in unexplained}
    return [
        event
        for event in events
        if id(event) in kept
        or (_outcome(event) is None and not (_is_last_resort(event) and event.line < last[event.source]))
    ]


def _outcome(event: TroubleEvent) -> Literal["start", "run"] | None:
    return event.pattern.outcome if event.pattern is not None else None


def _is_reason(cause: TroubleEvent, outcome: TroubleEvent) -> bool:
    nearest = cause.last if cause.line < cause.last <= outcome.line else cause.line
    before = outcome.line - nearest
    # What comes after it is mostly a hint or a consequence; of a warning that is known it may be the reason.
    is_weak = cause.role == "death" or (cause.pattern is not None and cause.pattern.vague)
    if cause.source != outcome.source or before < (0 if is_weak else -_CLOSE):
        return False
    if _outcome(outcome) == "run":
        return before <= _BEFORE_LOST
    return before <= _BEFORE_NOT_STARTED or not _is_last_resort(cause)


def _is_last_resort(event: TroubleEvent) -> bool:
    return event.pattern is not None and event.pattern.last_resort


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

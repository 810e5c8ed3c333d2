"""Which library a process crashed in, or stands in, by its stack."""

from busbw.facts.logs import LogCode, log_codes
from busbw.logs.case import JobLogs
from busbw.logs.troubles import TroubleEvent

# Signals of a process that crashed, and how far its stack is from the line that tells of it.
CRASHES = frozenset({"4", "7", "8", "11", "Segmentation fault", "SIGSEGV", "Bus error", "SIGBUS", "SIGILL"})
_STACK = 200
# Of fewer frames a line may only look like one.
_LEAST_FRAMES = 3


def outcome_of_number(case: JobLogs, event: TroubleEvent) -> str | None:
    """Return the id of the outcome that a signal, or the library that a crash was in, stands for; None: of none."""
    # A bus error is one of memory, whatever library touched it.
    codes = (event.code, crashed_in(case, event))
    return next((code.outcome for code in codes if code is not None and code.outcome is not None), None)


def stack_alone(case: JobLogs) -> tuple[LogCode, TroubleEvent] | None:
    """Return the library that a stack shows first, and its frame, where nothing else is in the log; None: no stack.

    A debugger's stack does not say whether the process crashed or waits.
    """
    frames = [event for event in case.events if "library" in event.groups]
    if case.state.processes or len(frames) < len(case.events) or sum(each.count for each in frames) < _LEAST_FRAMES:
        return None
    first = min(frames, key=lambda each: (each.source, each.line))
    code = log_codes().get(("library", first.groups["library"]))
    return None if code is None else (code, first)


def crashed_in(case: JobLogs, event: TroubleEvent) -> LogCode | None:
    """Return what is known of the library in which a process crashed; None: nothing, or it did not crash in one."""
    library = _crash_library(case, event)
    return None if library is None else log_codes().get(("library", library))


def _crash_library(case: JobLogs, event: TroubleEvent) -> str | None:
    """Return the library that the stack beside a crash shows first; None: it is no crash, or there is no such stack."""
    if event.groups.get("signal") not in CRASHES:
        return None
    frames = [
        each
        for each in case.events
        if "library" in each.groups and each.source == event.source and abs(each.line - event.line) <= _STACK
    ]
    first = min(frames, key=lambda each: each.line, default=None)
    return None if first is None else first.groups["library"]

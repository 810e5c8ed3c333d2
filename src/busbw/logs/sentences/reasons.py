"""Why a job failed in the words of its own programs, where no line that is known says more than that it failed."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from busbw.facts.failure_words import WORDS
from busbw.facts.logs import log_regex
from busbw.logs.case import JobLogs
from busbw.logs.crashes import CRASHES
from busbw.logs.excerpts import Excerpt, lines_of
from busbw.logs.first_error import FirstError
from busbw.logs.pages import is_prose
from busbw.logs.sentences.statements import JobWords, Statement, going_on, last_error, words_in
from busbw.logs.troubles import TroubleEvent

# How far from what tells of the failure its reason stands: launchers print hints and details below it.
_BEFORE = 100
_NEAR = 30
_AFTER = 15
# From the end, where nothing known tells of a failure.
_FROM_END = 60
_LONGEST_AT_END = 600
# A log of so few lines is mostly what somebody cut out of one because it tells of an error.
_SHORT = 20
# Marks of a page of text, which no log has.
_PROSE = re.compile(r"`[^`']{1,80}`|\]\(|\*\*\w")
_LEAST = 2
# A line that says so by itself and of what.
_PLAIN = 3
_MOST_OTHERS = 2
# Who begins so does not go on: a level above that of an error, or an exception that nothing caught.
_FINAL = re.compile(
    r"^\W{0,8}(?:[\w./@-]{1,60}(?:\[\d{1,9}\])?: )?\W{0,3}(?:fatal|critical|panic|abort(?:ed|ing)?)\b|"
    r"(?-i:^\W{0,8}(?:\w{1,60}\.){0,8}\w{0,58}[a-z](?:Error|Exception): )",
    re.IGNORECASE | re.ASCII,
)
# How close to a line that is known another one is told beside it.
_JUST_BEFORE = 15
_JUST_AFTER = 8
_QUOTED = 240


def reason_beside(case: JobLogs, first: FirstError | None) -> FirstError | None:
    """Return the reason that a program gives where the first error only repeats words, or tells an outcome.

    None: the first error says more, or no line gives a reason.
    """
    if first is not None and not _says_little(first.event):
        return None
    failing = _failing(case) if first is None else [first.event]
    if not failing:
        return None
    words = _words(case.excerpts)
    first_at: dict[int, int] = {}
    last_at: dict[int, int] = {}
    for event in failing:
        first_at[event.source] = min(first_at.get(event.source, event.line), event.line)
        last_at[event.source] = max(last_at.get(event.source, 0), event.line, event.last)

    def is_near(statement: Statement) -> bool:
        if statement.source not in first_at:
            return case.lengths[statement.source] - statement.line <= _BEFORE
        return first_at[statement.source] - _BEFORE <= statement.line <= last_at[statement.source] + _AFTER

    return _chosen(case, words, is_near, first_at)


def reason_at_end(case: JobLogs) -> FirstError | None:
    """Return the reason that the last lines of a log give of which nothing else is known; None: prose gives none."""
    if is_prose(lines_of(case.excerpts)):
        return None
    words = _words(case.excerpts)

    def is_last(statement: Statement) -> bool:
        lines = case.lengths[statement.source]
        if lines - statement.line > _FROM_END or len(statement.text) > _LONGEST_AT_END:
            return False
        if _PROSE.search(statement.text) is not None:
            return False
        if lines <= _SHORT or 0 < words.ended.get(statement.source, 0) - statement.line <= _FROM_END:
            return True
        is_error = statement.marked or (statement.predicate.decisive and statement.about is not None)
        return is_error and (statement.weight >= _PLAIN or statement.predicate.plain)

    return _chosen(case, words, is_last, {})


def tells_an_end(case: JobLogs, first: FirstError) -> bool:
    """Whether something tells that the program ended badly, beside the sentence in which it gives a reason.

    Who says some things does not go on; after others a program may.
    """
    event = first.event
    if event.pattern is None or event.pattern.source != WORDS or _failing(case):
        return True
    words = _words(case.excerpts)
    says = {(each.source, each.line): each for each in words.statements}.get((event.source, event.line))
    return bool(words.ended) or says is None or says.predicate.decisive or _FINAL.search(says.text) is not None


def is_got_over(case: JobLogs, first: FirstError) -> bool:
    """Whether work went on after the first error, and nothing tells that anything ended badly."""
    event = first.event
    if event.process is not None or event.role != "origin" or event.fatal or _failing(case):
        return False
    words = _words(case.excerpts)
    last = max(event.line, event.last)
    return words.worked.get(event.source, 0) > last >= words.ended.get(event.source, 0)


def reasons_near(case: JobLogs, first: TroubleEvent) -> tuple[TroubleEvent, ...]:
    """Return what lines close to a known one say in words of their own, where the known one is no such line itself."""
    if first.pattern is None or first.pattern.source == WORDS or _says_little(first):
        return ()
    known = {(event.source, event.line) for event in case.events}
    beside = (
        (source, number, text)
        for source, number, text in lines_of(case.excerpts)
        if source == first.source and -_JUST_BEFORE <= number - first.line <= 2 * _JUST_AFTER
    )
    near = [
        each
        for each in words_in(beside).statements
        if each.weight >= _PLAIN
        and each.line - first.line <= _JUST_AFTER
        and ((each.source, each.line) not in known or (each.line == first.line and first.lacks_words))
    ]
    near.sort(key=lambda each: -each.weight)
    return tuple(_event(each) for each in _unlike(near))[:_MOST_OTHERS]


def said_before(case: JobLogs, event: TroubleEvent) -> str | None:
    """Return the last line above an outcome that calls itself an error, in words that are no reason that is known."""
    if event.pattern is None or event.pattern.outcome is None:
        return None
    above = (
        (source, number, text)
        for source, number, text in lines_of(case.excerpts)
        if source == event.source and 0 < event.line - number <= _JUST_BEFORE
    )
    return last_error(above)


# What makes a program say more, by words of its lines; the first that fits.
_LOUDER = (
    (r"UCX|ucp_|uct_", "UCX_LOG_LEVEL=info"),
    (r"libfabric|OFI|fi_\w+", "FI_LOG_LEVEL=info"),
    (r"nvshmem|NVSHMEM", "NVSHMEM_DEBUG=INFO"),
    (r"srun|slurm", "srun -vv"),
    (r"ORTE|orte|PRTE|prte|PMIX|mpirun", "mpirun --mca plm_base_verbose 10 (--prtemca with Open MPI 5)"),
    (r"mpiexec@|HYD|hydra|MPIDI|MPIR_", "mpiexec -verbose (I_MPI_DEBUG=10 with Intel MPI)"),
    (r"torch|c10d|ProcessGroup", "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL"),
)


def what_would_tell(events: Iterable[TroubleEvent]) -> str:
    """Return the settings with which the programs that speak in some lines say more of a failure."""
    text = "\n".join(event.text for event in events)
    louder = [setting for words, setting in _LOUDER if re.search(words, text) is not None]
    return " and ".join(["NCCL_DEBUG=INFO", *louder[:_MOST_OTHERS]])


@lru_cache(maxsize=1)
def _words(excerpts: tuple[Excerpt, ...]) -> JobWords:
    return words_in(lines_of(excerpts))


def _says_little(event: TroubleEvent) -> bool:
    if event.role == "death":
        return event.groups.get("signal") in CRASHES
    return _repeats(event) or (event.pattern is not None and event.pattern.outcome is not None)


def _repeats(event: TroubleEvent) -> bool:
    return event.pattern is None or event.pattern.repeats


def _failing(case: JobLogs) -> list[TroubleEvent]:
    """Return the lines that tell that the job failed."""
    return [
        event
        for event in case.events
        if event.fatal or event.role in {"follower", "death", "timeout"} or (event.pattern and event.pattern.outcome)
    ]


def _chosen(
    case: JobLogs, words: JobWords, is_near: Callable[[Statement], bool], failing: dict[int, int]
) -> FirstError | None:
    known = [event for event in case.events if not _repeats(event)]
    found = [
        each
        for each in words.statements
        if each.weight >= _LEAST
        and is_near(each)
        and not going_on(words, each)
        # What is known says more of its own lines.
        and not any(event.source == each.source and _is_in(event, each) for event in known)
    ]
    if not found:
        return None

    def order(statement: Statement) -> tuple[int, bool, int, int]:
        before = failing.get(statement.source, statement.line) - statement.line
        return -statement.weight, before > _NEAR, statement.source, statement.line

    found.sort(key=order)
    best = found[0]
    events = [_event(each) for each in _unlike(found)]
    how = "no line that busbw knows says why, and this one names a reason in words of its own"
    if len(events) > 1:
        how += ", as others do"
    if best.below is not None:
        how += f"; below it stands: {best.below}"
    return FirstError(events[0], "possible", how, tuple(events[1:]))


def _is_in(event: TroubleEvent, statement: Statement) -> bool:
    # Of lines of one pattern the first and the last are kept.
    return (
        event.line in statement.box
        or event.last in statement.box
        or (event.pattern is not None and log_regex(event.pattern.regex).search(statement.text) is not None)
    )


def _unlike(found: list[Statement]) -> Iterator[Statement]:
    """Yield the first of some statements, and those as weighty that say something else."""
    said: set[tuple[str, str | None]] = set()
    for each in found:
        key = (each.predicate.id, each.subject)
        if each.weight < found[0].weight or len(said) > _MOST_OTHERS:
            return
        if key not in said:
            said.add(key)
            yield each


def _event(statement: Statement) -> TroubleEvent:
    groups = {
        "subject": statement.subject or "",
        "program": statement.program,
        "text": statement.text[:_QUOTED],
    }
    kind = statement.about.kind if statement.about is not None else None
    return TroubleEvent(
        statement.predicate.pattern(kind, statement.reading), groups, statement.text, None, None, None, None, None,
        statement.source, statement.line,
    )  # fmt: skip

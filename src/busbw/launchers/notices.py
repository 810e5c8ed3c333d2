"""What the launchers of the MPI families print when a rank ends too early."""

import re
import signal
from dataclasses import dataclass

_NOTICES = (
    # Open MPI 4 (mpirun), 5 (prterun), and its wrapping at 75 columns.
    re.compile(
        r"process\s+rank\s+(?P<rank>\d+)\s+with\s+PID\s+(?P<pid>\d+)\s+on\s+node\s+\S+\s+exited\s+on\s+signal\s+(?P<signal>\d+)"
    ),
    re.compile(r"Process name:\s+\[[^\],]*,\s*(?P<rank>\d+)\]\s+Exit code:\s+(?P<code>\d+)"),
    re.compile(
        r"due\s+to\s+process\s+rank\s+(?P<rank>\d+)\s+with\s+PID\s+(?P<pid>\d+)\s+on\s+node\s+\S+\s+exiting\s+improperly"
    ),
    # MPICH, Intel MPI, MVAPICH (Hydra).
    re.compile(
        r"=\s+RANK\s+(?P<rank>\d+)\s+PID\s+(?P<pid>\d+)\s+RUNNING\s+AT\s+\S+\s+=\s+KILLED BY SIGNAL:\s+(?P<signal>\d+)"
    ),
    re.compile(r"=\s+PID\s+(?P<pid>\d+)\s+RUNNING\s+AT\s+\S+\s+=\s+EXIT CODE:\s+(?P<status>\d+)"),
)


_SIGNALS = {number.value: number.name for number in signal.Signals}


@dataclass(frozen=True, slots=True)
class Notice:
    """The first rank that ended too early, as its launcher tells it; either number may be unknown."""

    rank: int | None
    process_id: int | None
    what: str


def first_death(text: str) -> Notice | None:
    """Return the rank that a launcher blames in what it printed; None when it blames nobody."""
    found = [match for pattern in _NOTICES if (match := pattern.search(text)) is not None]
    if not found:
        return None
    fields = min(found, key=lambda match: match.start()).groupdict()
    return Notice(rank=_number(fields, "rank"), process_id=_number(fields, "pid"), what=_what(fields))


def _number(fields: dict[str, str], name: str) -> int | None:
    value = fields.get(name)
    return int(value) if value is not None and len(value) < 10 else None


def _what(fields: dict[str, str]) -> str:
    code = _number(fields, "code")
    # Hydra prints the raw wait status of a process that a signal ended.
    number = _number(fields, "signal") or _number(fields, "status")
    if number is not None:
        name = _SIGNALS.get(number, "unknown")
        return f"killed by signal {number} ({name})"
    return f"exited with code {code}" if code is not None else "exited without finishing MPI"

"""Processes by id: which run in a PID namespace, whether an id still means the process it meant."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.patience import wait_until


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process; `id` is the id it has outside of the lab."""

    id: int
    argv: tuple[str, ...]
    state: str


def in_namespace_of(init: int) -> tuple[Process, ...]:
    """Return what runs in the PID namespace that `init` is the first process of, without it and without zombies."""
    wanted = _namespace(init)
    if wanted is None:
        return ()
    ids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    found = [_process(process_id) for process_id in ids if process_id != init and _namespace(process_id) == wanted]
    return tuple(process for process in found if process is not None and process.state != "Z")


def start_ticks(process_id: int) -> int | None:
    """Return when a process began, in clock ticks since the machine did; None: there is none.

    Id and start together never mean another process; an id alone may.
    """
    fields = _stat(process_id)
    return None if fields is None or fields[0] == "Z" else int(fields[19])


def children_of(process_id: int) -> tuple[int, ...]:
    """Return the children of a process; none where it has ended."""
    try:
        text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
    except OSError:
        return ()
    return tuple(int(word) for word in text.split())


def send(process_id: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, number)


def stop_all(init: int) -> None:
    """Send SIGSTOP to everything in a PID namespace, also to what begins meanwhile, and wait until it has stopped."""

    def all_stopped() -> bool:
        running = [process.id for process in in_namespace_of(init) if process.state not in {"T", "t"}]
        for process_id in running:
            send(process_id, signal.SIGSTOP)
        return not running

    wait_until(all_stopped, 30, "everything to stop")


def command_of(process_id: int) -> tuple[str, ...] | None:
    """Return the command line of a process; None where it has ended."""
    try:
        words = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return None
    return tuple(word.decode(errors="replace") for word in words)


def _process(process_id: int) -> Process | None:
    fields, argv = _stat(process_id), command_of(process_id)
    return None if fields is None or argv is None else Process(id=process_id, argv=argv, state=fields[0])


def _namespace(process_id: int) -> str | None:
    try:
        return str(Path(f"/proc/{process_id}/ns/pid").readlink())
    except OSError:
        return None


def _stat(process_id: int) -> list[str] | None:
    """Return the fields of /proc/ID/stat from the state on: the name before it may hold spaces and brackets."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None

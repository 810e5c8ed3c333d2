"""Processes of a run as the kernel shows them: their state, how they ended, and which are left."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

from busbw.base import layout

_END_TIMEOUT_S = 10.0
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "busybox")


def state(process_id: int) -> str | None:
    """Return the kernel's letter for a process: R, S, D, T (stopped), Z (ended, not yet collected); None when gone."""
    fields = _stat(process_id)
    return fields[0] if fields else None


def end_descriptor(process_id: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None where this system cannot give one.

    Linux has it since 5.3, and a Python that was built on an older one lacks it too. Raises ProcessLookupError for a
    process that is gone.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(process_id)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def busy_s(process_id: int) -> float:
    """Return the processor time a process has used; 0 when it is gone."""
    fields = _stat(process_id)
    if len(fields) < 13:
        return 0.0
    # utime and stime are fields 14 and 15 of the line; the list begins with field 3.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def how_it_ended(process_id: int) -> str | None:
    """Return how an ended process that nobody has collected yet came to its end; None when it is too late to ask."""
    fields = _stat(process_id)
    # The exit code is field 52 of the line; the list begins with field 3.
    if not fields or fields[0] != "Z" or len(fields) < 50:
        return None
    status = int(fields[49])
    return describe_status(os.waitstatus_to_exitcode(status))


def describe_status(code: int) -> str:
    """Return an exit code as Python's subprocess gives it, in words."""
    if code < 0:
        return f"killed by signal {-code} ({signal_name(-code)})"
    return f"exited with code {code}"


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def behind_shells(process_id: int) -> int:
    """Return the program that a process runs: itself, or the only child of a script that waits for it.

    Intel MPI's mpirun is such a script, and a shell dies of most signals.
    """
    for _depth in range(4):
        try:
            name = Path(f"/proc/{process_id}/comm").read_text(encoding="utf-8", errors="replace").strip()
            program = Path(f"/proc/{process_id}/exe").readlink().name
            children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii").split()
        except OSError:
            break
        if len(children) != 1 or not (name in _SHELLS or program in _SHELLS):
            break
        process_id = int(children[0])
    return process_id


def end_all(run: str) -> tuple[int, ...]:
    """End every process that carries `run` in its environment, this one apart; wait until they are gone.

    Returns the ids of those that are still there after ten seconds.
    """
    deadline_s = time.monotonic() + _END_TIMEOUT_S
    while True:
        left = _tagged(run)
        if not left or time.monotonic() > deadline_s:
            return left
        for process_id in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(0.02)


def _tagged(run: str) -> tuple[int, ...]:
    wanted = f"{layout.RUN_VARIABLE}={run}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and state(int(entry.name)) not in (None, "Z", "X"):
            found.append(int(entry.name))
    return tuple(found)


def _stat(process_id: int) -> list[str]:
    try:
        line = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name in parentheses may hold anything; the fields begin behind its last parenthesis.
    return line.rpartition(")")[2].split()


_FOLDER = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
# The path is the sixth field of a line, and the only one with a slash.
_MAPPED = re.compile(rb" (" + re.escape(_FOLDER.encode()) + rb".*)")
_MAX_MAPS_BYTES = 8 * 2**20


def mapped_by(process_id: int) -> frozenset[str]:
    """Return the files under /dev/shm that a process has mapped; none when it is gone."""
    try:
        with Path(f"/proc/{process_id}/maps").open("rb") as file:
            content = file.read(_MAX_MAPS_BYTES)
    except OSError:
        return frozenset()
    paths = (found.decode("utf-8", errors="surrogateescape") for found in _MAPPED.findall(content))
    return frozenset(path for path in paths if not path.endswith(" (deleted)"))


def remove(paths: frozenset[str]) -> None:
    """Remove those of `paths` that are this user's and that no process has mapped any more."""
    left = {path for path in paths if _is_own(path)}
    if not left:
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            left -= mapped_by(int(entry.name))
    for path in left:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def _is_own(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False

"""Runs one command for each group of hosts, all side by side, each ended as a whole."""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw.base.errors import BusbwError, RunError
from busbw.measure.execute import launch, processes
from busbw.measure.execute.launch import Interrupts, JobStreams, counted_interrupts
from busbw.model.plan import Job

STDOUT, STDERR = "stdout", "stderr"
_LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupCommand:
    """A command and the folder that its output goes to; `tag` marks its processes."""

    argv: tuple[str, ...]
    folder: Path
    tag: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupEnding:
    """How a command ended; `failure`: in words, None where it ended well."""

    failure: str | None
    wall_s: float


class _Member:
    """One command under way."""

    def __init__(self, command: GroupCommand, timeout_s: float, held: contextlib.ExitStack) -> None:
        self._tag = command.tag
        self._timeout_s = timeout_s
        files = launch.open_outputs(command.folder, (STDOUT, STDERR), held)
        job = Job(argv=command.argv, env=(), timeout_s=timeout_s, stall_s=timeout_s)
        self._began_s = time.monotonic()
        self._process = launch.start(command.argv, job, command.tag)
        self.streams = JobStreams(self._process, files, lambda _line: None, lambda _line: None)

    def ending(self) -> GroupEnding | None:
        """Return how it ended; None while it runs and may."""
        wall_s = time.monotonic() - self._began_s
        code = self._process.poll()
        if code is None:
            late = f"not finished after {self._timeout_s:g} s"
            return GroupEnding(failure=late, wall_s=wall_s) if wall_s > self._timeout_s else None
        for _heard in self.streams.drain(_LOOK_S):
            pass
        return GroupEnding(failure=processes.describe_status(code) if code else None, wall_s=wall_s)

    def ask_to_end(self) -> None:
        """Send SIGTERM to its process group."""
        self._send(signal.SIGTERM)

    def await_end(self, ends_s: float) -> None:
        """Read what it prints until it has ended, or for as long as is left."""
        while self._process.poll() is None and time.monotonic() < ends_s:
            self.streams.wait(_LOOK_S)

    def end(self) -> None:
        """End what is left of it. Raises RunError for processes that do not end."""
        self._send(signal.SIGKILL)
        self.streams.close()
        launch.end(self._process, self._tag)

    def _send(self, number: int) -> None:
        # The leader of the group is not collected before it has ended: the number cannot be another's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def run_side_by_side(
    commands: Sequence[GroupCommand], timeout_s: float, grace_s: float, ended: Callable[[int, GroupEnding], None]
) -> bool:
    """Run commands at the same time and tell `ended` of each, by its place, as it ends. Returns False when stopped.

    One that is late, and all of them on Ctrl-C, get SIGTERM, and SIGKILL `grace_s` later. No process of them is left
    when this returns. Raises RunError when one cannot be started, or when output cannot be stored.
    """
    with contextlib.ExitStack() as held:
        interrupts = held.enter_context(counted_interrupts())
        members: dict[int, _Member] = {}
        held.callback(_end_all, members, grace_s)
        for at, command in enumerate(commands):
            members[at] = _Member(command, timeout_s, held)
        try:
            return _follow(members, interrupts, grace_s, ended)
        except OSError as error:
            raise RunError(
                f"cannot store what a group prints: {error.strerror or error}",
                where=str(commands[0].folder.parent),
                hint="free space, and go on with --resume",
            ) from error


def _follow(
    members: dict[int, _Member], interrupts: Interrupts, grace_s: float, ended: Callable[[int, GroupEnding], None]
) -> bool:
    with selectors.DefaultSelector() as selector:
        for at, member in members.items():
            selector.register(member.streams, selectors.EVENT_READ, at)
        while members:
            for key, _mask in selector.select(_LOOK_S):
                members[key.data].streams.wait(0.0)
            if interrupts.count:
                return False
            found = {at: ending for at, member in members.items() if (ending := member.ending()) is not None}
            for at in found:
                selector.unregister(members[at].streams)
            # Also one that has ended may have left something behind.
            _end_all({at: members.pop(at) for at in found}, grace_s)
            for at, ending in found.items():
                ended(at, ending)
    return True


def _end_all(members: dict[int, _Member], grace_s: float) -> None:
    """End members, all of them asked first; the first error is raised after all of them."""
    for member in members.values():
        member.ask_to_end()
    ends_s = time.monotonic() + grace_s
    errors: list[BusbwError] = []
    for member in members.values():
        with contextlib.suppress(OSError):
            member.await_end(ends_s)
        try:
            member.end()
        except BusbwError as error:
            errors.append(error)
    members.clear()
    if errors:
        raise errors[0]

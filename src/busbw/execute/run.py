"""Runs a plan's job to its end, whatever that is, and says what happened."""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from busbw import codec, layout
from busbw.errors import InputError, RunError
from busbw.execute import heartbeats, processes, shared_memory
from busbw.execute.blame import blame
from busbw.execute.interrupts import Interrupts, counted
from busbw.execute.output import Stream
from busbw.execute.watch import Watch
from busbw.model.event import EVENT_PREFIX, AnyEvent, Ending
from busbw.model.plan import Plan
from busbw.model.run import Culprit

_TICK_S = 0.1
# How long the ranks have after the first Ctrl-C; a second one ends them at once.
_STOP_GRACE_S = 15.0
# A rank that ended too early drags the others along by itself; this is for launchers that do not notice.
_DEATH_GRACE_S = 3.0
_TERM_GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Execution:
    """How a job ended, before anyone looks at what it measured."""

    ended: Literal["complete", "time", "stopped", "failed"]
    cause: str | None
    culprit: Culprit | None
    exit_code: int | None
    wall_s: float


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told how a run goes: its events, and remarks for a person."""

    event: Callable[[AnyEvent], None]
    remark: Callable[[str], None]


def execute(plan: Plan, directory: Path, attempt: int, done: frozenset[int], listener: Listener) -> Execution:
    """Start the plan's job and stay with it. No process of it is left when this returns.

    Raises RunError when it cannot be started, or when its output cannot be stored.
    """
    raw = directory / layout.RAW_DIRECTORY
    tag = f"{plan.run_id}.{attempt}"
    arguments = [*plan.job.argv, str(attempt), ",".join(str(number) for number in sorted(done))]
    started_s = time.monotonic()
    with contextlib.ExitStack() as held:
        files = _open_outputs(raw, attempt, plan, held)
        interrupts = held.enter_context(counted())
        process = _start(arguments, plan, tag)
        attendance = _Attendance(plan, raw, files, process, interrupts, listener)
        try:
            attendance.stay()
        except OSError as error:
            attendance.fail(f"cannot store what the run prints: {error.strerror or error}")
        finally:
            _end(process, tag)
            attendance.close()
    return attendance.result(time.monotonic() - started_s)


def _open_outputs(raw: Path, attempt: int, plan: Plan, held: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Open what the launcher's words go to, before there is a process that would be left when that fails."""
    try:
        heartbeats.clear(raw, plan.placement.ranks)
        out, err = (
            held.enter_context((raw / layout.launcher_name(stream, attempt)).open("ab", buffering=0))
            for stream in ("stdout", "stderr")
        )
    except OSError as error:
        raise RunError(
            f"cannot write into the run's folder: {error.strerror or error}",
            where=str(raw),
            hint="free space, or copy the run to another folder and go on there",
        ) from error
    return out, err


def _start(arguments: list[str], plan: Plan, tag: str) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    environment = {**os.environ, **dict(plan.job.env), layout.RUN_VARIABLE: tag}
    for name, directory in plan.job.prepend:
        environment[name] = os.pathsep.join(part for part in (directory, environment.get(name)) if part)
    try:
        return subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads here; ends mpirun if busbw is killed
        )
    except OSError as error:
        raise RunError(
            f"cannot start the launcher: {error.strerror or error}",
            where=arguments[0],
            hint="check that this program runs by itself, or choose another with --mpirun",
        ) from error


def _end(process: subprocess.Popen[bytes], tag: str) -> None:
    """Ask the launcher to end, then make every process of this run end."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_GRACE_S)
    left = processes.end_all(tag)
    if process.poll() is None:
        process.kill()
    process.wait()
    if left:
        raise RunError(
            f"processes {', '.join(map(str, left))} of this run do not end, even by SIGKILL",
            hint="they wait inside the kernel; look at /proc/PID/stack and the machine's log",
        )


class _Attendance:
    """One job under way: its streams, its ranks, and the reasons to end it."""

    def __init__(
        self,
        plan: Plan,
        raw: Path,
        files: tuple[BinaryIO, BinaryIO],
        process: subprocess.Popen[bytes],
        interrupts: Interrupts,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._raw = raw
        self._process = process
        self._interrupts = interrupts
        self._listener = listener
        self._watch = Watch(plan, raw)
        self._reason: Literal["complete", "time", "stopped"] | None = None
        self._cause: str | None = None
        self._culprit: Culprit | None = None
        self._stop_asked_s: float | None = None
        self._exit_code: int | None = None
        assert process.stdout is not None
        assert process.stderr is not None
        self._streams = (
            Stream(process.stdout, files[0], self._hear),
            Stream(process.stderr, files[1], lambda _line: None),
        )
        self._open = len(self._streams)

    def stay(self) -> None:
        """Follow the job until it has ended or must be ended."""
        ends_s = time.monotonic() + self._plan.job.timeout_s
        with selectors.DefaultSelector() as selector:
            for stream in self._streams:
                stream.register(selector)
            selector.register(self._watch, selectors.EVENT_READ)
            while self._cause is None:
                self._pump(selector)
                self._watch.look()
                if self._process.poll() is not None:
                    self._drain(selector)
                    break
                self._consider(ends_s)
        self._exit_code = self._process.poll()

    def fail(self, cause: str, culprit: Culprit | None = None) -> None:
        """Note why the job must end now; the first reason counts."""
        if self._cause is None:
            self._cause, self._culprit = cause, culprit

    def close(self) -> None:
        """Give every descriptor back, and what ended ranks left behind."""
        self._watch.close()
        shared_memory.remove(self._watch.shared_memory)
        for stream in self._streams:
            stream.close()

    def result(self, wall_s: float) -> Execution:
        """Return how it ended."""
        if self._cause is None and self._exit_code not in (0, None):
            self._blame_the_dead()
        failed = self._cause is not None or self._exit_code != 0
        if self._reason is not None and not failed:
            ended: Literal["complete", "time", "stopped", "failed"] = self._reason
        else:
            ended = "stopped" if self._stop_asked_s is not None else "failed"
        return Execution(
            ended=ended,
            cause=self._cause
            if self._cause is not None or self._reason is not None
            else "the ranks ended without a result",
            culprit=self._culprit,
            exit_code=self._exit_code,
            wall_s=wall_s,
        )

    def _pump(self, selector: selectors.BaseSelector) -> None:
        """Read what is there, or wait a moment; the end of a rank ends the wait at once."""
        for key, _mask in selector.select(_TICK_S):
            if key.data is None:
                continue
            stream: Stream = key.data
            self._watch.touch()
            if not stream.pump():
                selector.unregister(key.fileobj)
                self._open -= 1

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what the launcher left in the pipes; a process that outlived it may hold them open."""
        ends_s = time.monotonic() + 1.0
        while self._open and time.monotonic() < ends_s:
            self._pump(selector)
            self._watch.look()

    def _hear(self, line: bytes) -> None:
        text = line.decode("utf-8", errors="replace")
        _before, prefix, document = text.partition(EVENT_PREFIX)
        if not prefix:
            return
        try:
            event = codec.decode_event(document.encode())
        except InputError:
            return
        if isinstance(event, Ending):
            self._reason = event.reason
        self._listener.event(event)

    def _consider(self, ends_s: float) -> None:
        """Look for a reason to end the job."""
        now_s = time.monotonic()
        self._obey(now_s)
        if self._watch.early_deaths and self._watch.still_s > _DEATH_GRACE_S and self._reason is None:
            self._blame_the_dead()
        elif (stopped := self._watch.stopped()) is not None:
            self.fail(f"rank {stopped.rank} stands still: {stopped.what}", stopped)
        elif self._watch.still_s > self._plan.job.stall_s:
            absent = self._watch.absent()
            who = f"rank {absent.rank} {absent.what}" if absent is not None else "cannot tell which rank is missing"
            self.fail(f"no rank made progress for {self._plan.job.stall_s:.0f} s: {who}", absent)
        elif now_s > ends_s:
            absent = self._watch.absent()
            self.fail(f"not finished after {self._plan.job.timeout_s:.0f} s", absent)

    def _obey(self, now_s: float) -> None:
        """Act on Ctrl-C: the first asks the ranks to stop, the second ends them."""
        if self._interrupts.count == 0:
            return
        if self._stop_asked_s is None:
            self._stop_asked_s = now_s
            self._listener.remark("stopping after the samples in hand; Ctrl-C again ends the ranks at once")
        heartbeats.ask_to_stop(self._raw)
        if self._interrupts.count > 1:
            self.fail("ended by the user")
        elif now_s - self._stop_asked_s > _STOP_GRACE_S:
            self.fail(f"ended by the user; the ranks did not stop within {_STOP_GRACE_S:.0f} s")

    def _blame_the_dead(self) -> None:
        """Name the rank that ended first, if it can be told, and say why the job ended."""
        text = b"\n".join(stream.tail for stream in self._streams).decode("utf-8", errors="replace")
        found = blame(text, self._exit_code, self._watch)
        self.fail(found.cause, found.culprit)

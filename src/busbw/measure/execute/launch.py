"""Starts the command of a job so that it dies with busbw, and ends it with everything it has started."""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, BinaryIO, Literal, Protocol

from busbw.base import layout
from busbw.base.errors import RunError
from busbw.measure.execute import processes
from busbw.model.plan import Job
from busbw.model.record import AnyEvent
from busbw.model.visit import Culprit

_TERM_GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1


def open_outputs(raw: Path, names: tuple[str, str], held: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Open what standard output and error go to, before there is a process that would be left when that fails."""
    try:
        out, err = (held.enter_context((raw / name).open("ab", buffering=0)) for name in names)
    except OSError as error:
        raise RunError(
            f"cannot write into the run's folder: {error.strerror or error}",
            where=str(raw),
            hint="free space, or copy the run to another folder and go on there",
        ) from error
    return out, err


def start(arguments: Sequence[str], job: Job, tag: str) -> subprocess.Popen[bytes]:
    """Start a job's command. `tag` marks every process of it. Raises RunError when it cannot be started."""
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    kept = {name: value for name, value in os.environ.items() if name not in job.unset}
    environment = {**kept, **dict(job.env), layout.RUN_VARIABLE: tag}
    for name, directory in job.prepend:
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


def end(process: subprocess.Popen[bytes], tag: str) -> None:
    """Ask the launcher to end, then make every process of this run end. Raises RunError for those that do not."""
    ask_to_end((process,), _TERM_GRACE_S)
    left = processes.end_all(tag)
    if process.poll() is None:
        process.kill()
    process.wait()
    if left:
        raise RunError(
            f"processes {', '.join(map(str, left))} of this run do not end, even by SIGKILL",
            hint="they wait inside the kernel; look at /proc/PID/stack and the machine's log",
        )


def ask_to_end(launchers: Sequence[subprocess.Popen[bytes]], grace_s: float) -> None:
    """Send SIGTERM to those that run, and wait for their end, `grace_s` at most for all of them."""
    for process in launchers:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
    ends_s = time.monotonic() + grace_s
    for process in launchers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(ends_s - time.monotonic(), 0.0))


_CHUNK_BYTES = 2**16
_LONGEST_LINE_BYTES = 2**20
# A program that never stops talking must not fill the disk.
_MOST_STORED_BYTES = 256 * 2**20
_KEPT_TAIL_BYTES = 2**16
# A process that outlives its launcher may hold the pipes open.
_DRAIN_S = 1.0
_ONCE = "once"


class HasFileno(Protocol):
    """What a selector can wait for."""

    def fileno(self) -> int:
        """Return the descriptor."""


class _OutputStream:
    """One stream: its bytes go to a file, its lines to `on_line`, its end is kept in memory for messages."""

    def __init__(self, pipe: IO[bytes], file: BinaryIO, on_line: Callable[[bytes], None]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._file = file
        self._on_line = on_line
        self._stored_bytes = 0
        self._rest = b""
        self.tail = b""

    def register(self, selector: selectors.BaseSelector) -> None:
        """Have `selector` wake when there is something to read."""
        selector.register(self._pipe, selectors.EVENT_READ, self)

    def pump(self) -> bool:
        """Read what is there. Returns False at the end of the stream. Raises OSError when it cannot be stored."""
        try:
            chunk = os.read(self._pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            self._pass_on(final=True)
            return False
        if self._stored_bytes < _MOST_STORED_BYTES:
            self._file.write(chunk)
            self._stored_bytes += len(chunk)
        self.tail = (self.tail + chunk)[-_KEPT_TAIL_BYTES:]
        self._rest += chunk
        self._pass_on(final=False)
        return True

    def close(self) -> None:
        """Close the pipe."""
        self._pipe.close()

    def _pass_on(self, *, final: bool) -> None:
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._on_line(line)
        if self._rest and (final or len(self._rest) > _LONGEST_LINE_BYTES):
            self._on_line(self._rest)
            self._rest = b""


class JobStreams:
    """Standard output and error of a job under way: stored, handed on line by line, their ends kept for messages."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        files: tuple[BinaryIO, BinaryIO],
        on_output: Callable[[bytes], None],
        on_error: Callable[[bytes], None],
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._streams = (
            _OutputStream(process.stdout, files[0], on_output),
            _OutputStream(process.stderr, files[1], on_error),
        )
        self._open = len(self._streams)
        self._selector = selectors.DefaultSelector()
        for stream in self._streams:
            stream.register(self._selector)

    def wake_by(self, descriptor: HasFileno | int, *, once: bool = False) -> None:
        """End a wait when there is something to read from `descriptor`, too; `once`: the first time only."""
        self._selector.register(descriptor, selectors.EVENT_READ, _ONCE if once else None)

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is something to read from the job."""
        return self._selector.fileno()

    def wait(self, longest_s: float) -> bool:
        """Read what is there, or wait for it. Returns whether anything came. Raises OSError if it cannot be stored."""
        heard = False
        for key, _mask in self._selector.select(longest_s):
            if key.data is _ONCE:
                self._selector.unregister(key.fileobj)
            elif isinstance(key.data, _OutputStream):
                heard = True
                if not key.data.pump():
                    self._selector.unregister(key.fileobj)
                    self._open -= 1
        return heard

    def drain(self, longest_s: float) -> Iterator[bool]:
        """Read what a job that has ended left in the pipes; yield after each wait whether anything came."""
        ends_s = time.monotonic() + _DRAIN_S
        while self._open and time.monotonic() < ends_s:
            yield self.wait(longest_s)

    @property
    def text(self) -> str:
        """The end of what was printed on both."""
        return b"\n".join(stream.tail for stream in self._streams).decode("utf-8", errors="replace")

    def close(self) -> None:
        """Give every descriptor back."""
        self._selector.close()
        for stream in self._streams:
            stream.close()


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
    """Who is told how a run goes: its events, remarks for a person, and that ranks of ours were started.

    Until their first event they measure nothing: `started` may take a while.
    """

    event: Callable[[AnyEvent], None]
    remark: Callable[[str], None]
    started: Callable[[], None] = lambda: None


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupts:
    """How often the user asked to stop."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted_interrupts() -> Iterator[Interrupts]:
    """Count signals instead of dying of them. Only for the main thread; elsewhere nothing is counted."""
    interrupts = Interrupts()
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def note(number: int, _frame: FrameType | None) -> None:
        interrupts.count += 1
        if number == signal.SIGHUP:
            _write_nowhere(terminals)

    try:
        hung_up = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else ()
        before = {number: signal.signal(number, note) for number in (*_SIGNALS, *hung_up)}
    except ValueError:
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write_nowhere(streams: list[int]) -> None:
    """Let go of a terminal that has gone: what is written to it would be an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)

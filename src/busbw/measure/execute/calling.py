"""One program on each of several hosts, through the launchers that reach them: what each printed, and its end."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from busbw.base.errors import RunError
from busbw.measure.execute import launch, processes
from busbw.model.plan import Job

# Launchers at once; each may be an ssh and a daemon.
_AT_ONCE = 16
_TICK_S = 0.1
_TERM_GRACE_S = 1.0
_MOST_BYTES = 16 * 2**20
_MOST_WORDS = 300


@dataclass(slots=True)
class HostCall:
    """One launcher to one host, or to all of them, and what was printed."""

    hosts: tuple[str, ...]
    # None: it could not be started, `err` says why.
    process: "subprocess.Popen[bytes] | None"
    began_s: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    open: int = 2
    ended_s: float | None = None

    @property
    def waited_s(self) -> float:
        """Return how long it was waited for."""
        return (self.ended_s if self.ended_s is not None else time.monotonic()) - self.began_s

    @property
    def last_words(self) -> str | None:
        """Return the last line that it printed, for a message."""
        text = (self.err or self.out).decode("utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip(" -=*")]
        return lines[-1][:_MOST_WORDS] if lines else None


def call(
    jobs: Sequence[tuple[Job, tuple[str, ...]]],
    tag: str,
    limit_s: float,
    give_up: Callable[[], bool],
    words: tuple[str, ...] = (),
) -> tuple[HostCall, ...]:
    """Start each job, with further `words`, and return what all printed; nothing of them is left on this host.

    Those that do not end within `limit_s`, or before `give_up` says so, are ended. `tag` marks every process of them.
    """
    waiting = list(jobs)
    going: list[HostCall] = []
    done: list[HostCall] = []
    try:
        with selectors.DefaultSelector() as selector:
            while (waiting or going) and not give_up():
                while waiting and len(going) < _AT_ONCE:
                    started = _start(*waiting.pop(0), words, tag, selector)
                    (going if started.process is not None else done).append(started)
                _read(selector)
                now_s = time.monotonic()
                over = [each for each in going if _is_over(each) or now_s - each.began_s > limit_s]
                for each in over:
                    each.ended_s = now_s
                done += over
                going = [each for each in going if each not in over]
    finally:
        _end([*done, *going], tag)
    never = [HostCall(hosts=hosts, process=None, began_s=time.monotonic()) for _job, hosts in waiting]
    return (*done, *going, *never)


def _start(
    job: Job, hosts: tuple[str, ...], words: tuple[str, ...], tag: str, selector: selectors.BaseSelector
) -> HostCall:
    try:
        process = launch.start((*job.argv, *words), job, tag)
    except RunError as error:
        failed = HostCall(hosts=hosts, process=None, began_s=time.monotonic(), open=0)
        failed.err += error.cause.encode()
        return failed
    made = HostCall(hosts=hosts, process=process, began_s=time.monotonic())
    for pipe, into in ((process.stdout, made.out), (process.stderr, made.err)):
        assert pipe is not None
        selector.register(pipe, selectors.EVENT_READ, (made, into))
    return made


def _read(selector: selectors.BaseSelector) -> None:
    """Take what the launchers have printed, or wait a moment."""
    ready = selector.select(_TICK_S)
    for key, _mask in ready:
        going, into = key.data
        chunk = os.read(key.fd, 2**16)
        if not chunk or len(into) > _MOST_BYTES:
            selector.unregister(key.fileobj)
            going.open -= 1
        into += chunk
    if not ready and not selector.get_map():
        time.sleep(_TICK_S)


def _is_over(going: HostCall) -> bool:
    return going.process is not None and going.process.poll() is not None and going.open == 0


def _end(done: Sequence[HostCall], tag: str) -> None:
    """End what is left of the launchers here."""
    started = [each.process for each in done if each.process is not None]
    launch.ask_to_end(started, _TERM_GRACE_S)
    processes.end_all(tag)
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()

"""Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP while a run is under way: counted, so that nothing is left half done.

Batch systems send SIGTERM before they kill; SIGUSR1 is what users have Slurm send for a warning (`--signal`). SIGHUP
comes where the terminal has gone, as with a connection that broke; under nohup it is not asked for.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupts:
    """How often the user asked to stop."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted() -> Iterator[Interrupts]:
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

"""Ctrl-C, SIGTERM and SIGUSR1 while a run is under way: counted, not raised, so that nothing is left half done.

Batch systems send SIGTERM before they kill; SIGUSR1 is what users have Slurm send for a warning (`--signal`).
"""

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

    def note(_number: int, _frame: FrameType | None) -> None:
        interrupts.count += 1

    try:
        before = {number: signal.signal(number, note) for number in _SIGNALS}
    except ValueError:
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

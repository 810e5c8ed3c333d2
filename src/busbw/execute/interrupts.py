"""Ctrl-C and SIGTERM while a run is under way: counted, not raised, so that nothing is left half done."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """How often the user asked to stop."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted() -> Iterator[Interrupts]:
    """Count SIGINT and SIGTERM instead of dying of them. Only for the main thread; elsewhere nothing is counted."""
    interrupts = Interrupts()

    def note(_number: int, _frame: FrameType | None) -> None:
        interrupts.count += 1

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Calls that may never return, as reading about a process that the kernel holds: waited for, but not for ever."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(limit_s: float, call: Callable[[], T]) -> T | None:
    """Return what `call` returns; None when it raises OSError or takes longer. Its thread is then left behind."""
    answers: list[T] = []

    def run() -> None:
        try:
            answers.append(call())
        except OSError:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    return answers[0] if answers else None

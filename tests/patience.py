"""Waiting for others: until they are done, or with more time each time, and never for a fixed moment."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

Output = TypeVar("Output")
# The first is enough where a core is free, the last wherever anything comes to an end.
MORE_TIME_S = (0.5, 3.0, 20.0)


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str | Callable[[], str]) -> None:
    """Wait until a condition holds; fail after `timeout_s`, and say what was waited for."""
    if not holds_within(timeout_s, condition):
        pytest.fail(f"waited {timeout_s:.0f} s for {what if isinstance(what, str) else what()}")


def holds_within(timeout_s: float, condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds before the time is over."""
    ends_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.01)
    return True


def with_more_time(
    attempt: Callable[[float], Output], enough: Callable[[Output], bool], times_s: Sequence[float] = MORE_TIME_S
) -> Output:
    """Return what comes of an attempt in the first of `times_s` that was enough, or in the last.

    For what uses up any time it is given, after something that takes a moment of it, or more on a busy machine.
    """
    for time_s in times_s[:-1]:
        output = attempt(time_s)
        if enough(output):
            return output
    return attempt(times_s[-1])

"""What work costs in CPU time, told so that a busy machine gives the same answer as an idle one.

Others on the same cores make work take longer, in CPU time too (caches, the other half of a core, a hypervisor), and
never shorter. So what is over its bound is tried again, and the smallest counts; seconds are those of a machine as fast
as the one that the bounds were set on: a fixed loop, timed right beside the work, says how much slower this one is.
"""

import re
import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")
Output = TypeVar("Output")

TRIES = 5
# How many times its bound no busy machine makes work cost: it is not tried again.
HOPELESS = 10
# What `_loop` takes on the machine that the bounds were set on.
LOOP_S = 0.03
# What `check_growth` does not look at.
NEGLIGIBLE_S = 0.5


def check_cost(work: Callable[[], Output], most_s: float) -> Output:
    """Return what `work` returns; fail if no try of it takes less than `most_s` of CPU time in this thread."""
    costs_s = []
    for _try in range(TRIES):
        cost_s, output = _timed(work)
        if cost_s < most_s:
            return output
        costs_s.append(cost_s / _slowness())
        if costs_s[-1] < most_s:
            return output
        if costs_s[-1] > HOPELESS * most_s:
            break
    raise AssertionError(f"took {_listed(costs_s)} s of CPU time, not under {most_s:g} s")


def check_growth(
    work: Callable[[Input], object], short: Input, long: Input, *, most: float, negligible_s: float = NEGLIGIBLE_S
) -> None:
    """Fail if `work` on the `long` input costs `most` times what it costs on the `short` one, or more.

    What is over in `negligible_s` is not looked at.
    """
    short_s, long_s = [], []
    for _try in range(TRIES):
        long_s.append(_timed(lambda: work(long))[0])
        if min(long_s) < negligible_s:
            return
        short_s.append(_timed(lambda: work(short))[0])
        most_s = max(negligible_s, most * min(short_s))
        if min(long_s) < most_s:
            return
        if min(long_s) > HOPELESS * most_s:
            break
    raise AssertionError(
        f"{long!r:.60}... took {_listed(long_s)} s of CPU time,"
        f" the short input {_listed(short_s)} s: {most:g} times or more"
    )


def _timed(work: Callable[[], Output]) -> tuple[float, Output]:
    start_s = time.thread_time()
    output = work()
    return time.thread_time() - start_s, output


def _slowness() -> float:
    """Return how many times slower than `LOOP_S` the loop is here and now; at least 1."""
    return max(1.0, min(_timed(_loop)[0] for _try in range(2)) / LOOP_S)


def _loop() -> int:
    found: dict[str, int] = {}
    for number in range(20_000):
        text = f"{number} of {number * 7919}"
        for word in re.findall(r"\d+", text):
            found[word] = found.get(word, 0) + len(text.split())
    return len(found)


def _listed(times_s: list[float]) -> str:
    return ", ".join(f"{time_s:.2f}" for time_s in times_s)

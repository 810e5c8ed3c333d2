"""A time that runs on through a log, such as `ExecutionTime = 81.2 s`: what passes from one line to the next is a step.

Such clocks are printed with few digits, and a step may take few of them. So many steps are taken together in at most
20 stretches, each of which gives the time of a step in it; the digits that are lost are lost once a stretch.
"""

from collections.abc import Sequence
from itertools import pairwise

from busbw.formats.launch_results import LaunchResult
from busbw.model.scaling import Estimate

_MOST_STRETCHES = 20


def steps_of(readings: Sequence[LaunchResult]) -> tuple[LaunchResult, ...]:
    """Return the times of a step; none for fewer than two readings. A clock that goes back was started anew."""
    steps = [
        (after.line, after.estimate.value - before.estimate.value)
        for before, after in pairwise(readings)
        if after.estimate.value >= before.estimate.value
    ]
    count = min(len(steps), _MOST_STRETCHES)
    found = []
    for number in range(count):
        stretch = steps[number * len(steps) // count : (number + 1) * len(steps) // count]
        step_s = sum(time_s for _, time_s in stretch) / len(stretch)
        if step_s > 0:
            found.append(LaunchResult(line=stretch[-1][0], estimate=Estimate(value=step_s)))
    return tuple(found)

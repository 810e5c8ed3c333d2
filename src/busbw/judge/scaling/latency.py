"""Whether the time of a size is mostly what any message takes: then its bandwidth falls on every larger machine."""

from collections.abc import Sequence

from busbw.judge.scaling.lines import Group, setting
from busbw.judge.scaling.places import by_place
from busbw.model.scaling import Axis, Observation

# Of a message's time, the time of one that is so much smaller: beyond this share bandwidth is not the point.
LARGEST_SHARE = 0.1
_TIMES_SMALLER = 64
# Where nothing smaller was measured: from here on judge.expectation looks at bandwidth.
_LARGE_BYTES = 2**20


def latency_share(group: Group, observations: Sequence[Observation], axis: Axis, size_bytes: int) -> float | None:
    """Return the largest share of the line's times that a small message takes; None where none was measured."""
    small = [each for each in observations if _is_small(each, group, size_bytes)]
    smallest = {at: min(_times(here), default=0.0) for at, here in by_place(small, axis).items()}
    shares = [
        smallest[at] / time_s
        for at, here in by_place(group.observations, axis).items()
        if smallest.get(at)
        for time_s in _times(here)
    ]
    return max(shares, default=None)


def is_latency(share: float | None, size_bytes: int) -> bool:
    """Whether a line is to be judged by its time."""
    return share > LARGEST_SHARE if share is not None else size_bytes < _LARGE_BYTES


def _is_small(each: Observation, group: Group, size_bytes: int) -> bool:
    """Whether a result is of a much smaller size and of the same line, whatever algorithm ran."""
    if each.size_bytes is None or each.size_bytes * _TIMES_SMALLER > size_bytes:
        return False
    return all(setting(each, name) == value for name, value in group.settings if name != "algorithm")


def _times(here: Sequence[Observation]) -> list[float]:
    return [each.time_s.value for each in here if each.time_s is not None and each.time_s.value > 0]

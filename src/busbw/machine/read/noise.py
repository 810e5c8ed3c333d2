"""The test of a host's noise, as its snapshot holds it; and what it comes to over all CPUs."""

import math
import statistics

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.machine.read.commands import NOISE
from busbw.machine.read.index import SnapshotIndex
from busbw.model import codec
from busbw.model.machine import NoiseOfCpu, NoiseTest

# No host has more CPUs; a longer answer is damage.
_MOST_CPUS = 8192
_MOST_ENTRIES = 64


def noise_of(index: SnapshotIndex) -> NoiseTest | None:
    """Return the test that a snapshot holds; None where it holds none, or one that cannot have been measured."""
    text = index.output(NOISE)
    if not text.strip():
        return None
    try:
        found = codec.decode(text.encode(), NoiseTest, where=NOISE)
    except InputError:
        return None
    is_possible = 0 < len(found.cpus) <= _MOST_CPUS and _is_time(found.duration_s) and _is_time(found.quantum_s)
    return found if is_possible and all(_is_measured(each) for each in found.cpus) else None


def _is_time(value: float) -> bool:
    return math.isfinite(value) and 0 < value < 1e9


def _is_measured(each: NoiseOfCpu) -> bool:
    """Whether the numbers of one CPU fit each other."""
    times = (each.least_s, each.median_s, each.p99_s, each.p999_s, each.most_s)
    shares = (each.lost, each.detoured, each.regularity)
    return (
        all(_is_time(value) for value in (*times, each.total_s, each.limit_s))
        and list(times) == sorted(times)
        and all(math.isfinite(share) and 0 <= share <= 1 for share in shares)
        and (each.period_s is None or _is_time(each.period_s))
        and each.repeats > 0
        and 0 <= each.detours <= each.repeats
        and len(each.excess) <= _MOST_ENTRIES
        and min(each.cpu, each.preempted, *each.excess) >= 0
    )


class NoiseSummary(Value, kw_only=True, frozen=True):
    """The noise of all CPUs of a host in a few numbers."""

    cpus: Integer
    # Share of the time lost, in the median over the CPUs and on the worst; and the part of it in detours.
    lost: float
    worst_lost: float
    detoured: float
    # Of the times of repeats: the middle, how much the slowest of a thousand takes beyond the median, and the longest.
    median_s: float
    p999_over_median: float
    most_s: float
    detours_per_s: float
    preempted: Integer


def summary(test: NoiseTest) -> NoiseSummary:
    """Return what a test comes to over all CPUs."""
    cpus = test.cpus
    return NoiseSummary(
        cpus=len(cpus),
        lost=statistics.median(each.lost for each in cpus),
        worst_lost=max(each.lost for each in cpus),
        detoured=statistics.median(each.detoured for each in cpus),
        median_s=statistics.median(each.median_s for each in cpus),
        p999_over_median=statistics.median(each.p999_s / each.median_s for each in cpus),
        most_s=max(each.most_s for each in cpus),
        detours_per_s=statistics.median(each.detours / each.total_s for each in cpus),
        preempted=sum(each.preempted for each in cpus),
    )

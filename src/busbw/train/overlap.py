"""How much of a step communication takes on a GPU, and how much of that nothing computes beside: from kernels' times.

Communication is the union of NCCL's kernels, compute that of all others; exposed is communication without compute,
hidden the rest of it. A kernel of NCCL also waits for the ranks that come later, and one that receives for its sender:
exposed time is what a faster interconnect could take at most, not what it would.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from busbw.base.text import percent
from busbw.base.units import format_time
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.trace import GroupShare, TraceShare, TraceStep
from busbw.stats.distributions import median, median_interval
from busbw.train.reading.kineto import Kernel, TracedSteps

Spans = Sequence[tuple[float, float]]
# From this share of a step on exposed communication is worth a warning.
LEAST_EXPOSED = 0.1
_MOST_GROUPS = 64
_PARTS = ("compute_s", "communication_s", "exposed_s")


def union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of intervals: ascending, apart from each other, none empty."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        elif end > begin:
            found.append((begin, end))
    return found


def without(spans: Spans, others: Spans) -> list[tuple[float, float]]:
    """Return what of a union lies outside another union."""
    found, at = [], 0
    for begin, end in spans:
        here = begin
        while at < len(others) and others[at][1] <= here:
            at += 1
        place = at
        while place < len(others) and others[place][0] < end:
            if others[place][0] > here:
                found.append((here, others[place][0]))
            here = max(here, others[place][1])
            place += 1
        if here < end:
            found.append((here, end))
    return found


class Covered:
    """How much of any interval a union covers."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._begins = [begin for begin, _ in spans]
        self._sums = [0.0, *accumulate(end - begin for begin, end in spans)]

    def of(self, begin: float, end: float) -> float:
        """Return the length that lies between two places."""
        return self._before(end) - self._before(begin)

    def _before(self, place: float) -> float:
        at = bisect_right(self._begins, place)
        if at == 0:
            return 0.0
        begin, end = self._spans[at - 1]
        return self._sums[at - 1] + min(place, end) - begin


def trace_share(traced: TracedSteps, source: str, size_bytes: int) -> TraceShare:
    """Return what a trace says of communication, by step and by group."""
    compute = union(traced.compute)
    communication = union((each.begin_s, each.end_s) for each in traced.communication)
    exposed = without(communication, compute)
    ends = [end for spans in (compute, communication) for _, end in spans]
    spans = traced.steps or ((0, 0.0, max(ends, default=0.0)),)
    covers = [Covered(each) for each in (compute, communication, exposed)]
    steps = tuple(
        TraceStep(
            number=number,
            time_s=end - begin,
            compute_s=covers[0].of(begin, end),
            communication_s=covers[1].of(begin, end),
            exposed_s=covers[2].of(begin, end),
        )
        for number, begin, end in spans
    )
    times = sorted(step.time_s for step in steps)
    low, high = median_interval(times) or (times[0], times[-1])
    shares = _middle_shares(steps)
    hidden = shares["communication_s"] - shares["exposed_s"]
    step_s = ScalingEstimate(value=median(times), low=low, high=high, basis="samples")
    what = "a step" if traced.steps else "the trace"
    sentence = (
        f"communication takes {percent(shares['communication_s'])} of {what} ({format_time(step_s.value)}): "
        f"{percent(shares['exposed_s'])} exposed, {percent(hidden)} hidden behind kernels that compute"
    )
    first_s, last_s = spans[0][1], spans[-1][2]
    inside = [each for each in traced.communication if each.begin_s < last_s and each.end_s > first_s]
    groups = tuple(_groups(inside, compute, spans))
    return TraceShare(
        source=source,
        rank=traced.rank,
        gpus=traced.gpus,
        steps=steps,
        has_steps=bool(traced.steps),
        step_s=step_s,
        communication=shares["communication_s"],
        exposed=shares["exposed_s"],
        hidden=hidden,
        compute=shares["compute_s"],
        idle=max(1 - shares["compute_s"] - shares["exposed_s"], 0.0),
        groups=groups,
        kernels=len(traced.compute) + len(traced.communication),
        bytes_read=size_bytes,
        sentence=sentence,
        findings=_findings(shares["exposed_s"], groups),
        notes=tuple(_notes(traced, inside)),
    )


def _middle_shares(steps: Sequence[TraceStep]) -> dict[str, float]:
    """Return shares of the step in the middle by exposed share, of two there the mean: so they add up."""
    every = sorted(
        ({name: getattr(step, name) / step.time_s if step.time_s > 0 else 0.0 for name in _PARTS} for step in steps),
        key=lambda shares: shares["exposed_s"],
    )
    middle = every[(len(every) - 1) // 2 : len(every) // 2 + 1]
    return {name: sum(each[name] for each in middle) / len(middle) for name in _PARTS}


def _groups(
    kernels: Sequence[Kernel], compute: Spans, steps: Sequence[tuple[int, float, float]]
) -> Iterable[GroupShare]:
    """Return each group, that with most exposed time first: seconds a step, the median over steps."""
    members: dict[str, list[tuple[float, float]]] = {}
    collectives: dict[str, Counter[str]] = {}
    for each in kernels:
        group = each.group if each.group in members or len(members) < _MOST_GROUPS else "other groups"
        members.setdefault(group, []).append((each.begin_s, each.end_s))
        collectives.setdefault(group, Counter())[each.collective] += 1
    found = []
    for group, spans in members.items():
        busy = union(spans)
        covers = Covered(busy), Covered(without(busy, compute))
        busy_s, exposed_s = (median(sorted(cover.of(begin, end) for _, begin, end in steps)) for cover in covers)
        found.append(
            GroupShare(
                group=group,
                collectives=tuple(collectives[group].most_common(8)),
                kernels=len(spans),
                busy_s=busy_s,
                exposed_s=exposed_s,
            )
        )
    return sorted(found, key=lambda each: (-each.exposed_s, -each.busy_s, each.group))


def _findings(exposed: float, groups: Sequence[GroupShare]) -> tuple[Finding, ...]:
    if exposed < LEAST_EXPOSED or not groups:
        return ()
    first = groups[0]
    names = ", ".join(name for name, _ in first.collectives[:3])
    return (
        finding(
            "STEP007",
            share=percent(exposed),
            evidence=f"most of it in {first.group} ({names}): {format_time(first.exposed_s)} a step",
            fix="hold the bus bandwidth of that collective, size and group against the machine: busbw run, judge; "
            "where it is as it should be, the ranks wait for each other or the overlap is missing, not the network",
        ),
    )


def _notes(traced: TracedSteps, inside: Sequence[Kernel]) -> Iterable[str]:
    if not traced.steps:
        yield "no ProfilerStep in the trace: all of it counts as one, pauses between steps and all"
    elif traced.steps_of_host:
        yield "steps are marked on the host: kernels of a step may run into the next; shares hold, single steps less so"
    if traced.other_gpus:
        yield f"{traced.other_gpus} other GPUs in the trace are left out: the one with most kernels was taken"
    if traced.garbled:
        yield f"{traced.garbled} events with impossible times are left out"
    if len(inside) < len(traced.communication):
        yield f"{len(traced.communication) - len(inside)} kernels of NCCL before or after the marked steps are left out"
    if inside and all(each.group == "group not told" for each in inside):
        yield "the trace names no groups: PyTorch does since 2.3"
    if not traced.communication:
        yield "no kernel of NCCL in the trace"
    else:
        yield "a kernel of NCCL waits for late ranks too: exposed time is the most a faster network could take away"

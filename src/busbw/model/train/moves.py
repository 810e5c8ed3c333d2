"""The order of a step on a rank: computing, calls that are waited for, and calls that go on beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from busbw.model.train.replay import ReplayedCall, StepPlan

_S_TO_NS = 1e9
Act = Literal["compute", "call", "begin", "finish"]


@dataclass(frozen=True, order=True, slots=True, kw_only=True)
class _Moment:
    """What happens where in a step, in micro-batches from its start; what is finished goes before what begins."""

    position: float
    begins: bool
    number: int
    act: Act


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """Computing for a time, or something about one call of the plan."""

    act: Act
    which: int = 0
    time_ns: int = 0


def moves_of(step: StepPlan) -> list[Move]:
    """Return the moves of one step; computing is spread evenly, and so are the calls of each kind over their phase."""
    events = sorted(event for number, call in enumerate(step.calls) for event in _events(step, number, call))
    micro_ns = step.compute_s / step.accumulation * _S_TO_NS
    moves = []
    passed_ns = 0
    for event in events:
        due_ns = round(event.position * micro_ns)
        if due_ns > passed_ns:
            moves.append(Move(act="compute", time_ns=due_ns - passed_ns))
            passed_ns = due_ns
        moves.append(Move(act=event.act, which=event.number))
    rest_ns = round(step.compute_s * _S_TO_NS) - passed_ns
    if rest_ns > 0:
        moves.append(Move(act="compute", time_ns=rest_ns))
    return moves


def shortest_ns(step: StepPlan) -> int:
    """Return the shortest stretch of computing between two moves that is planned."""
    events = sorted({event.position for number, call in enumerate(step.calls) for event in _events(step, number, call)})
    micro_ns = step.compute_s / step.accumulation * _S_TO_NS
    points = (0.0, *events, float(step.accumulation))
    gaps = [round((later - earlier) * micro_ns) for earlier, later in pairwise(points)]
    return min((gap for gap in gaps if gap > 0), default=0)


def _events(step: StepPlan, number: int, call: ReplayedCall) -> Iterator[_Moment]:
    forward, end = 1.0 - step.backward_share, float(step.accumulation)
    if call.phase == "start of step":
        yield from _spread(number, call, 0.0, forward if call.hidden_by is not None else 0.0, call.calls)
        return
    if call.phase == "end of step":
        yield from _spread(number, call, end - step.backward_share if call.hidden_by is not None else end, end,
                           call.calls)  # fmt: skip
        return
    low = forward if call.phase == "backward" else 0.0
    high = forward if call.phase == "forward" else 1.0
    for micro in range(step.accumulation):
        calls = call.calls * (micro + 1) // step.accumulation - call.calls * micro // step.accumulation
        yield from _spread(number, call, micro + low, micro + high, calls)


def _spread(number: int, call: ReplayedCall, low: float, high: float, calls: int) -> Iterator[_Moment]:
    """Yield the calls of one phase: waited for in the middle of their part, or under way over all of it."""
    each = (high - low) / max(calls, 1)
    for place in range(calls):
        begins = low + place * each
        if call.hidden_by is None:
            yield _Moment(position=begins + each / 2, begins=True, number=number, act="call")
            continue
        # By the same arithmetic as the next one begins, which must not come before.
        ends = low + (place + 1) * each if place + 1 < calls else high
        yield _Moment(position=begins, begins=True, number=number, act="begin")
        yield _Moment(position=ends, begins=False, number=number, act="finish")

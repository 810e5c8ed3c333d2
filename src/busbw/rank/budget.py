"""How the time limit of a run is shared between its points. Rank 0 decides; the others are told.

A point is measured in turns. In its first turn it is verified and gets one sample, and no point gets another turn
before all have had that one. The second turn of each is as long as its share of the time that is left, or ends when
the point is known well enough; what is left then goes to the points whose interval is widest.
"""

import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from busbw.model.plan import Point, Sampling
from busbw.rank.bench import TurnTaken
from busbw.rank.sampling import Budget
from busbw.stats.distributions import relative_half_width

# A turn shorter than this is spent on beginning it: clocks, inputs, records on disk.
LEAST_TURN_S = 0.02
# Sums of seconds are no more exact than this.
_ROUNDING_S = 1e-6
# Of the time limit, what looking for the rank that delays the others may take before every point has had two turns.
TRACING_SHARE = 0.2
# Messages to and fro that compare two clocks: enough to find a quick one. Before and after a turn they may take this
# share of it: where ranks wait for processors each may take milliseconds. One sample needs no more than the least.
_SYNC_ROUNDS = 40
_LEAST_SYNC_ROUNDS = 5
_SYNC_SHARE = 0.1


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one point before its next turn."""

    point: int
    size_bytes: int
    turns: int = 0
    # What another turn takes at the least: one warm-up call, one sample, and all around them.
    least_s: float = LEAST_TURN_S
    # How far the interval of the median reaches, as a share of it; None: too few samples.
    half_width: float | None = None
    # Known as well as asked, or wrong: it gets no more turns.
    is_done: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Which point is measured next, and for how long."""

    point: int
    # 0: verify, and take one sample.
    number: int
    share_s: float


def next_turn(standings: Iterable[Standing], left_s: float, kept_s: float = 0.0) -> Turn | None:
    """Return whose turn it is when `left_s` of the time limit are left; None when nothing more fits or is needed.

    First and second turns begin with the smallest messages: what they do not need is there for the others, and what is
    not reached is what takes longest. `kept_s` of the time is not shared out before every point has had two turns. The
    very first turn is taken however little time there is.
    """
    known = tuple(standings)
    waiting = [one for one in known if not one.is_done]
    if not waiting or (left_s <= 0 and any(one.turns for one in known)):
        return None
    fresh = [one for one in waiting if one.turns == 0]
    if fresh:
        return Turn(point=min(fresh, key=_place).point, number=0, share_s=left_s / len(fresh))
    able = [one for one in waiting if one.least_s <= left_s + _ROUNDING_S]
    if not able:
        return None
    number = min(one.turns for one in able)
    due = [one for one in able if one.turns == number]
    shared_s = max(left_s - kept_s, 0.0) if number == 1 else left_s
    fitting = _fitting(due, shared_s)
    chosen = min(fitting, key=_place if number == 1 else _need)
    share_s = max(_level_s([one.least_s for one in fitting], shared_s), chosen.least_s)
    return Turn(point=chosen.point, number=number, share_s=share_s)


def _place(one: Standing) -> tuple[int, int]:
    return one.size_bytes, one.point


def _need(one: Standing) -> tuple[float, int]:
    """Order the widest interval first."""
    return (-one.half_width if one.half_width is not None else float("-inf")), one.point


def _fitting(due: Sequence[Standing], shared_s: float) -> list[Standing]:
    """Return the points that can all have a turn in that time, at least one; the most expensive ones are left out."""
    found: list[Standing] = []
    sum_s = 0.0
    for one in sorted(due, key=lambda each: (each.least_s, each.point)):
        sum_s += one.least_s
        if found and sum_s > shared_s + _ROUNDING_S:
            break
        found.append(one)
    return found


def _level_s(leasts_s: Iterable[float], shared_s: float) -> float:
    """Return the equal share of each turn, where those that take longer at the least are given that first."""
    rest_s, equal = shared_s, sorted(leasts_s)
    while len(equal) > 1 and equal[-1] > rest_s / len(equal):
        rest_s -= equal.pop()
    return max(rest_s, 0.0) / len(equal)


class PointLedger:
    """Where every point of a run stands. Counts on rank 0 only."""

    def __init__(self, sampling: Sampling, points: Iterable[tuple[int, Point]], *, traces: bool) -> None:
        self._sampling = sampling
        self._standings = {number: Standing(point=number, size_bytes=point.size_bytes) for number, point in points}
        # The samples that count, of second and later turns.
        self._valid_ns = {number: array("d") for number in self._standings}
        self._calls = dict.fromkeys(self._standings, 0)
        self._sync_round_s = 0.0
        self._tracing_left_s = TRACING_SHARE * sampling.time_limit_s if traces else 0.0
        self._ends_s = time.monotonic() + sampling.time_limit_s

    def next_turn(self) -> Turn | None:
        """Return whose turn it is now; None at the end of the run."""
        return next_turn(self._standings.values(), self._ends_s - time.monotonic(), self._tracing_left_s)

    def budget(self, turn: Turn) -> Budget:
        """Return what a turn that begins now may take."""
        now_s = time.monotonic()
        return Budget(
            began_s=now_s,
            share_ends_s=now_s + turn.share_s,
            run_ends_s=self._ends_s,
            even_s=self._sampling.time_limit_s / len(self._standings),
            tracing_s=self._tracing_left_s if turn.number == 1 else 0.0,
        )

    def earlier_ns(self, point: int) -> Sequence[float]:
        """Return the samples of a point that count."""
        return self._valid_ns[point]

    def calls(self, point: int) -> int:
        """Return the calls of a sample of a point, the same in all turns after the first; 0 before those."""
        return self._calls[point]

    def sync_rounds(self, turn: Turn) -> int:
        """Return how many rounds each of the two comparisons of clocks of a turn takes."""
        if turn.number == 0:
            return _LEAST_SYNC_ROUNDS
        if self._sync_round_s <= 0:
            return _SYNC_ROUNDS
        affordable = int(_SYNC_SHARE * turn.share_s / (2 * self._sync_round_s))
        return min(max(affordable, _LEAST_SYNC_ROUNDS), _SYNC_ROUNDS)

    def note(self, turn: Turn, taken: TurnTaken, spent_s: float) -> None:
        """Take down what came of a turn that took `spent_s`."""
        before, sampled = self._standings[turn.point], taken.sampled
        is_done = sampled is None or sampled.ended in ("interval", "samples")
        least_s, half_width = before.least_s, before.half_width
        self._tracing_left_s = max(self._tracing_left_s - taken.tracing_s, 0.0)
        self._sync_round_s = taken.sync_round_s
        if turn.number == 0:
            least_s = max(spent_s - taken.once_s, LEAST_TURN_S)
        elif sampled is not None:
            self._calls[turn.point] = sampled.calls_per_sample
            self._valid_ns[turn.point].extend(sampled.series.valid_ns())
            valid_ns = sorted(self._valid_ns[turn.point])
            half_width = relative_half_width(valid_ns, self._sampling.confidence) if valid_ns else None
        self._standings[turn.point] = msgspec.structs.replace(
            before, turns=before.turns + 1, least_s=least_s, half_width=half_width, is_done=is_done
        )

    def reason(self) -> Literal["complete", "time"]:
        """Return why there is no next turn: every point has had its share, or time was over before."""
        shared = (one.is_done or one.turns > 1 for one in self._standings.values())
        return "complete" if all(shared) else "time"

"""A step repeated on all ranks, block after block, until time is over or there are enough; each block on disk."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busbw import _core
from busbw.model.record import Event, Mismatch, StepsEnded, StepsTaken
from busbw.model.train.moves import moves_of
from busbw.model.train.replay import StepPlan
from busbw.rank.heart import Heart
from busbw.rank.journal import Journal
from busbw.rank.world import World
from busbw.stats.distributions import median

# What was wrong of a call as it was done once before the first step; None: nothing.
Checked = tuple[Mismatch | None, ...]
# Repeats a step so many times and returns its times. Every rank must call it with the same number.
Taker = Callable[[int], Sequence[_core.StepTimes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepper:
    """What repeats a step. `product_ns`: what one matrix product takes; None: computing is a wait by the clock."""

    take: Taker
    product_ns: int | None
    # By call; (): nobody asked for a check.
    checked: Checked


_BLOCK_S = 0.5
_MOST_IN_BLOCK = 100


def replay_steps(
    step: StepPlan,
    world: World,
    heart: Heart,
    journal: Journal,
    stepper: Stepper,
    say: Callable[[Event], None],
) -> bool:
    """Replay the step until its time is over; return whether somebody stopped it. Every rank calls this.

    The first step only warms up, and says how many make a block.
    """
    heart.enter("replaying the step")
    ends_s = time.monotonic() + step.time_limit_s
    first_ns = world.largest([stepper.take(1)[0].step_ns])[0]
    block = min(max(int(_BLOCK_S * 1e9 / max(first_ns, 1)), 1), _MOST_IN_BLOCK)
    taken = 0
    while True:
        # A step that was begun is never for nothing: the first block is taken however little time there is.
        over = taken > 0 and (time.monotonic() > ends_s or taken >= step.most_steps)
        ends, stopped = world.from_first([int(over or heart.stop_asked), int(heart.stop_asked)])
        if ends and taken > 0:
            return stopped != 0
        times = stepper.take(min(block, step.most_steps - taken))
        taken += len(times)
        journal.write(_record(times, stepper))
        say(StepsEnded(steps=taken, median_s=median(sorted(one.step_ns * 1e-9 for one in times))))


def core_moves(step: StepPlan) -> list[_core.StepMove]:
    """Return the moves of one step for the loops of the core."""
    return [_core.StepMove(act=one.act, which=one.which, time_ns=one.time_ns) for one in moves_of(step)]


def mismatch_of(found: _core.Mismatch) -> Mismatch | None:
    """Return what a check found wrong; None: nothing."""
    if found.wrong == 0:
        return None
    return Mismatch(wrong=found.wrong, index=found.index, got=found.got, expected=found.expected)


def _record(times: Sequence[_core.StepTimes], stepper: Stepper) -> StepsTaken:
    return StepsTaken(
        step_ns=tuple(one.step_ns for one in times),
        compute_ns=tuple(one.compute_ns for one in times),
        busy_ns=tuple(tuple(one.busy_ns) for one in times),
        exposed_ns=tuple(tuple(one.exposed_ns) for one in times),
        product_ns=stepper.product_ns,
        checked=stepper.checked,
    )

"""Who delays the others: the same exchange among halves of the ranks, one bit of the rank number at a time.

A delay inside a collective is felt by every rank alike, so no rank's own times tell where it began. Among half of the
ranks it is felt only if its cause is in that half; log2(ranks) ways of halving spell the number of one cause.
"""

from busbw.base.collectives import COLLECTIVES
from busbw.model.record import Attribution
from busbw.model.sweep import Sweep
from busbw.rank.blocks import Clock, MpiSampler, Series, Shape
from busbw.rank.budget import Budget
from busbw.rank.exchange import Buffers, make_group_exchange
from busbw.rank.heart import Heart
from busbw.rank.mpi_world import MpiWorld
from busbw.stats.tail import slow_samples

_CALLS = 1000
_MOST_SECONDS = 3.0
# A tail worth looking into: this many slow samples, and this share of all.
_LEAST_SLOW = 5
_LEAST_SLOW_SHARE = 0.005


def is_worth_it(sweep: Sweep, world: MpiWorld, series: Series, budget: Budget) -> bool:
    """Whether the tail of a turn should be traced, and there is time for it. Only rank 0 decides.

    Pairs name their ranks themselves; groups of ranks do not stay whole when every other rank is left out.
    """
    if COLLECTIVES[sweep.collective].pairs or sweep.group is not None or world.ranks < 2:
        return False
    valid_ns = series.valid_ns()
    if not valid_ns:
        return False
    slow = len(slow_samples([value * 1e-9 for value in valid_ns]))
    cost_s = _passes(world.ranks) * _CALLS * 2e-9 * sum(valid_ns) / len(valid_ns)
    heavy = slow >= _LEAST_SLOW and slow >= _LEAST_SLOW_SHARE * len(valid_ns)
    return heavy and cost_s < min(_MOST_SECONDS, budget.tracing_s + max(budget.share_left_s, 0.0))


def attribute(
    world: MpiWorld, heart: Heart, sweep: Sweep, size_bytes: int, buffers: Buffers, clock: Clock
) -> tuple[Attribution, ...]:
    """Count slow calls in each half, for each way of halving. Every rank calls this; all return the same."""
    heart.enter("attributing")
    found = []
    for bit in range(_passes(world.ranks)):
        group = (world.rank >> bit) & 1
        slow = _slow_calls(world, heart, sweep, size_bytes, buffers, clock, group)
        leads = all(((other >> bit) & 1) != group for other in range(world.rank))
        counts = world.total([slow if leads and group == 0 else 0, slow if leads and group == 1 else 0])
        for number in (0, 1):
            members = tuple(rank for rank in range(world.ranks) if ((rank >> bit) & 1) == number)
            found.append(Attribution(bit=bit, group=number, ranks=members, calls=_CALLS, slow_calls=counts[number]))
    return tuple(found)


def _passes(ranks: int) -> int:
    return (ranks - 1).bit_length()


def _slow_calls(
    world: MpiWorld, heart: Heart, sweep: Sweep, size_bytes: int, buffers: Buffers, clock: Clock, group: int
) -> int:
    communicator = world.half(group)
    exchange = make_group_exchange(
        world,
        sweep,
        size_bytes,
        buffers,
        communicator=world.handle(communicator),
        rank=communicator.Get_rank(),
        ranks=communicator.Get_size(),
    )
    # One call a sample, timed locally: among halves there is no common start to wait for, and none is needed.
    series = Series()
    sampler = MpiSampler(world, heart, exchange, "stream", clock)
    sampler.take(Shape(samples=_CALLS, calls=1, lead_ns=0), series)
    slowest_ns = world.largest(series.duration_ns, communicator)
    communicator.Free()
    return len(slow_samples([value * 1e-9 for value in slowest_ns]))

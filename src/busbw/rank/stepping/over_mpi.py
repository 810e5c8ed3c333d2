"""A step over MPI: the exchanges of every group, each between buffers of its own."""

from collections.abc import Sequence

from busbw import _core
from busbw.model.train.replay import StepPlan
from busbw.rank.attribution import Buffers, make_exchange
from busbw.rank.mpi_bench import MpiBench
from busbw.rank.stepping.moves import core_moves
from busbw.rank.stepping.replay import Taker


def taker_of(bench: MpiBench, step: StepPlan) -> Taker:
    """Return what repeats a step. Every rank must call this."""
    world, plan = bench.world, bench.plan
    exchanges = []
    for sweep in plan.sweeps:
        exchange = make_exchange(world, sweep, sweep.sizes_bytes[0], Buffers(world, (sweep,)))
        pattern = _core.pattern(seed=0, ranks=sweep.partners(world.ranks), dtype=sweep.dtype, op=sweep.op)
        _core.settle(exchange, pattern)
        exchanges.append(exchange)
    moves = core_moves(step)

    def take(count: int) -> Sequence[_core.StepTimes]:
        return _core.replay(
            world.core,
            communicator=world.handle(world.communicator),
            exchanges=exchanges,
            moves=moves,
            heartbeat=bench.heart.memory,
            count=count,
            yields=plan.placement.oversubscribed,
        )

    return take

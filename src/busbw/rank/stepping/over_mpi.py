"""A step over MPI: the exchanges of every group, each between buffers of its own.

Alone because only ranks that replay a step load it.
"""

from collections.abc import Sequence

from busbw import _core
from busbw.model.record import Mismatch
from busbw.model.train.replay import StepPlan
from busbw.rank.attribution import Buffers, make_exchange
from busbw.rank.mpi_bench import MpiBench
from busbw.rank.stepping.replay import Stepper, core_moves, mismatch_of


def stepper_of(bench: MpiBench, step: StepPlan) -> Stepper:
    """Return what repeats a step, each call checked once; it computes by the clock. Every rank must call this."""
    world, plan = bench.world, bench.plan
    exchanges = []
    checked: list[Mismatch | None] = []
    for number, sweep in enumerate(plan.sweeps):
        bench.heart.enter("verifying", number)
        buffers = Buffers(world, (sweep,))
        exchange = make_exchange(world, sweep, sweep.sizes_bytes[0], buffers)
        pattern = _core.pattern(seed=number, ranks=sweep.partners(world.ranks), dtype=sweep.dtype, op=sweep.op)
        if plan.sampling.verify:
            found = _core.verify(exchange, pattern, send=buffers.send, receive=buffers.receive)
            if buffers.overrun():
                raise RuntimeError("the MPI library wrote behind the end of a buffer")
            checked.append(mismatch_of(found))
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

    return Stepper(take=take, product_ns=None, checked=tuple(checked))

"""A step over NCCL: a stream for each kind of group, and matrix products that are as long as the computing between.

Alone because only ranks that replay a step load it.
"""

from collections.abc import Sequence

from busbw import _core
from busbw.model.record import Mismatch
from busbw.model.train.moves import shortest_ns
from busbw.model.train.replay import StepPlan
from busbw.rank.nccl.bench import NcclBench
from busbw.rank.nccl.buffers import NcclBuffers
from busbw.rank.stepping.replay import Stepper, core_moves, mismatch_of

_LEAST_SIDE = 64


def stepper_of(bench: NcclBench, step: StepPlan) -> Stepper:
    """Return what repeats a step, each call checked once; it computes by matrix products. Every rank must call this."""
    streams = {sweep.within: bench.another_stream() for sweep in bench.plan.sweeps}
    exchanges = []
    checked: list[Mismatch | None] = []
    for number, sweep in enumerate(bench.plan.sweeps):
        bench.heart.enter("verifying", number)
        buffers = NcclBuffers(bench.libraries, bench.gpus, bench.setup, (sweep,), bench.ranks)
        size_bytes = sweep.sizes_bytes[0]
        tried, pattern = bench.exchange_of(sweep, size_bytes, buffers, bench.gpus), bench.pattern_of(sweep, number)
        if bench.plan.sampling.verify:
            (found,) = _core.nccl_verify(tried, bench.bench, pattern)
            checked.append(mismatch_of(found))
        _core.nccl_settle(tried, pattern)
        exchanges.append(bench.exchange_of(sweep, size_bytes, buffers, (streams[sweep.within],)))
    load = _load(bench.gpus[0], shortest_ns(step), bench.setup.load_side)
    replay = _core.NcclReplay(load, exchanges=exchanges, moves=core_moves(step))

    def take(count: int) -> Sequence[_core.StepTimes]:
        return replay.run(bench.bench, count=count)

    return Stepper(take=take, product_ns=load.product_ns, checked=tuple(checked))


def _load(gpu: _core.Gpu, shortest_ns: int, most_side: int) -> _core.GpuLoad:
    """Return products of the largest matrices that fit into the shortest computing of the step."""
    side = _LEAST_SIDE
    found = _core.GpuLoad(gpu, n=side)
    while 2 * side <= most_side:
        larger = _core.GpuLoad(gpu, n=2 * side)
        if larger.product_ns > shortest_ns:
            break
        side, found = 2 * side, larger
    return found

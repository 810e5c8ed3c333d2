"""A step over NCCL: a stream for each kind of group, and matrix products that are as long as the computing between."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from busbw import _core
from busbw.model.train.replay import StepPlan
from busbw.rank.nccl.buffers import NcclBuffers
from busbw.rank.stepping.moves import core_moves, shortest_ns

if TYPE_CHECKING:
    from busbw.rank.nccl.bench import NcclBench
    from busbw.rank.stepping.replay import Taker

_LEAST_SIDE = 64


def taker_of(bench: "NcclBench", step: StepPlan) -> "tuple[Taker, int]":
    """Return what repeats a step, and what one matrix product takes in nanoseconds. Every rank must call this."""
    streams = {sweep.within: bench.another_stream() for sweep in bench.plan.sweeps}
    exchanges = []
    for sweep in bench.plan.sweeps:
        buffers = NcclBuffers(bench.libraries, bench.gpus, bench.setup, (sweep,), bench.ranks)
        size_bytes = sweep.sizes_bytes[0]
        _core.nccl_settle(bench.exchange_of(sweep, size_bytes, buffers, bench.gpus), bench.pattern_of(sweep, 0))
        exchanges.append(bench.exchange_of(sweep, size_bytes, buffers, (streams[sweep.within],)))
    load = _load(bench.gpus[0], shortest_ns(step), bench.setup.load_side)
    replay = _core.NcclReplay(load, exchanges=exchanges, moves=core_moves(step))

    def take(count: int) -> Sequence[_core.StepTimes]:
        return replay.run(bench.bench, count=count)

    return take, load.product_ns


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

"""Blocks of samples of one exchange over NCCL, on all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw import _core
from busbw.model.plan import SMALL_NCCL_BYTES
from busbw.model.record import EmptyLaunches
from busbw.model.request import Mode
from busbw.rank.blocks import BlockShape, Clock, SampleSeries
from busbw.rank.world import World

# Calls of one sample, as nccl-tests has it, unless they would take longer than this.
_CALLS = 20
_LONGEST_SAMPLE_NS = 20_000_000
# The load beside an exchange is queued for so many times what the exchange took before.
_LOAD_MARGIN = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """What a sampler works on."""

    exchange: _core.NcclExchange
    bench: _core.NcclBench
    mode: Mode
    clock: Clock
    # Ranks that take part, and which of this process's GPUs are among them; the others only look on.
    partners: int
    places: Sequence[int]
    # For loaded mode: one for each GPU of this process.
    loads: Sequence[_core.GpuLoad]


class NcclSampler:
    """Takes blocks of samples; the first GPU of this process stands in `Series` itself, others beside it."""

    def __init__(self, world: World, measure: Measure, gpus: int) -> None:
        self._world = world
        self._measure = measure
        self._gpus = gpus
        # Of one call, as the last sample had it, warm-up included: the load beside the next block is as long.
        self._level_ns = 0.0
        self._graph: tuple[int, _core.NcclGraph] | None = None

    @property
    def graph_calls(self) -> int:
        """Calls in the graph replayed last; 0 without."""
        return self._graph[0] if self._graph is not None else 0

    def calls_for(self, level_ns: float) -> int:
        """Return 20, or fewer where those take long; 1 in isolated mode."""
        if self._measure.mode == "isolated":
            return 1
        return min(max(int(_LONGEST_SAMPLE_NS / max(level_ns, 1.0)), 1), _CALLS)

    def take(self, shape: BlockShape, series: SampleSeries) -> None:
        """Take one block and append it to `series`. Every rank must call this with the same shape."""
        blocks = self._blocks(shape)
        own = [blocks[place].duration_ns for place in self._measure.places] or [[0] * shape.samples]
        while len(series.others) < self._gpus - 1:
            series.others.append(SampleSeries())
        if self._measure.mode == "isolated":
            slowest = [max(column) for column in zip(*own, strict=True)]
            combined = self._world.largest([*slowest, *blocks[0].missed])
            series.combined_ns.extend(float(value) for value in combined[: shape.samples])
            series.missed_anywhere.extend(value != 0 for value in combined[shape.samples :])
        else:
            sums = [sum(column) for column in zip(*own, strict=True)]
            totals = self._world.total([*sums, *blocks[0].missed])
            scale = 1.0 / (self._measure.partners * shape.calls)
            series.combined_ns.extend(total * scale for total in totals[: shape.samples])
            series.missed_anywhere.extend(value != 0 for value in totals[shape.samples :])
        self._level_ns = series.combined_ns[-1]
        for one, block in zip((series, *series.others), blocks, strict=True):
            one.duration_ns.extend(block.duration_ns)
            one.off_processor_ns.extend(block.off_processor_ns)
            one.issued_ns.extend(block.issued_ns)
            one.missed.extend(value != 0 for value in block.missed)
            if self._measure.mode == "isolated":
                one.lateness_ns.extend(block.lateness_ns)

    def _blocks(self, shape: BlockShape) -> list[_core.Samples]:
        exchange, bench, clock = self._measure.exchange, self._measure.bench, self._measure.clock
        if self._measure.mode == "isolated":
            window = _core.Window(offset_ns=clock.offset_ns, lead_ns=shape.lead_ns, yields=clock.yields)
            return _core.nccl_isolated(exchange, bench, count=shape.samples, window=window)
        if self._measure.mode == "graph":
            if self._graph is None or self._graph[0] != shape.calls:
                self._graph = None
                self._graph = (shape.calls, _core.NcclGraph(exchange, calls=shape.calls))
            return self._graph[1].replay(bench, count=shape.samples)
        if self._measure.mode == "loaded":
            return _core.nccl_loaded(
                exchange,
                bench,
                loads=list(self._measure.loads),
                count=shape.samples,
                calls=shape.calls,
                expected_ns=round(_LOAD_MARGIN * self._level_ns * shape.calls),
            )
        return _core.nccl_stream(exchange, bench, count=shape.samples, calls=shape.calls)


# A batch is what a sample of small messages is in stream mode.
_LAUNCHES = 20
_BATCHES = 10


class Launcher:
    """Takes the time of empty launches. Every rank of the run must call it at the same places."""

    def __init__(self, gpus: Sequence[_core.Gpu], gate: _core.Gate) -> None:
        self._gpus = list(gpus)
        self._gate = gate

    def take(self) -> tuple[EmptyLaunches | None, ...]:
        """Return what launches take on each GPU; None where there are no kernels to launch."""
        if not all(gpu.has_kernels for gpu in self._gpus):
            return (None,) * len(self._gpus)
        found = _core.empty_launches(self._gpus, self._gate, batches=_BATCHES, launches=_LAUNCHES)
        return tuple(
            EmptyLaunches(
                launches=_LAUNCHES,
                issue_ns=tuple(one.issue_ns),
                device_ns=tuple(one.device_ns),
                done_ns=tuple(one.done_ns),
            )
            for one in found
        )

    def beside(self, size_bytes: int) -> tuple[EmptyLaunches | None, ...]:
        """Return the same beside messages of this size; None for each GPU where they are not small."""
        return self.take() if size_bytes < SMALL_NCCL_BYTES else (None,) * len(self._gpus)

"""Blocks of samples: what all ranks do together between two decisions of rank 0."""

from typing import Protocol

import msgspec

from busbw import _core
from busbw.model.request import Mode
from busbw.rank.heart import Heart
from busbw.rank.world import World

# A stream sample lasts about this long: long enough that reading the clock and the barrier before it do not show, short
# enough that most samples of a noisy machine hold no interruption.
_SAMPLE_NS = 500_000
_MOST_CALLS = 1000


class BlockShape(msgspec.Struct, frozen=True):
    """What a block is made of; the same on every rank."""

    samples: int
    calls: int
    lead_ns: int


class SampleSeries(msgspec.Struct):
    """Samples of this rank, and for each the value over all ranks, block after block. Nanoseconds."""

    duration_ns: list[int] = []
    lateness_ns: list[int] = []
    off_processor_ns: list[int] = []
    # Over NCCL only.
    issued_ns: list[int] = []
    missed: list[bool] = []
    # Isolated: the maximum over ranks; stream: the mean over ranks of one call.
    combined_ns: list[float] = []
    # Whether any rank missed the start.
    missed_anywhere: list[bool] = []
    # The other ranks of this process, where one drives several GPUs; they have no combined values of their own.
    others: list["SampleSeries"] = []

    def __len__(self) -> int:
        return len(self.duration_ns)

    def valid_ns(self) -> list[float]:
        """Return the combined samples whose start no rank missed."""
        return [value for value, missed in zip(self.combined_ns, self.missed_anywhere, strict=True) if not missed]


class Sampler(Protocol):
    """Takes blocks of samples of one exchange on all ranks."""

    def take(self, shape: BlockShape, series: SampleSeries) -> None:
        """Take one block and append it to `series`. Every rank must call this with the same shape."""

    def calls_for(self, level_ns: float) -> int:
        """Return how many calls a sample should have when one takes `level_ns`."""


class MpiSampler:
    """Takes blocks of samples of one exchange over MPI."""

    def __init__(self, world: World, heart: Heart, exchange: _core.Exchange, mode: Mode, clock: "Clock") -> None:
        self._world = world
        self._heart = heart
        self._exchange = exchange
        self._mode = mode
        self._clock = clock

    def calls_for(self, level_ns: float) -> int:
        """Return as many calls as fill a sample, 1 in isolated mode."""
        if self._mode == "isolated":
            return 1
        return min(max(round(_SAMPLE_NS / max(level_ns, 1.0)), 1), _MOST_CALLS)

    def take(self, shape: BlockShape, series: SampleSeries) -> None:
        """Take one block and append it to `series`. Every rank must call this with the same shape."""
        if self._mode == "stream":
            block = _core.stream(self._exchange, self._heart.memory, count=shape.samples, calls=shape.calls)
            totals = self._world.total(block.duration_ns)
            scale = 1.0 / (self._world.ranks * shape.calls)
            series.combined_ns.extend(total * scale for total in totals)
            series.missed_anywhere.extend([False] * shape.samples)
        else:
            window = _core.Window(offset_ns=self._clock.offset_ns, lead_ns=shape.lead_ns, yields=self._clock.yields)
            block = _core.isolated(self._exchange, self._heart.memory, count=shape.samples, window=window)
            combined = self._world.largest([*block.duration_ns, *block.missed])
            series.combined_ns.extend(float(value) for value in combined[: shape.samples])
            series.missed_anywhere.extend(value != 0 for value in combined[shape.samples :])
            series.lateness_ns.extend(block.lateness_ns)
        series.duration_ns.extend(block.duration_ns)
        series.off_processor_ns.extend(block.off_processor_ns)
        series.missed.extend(value != 0 for value in block.missed)


class Clock(msgspec.Struct, frozen=True):
    """How this rank's clock follows rank 0's, and whether waiting gives the processor away."""

    offset_ns: int
    error_ns: int
    shared: bool
    yields: bool


def read_clock(world: World, *, shared: bool, yields: bool, rounds: int) -> Clock:
    """Measure this rank's clock against rank 0's.

    On a clock that all ranks share the offset is 0 and the error one step of it, unless the measurement contradicts.
    """
    measured = world.clock_offset(rounds)
    contradicts = world.largest([1 if abs(measured.offset_ns) > measured.error_ns else 0])[0] != 0
    if shared and not contradicts:
        return Clock(offset_ns=0, error_ns=_core.clock_quality(100).step_ns, shared=True, yields=yields)
    return Clock(offset_ns=measured.offset_ns, error_ns=measured.error_ns, shared=False, yields=yields)

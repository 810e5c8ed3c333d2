"""Measuring over MPI: who the rank is, what its machine can do, and one point from verification to record."""

import resource
import time
import zlib
from collections.abc import Iterator
from itertools import chain

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES
from busbw.model.plan import Plan, Point, Sweep
from busbw.model.record import Attribution, Hello, Mismatch, Record
from busbw.rank import network, rates
from busbw.rank.attribution import Buffers, attribute, is_worth_it, make_exchange
from busbw.rank.bench import TurnTaken
from busbw.rank.blocks import Clock, MpiSampler, SampleSeries, read_clock
from busbw.rank.heart import Heart
from busbw.rank.journal import Taken, introduce, measured
from busbw.rank.mpi_world import MpiWorld
from busbw.rank.sampling import Controls, Sampled, take_turn
from busbw.rank.world import same_clock

# What copies and streams may take beside the points, as a share of the time limit.
_RATES_SHARE = 0.25


class MpiBench:
    """What every point over MPI is measured with."""

    traces = True

    def __init__(self, plan: Plan, world: MpiWorld, heart: Heart) -> None:
        self.plan = plan
        self.world = world
        self.heart = heart
        self.buffers: Buffers
        self.shared_clock = False

    def hellos(self) -> tuple[Hello, ...]:
        """Say who this rank is."""
        small = {
            self.world.reducer(sweep.dtype, sweep.op).by
            for sweep in self.plan.sweeps
            if sweep.dtype in ("float16", "bfloat16")
        }
        return (introduce(self.world, self.world.rank, small_floats="busbw" if "busbw" in small else "mpi"),)

    def rates(self) -> Iterator[tuple[Record]]:
        """Measure what the machine can do at best."""
        if self.world.one_host:
            largest_bytes = max(size_bytes for sweep in self.plan.sweeps for size_bytes in sweep.sizes_bytes)
            ends_s = time.monotonic() + _RATES_SHARE * self.plan.sampling.time_limit_s
            for record in chain(rates.copied(self.world, largest_bytes, ends_s), rates.streamed(self.world, ends_s)):
                yield (record,)

    def prepare(self) -> None:
        """Make what all points share."""
        self.buffers = Buffers(self.world, self.plan.sweeps)
        self.shared_clock = same_clock(self.world)

    def measure(self, number: int, point: Point, controls: Controls) -> TurnTaken:
        """Measure one turn of one point. Every rank calls this at the same time."""
        return measure_turn(self, number, point, controls)


def measure_turn(bench: MpiBench, number: int, point: Point, controls: Controls) -> TurnTaken:
    """Verify in the first turn, warm up, sample and describe it. Every rank calls this at the same time."""
    world, heart = bench.world, bench.heart
    sweep = bench.plan.sweeps[point.sweep]
    started_unix_s = time.time()
    switches_before = resource.getrusage(resource.RUSAGE_SELF)
    sent_before = network.sent_bytes()
    exchange = make_exchange(world, sweep, point.size_bytes, bench.buffers)
    heart.enter("verifying", number)
    rounds, sync_s = controls.sync_rounds, time.monotonic()
    clock = read_clock(world, shared=bench.shared_clock, yields=controls.yields, rounds=rounds)
    sync_s = time.monotonic() - sync_s
    controls.report("verifying", 0, None, None)
    verifying_s = time.monotonic()
    mismatch = _verify(bench, exchange, sweep, number) if controls.turn == 0 else None
    verifying_s = time.monotonic() - verifying_s
    _core.settle(exchange, _pattern(bench, sweep, number))
    wrong_anywhere = world.largest([int(mismatch is not None)])[0] != 0
    sampled = None if wrong_anywhere else take_turn(world, heart, _sampler(bench, exchange, clock), controls)
    tcp_bytes = network.sent_since(sent_before)
    switches = resource.getrusage(resource.RUSAGE_SELF)
    drift_ns = _drift_ns(world, clock, rounds)
    traced_s = time.monotonic()
    attribution = _attribution(bench, sweep, point.size_bytes, sampled, controls, clock)
    tracing_s = time.monotonic() - traced_s if attribution else 0.0
    record = measured(
        Taken(
            number=number,
            point=point,
            turn=controls.turn,
            sampled=sampled,
            clock=clock,
            drift_ns=drift_ns,
            switches=(
                switches.ru_nvcsw - switches_before.ru_nvcsw,
                switches.ru_nivcsw - switches_before.ru_nivcsw,
            ),
            started_unix_s=started_unix_s,
        ),
        sampled.series if sampled is not None else SampleSeries(),
        mismatch=mismatch,
        verified_elements=_output_elements(world, sweep, point.size_bytes) if controls.turn == 0 else 0,
        tcp_bytes=tcp_bytes,
        attribution=attribution if world.rank == 0 else (),
    )
    return TurnTaken(
        records=(record,), sampled=sampled, sync_round_s=sync_s / rounds, once_s=verifying_s, tracing_s=tracing_s
    )


def _verify(bench: MpiBench, exchange: _core.Exchange, sweep: Sweep, number: int) -> Mismatch | None:
    """Do the exchange once on random data over poisoned outputs and check every element."""
    pattern = _pattern(bench, sweep, number)
    found = _core.verify(exchange, pattern, send=bench.buffers.send, receive=bench.buffers.receive)
    if bench.buffers.overrun():
        raise RuntimeError("the MPI library wrote behind the end of a buffer")
    if found.wrong == 0:
        return None
    return Mismatch(wrong=found.wrong, index=found.index, got=found.got, expected=found.expected)


def _pattern(bench: MpiBench, sweep: Sweep, number: int) -> _core.Pattern:
    seed = zlib.crc32(bench.plan.run_id.encode()) * 1_000_003 + number
    return _core.pattern(seed=seed, ranks=bench.world.ranks, dtype=sweep.dtype, op=sweep.op)


def _sampler(bench: MpiBench, exchange: _core.Exchange, clock: Clock) -> MpiSampler:
    return MpiSampler(bench.world, bench.heart, exchange, bench.plan.sampling.mode, clock)


def _drift_ns(world: MpiWorld, before: Clock, rounds: int) -> int:
    """Return how far this rank's clock moved against rank 0's during the turn."""
    if before.shared:
        return 0
    after = read_clock(world, shared=False, yields=before.yields, rounds=rounds)
    return abs(after.offset_ns - before.offset_ns)


def _attribution(
    bench: MpiBench, sweep: Sweep, size_bytes: int, sampled: Sampled | None, controls: Controls, clock: Clock
) -> tuple[Attribution, ...]:
    world = bench.world
    wanted = (
        world.rank == 0
        and sampled is not None
        and sampled.ended != "stopped"
        and is_worth_it(sweep, world, sampled.series, controls.budget)
    )
    if not world.from_first([int(wanted)])[0]:
        return ()
    return attribute(world, bench.heart, sweep, size_bytes, bench.buffers, clock)


def _output_elements(world: MpiWorld, sweep: Sweep, size_bytes: int) -> int:
    collective = COLLECTIVES[sweep.collective]
    received = collective.receive_bytes(size_bytes, world.ranks)
    receives = collective.name in ("broadcast", "scatter") or not collective.rooted or world.rank == sweep.root
    return received // DTYPE_BYTES[sweep.dtype] if receives else 0

"""One point from verification to record."""

import resource
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from busbw import _core
from busbw.collectives import COLLECTIVES, DTYPE_BYTES
from busbw.model.plan import Plan
from busbw.model.record import Attribution, Measured, Mismatch
from busbw.model.sweep import Point, Sweep
from busbw.rank import network
from busbw.rank.attribution import attribute, is_worth_it
from busbw.rank.blocks import Clock, Sampler, Series, read_clock
from busbw.rank.budget import Budget
from busbw.rank.exchange import Buffers, make_exchange
from busbw.rank.heart import Heart
from busbw.rank.sampling import Controls, Sampled, take_samples
from busbw.rank.world import World

_SYNC_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Bench:
    """What every point is measured with."""

    plan: Plan
    world: World
    heart: Heart
    buffers: Buffers
    shared_clock: bool


def measure_point(
    bench: Bench,
    number: int,
    point: Point,
    budget: Budget,
    report: Callable[[str, int, float | None, float | None], None],
) -> Measured:
    """Verify, warm up, sample and describe one point. Every rank calls this at the same time."""
    world, heart, plan = bench.world, bench.heart, bench.plan
    sweep = plan.sweeps[point.sweep]
    started_unix_s = time.time()
    switches_before = resource.getrusage(resource.RUSAGE_SELF)
    sent_before = network.sent_bytes()
    exchange = make_exchange(world, sweep, point.size_bytes, bench.buffers)
    clock = read_clock(world, shared=bench.shared_clock, yields=plan.placement.oversubscribed, rounds=_SYNC_ROUNDS)
    heart.enter("verifying", number)
    report("verifying", 0, None, None)
    mismatch = _verify(bench, exchange, sweep, number)
    wrong_anywhere = world.largest([int(mismatch is not None)])[0] != 0
    sampled = None if wrong_anywhere else _sample(bench, exchange, budget, clock, report)
    tcp_bytes = network.sent_since(sent_before)
    switches = resource.getrusage(resource.RUSAGE_SELF)
    drift_ns = _drift_ns(world, clock)
    attribution = _attribution(bench, sweep, point.size_bytes, sampled, budget, clock)
    series = sampled.series if sampled is not None else Series()
    return Measured(
        point=number,
        sweep=point.sweep,
        size_bytes=point.size_bytes,
        calls_per_sample=sampled.calls_per_sample if sampled is not None else 1,
        warmup_calls=sampled.warmup_calls if sampled is not None else 0,
        warmup_stable=sampled.warmup_stable if sampled is not None else False,
        duration_ns=tuple(series.duration_ns),
        lateness_ns=tuple(series.lateness_ns),
        off_processor_ns=tuple(series.off_processor_ns),
        missed=tuple(index for index, missed in enumerate(series.missed) if missed),
        clock_offset_ns=clock.offset_ns,
        clock_error_ns=clock.error_ns + drift_ns,
        clock_shared=clock.shared,
        mismatch=mismatch,
        verified_elements=_output_elements(world, sweep, point.size_bytes),
        voluntary_switches=switches.ru_nvcsw - switches_before.ru_nvcsw,
        involuntary_switches=switches.ru_nivcsw - switches_before.ru_nivcsw,
        tcp_bytes=tcp_bytes,
        attribution=attribution if world.rank == 0 else (),
        ended=sampled.ended if sampled is not None else "wrong",
        started_unix_s=started_unix_s,
        ended_unix_s=time.time(),
    )


def _verify(bench: Bench, exchange: _core.Exchange, sweep: Sweep, number: int) -> Mismatch | None:
    """Do the exchange once on random data over poisoned outputs, check every element, leave harmless inputs behind."""
    seed = zlib.crc32(bench.plan.run_id.encode()) * 1_000_003 + number
    pattern = _core.pattern(seed=seed, ranks=bench.world.ranks, dtype=sweep.dtype, op=sweep.op)
    found = _core.verify(exchange, pattern, send=bench.buffers.send, receive=bench.buffers.receive)
    _core.settle(exchange, pattern)
    if bench.buffers.overrun():
        raise RuntimeError("the MPI library wrote behind the end of a buffer")
    if found.wrong == 0:
        return None
    return Mismatch(wrong=found.wrong, index=found.index, got=found.got, expected=found.expected)


def _sample(
    bench: Bench,
    exchange: _core.Exchange,
    budget: Budget,
    clock: Clock,
    report: Callable[[str, int, float | None, float | None], None],
) -> Sampled:
    sampling = bench.plan.sampling
    sampler = Sampler(bench.world, bench.heart, exchange, sampling.mode, clock)
    controls = Controls(sampling=sampling, budget=budget, yields=bench.plan.placement.oversubscribed, report=report)
    return take_samples(bench.world, bench.heart, sampler, controls)


def _drift_ns(world: World, before: Clock) -> int:
    """Return how far this rank's clock moved against rank 0's while the point ran."""
    if before.shared:
        return 0
    after = read_clock(world, shared=False, yields=before.yields, rounds=_SYNC_ROUNDS)
    return abs(after.offset_ns - before.offset_ns)


def _attribution(
    bench: Bench, sweep: Sweep, size_bytes: int, sampled: Sampled | None, budget: Budget, clock: Clock
) -> tuple[Attribution, ...]:
    world = bench.world
    wanted = (
        world.rank == 0
        and sampled is not None
        and sampled.ended != "stopped"
        and is_worth_it(sweep, world, sampled.series, budget)
    )
    if not world.from_first([int(wanted)])[0]:
        return ()
    return attribute(world, bench.heart, sweep, size_bytes, bench.buffers, clock)


def _output_elements(world: World, sweep: Sweep, size_bytes: int) -> int:
    collective = COLLECTIVES[sweep.collective]
    received = collective.receive_bytes(size_bytes, world.ranks)
    receives = collective.name in ("broadcast", "scatter") or not collective.rooted or world.rank == sweep.root
    return received // DTYPE_BYTES[sweep.dtype] if receives else 0

"""Measuring over MPI: who the rank is, what its machine can do, and one point from verification to record."""

import os
import resource
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Literal

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, LARGEST_COPY_BYTES
from busbw.model.plan import Plan, Point, Sweep
from busbw.model.record import Attribution, Copied, Hello, Kernel, Mismatch, Record, Streamed
from busbw.rank import network
from busbw.rank.attribution import Buffers, attribute, is_worth_it, make_exchange, make_gpu_exchange, seat_of
from busbw.rank.bench import TurnTaken
from busbw.rank.blocks import Clock, MpiSampler, SampleSeries, read_clock
from busbw.rank.heart import Heart
from busbw.rank.journal import Taken, introduce, measured
from busbw.rank.mpi_world import MpiWorld
from busbw.rank.sampling import Controls, Sampled, take_turn
from busbw.rank.world import same_clock

if TYPE_CHECKING:
    from busbw.rank.gpu_buffers import GpuBuffers

_KERNELS: tuple[Kernel, ...] = ("loop", "memcpy")
_COPY_ROUNDS = 15
_STREAM_ROUNDS = 5
# However little time there is: enough for a median, and for a best of two.
_LEAST_COPY_ROUNDS = 3
_LEAST_STREAM_ROUNDS = 2
_STREAM_NS = 40_000_000
_NO_SOCKET = -1
_CONNECT_TIMEOUT_S = 10.0
# Bandwidth says nothing below this.
_SMALLEST_COPY_BYTES = 64 * 2**10


def copy_sizes(largest_bytes: int) -> list[int]:
    """Return the sizes that copies are measured at: every fourfold step from 64 KiB to `largest_bytes`."""
    sizes = []
    size_bytes = _SMALLEST_COPY_BYTES
    while size_bytes < largest_bytes:
        sizes.append(size_bytes)
        size_bytes *= 4
    return [*sizes, max(largest_bytes, _SMALLEST_COPY_BYTES)]


def copied(world: MpiWorld, largest_bytes: int, ends_s: float) -> Iterator[Copied]:
    """Measure STREAM's copy and memcpy at each size: every rank takes what its neighbour has just written.

    What a rank copies to itself stays in its own caches and says nothing about bytes that come from another core.
    Nothing is measured where a rank may not map its neighbour's memory.
    """
    sizes = copy_sizes(min(largest_bytes, LARGEST_COPY_BYTES))
    with _segments(world, sizes[-1]) as (own, neighbours):
        if neighbours is None:
            return
        target = _core.Buffer(sizes[-1])
        for size_bytes in sizes:
            for kernel in _KERNELS:
                rounds_ns = _rounds(world, kernel, (own, neighbours, target), size_bytes, ends_s)
                yield Copied(kernel=kernel, size_bytes=size_bytes, duration_ns=rounds_ns)


def _rounds(
    world: MpiWorld,
    kernel: Kernel,
    buffers: tuple[_core.Buffer, _core.Buffer, _core.Buffer],
    size_bytes: int,
    ends_s: float,
) -> tuple[int, ...]:
    """Write this rank's memory, then copy the neighbour's, all ranks at once, again and again."""
    own, neighbours, target = buffers
    copy = _core.copy_with_loop if kernel == "loop" else _core.copy_with_memcpy
    durations_ns = []
    for _round in _while_time(world, _LEAST_COPY_ROUNDS, _COPY_ROUNDS, ends_s):
        own.touch(size_bytes)
        world.barrier()
        moved = copy(neighbours, target, size_bytes=size_bytes)
        world.barrier()
        durations_ns.append(moved.end_ns - moved.start_ns)
    return tuple(durations_ns)


def _while_time(world: MpiWorld, least: int, most: int, ends_s: float) -> Iterator[int]:
    """Yield the numbers of rounds, the same on all ranks."""
    for number in range(most):
        if number >= least and world.from_first([int(time.monotonic() > ends_s)])[0]:
            return
        yield number


@contextmanager
def _segments(world: MpiWorld, size_bytes: int) -> Iterator[tuple[_core.Buffer, _core.Buffer | None]]:
    """Give this rank's shared memory and the next rank's; None where any rank is refused."""
    file = os.memfd_create("busbw-copies")
    try:
        os.ftruncate(file, size_bytes)
        own = _core.Buffer(file, size_bytes)
        following = (world.rank + 1) % world.ranks
        path = f"/proc/{world.from_each(os.getpid())[following]}/fd/{world.from_each(file)[following]}"
        neighbours = _map(path, size_bytes)
        refused = world.total([int(neighbours is None)])[0] > 0
        yield own, None if refused else neighbours
    finally:
        os.close(file)


def _map(path: str, size_bytes: int) -> _core.Buffer | None:
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return _core.Buffer(file, size_bytes)
    finally:
        os.close(file)


def streamed(world: MpiWorld, ends_s: float) -> Iterator[Streamed]:
    """Measure TCP over the loopback interface: a ring of all ranks, then one-way pairs. For ranks of one host."""
    rounds = [_streamed_ring(world) for _round in _stream_rounds(world, ends_s)]
    yield _streamed(world, "ring", rounds)
    if world.ranks % 2 == 0:
        rounds = [_streamed_pairs(world) for _round in _stream_rounds(world, ends_s)]
        yield _streamed(world, "pairs", rounds)


def _stream_rounds(world: MpiWorld, ends_s: float) -> Iterator[int]:
    return _while_time(world, _LEAST_STREAM_ROUNDS, _STREAM_ROUNDS, ends_s)


def _streamed(world: MpiWorld, pattern: Literal["ring", "pairs"], rounds: list[_core.Movement]) -> Streamed:
    # What a pair moves counts once, where it arrives.
    counts = pattern == "ring" or world.rank >= world.ranks // 2
    return Streamed(
        pattern=pattern,
        moved_bytes=tuple(moved.size_bytes if counts else 0 for moved in rounds),
        duration_ns=tuple(moved.end_ns - moved.start_ns for moved in rounds),
    )


def _streamed_ring(world: MpiWorld) -> _core.Movement:
    following = (world.rank + 1) % world.ranks
    with _listener() as listener:
        ports = world.from_each(listener.getsockname()[1])
        with _connected(ports[following]) as outgoing, _accepted(listener) as incoming:
            return _stream_together(world, outgoing.fileno(), incoming.fileno())


def _streamed_pairs(world: MpiWorld) -> _core.Movement:
    half = world.ranks // 2
    with _listener() as listener:
        ports = world.from_each(listener.getsockname()[1])
        if world.rank < half:
            with _connected(ports[world.rank + half]) as outgoing:
                return _stream_together(world, outgoing.fileno(), _NO_SOCKET)
        with _accepted(listener) as incoming:
            return _stream_together(world, _NO_SOCKET, incoming.fileno())


def _stream_together(world: MpiWorld, outgoing: int, incoming: int) -> _core.Movement:
    world.barrier()
    moved = _core.stream_sockets(outgoing, incoming, duration_ns=_STREAM_NS)
    world.barrier()
    return moved


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.settimeout(_CONNECT_TIMEOUT_S)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    return listener


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_TIMEOUT_S)


def _accepted(listener: socket.socket) -> socket.socket:
    connection, _ = listener.accept()
    return connection


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
        # None: buffers are in host memory.
        self.on_gpu: GpuBuffers | None = None
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
        """Measure what the machine can do at best; copies of host memory say nothing about GPUs, or groups of ranks."""
        if self.world.one_host and self.plan.mpi_driver is None and self.plan.step is None:
            largest_bytes = max(size_bytes for sweep in self.plan.sweeps for size_bytes in sweep.sizes_bytes)
            ends_s = time.monotonic() + _RATES_SHARE * self.plan.sampling.time_limit_s
            for record in chain(copied(self.world, largest_bytes, ends_s), streamed(self.world, ends_s)):
                yield (record,)

    def prepare(self) -> None:
        """Make what all points share."""
        if self.plan.mpi_driver is not None:
            from busbw.rank.gpu_buffers import GpuBuffers  # noqa: PLC0415 - few runs have them

            self.on_gpu = GpuBuffers(self.world, self.plan.sweeps, self.plan.mpi_driver.path)
        else:
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
    exchange = _exchange(bench, sweep, point.size_bytes)
    heart.enter("verifying", number)
    rounds, sync_s = controls.sync_rounds, time.monotonic()
    clock = read_clock(world, shared=bench.shared_clock, yields=controls.yields, rounds=rounds)
    sync_s = time.monotonic() - sync_s
    controls.report("verifying", 0, None, None)
    verifying_s = time.monotonic()
    mismatch = _verify(bench, exchange, sweep, number) if controls.turn == 0 else None
    verifying_s = time.monotonic() - verifying_s
    _settle(bench, exchange, _pattern(bench, sweep, number))
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


def _exchange(bench: MpiBench, sweep: Sweep, size_bytes: int) -> _core.Exchange:
    on_gpu = bench.on_gpu
    if on_gpu is None:
        return make_exchange(bench.world, sweep, size_bytes, bench.buffers)
    return make_gpu_exchange(bench.world, sweep, size_bytes, on_gpu.send, on_gpu.receive)


def _settle(bench: MpiBench, exchange: _core.Exchange, pattern: _core.Pattern) -> None:
    """Leave inputs behind that stay finite however often the exchange is repeated."""
    on_gpu = bench.on_gpu
    if on_gpu is None:
        _core.settle(exchange, pattern)
    else:
        _core.settle_on_gpu(exchange, pattern, gpu=on_gpu.gpu, send=on_gpu.send, receive=on_gpu.receive)


def _verify(bench: MpiBench, exchange: _core.Exchange, sweep: Sweep, number: int) -> Mismatch | None:
    """Do the exchange once on random data over poisoned outputs and check every element."""
    pattern, on_gpu = _pattern(bench, sweep, number), bench.on_gpu
    if on_gpu is None:
        found = _core.verify(exchange, pattern, send=bench.buffers.send, receive=bench.buffers.receive)
        if bench.buffers.overrun():
            raise RuntimeError("the MPI library wrote behind the end of a buffer")
    else:
        found = _core.verify_on_gpu(exchange, pattern, gpu=on_gpu.gpu, send=on_gpu.send, receive=on_gpu.receive)
    if found.wrong == 0:
        return None
    return Mismatch(wrong=found.wrong, index=found.index, got=found.got, expected=found.expected)


def _pattern(bench: MpiBench, sweep: Sweep, number: int) -> _core.Pattern:
    seed = zlib.crc32(bench.plan.run_id.encode()) * 1_000_003 + number
    return _core.pattern(seed=seed, ranks=sweep.partners(bench.world.ranks), dtype=sweep.dtype, op=sweep.op)


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
        and bench.on_gpu is None
        and sampled is not None
        and sampled.ended != "stopped"
        and is_worth_it(sweep, world, sampled.series, controls.budget)
    )
    if not world.from_first([int(wanted)])[0]:
        return ()
    return attribute(world, bench.heart, sweep, size_bytes, bench.buffers, clock)


def _output_elements(world: MpiWorld, sweep: Sweep, size_bytes: int) -> int:
    collective = COLLECTIVES[sweep.collective]
    rank, ranks, root = seat_of(world, sweep)
    received = collective.receive_bytes(size_bytes, ranks)
    receives = collective.name in ("broadcast", "scatter") or not collective.rooted or rank == root
    return received // DTYPE_BYTES[sweep.dtype] if receives else 0

"""Who delays the others: the same exchange among halves of the ranks, one bit of the rank number at a time.

A delay inside a collective is felt by every rank alike, so no rank's own times tell where it began. Among half of the
ranks it is felt only if its cause is in that half; log2(ranks) ways of halving spell the number of one cause.
"""

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, LEAST_BUFFER_BYTES, part_count
from busbw.model.plan import Sweep
from busbw.model.record import Attribution
from busbw.rank.blocks import BlockShape, Clock, MpiSampler, SampleSeries
from busbw.rank.heart import Heart
from busbw.rank.mpi_world import MpiWorld
from busbw.rank.sampling import Budget
from busbw.stats.tail import slow_samples

# The loop of the core that a collective runs in, where the names differ.
_KINDS = {"message_rate": "bandwidth"}


class Buffers:
    """One send, one receive and one scratch buffer, large enough for every point of the run."""

    def __init__(self, world: MpiWorld, sweeps: tuple[Sweep, ...]) -> None:
        send_bytes, receive_bytes = footprint_of(world, sweeps)
        # A two-level alltoall copies its whole input.
        copied = [_footprint_bytes(world, sweep, max(sweep.sizes_bytes)) for sweep in sweeps if sweep.group is not None]
        scratch_bytes = max((sent for sent, _received in copied), default=0)
        self.send = _core.Buffer(send_bytes)
        self.receive = _core.Buffer(receive_bytes)
        self.scratch = _core.Buffer(scratch_bytes)

    def overrun(self) -> bool:
        """Whether anything wrote behind the end of a buffer."""
        return self.send.overrun() or self.receive.overrun() or self.scratch.overrun()


def footprint_of(world: MpiWorld, sweeps: tuple[Sweep, ...]) -> tuple[int, int]:
    """Return the bytes of a send and a receive buffer that are large enough for every point."""
    needs = [_footprint_bytes(world, sweep, size_bytes) for sweep in sweeps for size_bytes in sweep.sizes_bytes]
    sent, received = (max(sizes, default=0) for sizes in zip(*needs, strict=True))
    return max(sent, LEAST_BUFFER_BYTES), max(received, LEAST_BUFFER_BYTES)


def seat_of(world: MpiWorld, sweep: Sweep) -> tuple[int, int, int]:
    """Return this rank's number among those that exchange, how many they are, and the root."""
    if sweep.within is None:
        return world.rank, world.ranks, sweep.root
    return sweep.within.seat(world.rank)[1], sweep.within.size, sweep.root


def _footprint_bytes(world: MpiWorld, sweep: Sweep, size_bytes: int) -> tuple[int, int]:
    rank, ranks, root = seat_of(world, sweep)
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, ranks, sweep.dtype)
    send, receive = _core.footprint(
        kind=_KINDS.get(sweep.collective, sweep.collective),
        rank=rank,
        ranks=ranks,
        root=root,
        count=count,
        in_place=sweep.in_place,
    )
    element_bytes = DTYPE_BYTES[sweep.dtype]
    return send * element_bytes, receive * element_bytes


def make_exchange(world: MpiWorld, sweep: Sweep, size_bytes: int, buffers: Buffers) -> _core.Exchange:
    """Return the exchange of one point over all ranks, or those of this rank's group. Every rank must call this."""
    seat = seat_of(world, sweep)
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, seat[1], sweep.dtype)
    communicator = world.handle(world.communicator if sweep.within is None else world.within(sweep.within))
    if sweep.group is not None:
        return _core.make_two_level(
            mpi=world.core,
            geometry=_geometry(sweep, count, seat),
            handles=_handles(world, sweep, communicator),
            levels=world.levels(sweep.group),
            send=buffers.send,
            receive=buffers.receive,
            scratch=buffers.scratch,
            element_bytes=DTYPE_BYTES[sweep.dtype],
        )
    return _make(world, sweep, count, buffers, communicator, seat)


def make_group_exchange(
    world: MpiWorld, sweep: Sweep, size_bytes: int, buffers: Buffers, communicator: int, rank: int, ranks: int
) -> _core.Exchange:
    """Return the same exchange, with the same part, among some of the ranks; its root is the first of them."""
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    return _make(world, sweep, count, buffers, communicator, (rank, ranks, 0))


def _make(
    world: MpiWorld, sweep: Sweep, count: int, buffers: Buffers, communicator: int, seat: tuple[int, int, int]
) -> _core.Exchange:
    return _core.make_exchange(
        mpi=world.core,
        geometry=_geometry(sweep, count, seat),
        handles=_handles(world, sweep, communicator),
        send=buffers.send,
        receive=buffers.receive,
        element_bytes=DTYPE_BYTES[sweep.dtype],
        window=COLLECTIVES[sweep.collective].messages_per_call,
    )


def make_gpu_exchange(
    world: MpiWorld, sweep: Sweep, size_bytes: int, send: _core.GpuMemory, receive: _core.GpuMemory
) -> _core.Exchange:
    """Return the exchange of one point over all ranks, between memory of their GPUs. Every rank must call this."""
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    return _core.make_exchange_on_gpu(
        mpi=world.core,
        geometry=_geometry(sweep, count, (world.rank, world.ranks, sweep.root)),
        handles=_handles(world, sweep, world.handle(world.communicator)),
        send=send,
        receive=receive,
        element_bytes=DTYPE_BYTES[sweep.dtype],
        window=COLLECTIVES[sweep.collective].messages_per_call,
    )


def _geometry(sweep: Sweep, count: int, seat: tuple[int, int, int]) -> _core.Geometry:
    rank, ranks, root = seat
    return _core.geometry(
        kind=_KINDS.get(sweep.collective, sweep.collective),
        rank=rank,
        ranks=ranks,
        root=root,
        count=count,
        in_place=sweep.in_place,
    )


def _handles(world: MpiWorld, sweep: Sweep, communicator: int) -> _core.Handles:
    reducer = world.reducer(sweep.dtype, sweep.op)
    return _core.Handles(
        communicator=communicator,
        datatype=reducer.datatype,
        operation=reducer.operation,
        byte=world.byte,
        in_place_mark=world.in_place_mark,
    )


_CALLS = 1000
_MOST_SECONDS = 3.0
# A tail worth looking into: this many slow samples, and this share of all.
_LEAST_SLOW = 5
_LEAST_SLOW_SHARE = 0.005


def is_worth_it(sweep: Sweep, world: MpiWorld, series: SampleSeries, budget: Budget) -> bool:
    """Whether the tail of a turn should be traced, and there is time for it. Only rank 0 decides.

    Pairs name their ranks themselves; groups of ranks do not stay whole when every other rank is left out.
    """
    is_divided = sweep.group is not None or sweep.within is not None
    if COLLECTIVES[sweep.collective].pairs or is_divided or world.ranks < 2:
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
    series = SampleSeries()
    sampler = MpiSampler(world, heart, exchange, "stream", clock)
    sampler.take(BlockShape(samples=_CALLS, calls=1, lead_ns=0), series)
    slowest_ns = world.largest(series.duration_ns, communicator)
    communicator.Free()
    return len(slow_samples([value * 1e-9 for value in slowest_ns]))

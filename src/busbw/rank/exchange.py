"""The exchange of one point, ready for the core: geometry, handles, buffers."""

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, LEAST_BUFFER_BYTES, part_count
from busbw.model.sweep import Sweep
from busbw.rank.mpi_world import MpiWorld

# The loop of the core that a collective runs in, where the names differ.
_KINDS = {"message_rate": "bandwidth"}


class Buffers:
    """One send, one receive and one scratch buffer, large enough for every point of the run."""

    def __init__(self, world: MpiWorld, sweeps: tuple[Sweep, ...]) -> None:
        send_bytes = receive_bytes = LEAST_BUFFER_BYTES
        scratch_bytes = 0
        for sweep in sweeps:
            for size_bytes in sweep.sizes_bytes:
                sent, received = _footprint_bytes(world, sweep, size_bytes)
                send_bytes, receive_bytes = max(send_bytes, sent), max(receive_bytes, received)
                # A two-level alltoall copies its whole input.
                scratch_bytes = max(scratch_bytes, sent if sweep.group is not None else 0)
        self.send = _core.Buffer(send_bytes)
        self.receive = _core.Buffer(receive_bytes)
        self.scratch = _core.Buffer(scratch_bytes)

    def overrun(self) -> bool:
        """Whether anything wrote behind the end of a buffer."""
        return self.send.overrun() or self.receive.overrun() or self.scratch.overrun()


def _footprint_bytes(world: MpiWorld, sweep: Sweep, size_bytes: int) -> tuple[int, int]:
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    send, receive = _core.footprint(
        kind=_KINDS.get(sweep.collective, sweep.collective),
        rank=world.rank,
        ranks=world.ranks,
        root=sweep.root,
        count=count,
        in_place=sweep.in_place,
    )
    element_bytes = DTYPE_BYTES[sweep.dtype]
    return send * element_bytes, receive * element_bytes


def make_exchange(world: MpiWorld, sweep: Sweep, size_bytes: int, buffers: Buffers) -> _core.Exchange:
    """Return the exchange of one point over all ranks. Every rank must call this."""
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    communicator, seat = world.handle(world.communicator), (world.rank, world.ranks, sweep.root)
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

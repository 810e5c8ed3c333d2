"""The exchange of one point, ready for the core: geometry, handles, buffers."""

from busbw import _core
from busbw.collectives import COLLECTIVES, DTYPE_BYTES, LEAST_BUFFER_BYTES, part_count
from busbw.model.sweep import Sweep
from busbw.rank.world import World

# The loop of the core that a collective runs in, where the names differ.
_KINDS = {"message_rate": "bandwidth"}


class Buffers:
    """One send and one receive buffer, large enough for every point of the run."""

    def __init__(self, world: World, sweeps: tuple[Sweep, ...]) -> None:
        send_bytes = receive_bytes = LEAST_BUFFER_BYTES
        for sweep in sweeps:
            for size_bytes in sweep.sizes_bytes:
                sent, received = _footprint_bytes(world, sweep, size_bytes)
                send_bytes, receive_bytes = max(send_bytes, sent), max(receive_bytes, received)
        self.send = _core.Buffer(send_bytes)
        self.receive = _core.Buffer(receive_bytes)

    def overrun(self) -> bool:
        """Whether anything wrote behind the end of a buffer."""
        return self.send.overrun() or self.receive.overrun()


def _footprint_bytes(world: World, sweep: Sweep, size_bytes: int) -> tuple[int, int]:
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


def make_exchange(world: World, sweep: Sweep, size_bytes: int, buffers: Buffers) -> _core.Exchange:
    """Return the exchange of one point over all ranks."""
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    return _make(world, sweep, count, buffers, world.handle(world.communicator), (world.rank, world.ranks, sweep.root))


def make_group_exchange(
    world: World, sweep: Sweep, size_bytes: int, buffers: Buffers, communicator: int, rank: int, ranks: int
) -> _core.Exchange:
    """Return the same exchange, with the same part, among some of the ranks; its root is the first of them."""
    count = part_count(COLLECTIVES[sweep.collective], size_bytes, world.ranks, sweep.dtype)
    return _make(world, sweep, count, buffers, communicator, (rank, ranks, 0))


def _make(
    world: World, sweep: Sweep, count: int, buffers: Buffers, communicator: int, seat: tuple[int, int, int]
) -> _core.Exchange:
    collective = COLLECTIVES[sweep.collective]
    rank, ranks, root = seat
    reducer = world.reducer(sweep.dtype, sweep.op)
    return _core.make_exchange(
        mpi=world.core,
        geometry=_core.geometry(
            kind=_KINDS.get(collective.name, collective.name),
            rank=rank,
            ranks=ranks,
            root=root,
            count=count,
            in_place=sweep.in_place,
        ),
        handles=_core.Handles(
            communicator=communicator,
            datatype=reducer.datatype,
            operation=reducer.operation,
            byte=world.byte,
            in_place_mark=world.in_place_mark,
        ),
        send=buffers.send,
        receive=buffers.receive,
        element_bytes=DTYPE_BYTES[sweep.dtype],
        window=collective.messages_per_call,
    )

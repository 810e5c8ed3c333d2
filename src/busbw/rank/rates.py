"""What the machine can do at best, measured on the ranks' own cores while all of them work at once."""

import socket
from collections.abc import Iterator

from busbw import _core
from busbw.model.record import Copied, Streamed
from busbw.rank.exchange import Buffers
from busbw.rank.world import World

_COPY_NS = 40_000_000
_STREAM_NS = 150_000_000
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


def copied(world: World, buffers: Buffers, largest_bytes: int) -> Iterator[Copied]:
    """Measure STREAM's copy and memcpy at each size, every rank between its own two buffers at the same time."""
    room = world.from_each(min(buffers.send.size, buffers.receive.size))
    for size_bytes in copy_sizes(min(largest_bytes, *room)):
        for kernel, copy in (("loop", _core.copy_with_loop), ("memcpy", _core.copy_with_memcpy)):
            world.barrier()
            moved = copy(buffers.send, buffers.receive, size_bytes=size_bytes, duration_ns=_COPY_NS)
            yield Copied(
                kernel="loop" if kernel == "loop" else "memcpy",
                size_bytes=size_bytes,
                moved_bytes=moved.size_bytes,
                start_ns=moved.start_ns,
                end_ns=moved.end_ns,
            )


def streamed(world: World) -> Iterator[Streamed]:
    """Measure TCP over the loopback interface: a ring of all ranks, then one-way pairs. For ranks of one host."""
    yield _streamed_ring(world)
    if world.ranks % 2 == 0:
        yield _streamed_pairs(world)


def _streamed_ring(world: World) -> Streamed:
    following = (world.rank + 1) % world.ranks
    with _listener() as listener:
        ports = world.from_each(listener.getsockname()[1])
        with _connected(ports[following]) as outgoing, _accepted(listener) as incoming:
            world.barrier()
            moved = _core.stream_sockets(outgoing.fileno(), incoming.fileno(), duration_ns=_STREAM_NS)
            world.barrier()
    return Streamed(pattern="ring", moved_bytes=moved.size_bytes, start_ns=moved.start_ns, end_ns=moved.end_ns)


def _streamed_pairs(world: World) -> Streamed:
    half = world.ranks // 2
    with _listener() as listener:
        ports = world.from_each(listener.getsockname()[1])
        if world.rank < half:
            with _connected(ports[world.rank + half]) as outgoing:
                world.barrier()
                moved = _core.stream_sockets(outgoing.fileno(), -1, duration_ns=_STREAM_NS)
                world.barrier()
        else:
            with _accepted(listener) as incoming:
                world.barrier()
                moved = _core.stream_sockets(-1, incoming.fileno(), duration_ns=_STREAM_NS)
                world.barrier()
    # What a pair moves counts once, where it arrives.
    moved_bytes = 0 if world.rank < half else moved.size_bytes
    return Streamed(pattern="pairs", moved_bytes=moved_bytes, start_ns=moved.start_ns, end_ns=moved.end_ns)


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

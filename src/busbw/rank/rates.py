"""What the machine can do at best, measured on the ranks' own cores while all of them work at once.

Rounds are left out when `ends_s`, an instant of the monotonic clock of rank 0, is over.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from busbw import _core
from busbw.base.collectives import LARGEST_COPY_BYTES
from busbw.model.record import Copied, Kernel, Streamed
from busbw.rank.mpi_world import MpiWorld

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

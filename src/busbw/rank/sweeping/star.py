"""A star of TCP connections to rank 0 beside MPI: who does not answer in time is lost, and the others go on.

MPI's collectives wait for every rank for ever; in a sweep that looks for bad hosts one of them may stand still.
"""

import json
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Collection, Iterable, Mapping

from busbw.rank.mpi_world import MpiWorld
from busbw.rank.socket_world import greeted, joined_at

_LENGTH = struct.Struct("=I")
_SECRET_BYTES = 16
# What rank 0 says of itself goes through MPI, which wants to know its length.
_PLACE_BYTES = 1024
_MEETING_S = 30.0
_SENDING_S = 5.0
_CHUNK_BYTES = 2**16
_MOST_MESSAGE_BYTES = 2**20


class Hub:
    """Rank 0's end of the star."""

    def __init__(self, links: Mapping[int, socket.socket]) -> None:
        self._links = dict(links)
        self._unread: dict[int, bytearray] = {rank: bytearray() for rank in links}
        self._selector = selectors.DefaultSelector()
        for rank, link in links.items():
            link.settimeout(_SENDING_S)
            self._selector.register(link, selectors.EVENT_READ, rank)
        # Ranks whose connection is closed, or that were given up.
        self.lost: set[int] = set()

    def lose(self, ranks: Iterable[int]) -> None:
        """Expect nothing more of these ranks."""
        self.lost.update(ranks)

    def tell(self, rank: int, message: bytes) -> None:
        """Send a message to a rank; one that cannot be reached is lost."""
        try:
            self._links[rank].sendall(_LENGTH.pack(len(message)) + message)
        except OSError:
            self.lost.add(rank)

    def hear(self, ranks: Collection[int], ends_s: float) -> Iterable[tuple[int, bytes]]:
        """Yield messages of any ranks until `ranks` have closed or the clock stands at `ends_s`.

        Who asks stops asking when it has what it waits for.
        """
        while not self.lost.issuperset(ranks):
            for rank in [key.data for key, _mask in self._selector.select(max(ends_s - time.monotonic(), 0.0))]:
                self._take(rank)
                for message in self._whole(rank):
                    yield rank, message
            if time.monotonic() >= ends_s:
                return

    def _take(self, rank: int) -> None:
        try:
            chunk = self._links[rank].recv(_CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk or len(self._unread[rank]) > _MOST_MESSAGE_BYTES:
            self._selector.unregister(self._links[rank])
            self.lost.add(rank)
        self._unread[rank] += chunk

    def _whole(self, rank: int) -> Iterable[bytes]:
        unread = self._unread[rank]
        while len(unread) >= _LENGTH.size and len(unread) >= (end := _LENGTH.size + _LENGTH.unpack_from(unread)[0]):
            message = bytes(unread[_LENGTH.size : end])
            del unread[:end]
            yield message


class Spoke:
    """The end of the star of every other rank."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        link.settimeout(None)

    def tell(self, message: bytes) -> None:
        """Send a message to rank 0. Raises OSError when it is gone."""
        self._link.sendall(_LENGTH.pack(len(message)) + message)

    def hear(self) -> bytes | None:
        """Return the next message of rank 0; None when it is gone."""
        head = self._read(_LENGTH.size)
        return None if head is None else self._read(_LENGTH.unpack(head)[0])

    def _read(self, size_bytes: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size_bytes:
            try:
                part = self._link.recv(size_bytes - len(parts))
            except OSError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)


def open_star(world: MpiWorld, host: str) -> Hub | Spoke:
    """Connect every rank with rank 0, which the others find by the name `host`. Every rank calls this.

    Raises RuntimeError that names who did not come.
    """
    if world.rank == 0:
        return Hub(_gathered(world, host))
    place = json.loads(world.bytes_from_first(bytes(_PLACE_BYTES)).rstrip(b"\0"))
    link = joined_at(place, world.rank, _MEETING_S)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Spoke(link)


def _gathered(world: MpiWorld, host: str) -> dict[int, socket.socket]:
    secret = secrets.token_bytes(_SECRET_BYTES)
    links: dict[int, socket.socket] = {}
    with socket.create_server(("", 0), backlog=world.ranks) as listener:
        place = {"address": host, "port": listener.getsockname()[1], "secret": secret.hex()}
        world.bytes_from_first(json.dumps(place).encode().ljust(_PLACE_BYTES, b"\0"))
        ends_s = time.monotonic() + _MEETING_S
        while len(links) < world.ranks - 1:
            listener.settimeout(max(ends_s - time.monotonic(), 0.001))
            try:
                link, _ = listener.accept()
            except OSError as error:
                missing = [str(rank) for rank in range(1, world.ranks) if rank not in links]
                raise RuntimeError(
                    f"rank {', '.join(missing[:8])} did not reach {host} over TCP within {_MEETING_S:.0f} s"
                ) from error
            rank = greeted(link, secret)
            if rank is None or rank in links or not 0 < rank < world.ranks:
                link.close()
                continue
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            links[rank] = link
    return links

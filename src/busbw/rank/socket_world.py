"""Ranks without MPI: they know their number from their launcher's variables and meet at rank 0 over TCP.

Rank 0 listens on a free port and leaves the address, with a secret, in the run directory, which every rank sees anyway:
it writes its records there.
"""

import hmac
import json
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busbw import _core
from busbw.base import layout
from busbw.model.fabric import FabricPlan

# (rank, ranks, rank within the host): torchrun's names, srun's, and those of MPI launchers that start us without MPI.
_VARIABLES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)
_ADDRESS = "MASTER_ADDR"
_LOOK_AGAIN_S = 0.02
_SECRET_BYTES = 16
# A rank says who it is as soon as it has connected.
_GREETING_S = 2.0
# The share of the limit within which ranks must have met: who is missing must be told before the launching side ends
# them.
_MEETING_SHARE = 0.7
_LENGTH = struct.Struct("=I")
_NUMBER = struct.Struct("=q")
_RANK = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class RankIdentity:
    """Who a process is."""

    rank: int
    ranks: int
    local_rank: int


def place_of(environment: Mapping[str, str]) -> RankIdentity:
    """Return who the launcher says this process is. Raises RuntimeError when no launcher says it."""
    for names in _VARIABLES:
        values = [environment.get(name, "") for name in names]
        if all(value.isdecimal() for value in values):
            rank, ranks, local_rank = (int(value) for value in values)
            if rank >= ranks:
                raise RuntimeError(f"{names[0]}={rank} is not one of {names[1]}={ranks}")
            return RankIdentity(rank, ranks, local_rank)
    raise RuntimeError(
        "no launcher says which rank this is: neither RANK, WORLD_SIZE, LOCAL_RANK nor SLURM_PROCID, SLURM_NTASKS, "
        "SLURM_LOCALID are set"
    )


def use_own_nic(plan: FabricPlan, environment: MutableMapping[str, str]) -> None:
    """Set what makes MPI use the NIC of this rank alone, before it is loaded."""
    if plan.nic_settings:
        number = place_of(environment).local_rank
        environment.update(plan.nic_settings[number % len(plan.nic_settings)])


class SocketWorld:
    """All ranks of the run, met through rank 0."""

    version = "no MPI"
    library = ""
    handle_bytes = 0
    thread_level = "none"
    interposed: tuple[str, ...] = ()

    def __init__(self, directory: Path, attempt: int, *, timeout_s: float) -> None:
        place = place_of(os.environ)
        self.rank, self.ranks, self.local_rank = place.rank, place.ranks, place.local_rank
        self._timeout_s = timeout_s
        meeting = directory / layout.RAW_DIRECTORY / layout.meeting_name(attempt)
        if self.ranks == 1:
            self._links: tuple[socket.socket, ...] = ()
        elif self.rank == 0:
            self._links = _gathered(meeting, self.ranks, _MEETING_SHARE * timeout_s)
        else:
            self._links = (_joined(meeting, self.rank, _MEETING_SHARE * timeout_s),)
        for link in self._links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # The launching side, which sees who is missing, is the first to give up.
            link.settimeout(2 * timeout_s)
        names = self._exchange(socket.gethostname().encode(), b"\0".join)
        self.one_host = len(set(names.split(b"\0"))) == 1

    def from_first(self, numbers: Sequence[int]) -> list[int]:
        """Return rank 0's `numbers` on every rank; all ranks give the same count."""
        return self._combined(numbers, lambda rows: rows[0])

    def bytes_from_first(self, content: bytes) -> bytes:
        """Return rank 0's `content` on every rank; all ranks give the same length."""
        return self._exchange(content, lambda parts: parts[0])

    def to_first(self, content: bytes) -> list[bytes]:
        """Return every rank's `content`, in their order, on rank 0; nothing elsewhere."""
        received: list[bytes] = []

        def take(parts: list[bytes]) -> bytes:
            received.extend(parts)
            return b""

        self._exchange(content, take)
        return received

    def largest(self, numbers: Sequence[int]) -> list[int]:
        """Return the element-wise maximum over all ranks, on every rank."""
        return self._combined(numbers, lambda rows: [max(column) for column in zip(*rows, strict=True)])

    def total(self, numbers: Sequence[int]) -> list[int]:
        """Return the element-wise sum over all ranks, on every rank."""
        return self._combined(numbers, lambda rows: [sum(column) for column in zip(*rows, strict=True)])

    def from_each(self, number: int) -> list[int]:
        """Return one number of every rank, on every rank."""
        return self._combined([number], lambda rows: [row[0] for row in rows])

    def barrier(self) -> None:
        """Wait for every rank."""
        self.from_each(0)

    def gate(self, timeout_s: float) -> _core.Gate:
        """Return where the loops of the core meet."""
        if self.ranks == 1:
            return _core.no_gate()
        return _core.socket_gate(
            [link.fileno() for link in self._links], is_first=self.rank == 0, timeout_ns=round(timeout_s * 1e9)
        )

    def clock_offset(self, rounds: int) -> _core.ClockOffset:
        """Measure this rank's clock against rank 0's: of several questions the one answered fastest counts."""
        best = _core.ClockOffset(offset_ns=0, error_ns=0)
        for asking in range(1, self.ranks):
            if self.rank == 0:
                for _round in range(rounds):
                    _receive(self._links[asking - 1], _NUMBER.size)
                    self._links[asking - 1].sendall(_NUMBER.pack(time.monotonic_ns()))
            elif self.rank == asking:
                best = _fastest(self._links[0], rounds)
        self.barrier()
        return best

    def leave(self) -> None:
        """Keep the connections: the end of the process closes them, and a rank that is late is not told of it early."""

    def abort(self, code: int) -> None:
        """End this rank; the closed connection ends the others, and the launching side what is left."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _combined(self, numbers: Sequence[int], combine: Callable[[list[tuple[int, ...]]], Sequence[int]]) -> list[int]:
        form = struct.Struct(f"={len(numbers)}q")

        def together(parts: list[bytes]) -> bytes:
            combined = combine([form.unpack(part) for part in parts])
            return struct.pack(f"={len(combined)}q", *combined)

        answer = self._exchange(form.pack(*numbers), together)
        return list(struct.unpack(f"={len(answer) // _NUMBER.size}q", answer))

    def _exchange(self, content: bytes, combine: Callable[[list[bytes]], bytes]) -> bytes:
        """Bring every rank's content to rank 0 and its combination back."""
        if self.rank == 0:
            answer = combine([content, *(_receive_message(link) for link in self._links)])
            for link in self._links:
                link.sendall(_LENGTH.pack(len(answer)) + answer)
            return answer
        self._links[0].sendall(_LENGTH.pack(len(content)) + content)
        return _receive_message(self._links[0])


def _fastest(link: socket.socket, rounds: int) -> _core.ClockOffset:
    best = (2**62, 0)
    for _round in range(rounds):
        before_ns = time.monotonic_ns()
        link.sendall(_NUMBER.pack(0))
        theirs_ns = _NUMBER.unpack(_receive(link, _NUMBER.size))[0]
        after_ns = time.monotonic_ns()
        best = min(best, (after_ns - before_ns, theirs_ns - (before_ns + after_ns) // 2))
    return _core.ClockOffset(offset_ns=best[1], error_ns=best[0] // 2 + 1)


def _gathered(meeting: Path, ranks: int, timeout_s: float) -> tuple[socket.socket, ...]:
    """Listen, leave the address, and return one connection for each other rank, in their order."""
    secret = secrets.token_bytes(_SECRET_BYTES)
    links: dict[int, socket.socket] = {}
    ends_s = time.monotonic() + timeout_s
    with socket.create_server(("", 0), backlog=ranks) as listener:
        address = os.environ.get(_ADDRESS) or socket.gethostname()
        _leave(meeting, {"address": address, "port": listener.getsockname()[1], "secret": secret.hex()})
        while len(links) < ranks - 1:
            listener.settimeout(max(ends_s - time.monotonic(), 0.001))
            try:
                link, _ = listener.accept()
            except OSError as error:
                missing = [str(rank) for rank in range(1, ranks) if rank not in links]
                raise RuntimeError(f"rank {', '.join(missing)} did not come within {timeout_s:.0f} s") from error
            rank = greeted(link, secret)
            if rank is None or rank in links or not 0 < rank < ranks:
                link.close()
                continue
            links[rank] = link
    return tuple(links[rank] for rank in sorted(links))


def greeted(link: socket.socket, secret: bytes) -> int | None:
    """Return the rank that has connected; None for a stranger, such as what scans ports."""
    link.settimeout(_GREETING_S)
    try:
        greeting = _receive(link, _SECRET_BYTES + _RANK.size)
    except (OSError, RuntimeError):
        return None
    rank = _RANK.unpack(greeting[_SECRET_BYTES:])[0]
    return int(rank) if hmac.compare_digest(greeting[:_SECRET_BYTES], secret) else None


def _leave(meeting: Path, content: dict[str, str | int]) -> None:
    new = meeting.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    new.replace(meeting)


def _joined(meeting: Path, rank: int, timeout_s: float) -> socket.socket:
    ends_s = time.monotonic() + timeout_s
    why = f"it left no address in {meeting}"
    while (left_s := ends_s - time.monotonic()) > 0:
        try:
            where = json.loads(meeting.read_bytes())
        except FileNotFoundError:
            time.sleep(_LOOK_AGAIN_S)
            continue
        try:
            return _connected(where, rank, left_s)
        except OSError as error:
            # Possibly the address is one that an earlier start left.
            why = f"{where['address']}:{where['port']}: {error.strerror or error}"
            time.sleep(_LOOK_AGAIN_S)
    raise RuntimeError(f"rank {rank} did not reach rank 0 within {timeout_s:.0f} s: {why}")


def joined_at(where: Mapping[str, Any], rank: int, timeout_s: float) -> socket.socket:
    """Return a connection to rank 0, which has said `where` it listens. Raises RuntimeError."""
    try:
        return _connected(where, rank, timeout_s)
    except OSError as error:
        why = f"{where['address']}:{where['port']}: {error.strerror or error}"
        raise RuntimeError(f"rank {rank} did not reach rank 0 within {timeout_s:.0f} s: {why}") from error


def _connected(where: Mapping[str, Any], rank: int, timeout_s: float) -> socket.socket:
    link = socket.create_connection((where["address"], where["port"]), timeout=timeout_s)
    link.sendall(bytes.fromhex(where["secret"]) + _RANK.pack(rank))
    return link


def _receive_message(link: socket.socket) -> bytes:
    return _receive(link, _LENGTH.unpack(_receive(link, _LENGTH.size))[0])


def _receive(link: socket.socket, size_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < size_bytes:
        try:
            part = link.recv(size_bytes - len(parts))
        except TimeoutError as error:
            raise RuntimeError("a rank did not answer in time") from error
        if not part:
            raise RuntimeError("a rank is gone: its connection was closed")
        parts += part
    return bytes(parts)

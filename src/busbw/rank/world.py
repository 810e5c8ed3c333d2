"""All ranks of a run as one of them sees it, however they were started."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from busbw import _core
from busbw.model.plan import Plan


class World(Protocol):
    """Who this process is among all of them, and how they agree. A rank here is a process."""

    rank: int
    ranks: int
    # Its place among the processes of its host.
    local_rank: int
    one_host: bool
    # What they talk over: version, library file; for records only.
    version: str
    library: str
    handle_bytes: int
    thread_level: str
    interposed: tuple[str, ...]

    def from_first(self, numbers: Sequence[int]) -> list[int]:
        """Return rank 0's `numbers` on every rank; all ranks give the same count."""

    def bytes_from_first(self, content: bytes) -> bytes:
        """Return rank 0's `content` on every rank; all ranks give the same length."""

    def to_first(self, content: bytes) -> list[bytes]:
        """Return every rank's `content`, in their order, on rank 0; nothing elsewhere."""

    def largest(self, numbers: Sequence[int]) -> list[int]:
        """Return the element-wise maximum over all ranks, on every rank."""

    def total(self, numbers: Sequence[int]) -> list[int]:
        """Return the element-wise sum over all ranks, on every rank."""

    def from_each(self, number: int) -> list[int]:
        """Return one number of every rank, on every rank."""

    def barrier(self) -> None:
        """Wait for every rank."""

    def gate(self, timeout_s: float) -> _core.Gate:
        """Return where the loops of the core meet."""

    def clock_offset(self, rounds: int) -> _core.ClockOffset:
        """Measure this rank's clock against rank 0's."""

    def leave(self) -> None:
        """Part from the others at the end of a run that came to its end. Every rank calls this."""

    def abort(self, code: int) -> None:
        """End every rank of the run at once."""


def open_world(plan: Plan, directory: Path, attempt: int) -> World:
    """Return the ranks of this run: through MPI where the plan has one, else through the launcher's variables."""
    if plan.fabric is not None:
        from busbw.rank.socket_world import use_own_nic  # noqa: PLC0415 - few runs have a sweep

        use_own_nic(plan.fabric, os.environ)
    if plan.mpi is not None:
        from busbw.rank.mpi_world import MpiWorld  # noqa: PLC0415 - importing it initialises MPI

        return MpiWorld()
    from busbw.rank.socket_world import SocketWorld  # noqa: PLC0415

    return SocketWorld(directory, attempt, timeout_s=plan.job.stall_s)


_IDENTITY_BYTES = 128


def same_clock(world: World) -> bool:
    """Whether every rank reads the same kernel's clock as rank 0 (same boot, same time namespace)."""
    identity = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    namespace = Path("/proc/self/ns/time")
    identity += str(namespace.readlink()).encode() if namespace.is_symlink() else b""
    mine = identity[:_IDENTITY_BYTES].ljust(_IDENTITY_BYTES)
    return world.largest([0 if world.bytes_from_first(mine) == mine else 1])[0] == 0

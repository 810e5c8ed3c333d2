"""What measures points in a rank: over MPI, or over NCCL."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from busbw.model.plan import Point
from busbw.model.record import Hello, Measured, Record
from busbw.rank.sampling import Controls, Sampled


class TurnTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one turn of a point: a record for each rank of this process, and what they share."""

    records: tuple[Measured, ...]
    # None: a result was wrong.
    sampled: Sampled | None
    # What a round of the comparison of clocks took.
    sync_round_s: float
    # What further turns need not repeat, and what looking for a rank that delays the others took.
    once_s: float = 0.0
    tracing_s: float = 0.0


class Bench(Protocol):
    """A way to measure. Every rank calls the same, at the same time."""

    # Whether it looks for the rank that delays the others.
    traces: bool

    def hellos(self) -> tuple[Hello, ...]:
        """Say who the ranks of this process are."""

    def rates(self) -> Iterable[tuple[Record, ...]]:
        """Measure what the machine can do at best; one record for each rank of this process."""

    def prepare(self) -> None:
        """Make what all points share."""

    def measure(self, number: int, point: Point, controls: Controls) -> TurnTaken:
        """Measure one turn of one point."""

"""What measures points in a rank: over MPI, or over NCCL."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from busbw.model.plan import Plan, Point
from busbw.model.record import Hello, Measured, Record
from busbw.model.train.replay import StepPlan
from busbw.rank.heart import Heart
from busbw.rank.sampling import Controls, Sampled
from busbw.rank.world import World

if TYPE_CHECKING:
    from busbw.rank.stepping.replay import Stepper


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

    def stepper(self, step: StepPlan) -> "Stepper":
        """Return what repeats a training step, each of its calls checked once."""


def open_bench(plan: Plan, world: World, heart: Heart) -> Bench:
    """Return what the plan's backend measures with."""
    if plan.gpu_setup is not None:
        from busbw.rank.nccl.bench import NcclBench  # noqa: PLC0415 - each rank needs one of the two

        return NcclBench(plan, world, heart)
    from busbw.rank.mpi_bench import MpiBench  # noqa: PLC0415
    from busbw.rank.mpi_world import MpiWorld  # noqa: PLC0415

    return MpiBench(plan, cast("MpiWorld", world), heart)

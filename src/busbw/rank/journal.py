"""The file of records this rank appends to: each line on disk before the next step begins."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from busbw import _core
from busbw.model import codec
from busbw.model.plan import Point
from busbw.model.record import Attribution, EmptyLaunches, GpuHello, Hello, Measured, Mismatch, NcclPoint, Record
from busbw.rank.blocks import Clock, SampleSeries
from busbw.rank.sampling import Sampled
from busbw.rank.world import World


class Journal:
    """Appends records as JSON lines and syncs each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, record: Record) -> None:
        """Append one record and wait until it is on disk. Raises OSError, such as for a full disk."""
        rest = memoryview(codec.encode(record) + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        os.fsync(self._descriptor)


_CLOCK_READS = 10_000


def introduce(
    world: World, rank: int, *, small_floats: Literal["mpi", "busbw"] = "mpi", gpu: GpuHello | None = None
) -> Hello:
    """Say who `rank` of this process is."""
    quality = _core.clock_quality(_CLOCK_READS)
    return Hello(
        rank=rank,
        ranks=world.ranks,
        host=socket.gethostname(),
        process_id=os.getpid(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        mpi_version=world.version,
        mpi_library=world.library,
        handle_bytes=world.handle_bytes,
        thread_level=world.thread_level,
        interposed=world.interposed,
        small_float_reductions=small_floats,
        clock_cost_ns=quality.cost_ns,
        clock_step_ns=quality.step_ns,
        gpu=gpu,
    )


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What all ranks of a process share of one turn of a point. `sampled` is None where a result was wrong."""

    number: int
    point: Point
    turn: int
    sampled: Sampled | None
    clock: Clock
    # How far the clock moved against rank 0's meanwhile.
    drift_ns: int
    # Voluntary and involuntary.
    switches: tuple[int, int]
    started_unix_s: float


def measured(
    taken: Taken,
    series: SampleSeries,
    *,
    mismatch: Mismatch | None,
    verified_elements: int,
    tcp_bytes: Sequence[tuple[str, int]] = (),
    attribution: Sequence[Attribution] = (),
    nccl: NcclPoint | None = None,
    empty: tuple[EmptyLaunches | None, EmptyLaunches | None] = (None, None),
) -> Measured:
    """Return the record of the rank that took `series`, ended now. `empty`: launches before the point and after it."""
    sampled = taken.sampled
    return Measured(
        point=taken.number,
        turn=taken.turn,
        sweep=taken.point.sweep,
        size_bytes=taken.point.size_bytes,
        calls_per_sample=sampled.calls_per_sample if sampled is not None else 1,
        warmup_calls=sampled.warmup_calls if sampled is not None else 0,
        warmup_stable=sampled.warmup_stable if sampled is not None else False,
        duration_ns=tuple(series.duration_ns),
        lateness_ns=tuple(series.lateness_ns),
        off_processor_ns=tuple(series.off_processor_ns),
        issued_ns=tuple(series.issued_ns),
        empty_before=empty[0],
        empty_after=empty[1],
        missed=tuple(index for index, missed in enumerate(series.missed) if missed),
        clock_offset_ns=taken.clock.offset_ns,
        clock_error_ns=taken.clock.error_ns + taken.drift_ns,
        clock_shared=taken.clock.shared,
        mismatch=mismatch,
        verified_elements=verified_elements,
        voluntary_switches=taken.switches[0],
        involuntary_switches=taken.switches[1],
        tcp_bytes=tuple(tcp_bytes),
        attribution=tuple(attribution),
        nccl=nccl,
        ended=sampled.ended if sampled is not None else "wrong",
        started_unix_s=taken.started_unix_s,
        ended_unix_s=time.time(),
    )

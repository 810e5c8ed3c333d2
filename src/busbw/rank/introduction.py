"""The first line of every rank's records: who it is and what it runs on."""

import os
import socket
from typing import Literal

from busbw import _core
from busbw.model.record import GpuHello, Hello
from busbw.rank.world import World

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

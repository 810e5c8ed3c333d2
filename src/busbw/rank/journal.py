"""What a rank leaves on its host: its journal, and what a visit finds it by."""

import contextlib
import faulthandler
import os
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from busbw import _core
from busbw.base import layout
from busbw.base.cpus import parse_cpu_list
from busbw.model import codec
from busbw.model.plan import Point
from busbw.model.record import Attribution, EmptyLaunches, GpuHello, Hello, Measured, Mismatch, NcclPoint, Record
from busbw.rank.blocks import Clock, SampleSeries
from busbw.rank.network import read_counters
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
_NODES = Path("/sys/devices/system/node")


def numa_nodes_of(cpus: Iterable[int], nodes: Path = _NODES) -> tuple[int, ...] | None:
    """Return the NUMA nodes that have any of these CPUs, ascending; None where the kernel does not tell."""
    wanted = frozenset(cpus)
    try:
        lists = {place.name: (place / "cpulist").read_text() for place in nodes.glob("node[0-9]*")}
    except OSError:
        return None
    found = [int(name.removeprefix("node")) for name, text in lists.items() if wanted & set(parse_cpu_list(text) or ())]
    return tuple(sorted(found)) or None


def introduce(
    world: World, rank: int, *, small_floats: Literal["mpi", "busbw"] = "mpi", gpu: GpuHello | None = None
) -> Hello:
    """Say who `rank` of this process is."""
    quality = _core.clock_quality(_CLOCK_READS)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return Hello(
        rank=rank,
        ranks=world.ranks,
        host=socket.gethostname(),
        process_id=os.getpid(),
        cpus=cpus,
        numa=numa_nodes_of(cpus),
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


# A visit sends it; faulthandler answers without Python's lock, so that a rank that hangs in a call answers too.
STACK_SIGNAL = signal.SIGUSR2
_SHARED = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
_MOST_MAPS_BYTES = 8 * 2**20
# Launchers' processes on a host that start ranks and outlive them.
_STARTERS = ("prted", "orted", "hydra_pmi_proxy", "hydra_bstrap_pr", "pmi_proxy")
_MOST_PARENTS = 16


class Presence:
    """The files of one process beside its heartbeat.

    With several hosts that is a folder of this host alone (`is_own_folder`), else the one that the launching side
    watches.
    """

    def __init__(self, folder: Path, ranks: Sequence[int], *, keeps_counters: bool, is_own_folder: bool) -> None:
        self._folder = folder
        self._ranks = tuple(ranks)
        self._keeps_counters = keeps_counters
        self._is_own_folder = is_own_folder
        self._stack: BinaryIO = (folder / layout.stack_name(self._ranks[0])).open("wb", buffering=0)
        faulthandler.register(STACK_SIGNAL, file=self._stack, all_threads=True, chain=False)
        self.note()

    def note(self) -> None:
        """Write down what belongs to this process now: who started it, what it shares with others on this host."""
        said = {"process_id": os.getpid(), "starters": _starters(), "shared_memory": sorted(_shared_memory())}
        path = self._folder / layout.presence_name(self._ranks[0])
        # A folder in memory that is full must not end a measurement.
        with contextlib.suppress(OSError):
            path.write_bytes(msgspec.json.encode(said))

    def begin_point(self) -> None:
        """Keep the counters of the network devices as they are before a point; one process of each host does."""
        if self._keeps_counters:
            with contextlib.suppress(OSError):
                (self._folder / layout.COUNTERS_FILE).write_bytes(msgspec.json.encode(read_counters()))

    def leave(self) -> None:
        """Remove what this process has written, and its own folder with the last one."""
        faulthandler.unregister(STACK_SIGNAL)
        self._stack.close()
        for rank in self._ranks:
            for name in (layout.stack_name(rank), layout.presence_name(rank)):
                (self._folder / name).unlink(missing_ok=True)
        if self._keeps_counters:
            (self._folder / layout.COUNTERS_FILE).unlink(missing_ok=True)
        if not self._is_own_folder:
            return
        for rank in self._ranks:
            (self._folder / layout.heartbeat_name(rank)).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _shared_memory() -> frozenset[str]:
    with Path("/proc/self/maps").open("rb") as file:
        lines = file.read(_MOST_MAPS_BYTES).splitlines()
    paths = (line.split(maxsplit=5)[5].decode("utf-8", errors="replace") for line in lines if line.count(b"/"))
    own = layout.hearts_folder(os.getuid(), "")
    return frozenset(
        path for path in paths if path.startswith(_SHARED) and not path.startswith(own) and "(deleted)" not in path
    )


def _starters() -> list[tuple[int, int]]:
    """Return the launcher's processes among the parents, as id and start time: an id alone may be given again."""
    found: list[tuple[int, int]] = []
    process_id = os.getppid()
    while process_id > 1 and len(found) < _MOST_PARENTS:
        try:
            line = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        name = line[line.index("(") + 1 : line.rindex(")")]
        fields = line.rpartition(")")[2].split()
        if name in _STARTERS:
            # The start time is field 22 of the line; the list begins with field 3.
            found.append((process_id, int(fields[19])))
        process_id = int(fields[1])
    return found

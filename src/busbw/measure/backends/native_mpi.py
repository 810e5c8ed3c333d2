"""Our own measuring loops over MPI: what they need, how they start, and their records put together."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from busbw.base.collectives import (
    COLLECTIVES,
    LARGEST_COPY_BYTES,
    LEAST_BUFFER_BYTES,
    MPI_COLLECTIVES,
    MPI_DTYPES,
    MPI_OPERATIONS,
)
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.measure.backends.backend import (
    Capabilities,
    Carrier,
    Door,
    Parsed,
    ProgramStart,
    Records,
    Settled,
    Surroundings,
)
from busbw.measure.backends.measurements import are_alike, empty_launches, measurement_of, middle_start
from busbw.measure.launchers.launcher import Joining
from busbw.model.machine import GpuSetup, Host
from busbw.model.plan import MemoryNeed, Plan, Point, Program, Sweep, points_of
from busbw.model.record import AnyRecord, Copied, Failed, Hello, Kernel, Launched, Measured, Node, Streamed
from busbw.model.request import Mode, Request
from busbw.model.run import CopyRate, EmptyLaunch, Measurement, Rates, StreamRate
from busbw.stats.distributions import median

Pattern = Literal["ring", "pairs"]


def rates_of(copies: Mapping[int, Sequence[Copied]], streams: Mapping[int, Sequence[Streamed]]) -> Rates:
    """Return the rates of all ranks together, from each rank's records; only what every rank measured counts.

    Ranks worked at the same time, each for the same while, so their own rates add up.
    """
    return Rates(copies=_copies(copies), streams=_streams(streams))


def _copies(by_rank: Mapping[int, Sequence[Copied]]) -> tuple[CopyRate, ...]:
    totals: dict[tuple[int, Kernel], list[float]] = {}
    for records in by_rank.values():
        latest: dict[tuple[int, Kernel], Copied] = {(record.size_bytes, record.kernel): record for record in records}
        for key, record in latest.items():
            duration_ns = median(sorted(record.duration_ns)) if record.duration_ns else 0.0
            rate_Bps = record.size_bytes / (duration_ns * 1e-9) if duration_ns > 0 else 0.0
            totals.setdefault(key, []).append(rate_Bps)
    complete = {key: sum(rates) for key, rates in totals.items() if len(rates) == len(by_rank)}
    best: dict[int, CopyRate] = {}
    for (size_bytes, kernel), rate_Bps in sorted(complete.items()):
        if rate_Bps > 0 and (size_bytes not in best or rate_Bps > best[size_bytes].rate_Bps):
            best[size_bytes] = CopyRate(size_bytes=size_bytes, rate_Bps=rate_Bps, kernel=kernel)
    return tuple(best[size_bytes] for size_bytes in sorted(best))


def _streams(by_rank: Mapping[int, Sequence[Streamed]]) -> tuple[StreamRate, ...]:
    """Return the best round of each pattern: what the machine carries when it is left alone."""
    rounds: dict[Pattern, list[list[float]]] = {}
    for records in by_rank.values():
        latest: dict[Pattern, Streamed] = {record.pattern: record for record in records}
        for pattern, record in latest.items():
            rounds.setdefault(pattern, []).append(_rates_Bps(record))
    best = {
        pattern: max((sum(round_Bps) for round_Bps in zip(*ranks, strict=False)), default=0.0)
        for pattern, ranks in rounds.items()
        if len(ranks) == len(by_rank)
    }
    return tuple(StreamRate(pattern=pattern, rate_Bps=rate) for pattern, rate in sorted(best.items()) if rate > 0)


def _rates_Bps(record: Streamed) -> list[float]:
    return [
        moved_bytes / (duration_ns * 1e-9) if duration_ns > 0 else 0.0
        for moved_bytes, duration_ns in zip(record.moved_bytes, record.duration_ns, strict=False)
    ]


name = "native-mpi"
over: Carrier = "mpi"
is_ours = True
takes = frozenset({"pairs", "unaligned", "runtime", "masks", "gpu_buffers", "driver", "max_samples"})
modes: tuple[Mode, ...] = ("isolated", "stream")
joining: tuple[Joining, ...] = ("mpi",)
usual_launcher = None
usual_suite = "six"

# What one rank wrote of a point in one start of the run, each with its place, by number of the turn.
_Turns = dict[int, tuple[str, Measured]]

# The number of the start in the name of a records file (busbw.base.layout).
_ATTEMPT = re.compile(r"\.(\d{1,6})\.jsonl:")


def program(directory: str, python: str) -> Program:
    """Return what one rank runs; the launching side appends the attempt and the points already measured."""
    return Program(argv=(python, "-P", "-m", "busbw.rank", directory), env=())


def parse(plan: Plan, records: Records) -> Parsed:
    """Put the records of all ranks together. `records`: by rank, in the order written, each with its place.

    A turn of a point counts only when every rank of the plan wrote it in the same start of the run, with as many
    samples as the others; of several starts the last counts that has more than a first sample, else the last, or the
    middle one where the plan has several launches. Records of ranks beyond the plan are ignored.
    """
    ranks = range(plan.placement.ranks)
    kept = {rank: records.get(rank, ()) for rank in ranks}
    hellos = {rank: record for rank in ranks for _, record in kept[rank] if isinstance(record, Hello)}
    points = {rank: _points(kept[rank]) for rank in ranks}
    attempts = sorted({attempt for found in points.values() for attempt, _ in found})
    measurements: list[Measurement] = []
    for number, point in enumerate(points_of(plan.sweeps)):
        starts = ([points[rank].get((attempt, number), {}) for rank in ranks] for attempt in attempts)
        found = [one for start in starts if (one := _measurement(plan, number, point, start, hellos)) is not None]
        best = [one for one in found if one.turns > 0 or one.wrong is not None] or found
        measurements += middle_start(tuple(reversed(best))) if plan.sampling.launches > 1 else best[-1:]
    return Parsed(
        ranks=tuple(hellos[rank] for rank in sorted(hellos)),
        rates=rates_of(
            {rank: [record for _, record in kept[rank] if isinstance(record, Copied)] for rank in ranks},
            {rank: [record for _, record in kept[rank] if isinstance(record, Streamed)] for rank in ranks},
        ),
        measurements=tuple(measurements),
        failures=tuple((rank, record) for rank in ranks for _, record in kept[rank] if isinstance(record, Failed)),
        nodes=_nodes(kept.get(0, ())),
        launches=_launches(kept),
    )


def _measurement(
    plan: Plan, number: int, point: Point, found: Sequence[_Turns], hellos: Mapping[int, Hello]
) -> Measurement | None:
    """Return what one start of the run measured of a point; `found`: by rank. None when no turn of it counts."""
    turns, sources = [], []
    for turn in sorted(found[0]):
        entries = [of_rank[turn] for of_rank in found if turn in of_rank]
        records = [record for _, record in entries]
        about = all(record.sweep == point.sweep and record.size_bytes == point.size_bytes for record in records)
        if len(entries) == len(found) and about and are_alike(records):
            turns.append(records)
            sources.append(entries[0][0])
    return measurement_of(plan, number, turns, hellos, source=sources[0]) if turns else None


def _points(entries: Sequence[tuple[str, AnyRecord]]) -> dict[tuple[int, int], _Turns]:
    """Return the turns of each point, by start of the run and number of the point."""
    found: dict[tuple[int, int], _Turns] = {}
    for place, record in entries:
        if isinstance(record, Measured):
            found.setdefault((_attempt(place), record.point), {})[record.turn] = (place, record)
    return found


def _nodes(entries: Sequence[tuple[str, AnyRecord]]) -> tuple[Node, ...]:
    """Return the hosts that rank 0 wrote down last."""
    found = [(_attempt(place), record) for place, record in entries if isinstance(record, Node)]
    latest = max((attempt for attempt, _ in found), default=0)
    return tuple(record for attempt, record in found if attempt == latest)


def _launches(kept: Records) -> tuple[EmptyLaunch, ...]:
    """Return what each rank's GPU took to start a kernel, where all ranks wrote it in the latest start of the run."""
    found = {
        (_attempt(place), rank): record
        for rank, entries in kept.items()
        for place, record in entries
        if isinstance(record, Launched)
    }
    latest = max((attempt for attempt, _rank in found), default=0)
    return empty_launches([found[latest, rank].empty if (latest, rank) in found else None for rank in sorted(kept)])


def _attempt(place: str) -> int:
    match = _ATTEMPT.search(place)
    return int(match[1]) if match is not None else 0


OFFER = Capabilities(
    interface="MPI",
    collectives=MPI_COLLECTIVES,
    in_place=tuple(name for name in MPI_COLLECTIVES if COLLECTIVES[name].in_place),
    dtypes=MPI_DTYPES,
    operations=MPI_OPERATIONS,
    most_elements=2**31 - 1,
    largest_bytes=64 * 2**20,
    # A whole suite has to fit into the time of one collective.
    suite_largest_bytes=16 * 2**20,
)


def capabilities(_surroundings: Surroundings | None) -> Capabilities:
    """Return what any MPI offers."""
    return OFFER


def look(request: Request, surroundings: Surroundings, door: Door, names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with the MPI. Raises InputError where there is none, or none that takes memory of GPUs."""
    mpi = door.mpi(request.mpirun)
    if not request.gpu_buffers:
        return dataclasses.replace(surroundings, mpi=mpi)
    if "alltoall_2dh" in names:
        raise InputError("a two-level alltoall copies in host memory", where="--gpu-buffers", hint="leave one out")
    return dataclasses.replace(surroundings, mpi=mpi, mpi_driver=door.gpu_buffers(request, mpi))


# On a larger machine more ranks are asked for by name: a first look should be over in a minute.
_MOST_DEFAULT_RANKS = 8


def ranks_of_cores(host: Host) -> int:
    """Return how many ranks a host has where nobody says: an even number, its cores at most."""
    ranks = min(max(host.cores, 2), _MOST_DEFAULT_RANKS)
    return ranks - ranks % 2


def usual_ranks(request: Request, surroundings: Surroundings, _names: tuple[str, ...]) -> int:
    """Return how many ranks a host has where nobody says; messages between two ranks want two of them."""
    if request.suite == "p2p":
        return 2 if surroundings.allocation is None else 1
    return ranks_of_cores(surroundings.host)


def check_ranks(
    _request: Request, _surroundings: Surroundings, _names: tuple[str, ...], _counts: tuple[int, ...]
) -> None:
    """Take any ranks."""


def moved(sweep: Sweep, _surroundings: Surroundings) -> Sweep:
    """Return a sweep as it is: MPI has all of our types."""
    return sweep


def setup(_request: Request, _surroundings: Surroundings) -> GpuSetup | None:
    """Return None: nothing is on GPUs."""
    return None


def launches(request: Request, _sweeps: tuple[Sweep, ...]) -> int:
    """Return 1. Raises InputError for any other number."""
    if request.launches not in (None, 1):
        raise InputError(f"{name} is started once", where=f"--launches {request.launches}", hint="busbw compare")
    return 1


# Interpreter, mpi4py and MPI: 40 to 60 MiB resident in Open MPI 5 and MPICH 5, with their shared segments.
_OVERHEAD_PER_RANK_BYTES = 96 * 2**20


def need_of(sweeps: tuple[Sweep, ...], ranks: int) -> MemoryNeed:
    """Return what `ranks` on one host allocate for these sweeps.

    Every rank is counted with the buffers of the rank that needs most, and keeps one set of them for the whole run.
    """
    send_bytes = receive_bytes = copy_bytes = scratch_bytes = 0
    for sweep in sweeps:
        collective = COLLECTIVES[sweep.collective]
        size_bytes = max(sweep.sizes_bytes)
        partners = sweep.partners(ranks)
        sent, received = collective.send_bytes(size_bytes, partners), collective.receive_bytes(size_bytes, partners)
        if sweep.in_place:
            sent, received = 0, max(sent, received)
        send_bytes, receive_bytes = max(send_bytes, sent), max(receive_bytes, received)
        # A two-level alltoall copies its input.
        copy_bytes = max(copy_bytes, sent if sweep.group is not None else 0)
        # A reduction may hold one more message to combine with.
        scratch_bytes = max(scratch_bytes, size_bytes if collective.reduces else 0)
    buffers_bytes = max(send_bytes, LEAST_BUFFER_BYTES) + max(receive_bytes, LEAST_BUFFER_BYTES) + copy_bytes
    # Memory copies are measured before these buffers are made, in two of their own.
    largest_bytes = max(size_bytes for sweep in sweeps for size_bytes in sweep.sizes_bytes)
    buffers_bytes = max(buffers_bytes, 2 * min(largest_bytes, LARGEST_COPY_BYTES))
    return MemoryNeed(
        buffers_bytes=ranks * buffers_bytes,
        overhead_bytes=ranks * _OVERHEAD_PER_RANK_BYTES,
        scratch_bytes=ranks * scratch_bytes,
    )


def check_fits(need: MemoryNeed, host: Host, ranks: int) -> str | None:
    """Return a note when MPI's own scratch memory may not fit. Raises InputError when the buffers do not."""
    available = host.memory_available_bytes
    if need.needed_bytes > available:
        raise InputError(
            f"{ranks} ranks need {format_size(need.needed_bytes)} of memory, {format_size(available)} are free",
            where=host.name,
            hint="a smaller -e, or fewer ranks with -n",
        )
    if need.needed_bytes + need.scratch_bytes > available:
        return (
            f"buffers take {format_size(need.needed_bytes)} of {format_size(available)} free; reductions may need "
            f"up to {format_size(need.scratch_bytes)} more inside MPI, which is not there"
        )
    return None


def of_busiest(need: MemoryNeed, here: int, ranks: int) -> MemoryNeed:
    """Return the share that one host with `here` of all ranks has in a need."""
    return MemoryNeed(
        buffers_bytes=need.buffers_bytes * here // ranks,
        overhead_bytes=need.overhead_bytes * here // ranks,
        scratch_bytes=need.scratch_bytes * here // ranks,
    )


def memory(
    _request: Request, surroundings: Surroundings, settled: Settled, counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    """Return what the busiest host needs, its buffers as large as all ranks together make them, and a note."""
    ranks, here = sum(counts), max(counts)
    need = of_busiest(need_of(settled.sweeps, ranks), here, ranks)
    return need, check_fits(need, surroundings.host, here)


def starts(_request: Request, _surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
    """Return the one start of the ranks."""
    return (ProgramStart(program=program(settled.directory, settled.python)),)


def notes(_request: Request, surroundings: Surroundings, _starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
    """Return a note where there are GPUs that are not measured."""
    if surroundings.mpi_driver is not None:
        return ("buffers are in GPU memory: rank N of a host has the GPU N, counted again from 0 behind the last",)
    if not surroundings.gpus_seen:
        return ()
    return (f"{surroundings.gpus_seen} NVIDIA GPUs here, not measured over MPI: busbw run --backend nccl",)

"""What is to be measured, and everything that will be done for it, complete before the first process starts."""

from math import prod
from typing import Annotated

from msgspec import Meta

from busbw.base.collectives import PART_ALIGNMENT_BYTES
from busbw.base.value import Integer, Value
from busbw.model.fabric import FabricPlan
from busbw.model.machine import GpuHost, GpuSetup, Host, Library, MpiLibrary
from busbw.model.request import Mode, Request
from busbw.model.settings import JobEnvironment, RecommendedLayer
from busbw.model.train.replay import StepPlan

# Over NCCL, messages below this hold a part that is the host's, starting them, and that differs from start to start.
SMALL_NCCL_BYTES = 1 << 20


class Sampling(Value, kw_only=True, frozen=True):
    """How many samples are taken of each point, and when it is enough."""

    mode: Mode
    min_samples: Integer = 30
    max_samples: Integer = 20_000
    # Stop when the confidence interval of the median reaches no further than this share of it to either side.
    half_width: float = 0.01
    confidence: float = 0.95
    # Calls of one stream, graph or loaded sample; None: as many as make a sample half a millisecond long.
    calls: Integer | None = None
    # Calls before the first sample, at least; None: until their level stays.
    warmup_calls: Integer | None = None
    # Whether results are checked; a time without is marked as one that nobody checked.
    verify: bool = True
    # Starts of the ranks, one after the other. The first measures every point, the others those below
    # SMALL_NCCL_BYTES again.
    launches: Integer = 1
    # In each start, for all points of all sweeps together, start-up apart; each point gets its share of what is left.
    time_limit_s: float


class Groups(Value, kw_only=True, frozen=True):
    """Groups of ranks that no rank is in twice, all of one form: rank = first + sum of place x stride."""

    # As a training step calls it: TP, EP, DP, ...
    kind: str
    sizes: tuple[Integer, ...]
    strides: tuple[Integer, ...]

    @property
    def size(self) -> int:
        """Ranks of one group."""
        return prod(self.sizes)

    def seat(self, rank: int) -> tuple[int, int]:
        """Return the first rank of the group that a rank is in, and its place there."""
        places = [rank // stride % size for size, stride in zip(self.sizes, self.strides, strict=True)]
        first = rank - sum(place * stride for place, stride in zip(places, self.strides, strict=True))
        return first, sum(place * prod(self.sizes[:at]) for at, place in enumerate(places))


class Sweep(Value, kw_only=True, frozen=True):
    """One collective over a list of sizes."""

    collective: str
    # Counted sizes (collectives.counted_size), ascending, without repetition.
    sizes_bytes: tuple[Integer, ...]
    dtype: str
    op: str
    root: Integer
    in_place: bool
    # sendrecv: only these two ranks exchange, both ways; None: every rank sends to the next one.
    pair: tuple[Integer, Integer] | None = None
    # alltoall_2dh: ranks of one node (or of one group that stands for it).
    group: Integer | None = None
    # The collective runs within each of these groups, in all of them at once; None: over all ranks.
    within: Groups | None = None
    # A split collective's parts are multiples of this, and of an element: 16 as in nccl-tests, or 1.
    part_alignment_bytes: Integer = PART_ALIGNMENT_BYTES
    # alltoallv: bytes, or shares, from rank i to rank j at [i][j].
    matrix: tuple[tuple[Integer, ...], ...] = ()
    # alltoallv: what the busiest rank would move if nothing were rounded, for each of `sizes_bytes`.
    scales_bytes: tuple[Integer, ...] = ()

    def partners(self, ranks: int) -> int:
        """Return how many of all ranks exchange with each other."""
        return self.within.size if self.within is not None else ranks


class Point(Value, kw_only=True, frozen=True):
    """One size of one sweep: what one measurement is about."""

    sweep: Integer
    size_bytes: Integer


def points_of(sweeps: tuple[Sweep, ...]) -> tuple[Point, ...]:
    """Return every point in the order it is measured."""
    return tuple(
        Point(sweep=index, size_bytes=size_bytes)
        for index, sweep in enumerate(sweeps)
        for size_bytes in sweep.sizes_bytes
    )


MOST_RANKS = 65_536
# 2: with the request.
PLAN_SCHEMA = 2


class Placement(Value, kw_only=True, frozen=True):
    """How many ranks run where. A rank is a process, or one GPU of a process that drives several."""

    ranks: Annotated[int, Meta(ge=1, le=MOST_RANKS)]
    hosts: tuple[str, ...]
    # Ranks of each host, in the order of `hosts`, whose ranks are numbered one host after the other; () on one host.
    ranks_of_hosts: tuple[Integer, ...] = ()
    # "core": each rank keeps one core; "numa": the CPUs of one NUMA node; "masks": what `masks` says; "none": the
    # operating system moves them; "default": what the launcher gives them when it is told nothing.
    binding: str
    # CPUs of each rank of a host, as a list such as `0-11,24`, for the binding "masks".
    masks: tuple[str, ...] = ()
    # More ranks than cores: waiting ranks must give their core away.
    oversubscribed: bool

    @property
    def is_spread(self) -> bool:
        """Whether ranks are counted by host: there are several, or one that need not be this one."""
        return len(self.hosts) > 1 or bool(self.ranks_of_hosts)


class Program(Value, kw_only=True, frozen=True):
    """What one rank runs: argv without the launcher, and the environment it needs beside its parent's."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


class Reach(Value, kw_only=True, frozen=True):
    """How the launcher comes to other hosts, as it was asked for."""

    # The network interface that hosts meet over; None: the launcher and MPI chose.
    interface: str | None = None
    # A command that starts a command on another host; (): the launcher's own.
    remote_shell: tuple[str, ...] = ()
    # Further words for the launcher.
    options: tuple[str, ...] = ()


class JobFile(Value, kw_only=True, frozen=True):
    """A file that a job needs, written before it starts."""

    # Within the run directory.
    path: str
    text: str
    executable: bool = False


class Job(Value, kw_only=True, frozen=True):
    """A command ready to start.

    The environment is the caller's without `unset`, with `env` set and `prepend` put before lists.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    # (variable, directory): put first in a list such as PATH.
    prepend: tuple[tuple[str, str], ...] = ()
    # (path within the run directory, what it points to): symbolic links made before the start.
    links: tuple[tuple[str, str], ...] = ()
    files: tuple[JobFile, ...] = ()
    unset: tuple[str, ...] = ()
    # The launcher is ended when it still runs after this long.
    timeout_s: float
    # The run is ended when no rank makes progress for this long.
    stall_s: float
    # How long the ranks may take to stop when they are asked to. Slurm kills 30 s after its warning (KillWait); what
    # is left of that is for ending them on every host.
    stop_grace_s: float = 15.0


class ForeignProgram(Value, kw_only=True, frozen=True):
    """Somebody else's program that measures one collective, as its own usage text describes it."""

    collective: str
    path: str
    # "nccl-tests", "rccl-tests" or "osu"; and which of its versions have these options, None where they do not tell.
    tool: str
    version: str | None
    # Whether its ranks are processes that mpirun starts; else one process drives every GPU.
    with_mpi: bool
    # The letters of the options it knows.
    options: tuple[str, ...]


class Step(Value, kw_only=True, frozen=True):
    """One start of a foreign program, and what it prints when it comes to its end."""

    job: Job
    program: str
    # Numbers of the points (model.sweep.points_of) it measures, and how many samples of each.
    points: tuple[Integer, ...]
    samples: Integer
    # The file in raw/ that it writes every single sample to; None: it prints means only.
    report: str | None = None


class MemoryNeed(Value, kw_only=True, frozen=True):
    """What the ranks of one host allocate, by their own arithmetic."""

    buffers_bytes: Integer
    # Interpreter, MPI and its shared-memory segments, per rank an allowance.
    overhead_bytes: Integer
    # What the MPI library may take besides for its algorithms; counted in the warning, not in the refusal.
    scratch_bytes: Integer

    @property
    def needed_bytes(self) -> int:
        """What must fit before anything starts."""
        return self.buffers_bytes + self.overhead_bytes


class Plan(Value, kw_only=True, frozen=True):
    """One run, word for word: what is measured, where, by which command."""

    schema: Integer = PLAN_SCHEMA
    busbw_version: str
    run_id: str
    created: str
    backend: str
    launcher: str
    sweeps: tuple[Sweep, ...]
    sampling: Sampling
    placement: Placement
    # None on one host.
    reach: Reach | None = None
    host: Host
    # None: the ranks find each other through variables that their launcher sets.
    mpi: MpiLibrary | None
    # Both None where nothing is measured on GPUs.
    gpus: GpuHost | None = None
    gpu_setup: GpuSetup | None = None
    # The driver of the GPUs that buffers of MPI lie on; None: they are in host memory.
    mpi_driver: Library | None = None
    memory: MemoryNeed
    # The command of our own ranks; where foreign programs measure, the first of `steps`.
    job: Job
    # Foreign programs and their starts, one after the other; empty where our own ranks measure.
    programs: tuple[ForeignProgram, ...] = ()
    steps: tuple[Step, ...] = ()
    # One process on every host, without MPI, that looks at what is there of a run, or ends it; None on one host.
    visit: Job | None = None
    # The same for one host each, in the order of `placement.hosts`: one that is gone must not keep the others from
    # answering. () where only `visit` can be had.
    visit_each: tuple[Job, ...] = ()
    # Hosts that differ in what makes numbers those of a mixture are measured all the same, and the run is marked.
    allow_mixed: bool = False
    # Environment and settings files of whoever asked for the run, on the host it was planned on; None: not stored.
    surroundings: JobEnvironment | None = None
    # What is recommended for it and what became of that; None: it was not asked for.
    recommended: RecommendedLayer | None = None
    # Decisions taken on the way that a reader should know: sizes dropped, limits met.
    notes: tuple[str, ...] = ()
    tag: str | None = None
    # A sweep over pairs of hosts in rounds: `sweeps` only name what it measures. None: no such sweep.
    fabric: FabricPlan | None = None
    # A training step that is replayed behind the points, which are its collectives alone. None: no such step.
    step: StepPlan | None = None
    # What was asked for, with the hosts, ranks and sizes that were chosen where it left them open; None: not kept,
    # as in schema 1.
    request: Request | None = None

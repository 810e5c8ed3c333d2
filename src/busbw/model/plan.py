"""Everything that will be done, complete before the first process starts."""

from typing import Annotated

from msgspec import Meta

from busbw.base.value import Integer, Value
from busbw.model.gpu import GpuHost, GpuSetup
from busbw.model.machine import Host, MpiLibrary
from busbw.model.settings import Surroundings
from busbw.model.sweep import Sampling, Sweep

MOST_RANKS = 65_536
PLAN_SCHEMA = 1


class Placement(Value, kw_only=True, frozen=True):
    """How many ranks run where. A rank is a process, or one GPU of a process that drives several."""

    ranks: Annotated[int, Meta(ge=1, le=MOST_RANKS)]
    hosts: tuple[str, ...]
    # Ranks of each host, in the order of `hosts`, whose ranks are numbered one host after the other; () on one host.
    ranks_of_hosts: tuple[Integer, ...] = ()
    # "core": each rank keeps one core; "numa": the CPUs of one NUMA node; "masks": what `masks` says; "none": the
    # operating system moves them.
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
    surroundings: Surroundings | None = None
    # Decisions taken on the way that a reader should know: sizes dropped, limits met.
    notes: tuple[str, ...] = ()
    tag: str | None = None

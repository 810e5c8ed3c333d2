"""What a launcher is told: hosts, what to start there, with which environment; and the job that comes of it."""

import re
from typing import Literal

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Placement, Program
from busbw.model.recommendation import Recommendation
from busbw.model.request import Bind, Container, RuntimeName

# The CPUs of the processes of a node: an even share of the cores each, or all of the NUMA node that its GPU is on.
CpuSharing = Literal["even", "numa"]
AllocationKind = Literal["slurm", "pbs", "lsf", "flux", "sge", "host file", "host list", "this host"]


class HostSlots(Value, kw_only=True, frozen=True):
    """One host of an allocation."""

    name: str
    # Ranks it may take; None: nobody said.
    slots: Integer | None = None
    # CPUs that the job has there, where only these were asked for; None: nobody said.
    cpus: Integer | None = None


class Allocation(Value, kw_only=True, frozen=True):
    """The hosts a run may use, and who says so."""

    kind: AllocationKind
    hosts: tuple[HostSlots, ...]
    # Of the batch system.
    job_id: str | None = None
    # When the batch system ends it; None: not known.
    ends_unix_s: float | None = None
    # Where it was found, in one sentence: `SLURM_JOB_NODELIST=n[0-3] of job 17`.
    how: str
    # What else was found and not followed, a sentence each.
    passed_over: tuple[str, ...] = ()
    # Whether the batch system's job has further hosts, which are not used.
    is_part: bool = False


class Slurm(Value, kw_only=True, frozen=True):
    """The Slurm of a machine, as its own commands describe it."""

    # Absolute path of srun.
    srun: str
    version: str | None
    # What `srun --mpi=list` prints: pmix, pmix_v4, pmi2, cray_shasta, none...
    mpi_types: tuple[str, ...]
    # Options of the Spank plug-in for containers are known to srun.
    has_pyxis: bool = False


class Batch(Value, kw_only=True, frozen=True):
    """What a batch system is asked for. None: its default."""

    name: str
    nodes: Integer
    tasks_per_node: Integer | None = None
    gpus_per_node: Integer | None = None
    cpus_per_task: Integer | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    time_s: Integer | None = None
    exclusive: bool = False
    requeue: bool = False
    # Seconds before the end at which the job is told to stop; None: not told.
    warning_s: Integer | None = None
    # Numbers of an array, as `0-5%2`.
    array: str | None = None
    # Further directives, as they are: `--constraint=h100`.
    options: tuple[str, ...] = ()


class Start(Value, kw_only=True, frozen=True):
    """Everything a launcher needs to write down a complete job. Launchers look at nothing else."""

    # argv and environment of one rank. Each of its variables must reach every rank as it is.
    program: Program
    placement: Placement
    # Ranks in each process.
    per_process: Integer = 1
    # The run directory, the same path on every host.
    directory: str
    # Whose mpirun starts the ranks, or whose library they load; None: no MPI.
    mpi: MpiLibrary | None = None
    # The ranks load it through mpi4py, which has to be told where it is; else they know themselves.
    through_mpi4py: bool = False
    # Seen where srun is to start them.
    slurm: Slurm | None = None
    # Absolute path of flux, jsrun or aprun, or its name, where that is to start them.
    launcher_program: str | None = None
    # The interpreter that has busbw, for launchers that are programs of ours.
    python: str = ""
    # Whether the names of the hosts are theirs; else they only stand for hosts that the batch system will choose.
    hosts_are_named: bool = True
    # Names that every rank gets as the launching shell has them.
    forward: tuple[str, ...] = ()
    # Names that no rank may have.
    unset: tuple[str, ...] = ()
    # (variable, directory): put first in a list such as LD_LIBRARY_PATH, in every rank.
    prepend: tuple[tuple[str, str], ...] = ()
    container: Container | None = None
    batch: Batch | None = None
    # The network interface for MPI's and the launcher's own traffic between hosts; None: they choose.
    interface: str | None = None
    # A command that starts a command on another host, as ssh does; empty: the launcher's default.
    remote_shell: tuple[str, ...] = ()
    gpus_per_host: Integer | None = None
    # Further words for the launcher, as the user or a recommendation gave them.
    options: tuple[str, ...] = ()
    as_root: bool = False
    # Seconds of measuring; seconds without progress after which a run is ended.
    measuring_s: float
    stall_s: float


class LaunchRequest(Value, kw_only=True, frozen=True):
    """A program to be started with the settings that are recommended for a platform. None: busbw chooses."""

    program: tuple[str, ...]
    # None: the platform this host is.
    platform: str | None = None
    nodes: Integer = 1
    goal: str = "bandwidth"
    collective: str | None = None
    size_bytes: Integer | None = None
    follow: str | None = None
    nccl: str | None = None
    # "mpirun", "srun", "flux", "jsrun", "aprun" or "sbatch"; for pods "mpijob" or "kubernetes-job".
    launcher: str = "mpirun"
    # "open-mpi-4", "open-mpi-5", "hpcx", "mpich", "intel-mpi", "mvapich" or "cray-mpich".
    mpi: str | None = None
    hosts: str | None = None
    # Processes of each node; None: one for each GPU, or for each core of a node without.
    ranks_per_node: Integer | None = None
    # "core", "numa", "masks" or "none"; None: the CPUs beside each GPU where they are published, else none.
    binding: str | None = None
    # CPUs by number, where they are asked for so; an error where they are not published.
    cpus: CpuSharing | None = None
    interface: str | None = None
    # Further words for the launcher, and directives for sbatch.
    options: tuple[str, ...] = ()
    batch_options: tuple[str, ...] = ()
    time_s: Integer | None = None
    # What every process runs in: an image, and its runtime, which pods bring themselves; SOURCE[:TARGET[:rw]] each.
    runtime: RuntimeName | None = None
    image: str | None = None
    mounts: tuple[str, ...] = ()
    container_options: tuple[str, ...] = ()
    # For pods: what each asks for beside GPUs, the name and place of the job.
    resources: tuple[tuple[str, str], ...] = ()
    name: str = "busbw"
    namespace: str | None = None
    claim: str | None = None
    host_network: bool = False


class LaunchLine(Value, kw_only=True, frozen=True):
    """The job, the settings in it with their reasons, and what a reader should know."""

    job: Job
    launcher: str
    recommendation: Recommendation
    # What the container sees of the host, as its runtime is told, with what each is for.
    mounts: tuple[Bind, ...] = ()
    notes: tuple[str, ...] = ()


# States of Slurm in which a job still has something before it (man squeue, JOB STATE CODES).
_WAITING = frozenset(
    ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
)
_RUNNING = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"))


class BatchJob(Value, kw_only=True, frozen=True):
    """One job, or one task of an array."""

    # As `17`, or `17_3` for task 3 of an array.
    job_id: str
    # PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL, PREEMPTED, OUT_OF_MEMORY...
    state: str
    # Why it waits or ended; None: the batch system gives none.
    reason: str | None = None
    exit_code: Integer | None = None
    # The hosts it has or had, as a list such as n[0-3]; None: none yet.
    hosts: str | None = None
    # How often it was started again.
    restarts: Integer = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state not in _WAITING | _RUNNING


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# No longer string goes into an environment or a command line (MAX_ARG_STRLEN, 32 pages), its end included.
_LONGEST_BYTES = 131_071


def check_name(name: str) -> None:
    """Raise InputError for what cannot be the name of an environment variable that a shell can set."""
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{name[:80]!r} cannot be the name of an environment variable")


def check_variable(name: str, value: str, *, prefix: str = "") -> None:
    """Raise InputError for a name and a value that no process can have; `prefix` is put before the name on the way."""
    check_name(name)
    if "\0" in value:
        raise InputError("a value cannot contain NUL", where=name)
    try:
        size_bytes = len(f"{prefix}{name}={value}".encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        raise InputError("no bytes stand for this text", where=name) from None
    if size_bytes > _LONGEST_BYTES:
        raise InputError(f"longer than the {_LONGEST_BYTES} bytes that Linux hands to a process", where=name)

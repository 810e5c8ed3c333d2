"""What a launcher is told: the hosts it may use, what they offer, what to start there."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Placement, Program

AllocationKind = Literal["slurm", "pbs", "lsf", "flux", "sge", "host file", "host list", "this host"]
RuntimeName = Literal["apptainer", "singularity", "pyxis", "podman", "docker", "charliecloud"]


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


class Bind(Value, kw_only=True, frozen=True):
    """A path of the host that a container sees."""

    source: str
    # Inside; the same path where it is None.
    target: str | None = None
    read_only: bool = True
    # What it is for, in words; an error before the start names it where `source` is absent.
    why: str | None = None
    # Whether the container may start without it.
    optional: bool = False


class Container(Value, kw_only=True, frozen=True):
    """An image that every rank runs in."""

    runtime: RuntimeName
    # The runtime's program on the hosts, absolute or found on PATH there; "" for pyxis, which is part of srun.
    program: str
    image: str
    binds: tuple[Bind, ...] = ()
    # GPUs and their driver are to be seen inside.
    gpus: bool = False
    # Further words for the runtime, as they are.
    options: tuple[str, ...] = ()


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

"""The command that starts a program on a platform, with what was decided on the way."""

from busbw.base.value import Integer, Value
from busbw.model.plan import Job
from busbw.model.recommendation import Recommendation


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
    interface: str | None = None
    # Further words for the launcher, and directives for sbatch.
    options: tuple[str, ...] = ()
    batch_options: tuple[str, ...] = ()
    time_s: Integer | None = None
    # For pods: the image, what each asks for beside GPUs, the name and place of the job.
    image: str | None = None
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
    notes: tuple[str, ...] = ()

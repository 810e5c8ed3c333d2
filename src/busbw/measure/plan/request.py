"""What a user asks to be measured, before it is checked against the machine."""

from typing import Literal

from busbw.base.collectives import Matrix
from busbw.base.value import Value
from busbw.model.gpu import Buffers
from busbw.model.launch import Container
from busbw.model.sweep import Mode


class Request(Value, kw_only=True, frozen=True):
    """A measurement as asked for. None: busbw chooses, and the plan says what."""

    collectives: tuple[str, ...] = ()
    suite: str | None = None
    ranks: int | None = None
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    # Sizes grow by this factor, or by this many bytes; one of the two.
    factor: int | None = None
    step_bytes: int | None = None
    # Several separated by commas, or "all".
    dtype: str = "float32"
    op: str = "sum"
    # None: every rank in turn.
    root: int | None = 0
    # "out", "in" or "both".
    placement: str = "out"
    # None: isolated over MPI, stream over NCCL, as nccl-tests.
    mode: Mode | None = None
    # Calls of one stream, graph or loaded sample, and calls before the first.
    calls: int | None = None
    warmup_calls: int | None = None
    verify: bool = True
    time_limit_s: float = 50.0
    stall_s: float = 60.0
    min_samples: int = 30
    mpirun: str | None = None
    backend: str = "native-mpi"
    # "mpirun", "srun", "sbatch", "flux", "jsrun", "aprun", "processes" or "torchrun"; for foreign programs "direct"
    # too; None: what fits.
    launcher: str | None = None
    # A host file, or a list such as n[0-3]; and how many hosts of an allocation. None for both: this host alone.
    hosts: str | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    # "core", "numa", "masks" or "none"; None: a core for each rank over MPI, none over NCCL.
    binding: str | None = None
    # Further words for the launcher.
    launcher_options: tuple[str, ...] = ()
    # The network interface that hosts meet over; None: the launcher and MPI choose.
    interface: str | None = None
    # What mpirun reaches other hosts with; (): its default.
    remote_shell: tuple[str, ...] = ()
    # What every rank runs in; None: nothing. And the Python in its image that has busbw.
    container: Container | None = None
    image_python: str = "python3"
    gpus_per_process: int = 1
    buffers: Buffers = "plain"
    # None: from NCCL where it can.
    memory: Literal["nccl", "cuda"] | None = None
    cache: Literal["cold", "warm"] = "cold"
    # NAME=VALUE of ncclConfig_t.
    config: tuple[str, ...] = ()
    # "all", "rail", "cross", or pairs such as "0-1,2-3": sendrecv between two ranks at a time.
    pairs: str | None = None
    # Ranks of one node for the two-level alltoall.
    group: int | None = None
    # Parts of a split collective are whole elements, not multiples of 16 bytes.
    unaligned: bool = False
    # Bytes from each rank to each, for an alltoallv; None: nccl-tests' pattern.
    matrix: Matrix | None = None
    multicast_off: bool = False
    load_side: int = 2048
    nccl: str | None = None
    driver: str | None = None
    nvrtc: str | None = None
    # nccl-tests and osu: where their programs are, and how often each is started (None: as often as it takes).
    programs: str | None = None
    launches: int | None = None
    # As nccl-tests' -G; 0 without graphs.
    graphs: int = 0
    # osu: whether buffers are on GPUs.
    gpu_buffers: bool = False
    # Measure hosts together that do not run the same.
    allow_mixed: bool = False
    tag: str | None = None
    # The platform it is measured on; None: it is recognised, or not known.
    platform: str | None = None

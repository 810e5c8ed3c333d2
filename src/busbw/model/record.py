"""What a rank writes while it runs: records, one JSON line each, and progress on its standard output."""

from typing import Literal

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.base.value import Integer, Value
from busbw.model.fabric import FabricMetric, PairSeen
from busbw.model.machine import CountersRead
from busbw.model.plan import Sweep, points_of


class LoadedLibrary(Value, kw_only=True, frozen=True):
    """A library that the first rank of a host has loaded, or would load."""

    # libmpi, libnccl, libcuda, libucp, libfabric, libnccl-net...
    name: str
    path: str
    # As the library itself or its file name says; None: neither does.
    version: str | None
    # Of its size, its beginning and its end: the same for the same build.
    fingerprint: str


class NodePort(Value, kw_only=True, frozen=True):
    """A port of a network device, as the kernel shows it. None: it does not say."""

    # `mlx5_0/1`, or the name of a network interface.
    name: str
    up: bool | None
    # `400 Gb/sec (4X NDR)`, as RDMA drivers say it, or the Mbit/s of an interface.
    rate: str | None


class NodeLimit(Value, kw_only=True, frozen=True):
    """A limit of the kernel for processes of this run."""

    name: str
    # None: unlimited.
    most: Integer | None


class Record(Value, kw_only=True, frozen=True, tag_field="type"):
    """One line of a rank's file."""


class GpuHello(Value, kw_only=True, frozen=True):
    """The GPU of a rank and what drives it, as the rank found them."""

    ordinal: Integer
    model: str
    bus_id: str
    free_bytes: Integer
    nccl: str
    nccl_path: str
    driver: Integer
    driver_path: str
    # None: no kernels; the host checks results.
    nvrtc_path: str | None
    # Variables in force in the rank whose names begin with NCCL_, and those that keep multicast off.
    environment: tuple[tuple[str, str], ...]
    # Devices that CUDA shows this process.
    visible: Integer | None = None
    # The NUMA node that the kernel puts it beside; None: it does not say.
    numa: Integer | None = None


class Hello(Record, tag="hello", kw_only=True, frozen=True):
    """Who the rank is; always its first line."""

    schema: Integer = 1
    rank: Integer
    ranks: Integer
    host: str
    process_id: Integer
    # CPUs the rank may run on after the launcher bound it, and the NUMA nodes that they are of; None: not told.
    cpus: tuple[Integer, ...]
    numa: tuple[Integer, ...] | None = None
    mpi_version: str
    mpi_library: str
    handle_bytes: Integer
    thread_level: str
    # MPI functions that a preloaded library stands before, as "MPI_Send from /path".
    interposed: tuple[str, ...]
    # Of a rank without MPI: empty, 0 and "none".
    # float16 and bfloat16 sums: "mpi", or "busbw" where MPI has no such operation.
    small_float_reductions: Literal["mpi", "busbw"]
    clock_cost_ns: float
    clock_step_ns: Integer
    gpu: GpuHello | None = None


class Node(Record, tag="node", kw_only=True, frozen=True):
    """A host as its first rank finds it before anything is measured; rank 0 writes those of all. None: not told."""

    # The first rank of the host, and how many follow it there.
    rank: Integer
    ranks: Integer
    host: str
    boot_id: str | None
    kernel: str
    cpu_model: str | None
    # CPUs that are online, and hardware threads of one core.
    cpus: Integer
    threads_per_core: Integer | None
    numa_nodes: Integer
    memory_bytes: Integer
    memory_available_bytes: Integer
    # CPU time that the control group may use, in CPUs; None without a limit.
    cpu_quota: float | None
    governor: str | None
    numa_balancing: Integer | None
    busbw: str
    # Of the files of busbw that the rank has loaded.
    busbw_fingerprint: str
    python: str
    mpi4py: str | None
    mpi: str
    libraries: tuple[LoadedLibrary, ...]
    # Settings in force in the rank, of the allow-list of model.variables; NCCL's settings files with a fingerprint of
    # each.
    environment: tuple[tuple[str, str], ...]
    settings_files: tuple[tuple[str, str], ...]
    limits: tuple[NodeLimit, ...]
    shared_memory_bytes: Integer
    shared_memory_free_bytes: Integer
    # GPUs by their PCI addresses, as the kernel shows them; how many CUDA shows a rank, where GPUs are measured.
    gpus: tuple[str, ...]
    cuda_devices: Integer | None
    # The least that is free on a GPU of this host's ranks.
    gpu_free_bytes: Integer | None
    ports: tuple[NodePort, ...]
    unix_s: float
    # Whether the host reads in the run directory what rank 0 has just written there.
    sees_directory: bool


Kernel = Literal["loop", "memcpy"]


class Copied(Record, tag="copied", kw_only=True, frozen=True):
    """Memory of a neighbouring rank, just written there, copied by this rank while every other rank did the same."""

    kernel: Kernel
    size_bytes: Integer
    # One copy of `size_bytes` each.
    duration_ns: tuple[Integer, ...]


class Streamed(Record, tag="streamed", kw_only=True, frozen=True):
    """Bytes this rank received (or sent, where it received none) over TCP on the loopback interface, round by round."""

    # "ring": every rank sends to the next and receives from the one before; "pairs": rank i sends to i + n/2.
    pattern: Literal["ring", "pairs"]
    moved_bytes: tuple[Integer, ...]
    duration_ns: tuple[Integer, ...]


class EmptyLaunches(Value, kw_only=True, frozen=True):
    """Batches of launches of a kernel that does nothing, back to back in the measuring stream of one GPU."""

    # Of one batch.
    launches: Integer
    # One entry a batch. By the host's clock, until the last launch had returned; by the GPU's, until the last kernel
    # had ended.
    issue_ns: tuple[Integer, ...]
    device_ns: tuple[Integer, ...]
    # By the host's clock, until the host had seen the last kernel end; () in records of before.
    done_ns: tuple[Integer, ...] = ()


class Launched(Record, tag="launched", kw_only=True, frozen=True):
    """What launches of an empty kernel took on this rank's GPU as the run began, before NCCL had started."""

    empty: EmptyLaunches


class Mismatch(Value, kw_only=True, frozen=True):
    """Elements that differ from what they must be, and the first of them."""

    wrong: Integer
    index: Integer
    got: str
    expected: str


class Attribution(Value, kw_only=True, frozen=True):
    """How often calls were slow on one group of ranks: evidence of who delays the others.

    Each pass halves the ranks by one bit of their number; the two groups run the same exchange at the same time.
    """

    bit: Integer
    group: Integer
    ranks: tuple[Integer, ...]
    calls: Integer
    slow_calls: Integer


class NcclChoice(Value, kw_only=True, frozen=True):
    """What NCCL itself says it did for one kind of call. None: it does not say."""

    function: str
    algorithm: str | None
    protocol: str | None
    channels: Integer | None


class NcclPoint(Value, kw_only=True, frozen=True):
    """What is particular to a point measured over NCCL."""

    # Different places in memory that calls went through, and how many bytes those are on one GPU.
    slots: Integer
    footprint_bytes: Integer
    # Calls in one graph; 0 without.
    graph_calls: Integer
    # Time of one matrix product alone; None without a load.
    product_ns: Integer | None
    choices: tuple[NcclChoice, ...]
    checked_by: Literal["gpu", "host"]


class Measured(Record, tag="measured", kw_only=True, frozen=True):
    """One turn of a point, as this rank saw it: all samples of the turn, in the order taken.

    In turn 0 a point is verified and gets one sample, after one call to warm up; each later turn warms up for itself.
    """

    point: Integer
    # 1 where points had one turn only, with everything in it.
    turn: Integer = 1
    sweep: Integer
    size_bytes: Integer
    calls_per_sample: Integer
    warmup_calls: Integer
    warmup_stable: bool
    # A sample: all its calls. Isolated: from the common start to this rank's return.
    duration_ns: tuple[Integer, ...]
    # Isolated only: from the common start to this rank's own start; empty in stream mode.
    lateness_ns: tuple[Integer, ...]
    # Time within the sample that this rank did not run on a processor.
    off_processor_ns: tuple[Integer, ...]
    # Over NCCL: from the start of a sample until its last call had returned to the host.
    issued_ns: tuple[Integer, ...] = ()
    # Small messages over NCCL: launches of an empty kernel directly before this point and directly after it.
    empty_before: EmptyLaunches | None = None
    empty_after: EmptyLaunches | None = None
    # Numbers of samples whose start was announced too late on this rank.
    missed: tuple[Integer, ...]
    # Offset of this rank's clock to rank 0's, and how far it may be off: half round trip, plus drift over the turn.
    clock_offset_ns: Integer
    clock_error_ns: Integer
    clock_shared: bool
    mismatch: Mismatch | None
    verified_elements: Integer
    voluntary_switches: Integer
    involuntary_switches: Integer
    # Bytes this rank sent over TCP meanwhile, by way: `lo` to ranks of this host, else the local address.
    tcp_bytes: tuple[tuple[str, Integer], ...]
    attribution: tuple[Attribution, ...]
    nccl: NcclPoint | None = None
    ended: Literal["interval", "samples", "time", "stopped", "wrong"]
    started_unix_s: float
    ended_unix_s: float


class StepsTaken(Record, tag="steps", kw_only=True, frozen=True):
    """Steps of a training job as this rank replayed them, in their order."""

    step_ns: tuple[Integer, ...]
    compute_ns: tuple[Integer, ...]
    # By step and by call of the plan: until done, and what was waited for it.
    busy_ns: tuple[tuple[Integer, ...], ...]
    exposed_ns: tuple[tuple[Integer, ...], ...]
    # One matrix product alone; None where computing is a wait by the clock.
    product_ns: Integer | None = None
    # By call: what was wrong as it was done once over poisoned buffers before the first step; (): it was not checked.
    checked: tuple[Mismatch | None, ...] = ()


class RoundMeasured(Record, tag="round", kw_only=True, frozen=True):
    """One round of a sweep over a fabric, by rank 0: its pairs were tested at the same time."""

    metric: FabricMetric
    # From 0, by metric.
    round: Integer
    tests: tuple[PairSeen, ...]
    # Seats whose ranks have not answered by now, in this round or before; they have no part in later ones.
    lost: tuple[Integer, ...] = ()
    started_unix_s: float
    ended_unix_s: float


class CountersKept(Record, tag="port_counters", kw_only=True, frozen=True):
    """The counters of the network ports of this rank's host; one rank of each host writes them."""

    moment: Literal["before", "after"]
    read: CountersRead


class RetestCounted(Record, tag="retest_counters", kw_only=True, frozen=True):
    """What the ports of this rank's host counted while its pairs were tested again; one rank of each host writes it.

    Both readings have the counters that moved and are a sign of anything; the others stood still, or count traffic.
    """

    metric: FabricMetric
    round: Integer
    # Senders and receivers, as seats: those of this host at that time.
    tests: tuple[tuple[Integer, Integer], ...]
    before: CountersRead
    after: CountersRead


class Failed(Record, tag="failed", kw_only=True, frozen=True):
    """Why this rank gave up."""

    step: str
    cause: str


class Finished(Record, tag="finished", kw_only=True, frozen=True):
    """The rank came to its end; always its last line."""

    reason: Literal["complete", "time", "stopped"]


AnyRecord = (
    Hello
    | Node
    | Copied
    | Streamed
    | Launched
    | Measured
    | StepsTaken
    | RoundMeasured
    | CountersKept
    | RetestCounted
    | Failed
    | Finished
)


# Marks the lines of standard output that are events; everything else is kept and not interpreted.
EVENT_PREFIX = "busbw-event "


class Event(Value, kw_only=True, frozen=True, tag_field="type"):
    """One line of progress."""


class Preparing(Event, tag="preparing", kw_only=True, frozen=True):
    """Something before the first point: starting, memory copies, streams."""

    what: str


class Measuring(Event, tag="measuring", kw_only=True, frozen=True):
    """Where one point stands."""

    point: Integer
    phase: str
    samples: Integer
    median_s: float | None
    # How far the interval of the median reaches to its farther side, as a share of it.
    half_width: float | None
    # Of the time limit of the whole run.
    remaining_s: float


class PointEnded(Event, tag="point_ended", kw_only=True, frozen=True):
    """A turn of a point is on disk on every rank."""

    point: Integer
    # 0: its first sample.
    turn: Integer = 1
    # Of this turn.
    samples: Integer
    median_s: float | None
    ended: str


class Ending(Event, tag="ending", kw_only=True, frozen=True):
    """All records are written; nothing follows."""

    reason: Literal["complete", "time", "stopped"]


class RoundEnded(Event, tag="round_ended", kw_only=True, frozen=True):
    """A round of a sweep over a fabric is on disk."""

    point: Integer
    round: Integer
    tests: Integer
    unanswered: Integer


class StepsEnded(Event, tag="steps_ended", kw_only=True, frozen=True):
    """So many steps of a training job are taken, of this rank's the median."""

    steps: Integer
    median_s: float


class Unanswered(Event, tag="unanswered", kw_only=True, frozen=True):
    """The sweep is over, and these ranks gave no answer: who sent this waits for the hosts to be looked at."""

    reason: Literal["complete", "stopped"]
    # () where pairs gave each other up and all ranks are there.
    ranks: tuple[Integer, ...]
    hosts: tuple[str, ...]


class Refused(Event, tag="refused", kw_only=True, frozen=True):
    """Ranks that must not measure together: nothing begins, and no rank is to blame. Any rank may say so."""

    why: str


AnyEvent = Preparing | Measuring | PointEnded | StepsEnded | RoundEnded | Unanswered | Ending | Refused


# The states in which a rank is at a point of the plan; the others come before the first point or after the last.
_AT_A_POINT = ("verifying", "warming up", "sampling", "writing", "attributing")


def step_words(state: str, number: int, samples: int, sweeps: tuple[Sweep, ...]) -> str:
    """Return a state of layout.HEARTBEAT_STATES at point `number`: `sampling all_reduce 4 KiB, sample 17`."""
    points = points_of(sweeps)
    if state not in _AT_A_POINT or number >= len(points):
        return state
    point = points[number]
    collective = COLLECTIVES[sweeps[point.sweep].collective].name
    sample = f", sample {samples}" if state == "sampling" else ""
    return f"{state} {collective} {format_size(point.size_bytes)}{sample}"

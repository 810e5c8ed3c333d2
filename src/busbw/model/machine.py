"""The host, its GPUs, the MPI and the libraries that a measurement runs on."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value


class Host(Value, kw_only=True, frozen=True):
    """One host as the kernel describes it. None: this host does not say."""

    name: str
    kernel: str
    os_name: str | None
    cpu_model: str | None
    # CPUs this process may use, as numbers of the kernel.
    cpus: tuple[Integer, ...]
    # Physical cores among them.
    cores: Integer
    numa_nodes: Integer
    memory_bytes: Integer
    # What a new process can have: MemAvailable, or what is left under the memory limit of the control group if less.
    memory_available_bytes: Integer
    hypervisor: str | None
    container: str | None
    governor: str | None
    # Transparent huge pages: "always", "madvise" or "never". Buffers take what the policy gives any program.
    huge_pages: str | None
    # CPU time the container may use, in CPUs; None without a limit.
    cpu_quota: float | None


class HostCounters(Value, kw_only=True, frozen=True):
    """Counters of a host at one instant; two of them tell what happened between. None: not kept here."""

    stolen_s: float | None
    # Summed over all CPUs.
    cpu_s: float
    # How often the container was stopped for using up its quota, and core or package throttling for heat or power.
    quota_stops: Integer | None
    throttle_events: Integer | None
    # Processes the kernel ended because memory ran out.
    memory_kills: Integer | None
    load_average: float


MpiFamily = Literal["Open MPI", "MPICH", "Intel MPI", "MVAPICH", "unknown"]


MpiOrigin = Literal["site", "wheel", "chosen"]


class MpiLibrary(Value, kw_only=True, frozen=True):
    """The MPI that starts the ranks and is loaded in them."""

    family: MpiFamily
    version: str | None
    # Absolute path of mpirun, and of the library that mpi4py is told to load.
    mpirun: str
    library: str
    # "site": found on PATH; "wheel": the one installed beside busbw; "chosen": named by --mpirun.
    origin: MpiOrigin


# "named": by path on the command line; "LD_LIBRARY_PATH"; "wheel": in the Python environment; "system": where the
# dynamic loader looks by itself.
Origin = Literal["named", "LD_LIBRARY_PATH", "wheel", "system"]


class Library(Value, kw_only=True, frozen=True):
    """A shared library: the file, its own word on its version, and how it was found."""

    path: str
    version: str
    origin: Origin


class GpuDevice(Value, kw_only=True, frozen=True):
    """One GPU as its driver describes it, under the number CUDA gives it here."""

    ordinal: Integer
    model: str
    bus_id: str
    memory_bytes: Integer
    free_bytes: Integer
    l2_bytes: Integer
    multiprocessors: Integer
    # 90 for compute capability 9.0.
    capability: Integer


class GpuHost(Value, kw_only=True, frozen=True):
    """What a host offers for NCCL. Without NVRTC results are checked by the host."""

    devices: tuple[GpuDevice, ...]
    driver: Library
    nccl: Library
    nvrtc: Library | None
    # Fields of ncclConfig_t and data types that this NCCL has.
    config_fields: tuple[str, ...]
    dtypes: tuple[str, ...]


Buffers = Literal["plain", "registered", "symmetric"]


class GpuSetup(Value, kw_only=True, frozen=True):
    """How the ranks use their GPUs."""

    # GPUs, and so ranks of NCCL, that each process drives.
    per_process: Integer
    buffers: Buffers
    # ncclMemAlloc (2.19 and later), else cuMemAlloc.
    nccl_memory: bool
    # "cold": calls move through more memory than the L2 cache holds, as far as the size allows; "warm": one place.
    cache: Literal["cold", "warm"]
    # Members of ncclConfig_t by NCCL's own names.
    config: tuple[tuple[str, Integer], ...]
    # Whether each rank makes sure, before it opens NCCL, that NVLink multicast is off.
    multicast_off: bool
    # Whether NCCL's profiler interface is asked which algorithm it uses; not where the user's own plug-in is loaded.
    profiler: bool
    # Side of the matrices whose products run beside the exchange in loaded mode.
    load_side: Integer


class NoiseOfCpu(Value, kw_only=True, frozen=True):
    """What fixed work took on one CPU, again and again, while every other CPU did the same."""

    cpu: Integer
    repeats: Integer
    total_s: float
    least_s: float
    median_s: float
    p99_s: float
    p999_s: float
    most_s: float
    # Share of the time that would not have been needed had every repeat taken the least.
    lost: float
    # Repeats that took longer than `limit_s`, and the share of the time that they took beyond the median.
    limit_s: float
    detours: Integer
    detoured: float
    # How far apart detours are, and how regular (0 to 1); None: no period shows.
    period_s: float | None
    regularity: float
    # How often the kernel gave the CPU to another thread meanwhile.
    preempted: Integer
    # Repeats by what they took beyond the least: entry N counts those below 2 to the power of N nanoseconds.
    excess: tuple[Integer, ...]


class NoiseTest(Value, kw_only=True, frozen=True):
    """The noise of one host, by CPU."""

    # How long all of it took, and what one repeat was meant to take.
    duration_s: float
    quantum_s: float
    cpus: tuple[NoiseOfCpu, ...]


class CountersRead(Value, kw_only=True, frozen=True):
    """The counters of a host, or of a switch, at one moment."""

    host: str
    # None: nobody said when.
    unix_s: float | None = None
    # How long the host has been up; None: not known.
    uptime_s: float | None = None
    # By port and name: `mlx5_0/1 symbol_error`, `cxi0 hni_pcs_uncorrected_cw`, `eth0 rx_errors`, of a switch `/12 ...`.
    counters: dict[str, Integer]
    # Whether InfiniBand's counters have 64 bits, as `perfquery -x` prints them.
    extended: bool = False
    # What is at the other end of a port, where a topology says so: `/12` has `node07 mlx5_3 port 1`.
    linked: dict[str, str] = msgspec.field(default_factory=dict)

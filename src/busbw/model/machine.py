"""The host and the MPI a measurement ran on."""

from typing import Literal

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

"""What a backend is, and the values it is asked with: `Backend` says all that planning, starting and loading use.

A backend is a module, ours or one of another package with its entry point in the group `busbw.backends`. It is pure:
what it wants to know of the machine it asks a `Door`.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.measure.launchers.launcher import Joining
from busbw.model.launch import Allocation, Slurm
from busbw.model.machine import GpuHost, GpuSetup, Host, Library, MpiLibrary
from busbw.model.plan import ForeignProgram, MemoryNeed, Placement, Plan, Program, Sweep
from busbw.model.record import AnyRecord, Failed, Hello, Node
from busbw.model.request import Mode, Request, options
from busbw.model.run import EmptyLaunch, Measurement, Rates

if TYPE_CHECKING:
    from busbw.measure.containers.place import Containment

# What carries the data. Users of the second know nccl-tests' letters: -n is the calls of a sample, -o the operation.
Carrier = Literal["mpi", "nccl"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """Names a request is checked against, and the sizes it gets when it asks for none."""

    interface: str
    collectives: tuple[str, ...]
    # Those that have an in-place form of their own.
    in_place: tuple[str, ...]
    dtypes: tuple[str, ...]
    operations: tuple[str, ...]
    # Elements that one call can count; None: more than memory holds.
    most_elements: int | None
    largest_bytes: int
    suite_largest_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Options by their letter, each with what the usage text says after it."""

    options: Mapping[str, str]
    text: str

    def knows(self, letter: str) -> bool:
        """Whether the program takes this option."""
        return letter in self.options


@dataclass(frozen=True, slots=True)
class Found:
    """A program of the user and its own usage text."""

    program: ForeignProgram
    usage: Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a plan depends on beside the request: the machine, what a backend found on it, and who asks."""

    host: Host
    # None where ranks start without MPI.
    mpi: MpiLibrary | None
    # Where ranks of ours measure GPUs: these.
    gpus: GpuHost | None = None
    # The plug-in that tells what NCCL chose; None where the user has one of his own.
    plugin: str | None = None
    # Where buffers of MPI lie on GPUs: their driver.
    mpi_driver: Library | None = None
    # GPUs that the kernel shows, whether or not they are measured.
    gpus_seen: int = 0
    # The user's programs, by collective.
    found: Mapping[str, Found] = field(default_factory=dict)
    # GPUs that a program of the user sees on this host; None where that cannot be told.
    gpu_count: int | None = None
    # None: this host alone.
    allocation: Allocation | None = None
    # Seen where there are several hosts; None: no srun here.
    slurm: Slurm | None = None
    # Paths of the programs of other launchers that are on PATH, by name.
    launchers: Mapping[str, str] = field(default_factory=dict)
    # CPUs of each rank of a host, as lists, where they were asked for.
    masks: tuple[str, ...] = ()
    # None: ranks run on the host as it is.
    containment: "Containment | None" = None
    # Names of the settings that ranks on other hosts must have too.
    settings: tuple[str, ...] = ()
    # The interpreter that the ranks run, and that looks after them.
    python: str
    as_root: bool
    created: dt.datetime
    # Tells runs of the same second apart.
    token: str


class Programs(Protocol):
    """The door to programs of the user on this host. Each call raises InputError with what is missing."""

    def is_one_file(self, path: str) -> bool:
        """Whether a path is a file, not a folder."""

    def find(self, names: tuple[str, ...], where: str | None) -> str:
        """Return the program of one of these names, the first first: at or below `where`, else on PATH."""

    def usage(self, program: str, *, asked: str = "-h", started_by: tuple[str, ...] = ()) -> str:
        """Return what a program prints when it is asked for its options; `started_by`: the command of a launcher."""

    def uses_mpi(self, program: str) -> bool | None:
        """Whether a compiled program starts MPI; None for scripts and what cannot be read."""

    def gpus_of(self, program: str) -> str | None:
        """Return "cuda" or "rocm" for a compiled program that takes memory of such GPUs; None for all others."""

    def gpu_count(self) -> int | None:
        """Return how many GPUs a program sees, without opening a driver; None when that cannot be told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """What a backend can ask of this host. Each call raises InputError with what is missing, and how to get it."""

    # The MPI whose mpirun is named, or that is on PATH.
    mpi: Callable[[str | None], MpiLibrary]
    # GPUs and their libraries, those named in the request where it names some.
    gpus: Callable[[Request], GpuHost]
    # The driver of the GPUs that buffers of an MPI can lie on, where that MPI takes their memory.
    gpu_buffers: Callable[[Request, MpiLibrary], Library]
    # The plug-in that tells what NCCL chose; None where the user has one of his own.
    plugin: Callable[[], str | None]
    programs: Callable[[], Programs]


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSizes:
    """Sizes before rounding, and how they grow: by a factor, or by a step."""

    sizes_bytes: tuple[int, ...]
    factor: int | None
    step_bytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What is decided before the words of the programs are written."""

    sweeps: tuple[Sweep, ...]
    asked: AskedSizes
    mode: Mode
    placement: Placement
    # Ranks in each process.
    per_process: int
    directory: str
    # Where ranks of ours measure GPUs.
    setup: GpuSetup | None = None
    # The interpreter of the ranks, which may be one in a container.
    python: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramStart:
    """One start of a program over all ranks. Ours have one, for everything; the launching side appends its words."""

    program: Program
    # Of the user's programs: numbers of the points (model.plan.points_of) and how many samples it prints of each.
    points: tuple[int, ...] = ()
    samples: int = 0
    # The file in raw/ that it writes every single sample to.
    report: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedStart:
    """What one start of one step left in raw/: standard output, and its report where it wrote one."""

    attempt: int
    step: int
    name: str
    text: bytes
    report_name: str | None = None
    report: bytes | None = None


Records = Mapping[int, Sequence[tuple[str, AnyRecord]]]


class Parsed(Value, frozen=True, kw_only=True):
    """What ranks' records or printed rows say, put together."""

    ranks: tuple[Hello, ...]
    rates: Rates
    measurements: tuple[Measurement, ...]
    # (rank, why it gave up), of every start of the run.
    failures: tuple[tuple[int, Failed], ...]
    # The hosts as the latest start found them; () where there is one only.
    nodes: tuple[Node, ...] = ()
    # Launches of an empty kernel as the latest start began, by rank; () without GPUs of ours.
    launches: tuple[EmptyLaunch, ...] = ()


class Backend(Protocol):
    """What a backend module offers; `OwnBackend` goes on for ranks of ours, `ForeignBackend` for the user's."""

    name: str
    over: Carrier
    # Whether its processes are ours (busbw.rank) and write records; else they are the user's and print rows.
    is_ours: bool
    # Which of OPTIONAL it takes; all others are refused.
    takes: frozenset[str]
    # The first where nobody says.
    modes: tuple[Mode, ...]
    # How its processes can find each other; a launcher that joins them otherwise is refused.
    joining: tuple[Joining, ...]
    # The launcher on this host where `look` found no MPI; None: it cannot do without.
    usual_launcher: str | None
    # What is measured where nothing is asked for.
    usual_suite: str

    def capabilities(self, surroundings: Surroundings | None) -> Capabilities:
        """Return what can be asked for; None, or surroundings that nobody has looked at: as far as is known then."""

    def look(self, request: Request, surroundings: Surroundings, door: Door, names: tuple[str, ...]) -> Surroundings:
        """Return surroundings with what is needed of this host. `names`: the collectives. Raises InputError."""

    def usual_ranks(self, request: Request, surroundings: Surroundings, names: tuple[str, ...]) -> int:
        """Return how many ranks a host has where nobody says. Raises InputError where that cannot be told.

        A backend over MPI is asked before it has looked.
        """

    def check_ranks(
        self, request: Request, surroundings: Surroundings, names: tuple[str, ...], counts: tuple[int, ...]
    ) -> None:
        """Raise InputError for ranks, by host, that it cannot have."""

    def moved(self, sweep: Sweep, surroundings: Surroundings) -> Sweep:
        """Return a sweep with the data type that is really moved. Raises InputError where none can be."""

    def memory(
        self, request: Request, surroundings: Surroundings, settled: Settled, counts: tuple[int, ...]
    ) -> tuple[MemoryNeed, str | None]:
        """Return what the busiest host needs, and a note where that is tight. Raises InputError where it is too much.

        Of programs that look themselves nothing.
        """

    def starts(self, request: Request, surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
        """Return what is started, one after the other. Raises InputError for what a program does not know."""

    def notes(self, request: Request, surroundings: Surroundings, starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
        """Return in sentences what a reader of the plan should know."""


class OwnBackend(Backend, Protocol):
    """A backend whose processes are `busbw.rank`."""

    def setup(self, request: Request, surroundings: Surroundings) -> GpuSetup | None:
        """Return how GPUs are used; None: none are. Raises InputError for what they cannot do."""

    def launches(self, request: Request, sweeps: tuple[Sweep, ...]) -> int:
        """Return how often the ranks are started. Raises InputError where that would measure nothing."""

    def parse(self, plan: Plan, records: Records) -> Parsed:
        """Put the records of all ranks together; by rank, in the order written, each with its place."""


def is_own(backend: Backend) -> TypeGuard[OwnBackend]:
    """Whether the processes of a backend are ours."""
    return backend.is_ours


# Fields of a request that a backend may lack, and `masks`: one value of the binding.
OPTIONAL = (
    *("pairs", "matrix_file", "unaligned", "runtime", "masks", "config", "cache", "gpu_buffers", "buffers", "memory"),
    *("load_side", "max_samples", "multicast_off", "nccl", "driver", "nvrtc", "gpus_per_process", "programs", "graphs"),
)
_NOTHING_ASKED = Request()
# Of the variables that tell a library to leave NVLink multicast alone, those that are known.
MULTICAST_OFF = (
    ("NCCL_NVLS_ENABLE", "0"),
    ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"),
    ("NVSHMEM_DISABLE_NVLS", "1"),
)


def check_options(request: Request, backend: Backend) -> Mode:
    """Return the mode of a request. Raises InputError for options and modes that the backend does not have."""
    mode = "graph" if request.graphs > 0 else request.mode or backend.modes[0]
    if mode not in backend.modes:
        raise InputError(
            f"{backend.name} has no {mode} mode", where=f"--mode {mode}", hint=f"one of: {', '.join(backend.modes)}"
        )
    for each in OPTIONAL:
        if each not in backend.takes and _is_given(request, each):
            words = "--bind-to masks" if each == "masks" else options()[each].names[0]
            raise InputError(f"{backend.name} has no {words}", hint="leave it out, or another --backend")
    return mode


def _is_given(request: Request, name: str) -> bool:
    if name == "masks":
        return request.binding == "masks"
    return bool(getattr(request, name) != getattr(_NOTHING_ASKED, name))

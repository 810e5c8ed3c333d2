"""What a user asks to be measured, before it is checked against the machine."""

import datetime as dt
from typing import Literal

from busbw.base.collectives import Matrix
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.model.launch import Container
from busbw.model.machine import Buffers
from busbw.model.plan import Mode


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


def run_id(request: Request, created: dt.datetime, token: str, ranks: int) -> str:
    """Return the name of a run: when, what, over how many ranks, and a token for runs of the same second."""
    return f"{created:%Y%m%dT%H%M%S}-{run_words(request)}-x{ranks}-{token}"


def run_words(request: Request) -> str:
    """Return what a request measures, for the name of a folder."""
    return request.suite or "+".join(request.collectives[:3]) or "six"


_MOST_BYTES = 64 * 2**20
_MOST_CELL = 2**40
_HINT = "one row a rank: bytes to rank 0, 1, 2, ..., separated by blanks or commas; lines with # are left out"


def read_matrix(content: bytes, where: str, ranks: int) -> Matrix:
    """Return the first `ranks` rows and columns of a matrix file, as nccl-tests does. Raises InputError.

    The form is that of NCCL_TESTS_ALLTOALLV_MATRIX_FILE: square, of numbers that are bytes.
    """
    if len(content) > _MOST_BYTES:
        raise InputError(f"a matrix of more than {_MOST_BYTES >> 20} MiB", where=where)
    rows = []
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if fields:
            rows.append(tuple(_cell(field, f"{where}:{number}") for field in fields))
    if len(rows) < ranks:
        raise InputError(f"{len(rows)} rows for {ranks} ranks", where=where, hint=_HINT)
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise InputError(
                f"row {number} has {len(row)} numbers, and the matrix {len(rows)} rows: it is not square",
                where=where,
                hint=_HINT,
            )
    matrix = tuple(row[:ranks] for row in rows[:ranks])
    if not any(cell for row in matrix for cell in row):
        raise InputError("nobody sends anything", where=where)
    return matrix


def _cell(field: str, where: str) -> int:
    if not field.isdecimal() or len(field) > 15 or int(field) > _MOST_CELL:
        raise InputError(f"{field[:40]!r} is not a number of bytes", where=where, hint=_HINT)
    return int(field)

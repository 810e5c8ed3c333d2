"""The exchanges busbw measures: their names, factors, buffers and how the size column counts them.

Size and factor are those of nccl-tests (its doc/PERFORMANCE.md and src/*.cu, 2.19): size is the larger of the bytes
a rank sends and receives; algbw = size / time; busbw = algbw x factor(ranks).
"""

import re
from collections.abc import Callable, Iterable

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import maybe

# Parts that go to or come from one rank are whole multiples of this, as in nccl-tests, unless asked for otherwise.
PART_ALIGNMENT_BYTES = 16
# Each of a rank's two buffers holds at least this.
LEAST_BUFFER_BYTES = 2**20
# Memory copies are measured up to this size; beyond it a copy is as fast as memory, whatever its size.
LARGEST_COPY_BYTES = 64 * 2**20


def _once(_ranks: int) -> float:
    return 1.0


class Collective(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange: how bus bandwidth follows from its time, and what a rank holds for it."""

    name: str
    factor: Callable[[int], float]
    # algbw = size / time x this: 1 but for the hypercube, which nccl-tests counts without the part a rank has already.
    algbw_factor: Callable[[int], float] = _once
    # Whether the size is split into one part per rank.
    splits: bool = False
    reduces: bool = False
    rooted: bool = False
    pairs: bool = False
    # Whether MPI knows an out-of-place and an in-place form that differ.
    in_place: bool = True
    # Messages of `size` bytes that one call moves one after the other: a ping-pong 2, a window its length.
    messages_per_call: int = 1
    # Bytes sent and received by the rank that needs most, for size S over n ranks (the root of a rooted collective).
    send_bytes: Callable[[int, int], int]
    receive_bytes: Callable[[int, int], int]
    # Bytes that must pass from one rank to another in one exchange, all ranks together, as a factor on S; a
    # point-to-point pattern counts one message of each pair.
    crossing: Callable[[int], float]


def _ring(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def _others(ranks: int) -> float:
    return (ranks - 1) / ranks


def _both_ways(_ranks: int) -> float:
    return 2.0


def _all(ranks: int) -> float:
    return float(ranks)


def _all_but_one(ranks: int) -> float:
    return float(ranks - 1)


def _twice_all_but_one(ranks: int) -> float:
    return 2.0 * (ranks - 1)


def _half(ranks: int) -> float:
    return ranks / 2


def _whole(size_bytes: int, _ranks: int) -> int:
    return size_bytes


def _part(size_bytes: int, ranks: int) -> int:
    return size_bytes // ranks


def _nothing(_size_bytes: int, _ranks: int) -> int:
    return 0


WINDOW_MESSAGES = 64

COLLECTIVES: dict[str, Collective] = {
    collective.name: collective
    for collective in (
        Collective(
            name="all_reduce",
            factor=_ring,
            reduces=True,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_twice_all_but_one,
        ),
        Collective(
            name="all_gather",
            factor=_others,
            splits=True,
            send_bytes=_part,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(
            name="reduce_scatter",
            factor=_others,
            splits=True,
            reduces=True,
            send_bytes=_whole,
            receive_bytes=_part,
            crossing=_all_but_one,
        ),
        Collective(
            name="broadcast",
            factor=_once,
            rooted=True,
            in_place=False,
            send_bytes=_nothing,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(
            name="reduce",
            factor=_once,
            rooted=True,
            reduces=True,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(
            name="alltoall", factor=_others, splits=True, send_bytes=_whole, receive_bytes=_whole, crossing=_all_but_one
        ),
        Collective(
            name="gather",
            factor=_others,
            splits=True,
            rooted=True,
            send_bytes=_part,
            receive_bytes=_whole,
            crossing=_others,
        ),
        Collective(
            name="scatter",
            factor=_others,
            splits=True,
            rooted=True,
            send_bytes=_whole,
            receive_bytes=_part,
            crossing=_others,
        ),
        Collective(
            name="alltoallv",
            factor=_others,
            in_place=False,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(
            name="hypercube",
            factor=_others,
            algbw_factor=_others,
            splits=True,
            send_bytes=_part,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(
            name="alltoall_2dh",
            factor=_others,
            splits=True,
            in_place=False,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_all_but_one,
        ),
        Collective(name="sendrecv", factor=_once, send_bytes=_whole, receive_bytes=_whole, crossing=_all),
        Collective(
            name="latency",
            factor=_once,
            pairs=True,
            in_place=False,
            messages_per_call=2,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_half,
        ),
        Collective(
            name="bandwidth",
            factor=_once,
            pairs=True,
            in_place=False,
            messages_per_call=WINDOW_MESSAGES,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_half,
        ),
        Collective(
            name="bibw",
            factor=_both_ways,
            pairs=True,
            in_place=False,
            messages_per_call=WINDOW_MESSAGES,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_all,
        ),
        Collective(
            name="message_rate",
            factor=_once,
            pairs=True,
            in_place=False,
            messages_per_call=WINDOW_MESSAGES,
            send_bytes=_whole,
            receive_bytes=_whole,
            crossing=_half,
        ),
    )
}

# By its letters alone, as `AllReduce`, `all-reduce` and `All Reduce` have them; and what libraries call the same.
_BY_LETTERS = {name.replace("_", ""): name for name in COLLECTIVES} | {
    "bcast": "broadcast",
    "allgatherintotensor": "all_gather",
    "alltoallsingle": "alltoall",
    "reducescatterblock": "reduce_scatter",
    "reducescattertensor": "reduce_scatter",
}
_LIBRARY = re.compile(r"(?:nccl|rccl|mpi|osu|imb)(?=.)|(?<=.)perf$")
_LONGEST_NAME = 100

# The six of the Azure pinning study, and the four patterns of the OSU point-to-point tests.
SUITES: dict[str, tuple[str, ...]] = {
    "six": ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"),
    "p2p": ("latency", "bandwidth", "bibw", "message_rate"),
}

DTYPE_BYTES: dict[str, int] = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float8e4m3": 1,
    "float8e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
# nccl-tests' names for the same types.
DTYPE_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "f8e4m3": "float8e4m3",
    "f8e5m2": "float8e5m2",
}
MPI_DTYPES = tuple(dtype for dtype in DTYPE_BYTES if not dtype.startswith("float8"))
MPI_OPERATIONS = ("sum", "prod", "min", "max")
# `mulsum` doubles every input and adds.
OPERATIONS = (*MPI_OPERATIONS, "avg", "mulsum")
# What each interface offers, and which of it has an in-place form there.
MPI_COLLECTIVES = tuple(name for name in COLLECTIVES if name not in ("alltoallv", "hypercube"))
NCCL_COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather", "scatter",
    "sendrecv", "hypercube", "alltoall_2dh",
)  # fmt: skip
NCCL_IN_PLACE = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "hypercube",
)  # fmt: skip


def collective_named(said: str) -> str | None:
    """Return the collective that is meant however it is written: `AllReduce`, `ncclAllReduce`, `all_reduce_perf`."""
    letters = re.sub(r"[\W_]+", "", said[:_LONGEST_NAME]).lower()
    return _BY_LETTERS.get(letters) or _BY_LETTERS.get(_LIBRARY.sub("", letters))


def not_a_collective(said: str, known: Iterable[str] = COLLECTIVES) -> InputError:
    """Return the error for a word that names none of the known collectives, with the nearest of them or all."""
    names = tuple(known)
    near = maybe(said[:_LONGEST_NAME].lower(), names).removeprefix("; ")
    return InputError(f"{said[:40]!r} is not a collective", hint=near or "one of: " + ", ".join(names))


def counted_size(
    collective: Collective, size_bytes: int, ranks: int, dtype: str, alignment_bytes: int = PART_ALIGNMENT_BYTES
) -> int:
    """Return the size that is measured when `size_bytes` is asked for; 0 when nothing would be sent.

    As nccl-tests counts: whole elements, and for collectives split over ranks equal parts that are multiples of 16
    bytes. `alignment_bytes`: of these parts; 1 keeps whole elements.
    """
    element_bytes = DTYPE_BYTES[dtype]
    if not collective.splits:
        return size_bytes - size_bytes % element_bytes
    part_bytes = size_bytes // ranks
    return (part_bytes - part_bytes % max(alignment_bytes, element_bytes)) * ranks


def part_count(collective: Collective, size_bytes: int, ranks: int, dtype: str) -> int:
    """Return the elements of one part of a counted size: what the MPI call is given as its count."""
    part_bytes = size_bytes // ranks if collective.splits else size_bytes
    return part_bytes // DTYPE_BYTES[dtype]


Matrix = tuple[tuple[int, ...], ...]


def distance_matrix(ranks: int) -> Matrix:
    """Return nccl-tests' pattern for alltoallv: the farther a rank (counted upwards, cyclic), the more it is sent."""
    return tuple(tuple((target - source) % ranks for target in range(ranks)) for source in range(ranks))


def busiest_bytes(matrix: Matrix) -> int:
    """Return the most that any rank of an alltoallv sends or receives."""
    sent: list[int] = [sum(row) for row in matrix]
    received: list[int] = [sum(column) for column in zip(*matrix, strict=True)]
    return max([*sent, *received])


def scaled_matrix(matrix: Matrix, size_bytes: int) -> Matrix:
    """Return bytes from each rank to each, so that the busiest rank moves `size_bytes`, each a multiple of 16."""
    busiest = busiest_bytes(matrix)

    def scaled(cell: int) -> int:
        moved_bytes = cell * size_bytes // busiest
        return moved_bytes - moved_bytes % PART_ALIGNMENT_BYTES

    return tuple(tuple(scaled(cell) for cell in row) for row in matrix)


def matrix_counts(matrix: Matrix, size_bytes: int, dtype: str) -> tuple[int, ...]:
    """Return elements from each rank to each, row by row, for an alltoallv of `size_bytes`."""
    element_bytes = DTYPE_BYTES[dtype]
    return tuple(cell // element_bytes for row in scaled_matrix(matrix, size_bytes) for cell in row)


def busbw_Bps(collective: Collective, size_bytes: int, ranks: int, time_s: float) -> float:
    """Return the bus bandwidth in bytes per second of one exchange of `size_bytes` among `ranks` in `time_s`."""
    return collective.factor(ranks) * size_bytes / time_s

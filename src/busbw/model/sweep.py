"""What is to be measured."""

from typing import Literal

from busbw.base.collectives import PART_ALIGNMENT_BYTES
from busbw.base.value import Integer, Value

# Over NCCL, messages below this hold a part that is the host's, starting them, and that differs from start to start.
SMALL_NCCL_BYTES = 1 << 20

# stream: calls back to back; isolated: each alone after an aligned start; graph: calls captured once and replayed;
# loaded: back to back while matrix products run beside them. The last two need a GPU.
Mode = Literal["stream", "isolated", "graph", "loaded"]


class Sampling(Value, kw_only=True, frozen=True):
    """How many samples are taken of each point, and when it is enough."""

    mode: Mode
    min_samples: Integer = 30
    max_samples: Integer = 20_000
    # Stop when the confidence interval of the median reaches no further than this share of it to either side.
    half_width: float = 0.01
    confidence: float = 0.95
    # Calls of one stream, graph or loaded sample; None: as many as make a sample half a millisecond long.
    calls: Integer | None = None
    # Calls before the first sample, at least; None: until their level stays.
    warmup_calls: Integer | None = None
    # Whether results are checked; a time without is marked as one that nobody checked.
    verify: bool = True
    # Starts of the ranks, one after the other. The first measures every point, the others those below
    # SMALL_NCCL_BYTES again.
    launches: Integer = 1
    # In each start, for all points of all sweeps together, start-up apart; each point gets its share of what is left.
    time_limit_s: float


class Sweep(Value, kw_only=True, frozen=True):
    """One collective over a list of sizes."""

    collective: str
    # Counted sizes (collectives.counted_size), ascending, without repetition.
    sizes_bytes: tuple[Integer, ...]
    dtype: str
    op: str
    root: Integer
    in_place: bool
    # sendrecv: only these two ranks exchange, both ways; None: every rank sends to the next one.
    pair: tuple[Integer, Integer] | None = None
    # alltoall_2dh: ranks of one node (or of one group that stands for it).
    group: Integer | None = None
    # A split collective's parts are multiples of this, and of an element: 16 as in nccl-tests, or 1.
    part_alignment_bytes: Integer = PART_ALIGNMENT_BYTES
    # alltoallv: bytes, or shares, from rank i to rank j at [i][j].
    matrix: tuple[tuple[Integer, ...], ...] = ()
    # alltoallv: what the busiest rank would move if nothing were rounded, for each of `sizes_bytes`.
    scales_bytes: tuple[Integer, ...] = ()


class Point(Value, kw_only=True, frozen=True):
    """One size of one sweep: what one measurement is about."""

    sweep: Integer
    size_bytes: Integer


def points_of(sweeps: tuple[Sweep, ...]) -> tuple[Point, ...]:
    """Return every point in the order it is measured."""
    return tuple(
        Point(sweep=index, size_bytes=size_bytes)
        for index, sweep in enumerate(sweeps)
        for size_bytes in sweep.sizes_bytes
    )

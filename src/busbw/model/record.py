"""What a rank writes, one JSON line each, while it runs: the raw result.

Times are integers in nanoseconds, as the clock gave them.
"""

from typing import Literal

from busbw.model.value import Integer, Value


class Record(Value, kw_only=True, frozen=True, tag_field="type"):
    """One line of a rank's file."""


class Hello(Record, tag="hello", kw_only=True, frozen=True):
    """Who the rank is; always its first line."""

    schema: Integer = 1
    rank: Integer
    ranks: Integer
    host: str
    process_id: Integer
    # CPUs the rank may run on after the launcher bound it.
    cpus: tuple[Integer, ...]
    mpi_version: str
    mpi_library: str
    handle_bytes: Integer
    thread_level: str
    # MPI functions that a preloaded library stands before, as "MPI_Send from /path".
    interposed: tuple[str, ...]
    # float16 and bfloat16 sums: "mpi", or "busbw" where MPI has no such operation.
    small_float_reductions: Literal["mpi", "busbw"]
    clock_cost_ns: float
    clock_step_ns: Integer


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


class Measured(Record, tag="measured", kw_only=True, frozen=True):
    """One point, as this rank saw it: all samples, in the order taken."""

    point: Integer
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
    # Numbers of samples whose start was announced too late on this rank.
    missed: tuple[Integer, ...]
    # Offset of this rank's clock to rank 0's, and how far it may be off: half round trip, plus drift over the point.
    clock_offset_ns: Integer
    clock_error_ns: Integer
    clock_shared: bool
    mismatch: Mismatch | None
    verified_elements: Integer
    voluntary_switches: Integer
    involuntary_switches: Integer
    # Bytes this rank sent over TCP while the point ran, by way: `lo` to ranks of this host, else the local address.
    tcp_bytes: tuple[tuple[str, Integer], ...]
    attribution: tuple[Attribution, ...]
    ended: Literal["interval", "samples", "time", "stopped", "wrong"]
    started_unix_s: float
    ended_unix_s: float


class Failed(Record, tag="failed", kw_only=True, frozen=True):
    """Why this rank gave up."""

    step: str
    cause: str


class Finished(Record, tag="finished", kw_only=True, frozen=True):
    """The rank came to its end; always its last line."""

    reason: Literal["complete", "time", "stopped"]


AnyRecord = Hello | Copied | Streamed | Measured | Failed | Finished

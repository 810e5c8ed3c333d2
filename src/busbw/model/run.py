"""A run: the plan, what came of it, and what was concluded. The content of run.json."""

from typing import Literal

from busbw.base.units import format_size
from busbw.base.value import Integer, Value
from busbw.model.finding import Ceiling, Finding, Verdict
from busbw.model.machine import HostCounters
from busbw.model.plan import Plan
from busbw.model.record import Attribution, Hello, Kernel, Mismatch, NcclPoint, Node
from busbw.model.request import Mode
from busbw.model.train.replay import ReplayedStep
from busbw.model.visit import Autopsy, Culprit


class RankView(Value, kw_only=True, frozen=True):
    """One rank's share in a measurement. Seconds for one exchange (a message, for windows and ping-pongs)."""

    rank: Integer
    host: str
    median_s: float
    p99_s: float | None
    max_s: float
    # Slow samples that this rank alone explains, see judge.stragglers.
    blamed: Integer
    involuntary_switches: Integer


class WrongResult(Value, kw_only=True, frozen=True):
    """A result that failed verification: the first wrong element of the first wrong rank."""

    # None: a foreign program's own check, which tells neither the rank nor the element, only how many were wrong.
    rank: Integer | None
    host: str
    mismatch: Mismatch


class EmptyLaunch(Value, kw_only=True, frozen=True):
    """One launch of a kernel that does nothing, on one rank's GPU. Seconds, of launches back to back."""

    rank: Integer
    # By the host's clock: the median over batches, the fastest and the slowest batch.
    host_s: float
    host_low_s: float
    host_high_s: float
    # By the GPU's clock: the median over batches. An idle GPU waits for the host, and takes its time.
    device_s: float
    # Of a whole batch, from the return of its last launch until the host has seen the GPU done: at least half of the
    # batches took so long. None: not taken.
    wait_s: float | None = None


class LaunchShare(Value, kw_only=True, frozen=True):
    """How much of one exchange is the host starting it. Seconds."""

    # From the start until the call has returned to the host: the median over samples, the mean over ranks.
    issue_s: float
    # Launches of an empty kernel directly before this point and directly after it, rank by rank; () where messages are
    # not small or there is no kernel to launch.
    before: tuple[EmptyLaunch, ...] = ()
    after: tuple[EmptyLaunch, ...] = ()


class StartView(Value, kw_only=True, frozen=True):
    """What one start of several took for a point. Seconds, medians over its samples; the mean over ranks."""

    median_s: float
    # A launch of an empty kernel beside it, by the host's clock; None: not taken.
    empty_s: float | None


class Measurement(Value, kw_only=True, frozen=True):
    """Time of one exchange of one size: centre, interval, tail, and each rank's view.

    A sample is the maximum over ranks in isolated mode, the mean over ranks in the other modes; of a foreign program it
    is what the plan's notes say.
    """

    point: Integer
    collective: str
    size_bytes: Integer
    count: Integer
    dtype: str
    op: str
    root: Integer
    in_place: bool
    pair: tuple[Integer, Integer] | None = None
    group: Integer | None = None
    # Kind of the groups that exchanged, all at once; None: all ranks did. `ranks` are those of one group.
    within: str | None = None
    ranks: Integer
    mode: Mode
    samples: Integer
    # Samples left out because a rank learned of its start too late.
    missed: Integer
    calls_per_sample: Integer
    median_s: float
    # Distribution-free confidence interval of the median; equal to the extremes when there are too few samples.
    low_s: float
    high_s: float
    confidence: float
    min_s: float
    max_s: float
    mean_s: float
    # (percentile, seconds); a percentile is there only when at least ten samples lie beyond it.
    percentiles: tuple[tuple[float, float], ...]
    busbw_Bps: float
    algbw_Bps: float
    # None in stream mode: there the calls of a sample are not timed alone.
    clock_error_s: float | None
    warmup_calls: Integer
    warmup_stable: bool
    # Lag-1 autocorrelation, and the shift of the median from the first to the second half as a share of it.
    autocorrelation: float | None
    drift: float | None
    # Samples slower than the median by more than stats.tail allows, and by how much they are slower in the median.
    slow_samples: Integer
    slow_excess_s: float | None
    wrong: WrongResult | None
    # Whether every element of every rank was checked before the time was taken.
    verified: bool
    ended: Literal["interval", "samples", "time", "stopped", "wrong"]
    # Separate moments that its samples are from; 0: there is only the first one, taken after a single call to warm up.
    turns: Integer = 1
    # Seconds that verifying it and taking its first sample took, all ranks together; None: not told.
    first_s: float | None = None
    # Share of the bytes this exchange must move that the ranks sent over TCP, by way: `lo` within a host, else the
    # local address; () when none did.
    tcp_share: tuple[tuple[str, float], ...]
    per_rank: tuple[RankView, ...]
    attribution: tuple[Attribution, ...]
    nccl: NcclPoint | None = None
    # Of points over NCCL.
    launch: LaunchShare | None = None
    # Of several starts: each, in their order; all the rest is of the one whose median is in the middle. () with one.
    starts: tuple[StartView, ...] = ()
    # File and line (from 1) of rank 0's record.
    source: str


RUN_SCHEMA = 1


class Outcome(Value, kw_only=True, frozen=True):
    """How the execution ended. Written by the launching side; the ranks' own words are in raw/."""

    ended: Literal["complete", "time", "stopped", "failed"]
    # Why, in one line, when it did not come to its end.
    cause: str | None
    culprit: Culprit | None
    exit_code: Integer | None
    wall_s: float
    counters_before: HostCounters
    counters_after: HostCounters


class CopyRate(Value, kw_only=True, frozen=True):
    """Bytes per second that all ranks together copied at once, each `size_bytes` that a neighbour had just written."""

    size_bytes: Integer
    rate_Bps: float
    kernel: Kernel


class StreamRate(Value, kw_only=True, frozen=True):
    """Bytes per second that all ranks together received over TCP on the loopback interface."""

    pattern: Literal["ring", "pairs"]
    rate_Bps: float


class Rates(Value, kw_only=True, frozen=True):
    """What was measured of the machine itself, before the exchanges."""

    copies: tuple[CopyRate, ...] = ()
    streams: tuple[StreamRate, ...] = ()


class Unreached(Value, kw_only=True, frozen=True):
    """Points that were planned and not measured, and what it would take to verify them and take a sample of each."""

    # Their numbers (model.sweep.points_of), and their names, a row of sizes by its ends.
    points: tuple[Integer, ...]
    names: tuple[str, ...]
    # Seconds beside the time limit that was given; None: nothing tells, or it was not time that ended the run.
    least_s: float | None = None
    most_s: float | None = None


class Run(Value, kw_only=True, frozen=True):
    """Everything about one run."""

    schema: Integer = RUN_SCHEMA
    plan: Plan
    # None: the run was cut off before its outcome could be written.
    outcome: Outcome | None
    ranks: tuple[Hello, ...]
    rates: Rates
    measurements: tuple[Measurement, ...]
    ceilings: tuple[Ceiling, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    # Lines of the raw files that could not be read, with file and line.
    unreadable: tuple[str, ...]
    # What starting a kernel takes on each rank's GPU, taken before NCCL had started, by the latest start.
    launches: tuple[EmptyLaunch, ...] = ()
    # The hosts as they were before anything was measured; () where there is one only.
    nodes: tuple[Node, ...] = ()
    # What the hosts said when they were visited; None: there was no need to, or nobody to ask.
    autopsy: Autopsy | None = None
    # None: every point of the plan was measured.
    unreached: Unreached | None = None
    # A training step replayed; None: there was none.
    step: ReplayedStep | None = None


def label(measurement: Measurement) -> str:
    """Return how a measurement is called in a sentence: `all_reduce 4 MiB`."""
    pair = f" {measurement.pair[0]}-{measurement.pair[1]}" if measurement.pair is not None else ""
    pair += f" of {measurement.within}" if measurement.within is not None else ""
    place = " in place" if measurement.in_place else ""
    return f"{measurement.collective}{pair}{place} {format_size(measurement.size_bytes)}"

"""What the log of a training job says: steps, the steady part of them, throughput, restarts."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding
from busbw.model.scaling import ScalingEstimate

# printed: a time that the program printed for each step; rate: work over a printed rate; stamps: moments of lines;
# clock: the elapsed time of a progress bar; mean: one number over the whole run.
TimeBasis = Literal["printed", "rate", "stamps", "clock", "mean"]
ReadOutcome = Literal["steady", "unsteady", "cannot_tell"]


class StepWork(Value, kw_only=True, frozen=True):
    """The work of one step, and on what; None: not known. A workload file or the log's own settings fill it."""

    # Tokens of a sequence, and sequences of a step over all GPUs.
    sequence_length: Integer | None = None
    global_batch: Integer | None = None
    # Instead of the two, or where only this is known.
    tokens_per_step: Integer | None = None
    gpus: Integer | None = None
    # Model FLOPs (no recomputation) of a step over all GPUs, and the peak of one GPU in FLOP/s for the data type.
    flops_per_step: float | None = None
    peak_flops: float | None = None
    # Where each of them is from: ("gpus", "--gpus"), ("sequence_length", "job.log:12").
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def tokens(self) -> int | None:
        """Tokens of a step over all GPUs."""
        if self.tokens_per_step is not None:
            return self.tokens_per_step
        if self.sequence_length is None or self.global_batch is None:
            return None
        return self.sequence_length * self.global_batch


class StepColumns(Value, kw_only=True, frozen=True):
    """Every step that was read, a place each: its number, how long it took, and the line it stands on."""

    numbers: tuple[Integer, ...]
    times_s: tuple[float, ...]
    lines: tuple[Integer, ...]


class Restart(Value, kw_only=True, frozen=True):
    """The job began again: numbers go back. `lost`: steps that were done again."""

    line: Integer
    last_step: Integer
    first_step: Integer
    lost: Integer


class SteadyWindow(Value, kw_only=True, frozen=True):
    """The last stretch of steps on one level, after warm-up and changes of level, and before a slow end."""

    first_step: Integer
    last_step: Integer
    first_line: Integer
    last_line: Integer
    steps: Integer
    # Steps of the same start before it, and the median of those; None: there are none.
    warmup_steps: Integer
    warmup_s: float | None = None
    # The median with its 95 % interval (below six steps the extremes), never narrower than the printed digits.
    step_s: ScalingEstimate
    mean_s: float
    # Half the distance from the 25th to the 75th percentile over the median.
    spread: float
    # The median of the second half over that of the first, less one; None below ten steps.
    drift: float | None = None


class LongSteps(Value, kw_only=True, frozen=True):
    """Steps of the steady window that took far longer than the rest."""

    count: Integer
    # Up to twenty of them, by number.
    numbers: tuple[Integer, ...]
    # Every so many steps, where their distance is the same; None: irregular.
    period: Integer | None = None
    longest_s: float
    # Of the time of the window, what they took beyond the median.
    lost: float


class RankSteps(Value, kw_only=True, frozen=True):
    """What one rank printed of the same steps."""

    rank: Integer
    steps: Integer
    step_s: float


class StepThroughput(Value, kw_only=True, frozen=True):
    """What the steady window comes to. None: what it needs is not known."""

    tokens_per_s: ScalingEstimate | None = None
    tokens_per_s_per_gpu: ScalingEstimate | None = None
    # Model FLOP/s utilisation as a share, and how it was computed.
    mfu: ScalingEstimate | None = None
    mfu_formula: str | None = None
    # What the program printed of itself, in FLOP/s of one GPU, and as a share of the peak that it took.
    printed_flops_per_gpu: float | None = None
    printed_mfu: float | None = None
    # Why one of them is missing.
    missing: tuple[str, ...] = ()


class NetworkShare(Value, kw_only=True, frozen=True):
    """What the plan of the job says that the network takes of a step that was measured. Shares are of that step."""

    workload: str
    platform: str
    # Communication that nothing hides, as it is measured or expected of such machines; the pipeline's bubble.
    exposed_s: float
    exposed: float
    bubble: float
    # The collective with most of it, and where it runs; None: nothing is exposed.
    largest: str | None
    largest_group: str | None
    largest_s: float | None
    # Model FLOP/s utilisation if none of it were left; None: utilisation is not known.
    mfu_without: float | None
    # Changes of the network and what a step takes then, less one: less is better.
    changes: tuple[tuple[str, float], ...]
    # Collectives of which only a bound by line rates is known, so that more may be exposed.
    bounds: tuple[str, ...] = ()


class TrainingLog(Value, kw_only=True, frozen=True):
    """One log: who wrote it, its steps, and what they come to."""

    source: str
    program: str
    basis: TimeBasis
    # How the time of a step follows from what was printed.
    basis_words: str
    # Iterations that one line is an average over.
    averaged_over: Integer = 1
    planned_steps: Integer | None = None
    columns: StepColumns
    work: StepWork
    window: SteadyWindow | None = None
    # Where only a whole run has a time: seconds of a step on average, start and pauses with it.
    mean_step_s: ScalingEstimate | None = None
    throughput: StepThroughput
    # Of a step of the window, the share that a rank waited for collectives, where the program prints it.
    exposed: ScalingEstimate | None = None
    # Where the workload and the platform were given.
    network: NetworkShare | None = None
    long_steps: LongSteps | None = None
    restarts: tuple[Restart, ...] = ()
    ranks: tuple[RankSteps, ...] = ()
    # Lines that were no step: garbled ones, and times of zero or less, with the first of their lines.
    garbled: Integer = 0
    impossible: Integer = 0
    bytes_read: Integer = 0
    lines_read: Integer = 0
    outcome: ReadOutcome
    sentence: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

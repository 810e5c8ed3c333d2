"""A step's communication replayed: what is asked for, what each rank calls, and what came of it."""

from typing import Literal

from busbw.base.value import Integer, Value

# What hides a call: all computing of the step, or that of its last backward or first forward pass.
HiddenBy = Literal["compute", "last backward", "first forward"]


class StepAsked(Value, kw_only=True, frozen=True):
    """What `busbw train run` is asked for beside where it runs; None: not said."""

    # A name, or the absolute path of a file.
    workload: str
    dtype: str | None = None
    order: str = "tp-cp-ep-dp-pp"
    # Changes to the layout, as `tp=2,ep=1`.
    layout: str | None = None
    # Sizes of messages and time of computing are divided by it.
    scale_down: Integer = 1
    # FLOP/s that a rank is taken to attain.
    rate_flops: float | None = None
    # Steps at most; None: as many as fit into the time.
    steps: Integer | None = None

    def words(self) -> tuple[str, ...]:
        """Return the options that ask for it again."""
        given = (
            ("--dtype", self.dtype),
            ("--order", self.order if self.order != StepAsked(workload="").order else None),
            ("--layout", self.layout),
            ("--scale-down", str(self.scale_down) if self.scale_down != 1 else None),
            ("--rate", f"{self.rate_flops / 1e12:g}" if self.rate_flops is not None else None),
            ("--steps", str(self.steps) if self.steps is not None else None),
        )
        return (self.workload, *(word for name, value in given if value is not None for word in (name, value)))


class ReplayedCall(Value, kw_only=True, frozen=True):
    """One kind of call of a step; the sweep of the same number says what is measured of it alone."""

    name: str
    collective: str
    group: str
    # Ranks of one group, and how many groups call at the same time.
    ranks: Integer
    groups: Integer
    # Of a rank in one step.
    calls: Integer
    phase: str
    # What may run meanwhile; None: it is waited for.
    overlaps: str | None
    hidden_by: HiddenBy | None
    # By the plan; `size_bytes` is what is called: scaled down, in whole equal parts.
    planned_bytes: Integer
    size_bytes: Integer


class StepPlan(Value, kw_only=True, frozen=True):
    """A step as every rank replays it: that of the slowest pipeline stage."""

    asked: StepAsked
    workload: str
    title: str
    dtype: str
    tp: Integer
    cp: Integer
    pp: Integer
    ep: Integer
    dp: Integer
    expert_dp: Integer
    order: str
    # Micro-batches of a step.
    accumulation: Integer
    # Tokens of a sequence, and sequences of a step over all ranks; None: planned by a busbw that did not keep them.
    sequence: Integer | None = None
    global_batch: Integer | None = None
    calls: tuple[ReplayedCall, ...]
    # Of one rank in a step: computing as it is replayed, its FLOPs before scaling, and the rate it is taken at.
    compute_s: float
    flops: float
    rate_flops: float
    rate_words: str
    # Of a micro-batch's computing.
    backward_share: float
    time_limit_s: float
    most_steps: Integer
    left_out: tuple[str, ...]


class CallResult(Value, kw_only=True, frozen=True):
    """What one kind of call took. Seconds; None: not measured."""

    name: str
    collective: str
    group: str
    ranks: Integer
    groups: Integer
    calls: Integer
    size_bytes: Integer
    # Of one call while no other collective runs: all groups of its kind at once.
    alone_s: float | None
    alone_busbw_Bps: float | None
    # Of one call in the step, from its start until it was done, waits for other ranks included.
    in_step_s: float
    in_step_busbw_Bps: float
    # Of all calls of a step: until done, and what the rank, or the GPU's computing, waited for.
    busy_s: float
    exposed_s: float
    # Whether every rank checked it before the first step, in the buffers of the step, and found every element right.
    verified: bool
    # The first rank on which it was wrong; None: none.
    wrong_rank: Integer | None = None


class ReplayedStep(Value, kw_only=True, frozen=True):
    """A replayed step: medians over steps of the slowest rank's time, and of the mean over ranks of all else."""

    steps: Integer
    step_s: float
    # A distribution-free interval of the median; the extremes where there are too few steps.
    low_s: float
    high_s: float
    # None: too few steps for one.
    confidence: float | None
    compute_s: float
    # Of communication that nothing hid.
    exposed_s: float
    # Neither: starting calls, reading clocks, waiting for the slowest rank.
    rest_s: float
    # One matrix product alone, the mean over GPUs; None on CPUs, which wait by the clock.
    product_s: float | None
    calls: tuple[CallResult, ...]

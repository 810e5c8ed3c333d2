"""A comparison: what it will start, what it came to, and the search among several differences."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding
from busbw.model.record import NcclChoice
from busbw.model.settings import RecommendedLayer

# 2: says how the launches were ordered. What schema 1 claims does not hold: see busbw.store.comparisons.
COMPARISON_SCHEMA = 2

# How the launches of a comparison came about, which decides what can be claimed. random_order: every block has each
# side once, in a random order of its own; mirrored_pairs: every second block was the mirror of the one before, so that
# two blocks are one independent value; descriptive: the sides were not interleaved, and nothing is claimed.
Design = Literal["random_order", "mirrored_pairs", "descriptive"]
# faster, slower: the side beside the first one is, by more than the least difference that counts; same: its interval
# lies within that difference; none: neither is shown; cannot_tell: nothing can be claimed.
Claim = Literal["faster", "slower", "same", "none", "cannot_tell"]
# By message size, as the write-ups on pinning have it: latency of small ones, bandwidth of the others.
Band = Literal["small", "medium", "large"]
# mixed: faster at some points and slower at others; wrong: a side gave wrong results.
ComparisonOutcome = Literal["faster", "slower", "mixed", "same", "none", "wrong", "cannot_tell"]


class RankPlacement(Value, kw_only=True, frozen=True):
    """Where one rank ran, as it found itself after the launcher had bound it. None: not told."""

    rank: Integer
    host: str
    cpus: tuple[Integer, ...]
    # NUMA nodes of these CPUs, and the one that its GPU is beside.
    numa: tuple[Integer, ...] | None = None
    gpu_numa: Integer | None = None

    @property
    def is_beside(self) -> bool | None:
        """Whether all of its CPUs are of its GPU's NUMA node; None: not known, or it has no GPU."""
        if self.numa is None or self.gpu_numa is None:
            return None
        return self.numa == (self.gpu_numa,)


class Side(Value, kw_only=True, frozen=True):
    """One thing that is compared; the first is what the others are held against."""

    # "A" for the first.
    letter: str
    # Settings as they were asked for ("default", "NCCL_PROTO=LL"), else the name of the run or import.
    name: str
    kind: Literal["settings", "run", "import"]
    # The folders of its launches that were compared, in the order of their starts; of an import, the tables in it.
    launches: tuple[str, ...]
    # Of its first launch that tells, and whether a later one had others; () where none tells.
    rank_placements: tuple[RankPlacement, ...] = ()
    placements_vary: bool = False
    # What is recommended and was applied, where that was asked for.
    recommended: RecommendedLayer | None = None


class SpeedEstimate(Value, kw_only=True, frozen=True):
    """How much faster than the first side another one is.

    A ratio is the first side's time over the other's: 1.03 is 3 % faster. Of sides that were not interleaved it
    describes what was measured: no confidence, no block, no p-value and no claim.
    """

    # Median over the blocks, or over mirrored pairs of them. Not interleaved: the ratio of the two sides' medians.
    ratio: float
    # Interval of that median that assumes nothing about the distribution; None where there are too few blocks. Not
    # interleaved: what 95 % of the ratios of a launch of each side lie within; None where each has one launch.
    low: float | None = None
    high: float | None = None
    # How often such an interval covers the true ratio; None where it is the spread of what was measured.
    confidence: float | None = 0.95
    # The ratio of each block, in the order of time.
    blocks: tuple[float, ...]
    # Of an exact signed-rank test against the least difference that counts, adjusted by Holm over all points, or over
    # all bands, of the comparison; None where there are too few blocks.
    p_value: float | None = None
    claim: Claim
    # The smallest difference, as a share, that these blocks would have shown; None where none would.
    detectable: float | None = None


class ComparedPoint(Value, kw_only=True, frozen=True):
    """One size of one collective on two sides. Times are medians over launches, of each launch's median."""

    collective: str
    size_bytes: Integer
    dtype: str
    op: str
    root: Integer
    in_place: bool
    pair: tuple[Integer, Integer] | None = None
    group: Integer | None = None
    ranks: Integer
    band: Band
    first_s: float
    other_s: float
    # None: the tool prints times only, and not over how many ranks.
    first_busbw_Bps: float | None
    other_busbw_Bps: float | None
    # What NCCL says it used on each side, in the first launch that tells; () where it does not say.
    first_choices: tuple[NcclChoice, ...] = ()
    other_choices: tuple[NcclChoice, ...] = ()
    estimate: SpeedEstimate


class ComparedBand(Value, kw_only=True, frozen=True):
    """The sizes of one band of one collective taken together, as the write-ups show them.

    Of each launch the geometric mean over the sizes of the band; then as for a single size.
    """

    collective: str
    in_place: bool
    band: Band
    # What `first` and `other` are: "latency" in seconds, "bandwidth" as bus bandwidth in bytes per second. Latency
    # of small messages, and wherever no bus bandwidth is known.
    measure: Literal["latency", "bandwidth"]
    sizes_bytes: tuple[Integer, ...]
    first: float
    other: float
    # protocol: medium and large are told apart by what NCCL says the first side used; size: by size alone.
    by: Literal["protocol", "size"] = "size"
    # What NCCL says it used at any of the sizes; () where it does not say.
    first_choices: tuple[NcclChoice, ...] = ()
    other_choices: tuple[NcclChoice, ...] = ()
    estimate: SpeedEstimate


class BandSummary(Value, kw_only=True, frozen=True):
    """One band over all collectives: at which of them the other side is shown to differ, and at which it is not."""

    band: Band
    outcome: ComparisonOutcome
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()
    # Neither is shown, and how large a difference their intervals leave open, as a share of the slower side's speed;
    # None: they tell nothing.
    unshown: tuple[str, ...] = ()
    within: float | None = None
    sentence: str


class Versus(Value, kw_only=True, frozen=True):
    """One side held against the first."""

    # Place in Comparison.sides, from 1.
    other: Integer
    points: tuple[ComparedPoint, ...]
    bands: tuple[ComparedBand, ...]
    # What is claimed of each band, over its collectives; () where nothing is.
    summaries: tuple[BandSummary, ...] = ()
    # Over all points, of any size and collective; None where it was not asked for.
    geometric_mean: SpeedEstimate | None = None
    # Points that only one of the two sides has, as `all_reduce 4 MiB (only A)`.
    unmatched: tuple[str, ...] = ()


class ComparisonVerdict(Value, kw_only=True, frozen=True):
    """The answer in one sentence, and the codes of the findings it rests on."""

    outcome: ComparisonOutcome
    sentence: str
    because: tuple[str, ...] = ()


class Comparison(Value, kw_only=True, frozen=True):
    """Everything about one comparison."""

    schema: Integer = COMPARISON_SCHEMA
    busbw_version: str
    # The name of the measured comparison; None where stored results were compared.
    comparison_id: str | None = None
    design: Design
    sides: tuple[Side, ...]
    versus: tuple[Versus, ...]
    # Rate of false claims, over all points together, that claims are held to; None where nothing is claimed.
    false_claims: float | None
    # The least difference that counts, as a share.
    least_difference: float
    # Blocks that hold a launch of each side, and how many were planned; both 0 where stored results were compared.
    blocks: Integer
    blocks_planned: Integer = 0
    # What was unlike beside what was to be compared, and other things that a reader should know.
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    # Commands that would tell more, with what they tell.
    next_steps: tuple[str, ...] = ()
    verdict: ComparisonVerdict


COMPARISON_PLAN_SCHEMA = 2


class PlannedSide(Value, kw_only=True, frozen=True):
    """One of the settings that are measured in turn."""

    letter: str
    # As it was asked for: "default", "NCCL_PROTO=LL --register 2".
    name: str
    # Variables that its launches have and others need not, and those that they must not have.
    environment: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    # Options of `busbw run` that this side alone has.
    options: tuple[str, ...] = ()


class PlannedLaunch(Value, kw_only=True, frozen=True):
    """One start of one side: a run directory of its own within the comparison's."""

    folder: str
    # Place in the sides.
    side: Integer
    block: Integer


class ComparisonPlan(Value, kw_only=True, frozen=True):
    """One comparison, launch for launch. Each launch has its own plan in its own folder."""

    schema: Integer = COMPARISON_PLAN_SCHEMA
    busbw_version: str
    comparison_id: str
    created: str
    # What the order of the launches was drawn with.
    seed: Integer
    sides: tuple[PlannedSide, ...]
    # In the order of their starts. A block has each side once.
    launches: tuple[PlannedLaunch, ...]
    # How that order was drawn. A plan without it is of schema 1, which drew mirrored pairs.
    design: Literal["random_order", "mirrored_pairs"] = "mirrored_pairs"
    # No launch is started that would end after this long, and each measures no longer than its own limit.
    budget_s: float
    launch_limit_s: float
    anyway: bool = False
    geometric_mean: bool = False
    notes: tuple[str, ...] = ()


BISECTION_PLAN_SCHEMA = 1
# 2: answers from launches whose order was drawn block by block, or in pairs that count once.
BISECTION_SCHEMA = 2

# shows: the difference is there; absent: what is left of it is less than half; unclear: the launches do not tell.
Answer = Literal["shows", "absent", "unclear"]


class BisectionPlan(Value, kw_only=True, frozen=True):
    """What is searched: the two ends, and what differs between them."""

    schema: Integer = BISECTION_PLAN_SCHEMA
    busbw_version: str
    # The first and the last side, as they were asked for.
    good: str
    bad: str
    # In the order they were given: differences of settings, or sides one after the other.
    items: tuple[str, ...]
    in_order: bool
    collectives: tuple[str, ...]
    blocks: Integer
    seed: Integer


class BisectionStep(Value, kw_only=True, frozen=True):
    """One question: whether the good side, with these items as the bad one has them, differs from the good side."""

    # The comparison's folder within the bisection's.
    folder: str
    items: tuple[Integer, ...]
    estimate: SpeedEstimate
    answer: Answer


class Cause(Value, kw_only=True, frozen=True):
    """Items that make the difference: one by itself, or several that do so only together."""

    items: tuple[Integer, ...]


class Bisection(Value, kw_only=True, frozen=True):
    """Everything about one bisection."""

    schema: Integer = BISECTION_SCHEMA
    plan: BisectionPlan
    # Where the difference was looked for: `all_reduce 4 MiB`; None where there is none.
    point: str | None
    # Good against bad at that point.
    whole: SpeedEstimate | None
    steps: tuple[BisectionStep, ...]
    causes: tuple[Cause, ...]
    outcome: Literal["found", "none", "cannot_tell"]
    sentence: str

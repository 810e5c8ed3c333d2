"""How a result changes with the size of the machine: collectives under their limit, applications against a base.

Shares are of one: 0.97 is 97 %. An efficiency is a share of the limit for collectives (`of_limit`), and a share of what
the base would give for applications (`efficiency`).
"""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding
from busbw.model.predict.prediction import PredictedCall

SCALING_SCHEMA = 5

# What the axis counts.
Axis = Literal["nodes", "gpus", "ranks", "cores"]
# One of them and several, in a sentence.
AXIS_WORDS: dict[Axis, tuple[str, str]] = {
    "nodes": ("node", "nodes"),
    "gpus": ("GPU", "GPUs"),
    "ranks": ("rank", "ranks"),
    "cores": ("core", "cores"),
}
# collective: bus bandwidth of one exchange; strong: the same work on more of the machine; weak: work that grows too.
Kind = Literal["collective", "strong", "weak"]
# What an interval is made of: the extremes of several launches (the interval of their median from six on); the interval
# of the median within one launch; the digits that were printed, so that 18.4 is anything from 18.35 to 18.45.
Basis = Literal["launches", "samples", "digits"]
TrendAnswer = Literal["falls", "rises", "level", "cannot_tell"]
BendAnswer = Literal["bends", "straight", "cannot_tell"]
# How one line lies against another over the sizes that both have; none_shown: the interval reaches both sides of zero.
DifferenceAnswer = Literal["below", "above", "none_shown", "cannot_tell"]
# level: no fall is shown where one could have been seen; measured: numbers and differences, without a rating.
ScalingOutcome = Literal["level", "small_fall", "slower", "above_limit", "measured", "cannot_tell"]
# fits: the law holds as far as can be seen; grows, shrinks: the share does with the machine, and the law does not hold.
SerialAnswer = Literal["fits", "grows", "shrinks", "cannot_tell"]


class ScalingEstimate(Value, kw_only=True, frozen=True):
    """A value and the interval around it; all None but `value`: nothing is known of its uncertainty."""

    value: float
    low: float | None = None
    high: float | None = None
    basis: Basis | None = None


class Observation(Value, kw_only=True, frozen=True):
    """One result on one size of the machine, as it was read. None: not told."""

    # The run, or the file and line.
    source: str
    # What must be the same on one line, by name: ("collective", "all_reduce"), ("type", "float32").
    conditions: tuple[tuple[str, str], ...] = ()
    # What may tell lines apart, by name: ("algorithm", "ring"), ("tag", "sharp"), ("series", "BF16").
    settings: tuple[tuple[str, str], ...] = ()
    nodes: Integer | None = None
    gpus: Integer | None = None
    ranks: Integer | None = None
    cores: Integer | None = None
    size_bytes: Integer | None = None
    time_s: ScalingEstimate | None = None
    # Bytes a second of a collective; else work a time, in `rate_unit`: "tokens/s", "ns/day".
    busbw_Bps: ScalingEstimate | None = None
    rate: ScalingEstimate | None = None
    rate_unit: str | None = None
    # The id of the platform that a run or an import was stored with, or that a result was published of.
    platform: str | None = None


class ScalingPoint(Value, kw_only=True, frozen=True):
    """One size of the machine: what was measured there, and what it is held against. None: not known, or no base."""

    # Its place on the axis, and the other counts where they are known.
    at: Integer
    nodes: Integer | None = None
    ranks: Integer | None = None
    time_s: ScalingEstimate | None = None
    busbw_Bps: ScalingEstimate | None = None
    # Work a time, in the view's `rate_unit`.
    rate: ScalingEstimate | None = None
    # The ceiling of bus bandwidth here by line rates, by which algorithm, and what part of the machine sets it.
    limit_Bps: float | None = None
    limit_words: str | None = None
    of_limit: ScalingEstimate | None = None
    # Against the base: times as fast, and that over times as large (weak: work a second and worker).
    speedup: ScalingEstimate | None = None
    efficiency: ScalingEstimate | None = None
    # Karp and Flatt: the share of the base's time that did not shrink, were that all that is wrong.
    serial_share: float | None = None
    # Launches, or rows, behind it, and where they are.
    observations: Integer = 1
    sources: tuple[str, ...] = ()


class ScalingTrend(Value, kw_only=True, frozen=True):
    """What doubling the machine changes, as a share: a straight line through logarithms, and its interval."""

    answer: TrendAnswer
    per_doubling: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    points: Integer
    words: str


class Bend(Value, kw_only=True, frozen=True):
    """From where on a curve stays below the level it had before."""

    answer: BendAnswer
    # The first place below the level, the last one on it.
    at: Integer | None = None
    after: Integer | None = None
    # By how much, as a share of the level: the mildest and the largest drop from `at` on.
    drop: float | None = None
    largest_drop: float | None = None
    # How far `at` lies below `after`, and from the least to the greatest value before, as shares.
    fall: float | None = None
    scatter: float | None = None
    # None in what schema 1 wrote.
    points: Integer | None = None
    words: str


class SerialPart(Value, kw_only=True, frozen=True):
    """Amdahl's law fitted to strong scaling: the share of the base's time that more of the machine does not shorten."""

    answer: SerialAnswer
    share: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    points: Integer
    words: str


class Extrapolation(Value, kw_only=True, frozen=True):
    """What the law that was fitted gives where nobody measured; `low` and `high` are where one more run would fall."""

    at: Integer
    # None: it cannot be told, for what `words` say.
    time_s: ScalingEstimate | None = None
    # Instead of a time where rates were measured.
    rate: ScalingEstimate | None = None
    speedup: ScalingEstimate | None = None
    confidence: float = 0.95
    words: str


class PairedPoint(Value, kw_only=True, frozen=True):
    """One size of the machine that two lines share: how far one lies above the other (below: negative), as a share.

    The interval is that of the digits, samples or launches of both; None: not known.
    """

    at: Integer
    change: ScalingEstimate
    observations: Integer
    reference_observations: Integer


class LineDifference(Value, kw_only=True, frozen=True):
    """How one line lies against another, matched by the size of the machine."""

    line: str
    reference: str
    # What is compared, larger is better: "tokens/s", "bus bandwidth", "speed" (one over the time).
    quantity: str
    answer: DifferenceAnswer
    # The geometric mean over the points as a share above (below: negative) the reference; None with fewer than three.
    change: ScalingEstimate | None = None
    confidence: float = 0.95
    points: tuple[PairedPoint, ...]
    # How the difference changes with the size of the machine.
    trend: ScalingTrend | None = None
    # Sizes that only one of the two has, or where their work differs, each with the reason.
    unmatched: tuple[tuple[Integer, str], ...] = ()
    words: str
    # What the interval is made of, and what it does not hold.
    meaning: str


class ScalingSeries(Value, kw_only=True, frozen=True):
    """One line of the figure, its points by size of the machine."""

    label: str
    settings: tuple[tuple[str, str], ...] = ()
    points: tuple[ScalingPoint, ...]
    # Points that trend and bend leave out, each with the reason.
    left_out: tuple[tuple[Integer, str], ...] = ()
    # What trend and bend are of: the time of messages so small that latency is what they show.
    judged_by: Literal["busbw", "time", "efficiency"] = "busbw"
    base: Integer | None = None
    trend: ScalingTrend | None = None
    bend: Bend | None = None
    serial: SerialPart | None = None
    beyond: tuple[Extrapolation, ...] = ()


class StepCheck(Value, kw_only=True, frozen=True):
    """A step time and a throughput that were printed side by side: whether one follows from the other."""

    line: str
    at: Integer
    # Tokens of a step, and that over the printed time.
    tokens: Integer
    computed_per_s: float
    printed_per_s: float
    # follows: to the last digit of the throughput; apart: by more than the digits of both.
    answer: Literal["follows", "within_digits", "apart"]
    # What both together say of the time of a step.
    step_s: ScalingEstimate
    words: str


class ScalingLoss(Value, kw_only=True, frozen=True):
    """What a job of training loses against the base of its line: shares of what a token costs there in GPU time."""

    line: str
    at: Integer
    base: Integer
    # communication (that nothing hides) and rest add up to more.
    more: float
    communication: float
    rest: float
    # What the communication is made of, where the jobs say it by collective: the largest first.
    parts: tuple[tuple[str, float], ...] = ()
    words: str


class PredictedPoint(Value, kw_only=True, frozen=True):
    """What is predicted where a line has a point: never measured, and no verdict or finding rests on it."""

    at: Integer
    call: PredictedCall | None = None
    # Why this algorithm: as it ran, as asked for, or as the one that NCCL would take.
    chosen_by: str = ""
    # Whether the measured bus bandwidth lies in the 90 % interval; None: nothing is predicted.
    is_inside: bool | None = None
    cannot: str | None = None


class LinePrediction(Value, kw_only=True, frozen=True):
    """What is predicted at the points of one line, by its label. `platform`: None, it is not known."""

    line: str
    platform: str | None = None
    points: tuple[PredictedPoint, ...]


class Scaling(Value, kw_only=True, frozen=True):
    """One figure: lines that may stand beside each other."""

    kind: Kind
    title: str
    axis: Axis
    size_bytes: Integer | None = None
    # Of `ScalingPoint.rate`: "tokens/s", "ns/day".
    rate_unit: str | None = None
    # What all points share.
    conditions: tuple[tuple[str, str], ...] = ()
    platform: str | None = None
    series: tuple[ScalingSeries, ...]
    differences: tuple[LineDifference, ...] = ()
    # What a reader should know of how it came about.
    notes: tuple[str, ...] = ()
    # Of training jobs: printed throughputs held against printed steps. () in what schema 2 wrote.
    checks: tuple[StepCheck, ...] = ()
    # Where jobs say how much of a step they wait for communication. () in what schema 3 wrote.
    losses: tuple[ScalingLoss, ...] = ()
    # Where it was asked for, a line each, apart from what was measured. () in what schema 4 wrote.
    predictions: tuple[LinePrediction, ...] = ()


class ScalingVerdict(Value, kw_only=True, frozen=True):
    """The answer in one sentence, and the codes of the findings it rests on."""

    outcome: ScalingOutcome
    sentence: str
    because: tuple[str, ...] = ()


class ScalingReport(Value, kw_only=True, frozen=True):
    """What `busbw scaling` answers: a figure for each collective and size, or one for an application."""

    schema: Integer = SCALING_SCHEMA
    # None in what schema 1 wrote.
    verdict: ScalingVerdict | None = None
    views: tuple[Scaling, ...]
    findings: tuple[Finding, ...] = ()

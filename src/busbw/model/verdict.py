"""Measured sizes with the explanation of each, and the answer they give together."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding, Verdict
from busbw.model.gates import GateAnswers

# What decides a size's time. None elsewhere in the model: it cannot be told.
Regime = Literal["latency", "knee", "bandwidth"]


class FittedParameter(Value, kw_only=True, frozen=True):
    """A fitted parameter and its interval, in the unit that its field names."""

    value: float
    low: float
    high: float
    confidence: float


class FittedLine(Value, kw_only=True, frozen=True):
    """T = a + S/B over some neighbouring sizes, fitted to relative deviations."""

    from_bytes: Integer
    to_bytes: Integer
    points: Integer
    # Of all these sizes, where it is known and one.
    algorithm: str | None = None
    protocol: str | None = None
    latency_s: FittedParameter
    # Of S, that is algbw. None: these sizes do not show one, their time does not grow with the size.
    algbw_Bps: FittedParameter | None
    # a times B: the size whose time is half latency.
    half_bytes: FittedParameter | None
    # Typical deviation of a point from the line, as a share.
    spread: float


class Hill(Value, kw_only=True, frozen=True):
    """busbw(S) = B / (1 + (H/S)^p): B is reached by very large sizes, half of it at H."""

    points: Integer
    busbw_Bps: FittedParameter
    half_bytes: FittedParameter
    steepness: FittedParameter
    spread: float


class SweepCurve(Value, kw_only=True, frozen=True):
    """Both forms over one sweep. None: it cannot be told, for the reason in `missing`."""

    whole: FittedLine | None = None
    # One for each run of sizes that used the same algorithm and protocol, where that is known.
    segments: tuple[FittedLine, ...] = ()
    hill: Hill | None = None
    # Between these sizes neither latency nor bandwidth alone decides. None: no such border within the sweep.
    latency_to_bytes: Integer | None = None
    bandwidth_from_bytes: Integer | None = None
    missing: tuple[str, ...] = ()


StepName = Literal["wire", "algorithm", "protocol", "seen", "latency", "unexplained"]
# physical: arithmetic on line rates, never to be passed; seen: the same with the part of such a rate that somebody
# measured; model: NCCL's own constants, or what `busbw predict` says; here: rates that busbw measured of this machine;
# the others are what somebody publishes, by the kinds of `Published`.
Basis = Literal["physical", "seen", "model", "here", "measured", "stated", "reference", "threshold"]


class BudgetStep(Value, kw_only=True, frozen=True):
    """One step down (or, for an algorithm that moves less than busbw counts, up)."""

    name: StepName
    title: str
    # What is left after this step, as bus bandwidth; of the last step what was measured.
    busbw_Bps: float
    # Against the step before; 0 for the first.
    change_Bps: float
    words: str
    source: tuple[str, ...] = ()


class Condition(Value, kw_only=True, frozen=True):
    """One thing an expectation holds for, and what is the case here."""

    name: str
    asked: str
    # None: not known here, or not said.
    here: str | None
    outcome: Literal["matches", "differs", "unknown"]


class Expected(Value, kw_only=True, frozen=True):
    """One expectation, whether it applies, and why not where it does not."""

    title: str
    basis: Basis
    # One of the two: what is expected of large messages, or of small ones.
    busbw_Bps: float | None = None
    time_s: float | None = None
    # From here on (for a time: up to here) a result meets it.
    least_Bps: float | None = None
    most_s: float | None = None
    # yes: every condition that decides matches; if: none differs, some are not known; no: one differs.
    applies: Literal["yes", "if", "no"]
    conditions: tuple[Condition, ...] = ()
    # What is wrong with the figure itself: out of reach, an average over sizes.
    doubt: str | None = None
    source: tuple[str, ...] = ()


class SizeExplanation(Value, kw_only=True, frozen=True):
    """One measured size: what was reached, what could be, and what lies between."""

    # Number of the measurement in its run, or line of the file it was imported from.
    point: Integer | None = None
    line: Integer | None = None
    size_bytes: Integer
    time_s: float
    # Interval of the time; None: the tool gives one number.
    low_s: float | None = None
    high_s: float | None = None
    busbw_Bps: float
    algbw_Bps: float
    algorithm: str | None = None
    protocol: str | None = None
    # Who says so: NCCL's own word, a setting, physics (the others are too slow for what was measured), or the reader.
    algorithm_from: Literal["nccl", "setting", "physics", "only", "asked"] | None = None
    # Algorithms that are possible here, where one is not known.
    candidates: tuple[str, ...] = ()
    regime: Regime | None = None
    # The physical ceiling of the algorithm and way that were used; of several candidates the highest.
    ceiling_Bps: float | None = None
    ceiling_words: str | None = None
    limited_by: str | None = None
    # From the least that still meets an expectation that applies to the most that is expected. None: none applies.
    band_low_Bps: float | None = None
    band_high_Bps: float | None = None
    band_time_s: float | None = None
    expected: tuple[Expected, ...] = ()
    budget: tuple[BudgetStep, ...] = ()
    verdict: Verdict
    next_step: str | None = None


EXPLAINED_SCHEMA = 1


class SeriesExplanation(Value, kw_only=True, frozen=True):
    """One collective over its sizes: one sweep of a run, or one table of an import."""

    title: str
    collective: str
    dtype: str | None = None
    op: str | None = None
    in_place: bool | None = None
    ranks: Integer
    # Nodes and GPUs of each. None: not known.
    nodes: Integer | None = None
    gpus_per_node: Integer | None = None
    # "nccl" or "mpi"; what was counted as time, in words.
    library: str | None = None
    statistic: str | None = None
    # Of an import the number of its table.
    table: Integer | None = None
    # Settings that decide which expectations apply, as far as they are known: (NVLS, off), (network, TCP).
    settings: tuple[tuple[str, str], ...] = ()
    curve: SweepCurve
    sizes: tuple[SizeExplanation, ...]
    verdict: Verdict
    next_step: str | None = None


class ExplainedVerdict(Value, kw_only=True, frozen=True):
    """Everything that was judged at once."""

    schema: Integer = EXPLAINED_SCHEMA
    # What was judged: a run's name, the names of files.
    subject: str
    # The machine it was held against, and where its rates come from; None and () where nothing is known of it.
    machine: str | None = None
    grounds: tuple[str, ...] = ()
    series: tuple[SeriesExplanation, ...] = ()
    # What was seen of single GPUs or pairs, of the whole, and of published figures that cannot be right.
    findings: tuple[Finding, ...] = ()
    # Sizes, tables and readings that were not judged, with the reason.
    left_out: tuple[str, ...] = ()
    # What is published of other ways to do the same, faster; nothing is judged by it.
    gains: tuple[str, ...] = ()
    verdict: Verdict
    next_steps: tuple[str, ...] = ()
    # What gates came to that were given; None: there were none.
    gates: GateAnswers | None = None

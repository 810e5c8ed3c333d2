"""Where the bandwidth of one measured size went: from the wire's rate down to what was measured."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.curve import Regime
from busbw.model.finding import Verdict

StepName = Literal["wire", "algorithm", "protocol", "seen", "latency", "unexplained"]
# physical: arithmetic on line rates, never to be passed; seen: the same with the part of such a rate that somebody
# measured; model: NCCL's own constants; here: rates that busbw measured of this machine; the others are what somebody
# publishes, by the kinds of `Published`.
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

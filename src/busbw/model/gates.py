"""Gates: bounds that measured points must meet, and what each of them came to."""

from typing import Annotated, Literal

from msgspec import Meta

from busbw.base.value import Integer, Value

# at_least: a bandwidth; at_most: a time; within: no worse than a baseline by more than so many percent.
Requirement = Literal["at_least", "at_most", "within"]
# What is held against the bound where that is not the bus bandwidth, or the median of the times. slowest: the longest
# time of all.
Measure = Literal["algbw", "p95", "p99", "slowest"]
Ranks = Annotated[int, Meta(ge=1, le=999_999)]
GateOutcome = Literal["pass", "fail", "cannot_tell"]


class Gate(Value, kw_only=True, frozen=True):
    """One bound, and the points that it is for. None: whatever was measured."""

    requirement: Requirement
    # As written: 380 of "GB/s", 2 of "us", 5 of "%".
    number: float
    unit: str
    collective: str | None = None
    # Both included; equal where a single size is meant.
    from_bytes: Integer | None = None
    to_bytes: Integer | None = None
    dtype: str | None = None
    op: str | None = None
    in_place: bool | None = None
    ranks: Ranks | None = None
    measure: Measure | None = None
    # A result that nobody checked does not pass.
    checked: bool = False


class GatePoint(Value, kw_only=True, frozen=True):
    """One point held against a bound."""

    collective: str
    # Size, data type, operation, placement, ranks and the like, in words.
    name: str
    size_bytes: Integer | None
    ranks: Integer | None
    # What is compared and with what, both in `unit`; None where it was not measured, or no bound could be had.
    value: float | None
    bound: float | None
    unit: Literal["B/s", "s"]
    # The 95 % interval of the value; None: one number was compared.
    low: float | None = None
    high: float | None = None
    # Of a baseline's point.
    baseline: float | None = None
    # What `value` is: "median", or as the tool says.
    statistic: str
    # Whether the result was checked for wrong elements.
    checked: bool
    # The file and line it was read from.
    read_from: str | None = None
    outcome: GateOutcome
    # Why, unless the numbers say it.
    why: str | None = None


class GateAnswer(Value, kw_only=True, frozen=True):
    """What one gate came to."""

    gate: Gate
    # The gate as it is written on the command line, `within` before a percentage.
    text: str
    outcome: GateOutcome
    sentence: str
    points: tuple[GatePoint, ...]


class Baseline(Value, kw_only=True, frozen=True):
    """What gates with a percentage were held against."""

    name: str
    # In what it was measured otherwise than the result, and what else to know of it.
    notes: tuple[str, ...] = ()


class GateAnswers(Value, kw_only=True, frozen=True):
    """What all gates came to: fail if any fails, else cannot tell if any cannot be told, else pass."""

    outcome: GateOutcome
    sentence: str
    answers: tuple[GateAnswer, ...]
    baseline: Baseline | None = None
    notes: tuple[str, ...] = ()

"""Measured points as flat rows, and the bounds that they must meet."""

from collections.abc import Hashable
from typing import Annotated, Literal

from msgspec import Meta

from busbw.base.units import format_size
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


# `ended` of a point that was planned and never measured.
MISSING = "missing"


class PointRow(Value, kw_only=True, frozen=True):
    """One point of one run, or one row of an imported table. None: not measured, not told, or void.

    A point whose result was wrong has no time and no rate in any field.
    """

    run_id: str
    kind: Literal["run", "import"]
    created: str
    busbw_version: str
    tag: str | None
    # The verdict on the whole run; None for imports, which busbw does not judge.
    verdict: str | None
    # Names separated by commas; "" when the tool does not say.
    hosts: str
    # What measured: a backend of busbw, or the tool an import comes from.
    backend: str
    libraries: str
    # The file and line it was read from.
    read_from: str | None
    table: Integer
    # How many rows before it are of the same point: repetitions of a sweep.
    repeat: Integer = 0
    collective: str
    size_bytes: Integer | None
    count: Integer | None
    dtype: str | None
    # None: the collective does not reduce, has no root.
    op: str | None
    root: Integer | None
    in_place: bool | None
    ranks: Integer | None
    # The two ends where only they exchange: ranks, or what an imported tool names them.
    source: str | None = None
    target: str | None = None
    # Ranks of one node, or of a group that stands for it, in exchanges of two levels.
    group: Integer | None = None
    mode: str | None = None
    samples: Integer | None = None
    calls_per_sample: Integer | None = None
    warmup_calls: Integer | None = None
    # What `time_s` is, and the rates are computed from: "median" for runs, else what the tool says.
    statistic: str
    time_s: float | None = None
    median_s: float | None = None
    # The interval of the median, and its confidence.
    low_s: float | None = None
    high_s: float | None = None
    confidence: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    algbw_Bps: float | None = None
    busbw_Bps: float | None = None
    # As the imported tool counts it.
    bandwidth_Bps: float | None = None
    messages_per_s: float | None = None
    # What NCCL says it used, several separated by commas; None: it does not say.
    algorithm: str | None = None
    protocol: str | None = None
    # Wrong elements; None: not verified, or not measured.
    wrong: Integer | None
    verified: bool
    # What ended the sampling; "missing" for a point that was not measured; None when the tool does not say.
    ended: str | None


def is_wrong(row: PointRow) -> bool:
    """Whether the result was checked and wrong."""
    return row.wrong is not None and row.wrong > 0


def is_missing(row: PointRow) -> bool:
    """Whether the point was planned and not measured."""
    return row.ended == MISSING


def same_point(row: PointRow) -> tuple[Hashable, ...]:
    """Return what two rows of the same point have in common, on whatever hosts."""
    return (
        row.backend,
        row.statistic,
        row.collective,
        row.size_bytes,
        row.dtype,
        row.op,
        row.root,
        row.in_place,
        row.ranks,
        row.mode,
        row.source,
        row.target,
        row.group,
    )


def point_name(row: PointRow) -> str:
    """Return what tells a point from the others of its collective: `4 MiB, float32, sum, out of place, 8 ranks`."""
    ends = f"{row.source} to {row.target}" if row.source is not None else ""
    places = {None: "", True: "in place", False: "out of place"}
    parts = (
        format_size(row.size_bytes) if row.size_bytes is not None else "no size",
        row.dtype or "",
        row.op or "",
        f"root {row.root}" if row.root is not None else "",
        places[row.in_place],
        f"{row.ranks} ranks" if row.ranks is not None else "",
        ends,
        f"group {row.group}" if row.group is not None else "",
        f"repeat {row.repeat}" if row.repeat else "",
    )
    return ", ".join(part for part in parts if part)

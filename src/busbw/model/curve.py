"""What a sweep over sizes looks like: a latency, a bandwidth, and the knee between them, with intervals."""

from typing import Literal

from busbw.base.value import Integer, Value

# What decides a size's time. None elsewhere in the model: it cannot be told.
Regime = Literal["latency", "knee", "bandwidth"]


class Estimate(Value, kw_only=True, frozen=True):
    """A fitted parameter and its interval, in the unit that its field names."""

    value: float
    low: float
    high: float
    confidence: float


class Line(Value, kw_only=True, frozen=True):
    """T = a + S/B over some neighbouring sizes, fitted to relative deviations."""

    from_bytes: Integer
    to_bytes: Integer
    points: Integer
    # Of all these sizes, where it is known and one.
    algorithm: str | None = None
    protocol: str | None = None
    latency_s: Estimate
    # Of S, that is algbw. None: these sizes do not show one, their time does not grow with the size.
    algbw_Bps: Estimate | None
    # a times B: the size whose time is half latency.
    half_bytes: Estimate | None
    # Typical deviation of a point from the line, as a share.
    spread: float


class Hill(Value, kw_only=True, frozen=True):
    """busbw(S) = B / (1 + (H/S)^p): B is reached by very large sizes, half of it at H."""

    points: Integer
    busbw_Bps: Estimate
    half_bytes: Estimate
    steepness: Estimate
    spread: float


class SweepCurve(Value, kw_only=True, frozen=True):
    """Both forms over one sweep. None: it cannot be told, for the reason in `missing`."""

    whole: Line | None = None
    # One for each run of sizes that used the same algorithm and protocol, where that is known.
    segments: tuple[Line, ...] = ()
    hill: Hill | None = None
    # Between these sizes neither latency nor bandwidth alone decides. None: no such border within the sweep.
    latency_to_bytes: Integer | None = None
    bandwidth_from_bytes: Integer | None = None
    missing: tuple[str, ...] = ()

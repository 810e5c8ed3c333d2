"""A run: the plan, what came of it, and what was concluded. The content of run.json."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Ceiling, Finding, Verdict
from busbw.model.machine import HostCounters
from busbw.model.measurement import EmptyLaunch, Measurement
from busbw.model.plan import Plan
from busbw.model.record import Hello, Kernel, Node
from busbw.model.visit import Autopsy, Culprit

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

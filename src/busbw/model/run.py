"""A run: the plan, what came of it, and what was concluded. The content of run.json."""

from typing import Literal

from busbw.model.finding import Ceiling, Finding, Verdict
from busbw.model.machine import HostCounters
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan
from busbw.model.record import Hello, Kernel
from busbw.model.value import Integer, Value

RUN_SCHEMA = 1


class Culprit(Value, kw_only=True, frozen=True):
    """The rank a failure began on, as far as it could be told."""

    rank: Integer
    host: str
    process_id: Integer
    # What happened to it: "killed by signal 9 (SIGKILL)", "exited with code 3", "stopped (SIGSTOP)", ...
    what: str
    # What it was doing: "all_reduce 4 KiB, sample 17", "starting".
    step: str


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

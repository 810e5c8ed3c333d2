"""What a check was asked for, what its stages came to, and what is concluded of each node."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.check.screening import Measure, NodeReading, Screening
from busbw.model.finding import Finding, Verdict

CHECK_SCHEMA = 1
StageName = Literal["screening", "fabric", "suite", "judge"]
NodeOutcome = Literal["ok", "warn", "error", "cannot_tell"]


class NodeAnswer(Value, kw_only=True, frozen=True):
    """One node judged."""

    host: str
    outcome: NodeOutcome
    # In a line: what it reaches, or why it cannot be told.
    because: str
    findings: tuple[Finding, ...] = ()
    # What could not be told of it, a sentence each.
    open: tuple[str, ...] = ()
    # What was not looked at and need not be, as the profile has it, a sentence each.
    notes: tuple[str, ...] = ()
    readings: tuple[NodeReading, ...] = ()


class StageAnswer(Value, kw_only=True, frozen=True):
    """What one stage came to."""

    name: StageName
    # not_measured: it was asked for, and did not take place.
    state: Literal["done", "not_measured", "failed"]
    because: str
    wall_s: float | None = None
    # Of fabric, suite and judge.
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    # Hosts that its findings name as the part that is bad.
    suspects: tuple[str, ...] = ()


class NodePast(Value, kw_only=True, frozen=True):
    """One earlier check of one node: a line of the history."""

    schema: Integer = CHECK_SCHEMA
    host: str
    unix_s: float
    profile: str
    outcome: NodeOutcome
    codes: tuple[str, ...] = ()
    # The judged value of each measure.
    values: tuple[tuple[Measure, float], ...] = ()


class CheckPlan(Value, kw_only=True, frozen=True):
    """What a check was asked for: written before anything starts."""

    schema: Integer = CHECK_SCHEMA
    busbw_version: str
    check_id: str
    created: str
    # The file's name, or that of a shipped profile; and its whole text.
    profile: str
    profile_text: str
    # () : this host alone, `here`.
    hosts: tuple[str, ...]
    here: str
    # As given, so that the same launcher reaches them again.
    hosts_given: str | None = None
    nodes: Integer | None = None
    launcher: str | None = None
    interface: str | None = None
    remote_shell: tuple[str, ...] = ()
    platform: str | None = None
    spares: tuple[str, ...] = ()
    screening: Screening

    @property
    def names(self) -> tuple[str, ...]:
        """Return every host that is checked."""
        return self.hosts or (self.here,)


class NodeToDrain(Value, kw_only=True, frozen=True):
    """A node that should take no jobs, why, and the node that may take its place; None: there is none."""

    host: str
    reason: str
    spare: str | None = None


class CheckReport(Value, kw_only=True, frozen=True):
    """A check as a whole: the verdict, every node, every stage."""

    schema: Integer = CHECK_SCHEMA
    check_id: str
    created: str
    busbw_version: str
    profile: str
    title: str
    platform: str | None
    # Of an outcome `fit` nodes may have warnings, where the profile stops at errors only.
    outcome: Literal["fit", "not_fit", "cannot_tell", "failed"]
    sentence: str
    # What the process returns.
    exit_code: Integer
    # The least severity that makes a node unfit, as the profile says.
    fail_on: Literal["error", "warn"]
    stages: tuple[StageAnswer, ...]
    nodes: tuple[NodeAnswer, ...]
    drain: tuple[NodeToDrain, ...]


class NodeRecord(Value, kw_only=True, frozen=True):
    """One node over all checks of it that are stored."""

    host: str
    checks: Integer
    # Times that it began to fail: checks that fail one after the other are one failure.
    failures: Integer
    # From its first check to its last, less what it was failing.
    watched_s: float
    # Seconds between failures, and the limits of their mean; None: too few.
    mtbf_s: float | None = None
    mtbf_low_s: float | None = None
    mtbf_high_s: float | None = None
    last: NodeOutcome
    last_unix_s: float
    codes: tuple[str, ...] = ()


class CheckHistory(Value, kw_only=True, frozen=True):
    """Nodes by number of failures, and what their times between failures assume."""

    nodes: tuple[NodeRecord, ...]
    assumption: str
    sentence: str

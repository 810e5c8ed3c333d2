"""A search for the node that makes groups slow or fail: what was planned, each run of a group, and what was found."""

from typing import Annotated, Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.finding import Confidence, Finding, Verdict

ISOLATION_SCHEMA = 1

ReadKind = Literal["pattern", "last-number", "exit-code", "busbw-run"]
AnswerKind = Literal["node", "failing", "unsteady", "together", "among-others", "whole", "everywhere", "open"]


class ReadRule(Value, kw_only=True, frozen=True):
    """How the value of a group's run is found: in its standard output, its exit code, or a run of busbw's own."""

    kind: ReadKind
    # A regular expression with one group.
    pattern: str | None = None
    higher_is_better: bool


class IsolationPlan(Value, kw_only=True, frozen=True):
    """What is searched, complete before the first group starts."""

    schema: Integer = ISOLATION_SCHEMA
    busbw_version: str
    isolation_id: str
    created: str
    hosts: Annotated[tuple[str, ...], msgspec.Meta(min_length=3)]
    # Who said so.
    how: str
    # The leaf switch of each host; (): not known.
    leaves: tuple[str, ...] = ()
    # Nodes of each group, runs of a group before it is judged, and the most rounds.
    group_nodes: Annotated[int, msgspec.Meta(ge=2, le=65_536)]
    repeats: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    most_rounds: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    # Whether all nodes are run together first.
    whole: bool
    # Of one run of one group.
    timeout_s: Annotated[float, msgspec.Meta(gt=0)]
    # What the groups are drawn with.
    seed: Integer
    # Words of the command, with placeholders.
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    read: ReadRule
    # What a sound group reaches; None: not known.
    expected: float | None = None
    # Of busbw's own runs B/s; of a command "".
    unit: str = ""
    notes: tuple[str, ...] = ()


def name_of_search(plan: IsolationPlan) -> str:
    """Return what the groups of a search run: a collective of busbw's own, or the program of a command."""
    if plan.read.kind == "busbw-run":
        # python -P -m busbw run COLLECTIVE ...
        return plan.command[plan.command.index("run") + 1]
    return plan.command[0].rpartition("/")[2] or plan.command[0]


class GroupRun(Value, kw_only=True, frozen=True):
    """One run of one group: a line of runs.jsonl."""

    round: Integer
    # Which of the groups of its round, from 0.
    at: Integer
    # How many groups its round has: one that was cut off lacks some.
    of: Integer
    hosts: tuple[str, ...]
    value: float | None
    # Why there is no value.
    failure: str | None = None
    wall_s: float
    # Of its output, within the folder of the search.
    folder: str


class TestedGroup(Value, kw_only=True, frozen=True):
    """A group, its runs, and what they say of it."""

    hosts: tuple[str, ...]
    purpose: str
    # Of its first run.
    round: Integer
    # None: that run failed.
    values: tuple[float | None, ...]
    failures: tuple[str, ...] = ()
    state: Literal["sound", "unclear", "slow", "failed"]
    # By how much of its speed it is slower than its peers; negative: faster. None: it has no value.
    loss: float | None


class GroupAnswer(Value, kw_only=True, frozen=True):
    """What makes groups bad, with the tests that show it and what would clear it."""

    kind: AnswerKind
    # What it is about, in words, and the hosts of it.
    place: str
    hosts: tuple[str, ...]
    # Share of its speed that a group loses by it; None: groups fail, or it is not known.
    loss: float | None
    confidence: Confidence
    evidence: tuple[str, ...]
    otherwise: str
    clears: str


class Isolation(Value, kw_only=True, frozen=True):
    """What a search came to."""

    schema: Integer = ISOLATION_SCHEMA
    plan: IsolationPlan
    tests: tuple[TestedGroup, ...]
    rounds: Integer
    group_runs: Integer
    # Scatter of one run, and the loss from which a group counts as slow, as shares.
    noise: float
    least_seen: float
    # Of the groups of the usual size; None: all failed.
    median: float | None
    answers: tuple[GroupAnswer, ...]
    # Suspicious at first, and sound or not confirmed when measured again.
    cleared: tuple[str, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict

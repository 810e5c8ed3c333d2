"""Which of several differences made a result slower or faster, and how that was found."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.comparison import Estimate

BISECTION_PLAN_SCHEMA = 1
# 2: answers from launches whose order was drawn block by block, or in pairs that count once.
BISECTION_SCHEMA = 2

# shows: the difference is there; absent: what is left of it is less than half; unclear: the launches do not tell.
Answer = Literal["shows", "absent", "unclear"]


class BisectionPlan(Value, kw_only=True, frozen=True):
    """What is searched: the two ends, and what differs between them."""

    schema: Integer = BISECTION_PLAN_SCHEMA
    busbw_version: str
    # The first and the last side, as they were asked for.
    good: str
    bad: str
    # In the order they were given: differences of settings, or sides one after the other.
    items: tuple[str, ...]
    in_order: bool
    collectives: tuple[str, ...]
    blocks: Integer
    seed: Integer


class BisectionStep(Value, kw_only=True, frozen=True):
    """One question: whether the good side, with these items as the bad one has them, differs from the good side."""

    # The comparison's folder within the bisection's.
    folder: str
    items: tuple[Integer, ...]
    estimate: Estimate
    answer: Answer


class Cause(Value, kw_only=True, frozen=True):
    """Items that make the difference: one by itself, or several that do so only together."""

    items: tuple[Integer, ...]


class Bisection(Value, kw_only=True, frozen=True):
    """Everything about one bisection."""

    schema: Integer = BISECTION_SCHEMA
    plan: BisectionPlan
    # Where the difference was looked for: `all_reduce 4 MiB`; None where there is none.
    point: str | None
    # Good against bad at that point.
    whole: Estimate | None
    steps: tuple[BisectionStep, ...]
    causes: tuple[Cause, ...]
    outcome: Literal["found", "none", "cannot_tell"]
    sentence: str

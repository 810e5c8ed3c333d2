"""What a measured comparison will start, in which order; complete before the first launch."""

from typing import Literal

from busbw.base.value import Integer, Value

COMPARISON_PLAN_SCHEMA = 2


class PlannedSide(Value, kw_only=True, frozen=True):
    """One of the settings that are measured in turn."""

    letter: str
    # As it was asked for: "default", "NCCL_PROTO=LL --register 2".
    name: str
    # Variables that its launches have and others need not, and those that they must not have.
    environment: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    # Options of `busbw run` that this side alone has.
    options: tuple[str, ...] = ()


class PlannedLaunch(Value, kw_only=True, frozen=True):
    """One start of one side: a run directory of its own within the comparison's."""

    folder: str
    # Place in the sides.
    side: Integer
    block: Integer


class ComparisonPlan(Value, kw_only=True, frozen=True):
    """One comparison, launch for launch. Each launch has its own plan in its own folder."""

    schema: Integer = COMPARISON_PLAN_SCHEMA
    busbw_version: str
    comparison_id: str
    created: str
    # What the order of the launches was drawn with.
    seed: Integer
    sides: tuple[PlannedSide, ...]
    # In the order of their starts. A block has each side once.
    launches: tuple[PlannedLaunch, ...]
    # How that order was drawn. A plan without it is of schema 1, which drew mirrored pairs.
    design: Literal["random_order", "mirrored_pairs"] = "mirrored_pairs"
    # No launch is started that would end after this long, and each measures no longer than its own limit.
    budget_s: float
    launch_limit_s: float
    anyway: bool = False
    geometric_mean: bool = False
    notes: tuple[str, ...] = ()

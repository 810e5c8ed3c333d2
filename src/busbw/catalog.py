"""Facts that travel with busbw as data: the rules of its findings, and the algorithms that MPI libraries offer."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.model.finding import Severity
from busbw.model.machine import MpiFamily
from busbw.model.value import Value


class Rule(Value, frozen=True, kw_only=True):
    """One kind of finding. Its code is for ever."""

    code: str
    severity: Severity
    # What is found, with {names} that the finding fills in.
    title: str
    # Why a reader should care, in one or two sentences.
    why: str
    # Where the rule comes from; None: an observation of this run, which needs no authority.
    source: str | None = None


class _Rules(Value, frozen=True, kw_only=True):
    rule: tuple[Rule, ...]


@cache
def rules() -> dict[str, Rule]:
    """Return every rule by its code, in the order of the file."""
    raw = files("busbw").joinpath("data", "rules.toml").read_bytes()
    # Only the codec floor may decode for users; this file is part of the package, so an error in it is a bug.
    decoded = msgspec.toml.decode(raw, type=_Rules)
    found = {rule.code: rule for rule in decoded.rule}
    if len(found) != len(decoded.rule):
        raise ValueError("data/rules.toml declares a code twice")
    return found


def rule(code: str) -> Rule:
    """Return the rule with this code. Raises KeyError for a code that is not declared."""
    return rules()[code]


class Choice(Value, frozen=True, kw_only=True):
    """The environment variable that chooses the algorithm of one collective, and the names it takes."""

    variable: str
    values: tuple[str, ...]


class Algorithms(Value, frozen=True, kw_only=True):
    """What one MPI family lets its users choose, by busbw's name of the collective."""

    name: MpiFamily
    # `NAME=value` settings without which the choice has no effect.
    requires: tuple[str, ...]
    choices: dict[str, Choice]
    source: str


class _Families(Value, frozen=True, kw_only=True):
    family: tuple[Algorithms, ...]


@cache
def algorithms() -> dict[MpiFamily, Algorithms]:
    """Return what each MPI family lets its users choose."""
    raw = files("busbw").joinpath("data", "algorithms.toml").read_bytes()
    return {family.name: family for family in msgspec.toml.decode(raw, type=_Families).family}

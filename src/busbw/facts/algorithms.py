"""The algorithms that MPI libraries let their users choose, from data/algorithms.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value
from busbw.model.machine import MpiFamily


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

"""How bus bandwidth rises with the size of a message on machines of one kind, from data/size_curves.toml."""

from functools import cache
from importlib.resources import files
from math import log2
from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

# These go along a ring of all ranks, whose steps grow with the nodes; all_reduce over many nodes takes a tree.
_TREES = ("all_reduce",)
# Attained rates of parts are those of messages of this size.
_VERY_LARGE_BYTES = 2**34


class SizeCurve(Value, frozen=True, kw_only=True):
    """One row: a form, the machines it was fitted to, and how well. Nothing, or None: whatever they have."""

    scope: Literal["one node", "several nodes"]
    sm: tuple[Integer, ...] = ()
    fabrics: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    nodes: Integer
    latency_s: float
    knee_s: float
    steepness: float
    spread: float
    from_bytes: Integer = 0
    words: str
    source: tuple[str, ...]

    def over(self, collective: str, nodes: int) -> "SizeCurve":
        """Return the form for another number of nodes: deeper trees and longer rings take longer to fill."""
        if nodes == self.nodes or nodes < 2:
            return self
        tree = log2(nodes) / log2(self.nodes)
        times = tree if collective in _TREES else nodes / self.nodes
        return msgspec.structs.replace(self, latency_s=self.latency_s * times, knee_s=self.knee_s * times)

    def busbw_Bps(self, factor: float, most_Bps: float, size_bytes: float) -> float:
        """Return the bus bandwidth at a size, where very large messages reach `most_Bps`."""
        moved = factor * size_bytes
        filling: float = 1 + (self.knee_s * most_Bps / size_bytes) ** self.steepness
        return moved / (self.latency_s + moved / most_Bps * filling)

    def below_attained_Bps(self, factor: float, attained_Bps: float, size_bytes: float) -> float:
        """Return the bus bandwidth at a size, where messages of 16 GiB reach `attained_Bps`; never more than that."""
        most_Bps = attained_Bps**2 / self.busbw_Bps(factor, attained_Bps, _VERY_LARGE_BYTES)
        return min(self.busbw_Bps(factor, most_Bps, size_bytes), attained_Bps)


class _Rows(Value, frozen=True, kw_only=True):
    curve: tuple[SizeCurve, ...]


@cache
def size_curves() -> tuple[SizeCurve, ...]:
    """Return every row, in the order of the file."""
    raw = files("busbw").joinpath("data", "size_curves.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Rows).curve


def size_curve(
    *, nodes: int, sm: int | None, fabric: str | None, algorithm: str | None, collective: str
) -> SizeCurve | None:
    """Return the form that holds for such nodes; None where nobody has published a sweep of the kind."""
    scope = "one node" if nodes == 1 else "several nodes"
    for row in size_curves():
        if (
            row.scope == scope
            and (not row.sm or sm in row.sm)
            and (not row.fabrics or fabric in row.fabrics)
            and (not row.algorithms or algorithm in row.algorithms)
            and (not row.collectives or collective in row.collectives)
        ):
            return row.over(collective, nodes)
    return None

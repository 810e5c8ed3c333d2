"""What an empty call should take: NCCL's own cost model, which it chooses its algorithms by."""

from dataclasses import dataclass
from math import floor, log2

from busbw.catalog.nccl_latency import latency_constants
from busbw.judge.explaining.series import Series
from busbw.model.limit import NodeRates

_RINGS = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
_CHAINS = frozenset({"broadcast", "reduce"})
# Between nodes a hop costs at least what the network's thread takes.
_LEAST_BETWEEN_US = 1.0
_LL = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EmptyCall:
    """The time NCCL itself counts on for a call of a few bytes, and how it comes about."""

    time_s: float
    algorithm: str
    words: str
    source: str


def empty_call(series: Series, rates: NodeRates | None) -> EmptyCall | None:
    """Return what NCCL counts on with the LL protocol; None where it has no model, or the nodes are not known."""
    if series.library != "nccl" or series.nodes is None or series.ranks % series.nodes:
        return None
    if series.collective not in _RINGS | _CHAINS:
        return None
    each = series.ranks // series.nodes
    linked = rates is not None and (rates.island_gpus or 1) > 1
    calls = [_ring(series, each, linked=linked)]
    if series.collective == "all_reduce":
        calls.append(_tree(series, each, linked=linked))
    return min(calls, key=lambda call: call.time_s)


def _ring(series: Series, each: int, *, linked: bool) -> EmptyCall:
    constants, nodes = latency_constants(), series.nodes or 1
    hop_us = (constants.nvlink if linked else constants.pci).ring[_LL]
    if nodes > 1:
        hop_us = max(hop_us, _LEAST_BETWEEN_US)
    if series.collective in _CHAINS:
        steps, between = (1, 0) if nodes == 1 else (each * nodes, nodes - 1)
    else:
        rounds = 2 if series.collective == "all_reduce" else 1
        steps, between = rounds * (series.ranks - 1), rounds * (nodes - 1) if nodes > 1 else 0
    total_us = constants.base.ring[_LL] + (steps - between) * hop_us + between * constants.network.ring[_LL]
    words = _words(constants.base.ring[_LL], (steps - between, hop_us), (between, constants.network.ring[_LL]))
    return EmptyCall(time_s=total_us * 1e-6, algorithm="ring", words=f"ring, LL: {words}", source=constants.source)


def _tree(series: Series, each: int, *, linked: bool) -> EmptyCall:
    constants, nodes = latency_constants(), series.nodes or 1
    hop_us = (constants.nvlink if linked else constants.pci).tree[_LL]
    inside, between = 2 * (each - 1), 2 * floor(log2(nodes))
    total_us = constants.base.tree[_LL] + inside * hop_us + between * constants.network.tree[_LL]
    words = _words(constants.base.tree[_LL], (inside, hop_us), (between, constants.network.tree[_LL]))
    return EmptyCall(time_s=total_us * 1e-6, algorithm="tree", words=f"tree, LL: {words}", source=constants.source)


def _words(base_us: float, inside: tuple[int, float], between: tuple[int, float]) -> str:
    parts = [f"{base_us:g} us", f"{inside[0]} hops of {inside[1]:g} us"]
    parts += [f"{between[0]} between nodes of {between[1]:g} us"] if between[0] else []
    return " + ".join(parts)

"""What a message of a few bytes should take: by NCCL's own cost model, or as it is published for pairs over MPI."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log2

from busbw.catalog.nccl_latency import latency_constants
from busbw.judge.explaining.series import Series
from busbw.model.budget import Basis
from busbw.model.limit import NodeRates
from busbw.model.platform import Published

_RINGS = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
_CHAINS = frozenset({"broadcast", "reduce"})
# Between nodes a hop costs at least what the network's thread takes.
_LEAST_BETWEEN_US = 1.0
_LL = 0
_MODELLED = ("InfiniBand", "RoCE")
_MPI_LATENCY = "MPI latency"


@dataclass(frozen=True, kw_only=True, slots=True)
class EmptyCall:
    """The time to count on for a call of a few bytes, who says so, and how it comes about."""

    time_s: float
    # As in a sentence: "as NCCL counts on it", "as published".
    by: str
    basis: Basis
    words: str
    source: tuple[str, ...]


def empty_call(
    series: Series, rates: NodeRates | None, published: Sequence[Published], fabric: str | None
) -> EmptyCall | None:
    """Return what to count on: of NCCL with the LL protocol.

    None where it has no model, where the nodes are not known, and between nodes over any `fabric` but those that its
    constants are of: over EFA and others small messages take many times as long on sound machines.
    """
    if series.collective == "latency":
        return _published(series, published)
    if series.library != "nccl" or series.nodes is None or series.ranks % series.nodes:
        return None
    if series.collective not in _RINGS | _CHAINS or (series.nodes > 1 and _is_other(series, fabric)):
        return None
    each = series.ranks // series.nodes
    linked = rates is not None and (rates.island_gpus or 1) > 1
    calls = [_ring(series, each, linked=linked)]
    if series.collective == "all_reduce":
        calls.append(_tree(series, each, linked=linked))
    return min(calls, key=lambda call: call.time_s)


def why_no_call(series: Series) -> str:
    """Return which evidence is missing where `empty_call` knows nothing."""
    if series.collective == "latency":
        return "no latency between two ranks is published for this machine"
    if series.library == "nccl" and series.collective not in _RINGS | _CHAINS:
        return f"NCCL's cost model has no {series.collective}, and no time of a small one is published for this machine"
    if series.library == "nccl" and (series.nodes or 1) > 1:
        return (
            "NCCL's constants are those of InfiniBand and RoCE, and no time of a small message over this network is "
            "published"
        )
    return "nobody says what so small a message should take"


def _is_other(series: Series, fabric: str | None) -> bool:
    return fabric not in _MODELLED or series.network == "fallback"


def _published(series: Series, published: Sequence[Published]) -> EmptyCall | None:
    """Return the longest latency published for pairs on so many nodes: how far apart these were is not known."""
    units_s = {"us": 1e-6, "ns": 1e-9}
    found = [
        (each.value * units_s[each.unit], each)
        for each in published
        if each.test == _MPI_LATENCY and each.unit in units_s and each.nodes == series.nodes
    ]
    if not found:
        return None
    time_s, figure = max(found, key=lambda pair: pair[0])
    return EmptyCall(
        time_s=time_s,
        by="as published",
        basis=figure.kind,
        words=figure.conditions or "small messages",
        source=figure.source,
    )


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
    return _modelled(total_us, f"ring, LL: {words}")


def _tree(series: Series, each: int, *, linked: bool) -> EmptyCall:
    constants, nodes = latency_constants(), series.nodes or 1
    hop_us = (constants.nvlink if linked else constants.pci).tree[_LL]
    inside, between = 2 * (each - 1), 2 * floor(log2(nodes))
    total_us = constants.base.tree[_LL] + inside * hop_us + between * constants.network.tree[_LL]
    words = _words(constants.base.tree[_LL], (inside, hop_us), (between, constants.network.tree[_LL]))
    return _modelled(total_us, f"tree, LL: {words}")


def _modelled(total_us: float, words: str) -> EmptyCall:
    source = (latency_constants().source,)
    return EmptyCall(time_s=total_us * 1e-6, by="as NCCL counts on it", basis="model", words=words, source=source)


def _words(base_us: float, inside: tuple[int, float], between: tuple[int, float]) -> str:
    parts = [f"{base_us:g} us", f"{inside[0]} hops of {inside[1]:g} us"]
    parts += [f"{between[0]} between nodes of {between[1]:g} us"] if between[0] else []
    return " + ".join(parts)

"""What a message of a few bytes should take on one node, by NCCL's own cost model.

NCCL's constants are made for choosing an algorithm. On one node of Hopper GPUs behind NVSwitches they were found to
hold (docs/measurements); on A100, and between nodes, sound machines take up to four times as long.
"""

from dataclasses import dataclass

from busbw.facts.nccl_latency import latency_constants
from busbw.judge.explaining.series import Series
from busbw.model.budget import Basis
from busbw.model.limit import NodeRates

_RINGS = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
_CHAINS = frozenset({"broadcast", "reduce"})
_LL = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EmptyCall:
    """The time to count on for a call of a few bytes, who says so, and how it comes about."""

    time_s: float
    # As in a sentence: "NCCL's cost model".
    by: str
    basis: Basis
    words: str
    source: tuple[str, ...]
    # Whether a call was measured on such GPUs and took as long.
    is_confirmed: bool


def empty_call(series: Series, rates: NodeRates | None, sm: int | None) -> EmptyCall | None:
    """Return what NCCL counts on with the LL protocol; None where it has no model, or none that holds."""
    constants = latency_constants()
    if series.library != "nccl" or series.nodes != 1 or sm not in constants.confirmed_sm or rates is None:
        return None
    if series.collective not in _RINGS | _CHAINS or (rates.island_gpus or 1) < series.ranks:
        return None
    calls = [_ring(series)]
    if series.collective == "all_reduce":
        calls.append(_tree(series))
    return min(calls, key=lambda call: call.time_s)


def why_no_call(series: Series) -> str:
    """Return which evidence is missing for a small message."""
    if series.collective == "latency":
        return "no latency between two ranks is published for this machine"
    if series.library == "nccl" and series.nodes == 1 and series.collective not in _RINGS | _CHAINS:
        return f"NCCL's cost model has no {series.collective}, and no time of a small one is published for this machine"
    return "no time of such a small message is published for this machine"


def _ring(series: Series) -> EmptyCall:
    constants = latency_constants()
    rounds = 2 if series.collective == "all_reduce" else 1
    steps = 1 if series.collective in _CHAINS else rounds * (series.ranks - 1)
    return _modelled("ring", constants.base.ring[_LL], steps, constants.nvlink.ring[_LL])


def _tree(series: Series) -> EmptyCall:
    constants = latency_constants()
    return _modelled("tree", constants.base.tree[_LL], 2 * (series.ranks - 1), constants.nvlink.tree[_LL])


def _modelled(algorithm: str, base_us: float, steps: int, hop_us: float) -> EmptyCall:
    constants = latency_constants()
    return EmptyCall(
        time_s=(base_us + steps * hop_us) * 1e-6,
        by="NCCL's cost model",
        basis="model",
        words=f"{algorithm}, LL: {base_us:g} us + {steps} hops of {hop_us:g} us",
        source=(constants.source, *constants.confirmed),
        is_confirmed=True,
    )

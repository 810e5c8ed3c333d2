"""What sweeps of sends within a node tell: how much of a GPU's links they reach, what a channel carries, what fills.

Sendrecv tells these; an alltoall what a rank's own part costs beside them, which a send to another rank does not have.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from busbw.limits.algorithms import shape_of
from busbw.model.predict.prediction import OwnPart, SendCost
from busbw.predict.machines import groups_of
from busbw.predict.sends import parts_within
from busbw.predict.sweeps import CellGroup
from busbw.stats.curves import Curve, fit
from busbw.stats.distributions import median

# Each rank sends to one and receives from one: the links and channels of one peer.
_TELLS = "sendrecv"
_OWN = "alltoall"
_LEAST_SIZES = 8
# Sizes from here on tell what a rank's own part costs.
_OWN_BYTES = 2**28
# Logarithms for slopes are moved by so much.
_STEP = 1e-4
_MOST = 60.0


@dataclass(frozen=True, kw_only=True)
class SendSweep:
    """What one sweep of sendrecv tells: bus bandwidth of endless messages, and what channels carry."""

    group: CellGroup
    large_Bps: float
    cost: SendCost


def send_sweeps(groups: Sequence[CellGroup]) -> list[SendSweep]:
    """Return what sweeps of sendrecv within a node tell, in their order."""
    found = []
    for group in groups:
        if group.collective == _TELLS and _is_within(group) and len(group.cells) >= _LEAST_SIZES:
            sweep = _sweep(group)
            if sweep is not None:
                found.append(sweep)
    return found


def _is_within(group: CellGroup) -> bool:
    return groups_of(group.machine, group.nodes) == 1


def _sweep(group: CellGroup) -> SendSweep | None:
    most_Bps = max(rate for _, rate in group.cells)
    start = [math.log(value) for value in (1.02 * most_Bps, 2e10, 5e9, 3e-5)]
    found = fit(_curve(group), [(float(size), rate) for size, rate in group.cells], start)
    if found is None or math.exp(found.parameters[0]) > 1.5 * most_Bps:
        return None
    large_Bps, simple_Bps, ll_Bps, full_s = (math.exp(value) for value in found.parameters)
    cost = SendCost(
        generation=group.machine.generation,
        simple_Bps=simple_Bps,
        ll_Bps=ll_Bps,
        full_s=full_s,
        documents=(group.document,),
    )
    return SendSweep(group=group, large_Bps=large_Bps, cost=cost)


def _curve(group: CellGroup) -> Curve:
    """Return log busbw and its derivatives by the logarithms of links, a channel, a channel with LL, and what fills."""

    def height(size_bytes: float, values: Sequence[float]) -> float:
        whole_Bps, simple_Bps, ll_Bps, full_s = (math.exp(min(max(value, -_MOST), _MOST)) for value in values)
        cost = SendCost(simple_Bps=simple_Bps, ll_Bps=ll_Bps, full_s=full_s, documents=())
        return math.log(group.factor * size_bytes / _time_s(group, size_bytes, whole_Bps, cost))

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        here = height(size_bytes, values)
        moved = ([*values[:place], value + _STEP, *values[place + 1 :]] for place, value in enumerate(values))
        return here, tuple((height(size_bytes, each) - here) / _STEP for each in moved)

    return curve


def _time_s(group: CellGroup, size_bytes: float, whole_Bps: float, cost: SendCost) -> float:
    """Return what a call takes without a rank's own part."""
    shape = shape_of(group.machine.rates, group.nodes)
    wire_s = group.factor * size_bytes / whole_Bps
    return parts_within(group.machine, shape, group.collective, size_bytes, wire_s, cost).time_s


def send_costs(sweeps: Sequence[SendSweep]) -> Iterable[SendCost]:
    """Yield what channels carry, for each generation of GPUs and for any; a document counts once."""
    for generation in dict.fromkeys([None, *(sweep.group.machine.generation for sweep in sweeps)]):
        members = [sweep for sweep in sweeps if generation in (None, sweep.group.machine.generation)]
        if members:
            yield SendCost(
                generation=generation,
                simple_Bps=_significant(median(_of_documents(members, lambda cost: cost.simple_Bps))),
                ll_Bps=_significant(median(_of_documents(members, lambda cost: cost.ll_Bps))),
                full_s=_significant(median(_of_documents(members, lambda cost: cost.full_s))),
                documents=tuple(sorted({sweep.group.document for sweep in members})),
            )


def _of_documents(sweeps: Sequence[SendSweep], value: Callable[[SendCost], float]) -> list[float]:
    """Return the median of each document, ascending."""
    by: dict[str, list[float]] = defaultdict(list)
    for sweep in sweeps:
        by[sweep.group.document].append(value(sweep.cost))
    return sorted(median(sorted(each)) for each in by.values())


def _significant(value: float) -> float:
    return float(f"{value:.4g}")


def own_of_sends(groups: Sequence[CellGroup], sweeps: Sequence[SendSweep]) -> Iterable[OwnPart]:
    """Yield what a byte of a rank's own part costs in an alltoall, of documents that have a sendrecv too."""
    by: dict[str, list[float]] = defaultdict(list)
    known = {sweep.group.document: sweep for sweep in sweeps}
    for group in groups:
        sweep = known.get(group.document)
        if group.collective != _OWN or not _is_within(group) or sweep is None:
            continue
        for size, rate in group.cells:
            left_s = group.factor * size / rate - _time_s(group, size, sweep.large_Bps, sweep.cost)
            if size >= _OWN_BYTES and left_s > 0:
                by[group.document].append(left_s * group.ranks / size)
    if by:
        yield OwnPart(
            collective=_OWN,
            s_per_byte=_significant(median(sorted(median(sorted(each)) for each in by.values()))),
            growth=0.0,
            documents=tuple(sorted(by)),
        )

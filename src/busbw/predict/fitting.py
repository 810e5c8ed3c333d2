"""The constants of the closed form, fitted to published cells, and what is left of documents that had no part in them.

A document is left out together with its neighbours (of the same machine), everything is fitted again, and its cells are
predicted: what is left makes the intervals. A constant is a median over documents; one for machines of any generation,
or over any network, a median over generations, or networks, each of which counts once.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from msgspec import structs

from busbw.base.collectives import COLLECTIVES
from busbw.limits.ceiling import ceiling
from busbw.model.limit import Bound
from busbw.model.predict.prediction import (
    Band,
    ChunkCost,
    Exchange,
    HeldKinship,
    HeldOut,
    LinkShare,
    MeasuredPattern,
    NetworkHop,
    OwnPart,
    PredictedCall,
    PredictorConstants,
    RiseCurve,
    Scope,
)
from busbw.predict.closed import exchange_of, own_part_of, own_s, pattern_of, predicted, scope_of
from busbw.predict.intervals import band_of, stretch_of
from busbw.predict.machines import RDMA, CannotTellError, groups_of
from busbw.predict.rising import LARGEST_BYTES, TREES, Rise, rise_of, ways_of
from busbw.predict.send_fits import SendSweep, own_of_sends, send_costs, send_sweeps
from busbw.predict.sends import SENDS, SENT
from busbw.predict.shifting import shift_of
from busbw.predict.sweeps import CellGroup, FittedSweep, sweep_of
from busbw.stats.distributions import line_through, median

# Neighbours are of the same machines; W1 and W2 are the write-ups on Azure and Isambard, M1 and M2 own measurements of
# four and of two H200.
NEIGHBOURS = (
    ("T02", "T03", "T04"),
    ("T05", "T06", "T07"),
    ("T09", "T10", "W2"),
    ("T11", "T12"),
)
# Sizes from here on tell a share; and of a sweep without them its largest.
_TELLING_BYTES = 2**30
# Sizes from here on tell what a rank's own part costs, if so many do; of smaller ones it is little beside their hops.
_OWN_BYTES = 2**26
_LEAST_OWN = 3
# A cell of which more would be its own part tells nothing of the links.
_MOST_OWN = 0.5
# No sweep tells a bandwidth that is further than this above its largest cell.
_FARTHEST = 1.05
_QUANTILES = 10
# Of a sweep the cell nearest to this size calibrates the others of its band.
CALIBRATING_BYTES: dict[Band, int] = {"large": 2**32, "middle": 2**28, "small": 2**16}
_NONE = PredictorConstants(most_nodes={}, share=(), curve=(), hop=(), own=(), left_out=())


def fitted_constants(groups: Sequence[CellGroup]) -> PredictorConstants:
    """Return constants fitted to `groups`, without intervals."""
    measured = [group for group in groups if group.is_fitted and group.algorithm is not None]
    sends = [group for group in measured if group.collective in SENDS]
    others = [group for group in measured if group.collective not in SENDS]
    constants = structs.replace(_NONE, own=tuple(_own_parts(others)))
    used = [_without_own(group, constants) for group in others]
    sweeps = {id(group): sweep for group in used if (sweep := _sweep(group)) is not None}
    sent = _sent(tuple(sends))
    constants = structs.replace(
        constants,
        curve=tuple(_curves(list(sweeps.values()))),
        hop=tuple(_hops(list(sweeps.values()))),
        chunk=_chunk(list(sweeps.values())),
    )
    most: dict[str, int] = {}
    for group in measured:
        fabric = group.machine.fabric
        if groups_of(group.machine, group.nodes) > 1 and fabric is not None:
            most[fabric] = max(most.get(fabric, 1), group.nodes)
    return structs.replace(
        constants,
        most_nodes=dict(sorted(most.items())),
        share=tuple(_shares([*used, *(sweep.group for sweep in sent)], sweeps, sent, constants)),
        own=(*constants.own, *own_of_sends(sends, sent)),
        send=tuple(send_costs(sent)),
        measured=tuple(_measured(measured)),
    )


@lru_cache(maxsize=1024)
def _sent(groups: tuple[CellGroup, ...]) -> tuple[SendSweep, ...]:
    return tuple(send_sweeps(groups))


def _measured(groups: Sequence[CellGroup]) -> Iterable[MeasuredPattern]:
    """Yield which patterns documents have, within a node and between nodes."""
    found: dict[tuple[str, Scope], set[str]] = defaultdict(set)
    for group in groups:
        pattern = pattern_of(group.collective, group.algorithm or "")
        found[pattern, scope_of(group.machine, group.nodes)].add(group.document)
    for (pattern, scope), documents in sorted(found.items()):
        yield MeasuredPattern(pattern=pattern, scope=scope, documents=tuple(sorted(documents)))


@lru_cache(maxsize=1024)
def _sweep(group: CellGroup) -> FittedSweep | None:
    return sweep_of(group)


def _is_within(group: CellGroup) -> bool:
    return groups_of(group.machine, group.nodes) == 1


def _curves(sweeps: Sequence[FittedSweep]) -> Iterable[RiseCurve]:
    """Yield a curve for each class of machines within a node."""
    classes: dict[tuple[str, str | None], list[FittedSweep]] = defaultdict(list)
    for sweep in sweeps:
        group = sweep.group
        if _is_within(group) and group.algorithm is not None:
            for generation in dict.fromkeys((group.machine.generation, None)):
                classes[group.algorithm, generation].append(sweep)
    for (algorithm, generation), members in sorted(classes.items(), key=lambda each: str(each[0])):
        yield RiseCurve(
            algorithm=algorithm,
            generation=generation,
            # Of a ring hops are NCCL's.
            latency_s=_significant(_middle([member.latency_s for member in members])) if algorithm != "ring" else 0.0,
            full_s=_significant(_middle([member.full_s for member in members])),
            slope=_significant(_middle([member.slope for member in members])),
            documents=_documents(member.group for member in members),
        )


def _hops(sweeps: Sequence[FittedSweep]) -> Iterable[NetworkHop]:
    """Yield what a hop adds for each network with each generation, for each network, and for those like RDMA."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sweep in sweeps:
        machine = sweep.group.machine
        if not _is_within(sweep.group) and machine.fabric is not None and machine.generation is not None:
            found[machine.fabric, machine.generation][sweep.group.document].append(sweep.hop_s)
    told = {key: _middle([_middle(hops) for hops in by.values()]) for key, by in found.items()}
    names = {key: tuple(sorted(by)) for key, by in found.items()}
    for (fabric, generation), hop_s in sorted(told.items()):
        yield NetworkHop(
            generation=generation, fabric=fabric, extra_s=_significant(hop_s), documents=names[fabric, generation]
        )
    of_fabric = {
        fabric: _middle([hop_s for key, hop_s in told.items() if key[0] == fabric]) for fabric, _ in sorted(told)
    }
    for fabric, hop_s in of_fabric.items():
        yield NetworkHop(fabric=fabric, extra_s=_significant(hop_s), documents=_of(names, {fabric}))
    alike = {fabric: hop_s for fabric, hop_s in of_fabric.items() if fabric in RDMA}
    if alike:
        yield NetworkHop(extra_s=_significant(_middle(list(alike.values()))), documents=_of(names, set(alike)))


def _of(names: dict[tuple[str, str], tuple[str, ...]], fabrics: set[str]) -> tuple[str, ...]:
    return tuple(sorted({name for key, each in names.items() if key[0] in fabrics for name in each}))


def _chunk(sweeps: Sequence[FittedSweep]) -> ChunkCost | None:
    by: dict[str, list[float]] = defaultdict(list)
    for sweep in sweeps:
        if not _is_within(sweep.group) and sweep.group.algorithm in TREES:
            by[sweep.group.document].append(sweep.chunks)
    if not by:
        return None
    return ChunkCost(
        chunks=_significant(_middle([_middle(chunks) for chunks in by.values()])), documents=tuple(sorted(by))
    )


def _own_parts(groups: Sequence[CellGroup]) -> Iterable[OwnPart]:
    """Yield what a rank's own part costs, of documents that have the collective and a broadcast of as many ranks.

    A broadcast sends all along the same links and writes no part of its own.
    """
    rings = [group for group in groups if _is_within(group) and group.algorithm == "ring"]
    chains = {(group.document, group.ranks): _times_s(group) for group in rings if group.collective == "broadcast"}
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for group in rings:
        chain_s = chains.get((group.document, group.ranks), {})
        if group.collective != "broadcast":
            line = _own_line(group, chain_s)
            if line is not None:
                found[group.collective][group.document].append(line)
    for collective, by in sorted(found.items()):
        cost, growth = (
            median(sorted(median(sorted(line[place] for line in lines)) for lines in by.values())) for place in (0, 1)
        )
        yield OwnPart(
            collective=collective,
            s_per_byte=_significant(math.exp(cost)),
            growth=_significant(-growth),
            documents=tuple(sorted(by)),
        )


def _times_s(group: CellGroup) -> dict[int, float]:
    """Return, by size, what a ring within a node takes beside its hops with Simple."""
    hops_s = ways_of(group.machine, group.nodes, group.collective, "ring", 0.0)[-1].latency_s
    return {size: group.factor * size / rate - hops_s for size, rate in group.cells}


def _own_line(group: CellGroup, chain_s: dict[int, float]) -> tuple[float, float] | None:
    """Return the logarithm of what a byte of the own part costs at 1 GiB, and its slope by that of the size.

    `chain_s`: what a broadcast of as many ranks takes on the links. A time is as far off at each size, so a cell counts
    by the square of what the own part is of its time: where that is little, the rest is mostly noise. None: too few
    sizes tell it.
    """
    costs, weights = [], []
    for size, time_s in _times_s(group).items():
        own_s = time_s - group.factor * chain_s.get(size, math.inf)
        if size >= _OWN_BYTES and own_s > 0.0:
            costs.append((math.log(size / _TELLING_BYTES), math.log(own_s * group.ranks / size)))
            weights.append((own_s / time_s) ** 2)
    line = line_through(costs, weights) if len(costs) >= _LEAST_OWN else None
    return (line.at(0.0), line.slope) if line is not None else None


def _without_own(group: CellGroup, constants: PredictorConstants) -> CellGroup:
    """Return a ring within a node without what ranks took for their own parts: what the links carried."""
    part = own_part_of(group.machine, group.collective, group.algorithm or "", constants)
    if part is None or not _is_within(group):
        return group
    cells = tuple(
        (size, 1 / (1 / rate - own_s(part, size, group.ranks) / (group.factor * size)))
        for size, rate in group.cells
        if own_s(part, size, group.ranks) < _MOST_OWN * group.factor * size / rate
    )
    return replace(group, cells=cells) if cells else group


def _middle(values: Sequence[float]) -> float:
    return math.exp(median(sorted(math.log(max(value, 1e-9)) for value in values)))


def _significant(value: float) -> float:
    """Return a value with four digits, as it is written to the file."""
    return float(f"{value:.4g}")


def _documents(groups: Iterable[CellGroup]) -> tuple[str, ...]:
    return tuple(sorted({group.document for group in groups}))


# Part, algorithm, generation, network: what a share is looked up by.
Key = tuple[str, str, str | None, str | None]


def _shares(
    groups: Sequence[CellGroup],
    sweeps: dict[int, FittedSweep],
    sent: Sequence[SendSweep],
    constants: PredictorConstants,
) -> Iterable[LinkShare]:
    # By key, then by the machines that count once there, then by document.
    classes: dict[Key, dict[str, dict[str, list[tuple[bool, float]]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    endless_Bps = {id(sweep.group): sweep.large_Bps for sweep in sent}
    for group in groups:
        large_Bps = endless_Bps.get(id(group)) or _large_Bps(group, sweeps.get(id(group)), constants)
        told = _share_of(group, large_Bps)
        if told is None or group.algorithm is None:
            continue
        part, share = told
        generation, fabric = group.machine.generation, group.machine.fabric
        algorithm = SENT if group.collective in SENDS else group.algorithm
        for key, kind in _keys(part, algorithm, generation, fabric):
            classes[key][kind][group.document].append((group.cells[-1][0] >= _TELLING_BYTES, share))
    for key, kinds in sorted(classes.items(), key=lambda each: str(each[0])):
        yield _share(key, kinds)


def _keys(part: str, algorithm: str, generation: str | None, fabric: str | None) -> list[tuple[Key, str]]:
    """Return what a share counts for, and as which kind of machine it does there."""
    of, over = str(generation), str(fabric)
    if part == "nvlink":
        return [((part, algorithm, generation, None), ""), ((part, algorithm, None, None), of)]
    alike = "tree" if algorithm in TREES else algorithm
    keys: list[tuple[Key, str]] = [((part, each, generation, fabric), "") for each in (alike, "any")]
    keys.append(((part, "any", None, fabric), of))
    if fabric in RDMA:
        keys += [((part, "any", of, None), over)] if generation is not None else []
        keys.append(((part, "any", None, None), over))
    return keys


def _share_of(group: CellGroup, large_Bps: float) -> tuple[str, float] | None:
    """Return the part that limits a group, and how much of it the group reached with very large messages."""
    bound = _bound(group)
    line = next((line for line in bound.lines if line.limits), None) if bound is not None else None
    if line is None or line.busbw_Bps is None or line.part == "slot":
        return None
    return "nic" if line.part in ("nic", "nic_slot") else "nvlink", min(large_Bps / line.busbw_Bps, 1.0)


def _share(key: Key, kinds: dict[str, dict[str, list[tuple[bool, float]]]]) -> LinkShare:
    # Sweeps that end early tell a share only where no other does. A document counts once, whatever number it has.
    tell = any(reaches for by in kinds.values() for shares in by.values() for reaches, _ in shares)
    told: dict[str, dict[str, float]] = {}
    for kind, by in kinds.items():
        of_documents = {
            document: [share for reaches, share in shares if reaches or not tell] for document, shares in by.items()
        }
        medians = {document: median(sorted(shares)) for document, shares in of_documents.items() if shares}
        if medians:
            told[kind] = medians
    middle = median(sorted(median(sorted(by.values())) for by in told.values()))
    values = [value for by in told.values() for value in by.values()]
    spread = None
    if len(values) > 1:
        spread = _significant(math.sqrt(sum(math.log(value / middle) ** 2 for value in values) / (len(values) - 1)))
    part, algorithm, generation, fabric = key
    return LinkShare(
        part=part,
        algorithm=algorithm,
        generation=generation,
        fabric=fabric,
        share=_significant(middle),
        spread=spread,
        documents=tuple(sorted({document for by in told.values() for document in by})),
    )


def _bound(group: CellGroup) -> Bound | None:
    found = ceiling(
        group.machine.rates, nodes=group.nodes, collective=group.collective, algorithm=group.algorithm
    ).bounds
    return found[0] if found and found[0].busbw_Bps is not None else None


def _large_Bps(group: CellGroup, sweep: FittedSweep | None, constants: PredictorConstants) -> float:
    """Return the bandwidth of a group at 16 GiB, from its large cells by its own rise or that of its class."""
    factor = COLLECTIVES[group.collective].factor(group.ranks)
    most_Bps = _FARTHEST * max(rate for _, rate in group.cells)
    telling = [cell for cell in group.cells if cell[0] >= _TELLING_BYTES]
    rise = sweep.rise if sweep is not None else _rise(group, constants)
    if sweep is not None and not telling:
        large_Bps = factor * LARGEST_BYTES / sweep.rise.parts(factor, LARGEST_BYTES, sweep.large_Bps).time_s
    else:
        # A sweep's own fit is mostly of smaller sizes: what large ones reached the largest says itself.
        large_Bps = _solved(factor, *group.cells[-1], rise)
    return min(large_Bps, most_Bps)


def _rise(group: CellGroup, constants: PredictorConstants) -> Rise | None:
    try:
        return rise_of(group.machine, group.nodes, group.collective, group.algorithm or "", constants)
    except CannotTellError:
        return None


def _solved(factor: float, size_bytes: int, busbw_Bps: float, rise: Rise | None) -> float:
    """Return the bandwidth at 16 GiB with which a rise goes through one cell; at most a half more than the cell."""
    if rise is None:
        return busbw_Bps
    # The bandwidth of endless messages is searched for: it tells that at 16 GiB.
    low_Bps, high_Bps = (rise.endless_Bps(factor, large_Bps) for large_Bps in (busbw_Bps, 1.5 * busbw_Bps))
    goal_s = factor * size_bytes / busbw_Bps
    for _ in range(40):
        middle_Bps = (low_Bps + high_Bps) / 2
        if rise.parts(factor, size_bytes, middle_Bps).time_s > goal_s:
            low_Bps = middle_Bps
        else:
            high_Bps = middle_Bps
    return factor * LARGEST_BYTES / rise.parts(factor, LARGEST_BYTES, (low_Bps + high_Bps) / 2).time_s


@dataclass(frozen=True, kw_only=True)
class Residual:
    """A cell whose document was left out, and what was predicted for it without. None: nothing could be."""

    group: CellGroup
    size_bytes: int
    measured_Bps: float
    call: PredictedCall | None

    @property
    def log_ratio(self) -> float | None:
        """Return ln(predicted / measured)."""
        return math.log(self.call.busbw_Bps / self.measured_Bps) if self.call is not None else None


def left_out_residuals(groups: Sequence[CellGroup]) -> tuple[Residual, ...]:
    """Return every cell, predicted from constants that its document and its neighbours had no part in."""
    return tuple(_left_out(groups, lambda _group, _left: False))


def carried_residuals(groups: Sequence[CellGroup]) -> tuple[Residual, ...]:
    """Return cells as predicted from constants that neither their document nor their collective anywhere had a part in.

    That is how far constants are off that are carried to a collective from others; each is told by the algorithm that
    it can only have been.
    """
    known = [replace(group, stated=group.algorithm) for group in groups if group.is_fitted and group.algorithm]
    return tuple(residual for residual in _left_out(known, _is_alike) if residual.call is not None)


def _is_alike(group: CellGroup, left: CellGroup) -> bool:
    return group.collective == left.collective


def _left_out(groups: Sequence[CellGroup], is_without: Callable[[CellGroup, CellGroup], bool]) -> Iterable[Residual]:
    """Yield every cell, predicted without its document, its neighbours, and the groups that `is_without` names."""
    known: dict[tuple[CellGroup, ...], PredictorConstants] = {}
    for left in sorted(groups, key=lambda group: group.document):
        block = next((block for block in NEIGHBOURS if left.document in block), (left.document,))
        kept = tuple(group for group in groups if group.document not in block and not is_without(group, left))
        if kept not in known:
            # Any interval serves to have the central value: none is looked at here.
            known[kept] = _with_any_interval(fitted_constants(kept))
        yield from _residuals(left, known[kept])


def _with_any_interval(constants: PredictorConstants) -> PredictorConstants:
    bands: tuple[Band, ...] = ("large", "middle", "small")
    kinships: tuple[HeldKinship, ...] = ("across", "carried")
    rows = tuple(
        HeldOut(band=band, kinship=kinship, scope="one node", document="none", residuals=(0.0,))
        for band in bands
        for kinship in kinships
    )
    return structs.replace(constants, left_out=rows)


def _residuals(group: CellGroup, constants: PredictorConstants) -> Iterable[Residual]:
    for size_bytes, measured_Bps in group.cells:
        call = expected_call(group, size_bytes, constants)
        yield Residual(group=group, size_bytes=size_bytes, measured_Bps=measured_Bps, call=call)


def expected_call(group: CellGroup, size_bytes: int, constants: PredictorConstants) -> PredictedCall | None:
    """Return the first way that is predicted for a cell, or the one that its document states; None: none can be."""
    try:
        return predicted(
            group.machine,
            nodes=group.nodes,
            collective=group.collective,
            size_bytes=size_bytes,
            algorithm=group.stated,
            constants=constants,
        )[0]
    except CannotTellError:
        return None


def with_intervals(
    constants: PredictorConstants, residuals: Sequence[Residual], carried: Sequence[Residual]
) -> PredictorConstants:
    """Return the constants with what was left of documents, by band and kinship; `carried`: see `carried_residuals`."""
    by: dict[tuple[Band, HeldKinship, Scope, str, Exchange], list[float]] = defaultdict(list)
    for residual, is_carried in (*((each, False) for each in residuals), *((each, True) for each in carried)):
        call, ratio = residual.call, residual.log_ratio
        if call is not None and ratio is not None and residual.group.is_fitted:
            scope = scope_of(residual.group.machine, residual.group.nodes)
            left = abs(ratio) / call.widened / stretch_of(call.loose)
            kinship = "carried" if is_carried else call.kinship
            exchange = exchange_of(residual.group.collective)
            by[band_of(residual.size_bytes), kinship, scope, residual.group.document, exchange].append(left)
    for band, size_bytes in CALIBRATING_BYTES.items():
        for residual, left in calibrated_by(residuals, size_bytes, band):
            group, call = residual.group, residual.call
            if call is not None:
                scope = scope_of(group.machine, group.nodes)
                exchange = exchange_of(group.collective)
                by[band, "calibrated", scope, group.document, exchange].append(left / stretch_of(call.loose))
    rows = tuple(
        HeldOut(
            band=band,
            kinship=kinship,
            scope=scope,
            document=document,
            exchange=exchange,
            residuals=_quantiles(sorted(values)),
        )
        for (band, kinship, scope, document, exchange), values in sorted(by.items())
    )
    return structs.replace(constants, left_out=rows)


def calibrated_by(residuals: Sequence[Residual], size_bytes: int, band: Band) -> Iterable[tuple[Residual, float]]:
    """Yield what is left of each other cell of a band once the one of its sweep that is nearest to a size is known."""
    sweeps: dict[int, list[tuple[Residual, PredictedCall, float]]] = defaultdict(list)
    for residual in residuals:
        if residual.call is not None and residual.log_ratio is not None and residual.group.is_fitted:
            sweeps[id(residual.group)].append((residual, residual.call, -residual.log_ratio))
    for cells in sweeps.values():
        known = min(cells, key=lambda cell: abs(math.log(cell[0].size_bytes / size_bytes)))
        for residual, call, off in cells:
            if residual is not known[0] and band_of(residual.size_bytes) == band:
                yield residual, abs(off - shift_of(call, [known[1:]]))


def _quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Return at most ten values that stand for all, the largest among them."""
    if len(values) <= _QUANTILES:
        return tuple(_significant(value) for value in values)
    return tuple(
        _significant(values[math.ceil((step + 1) * len(values) / _QUANTILES) - 1]) for step in range(_QUANTILES)
    )

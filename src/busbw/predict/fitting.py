"""The constants of the closed form, fitted to published cells, and what is left of documents that had no part in them.

A document is left out together with its neighbours (of the same machine), everything is fitted again, and its cells are
predicted: what is left makes the intervals. Shares of line rates are medians over documents, curves medians of the
curves of single sweeps.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.limits.ceiling import ceiling
from busbw.model.limit import Bound
from busbw.model.predict.prediction import (
    Band,
    HeldOut,
    Kinship,
    LinkShare,
    PredictedCall,
    PredictorConstants,
    RiseCurve,
)
from busbw.predict.closed import (
    LARGEST_BYTES,
    RDMA,
    CannotTellError,
    MachineClass,
    band_of,
    curve_of,
    endless_Bps,
    filling_of,
    groups_of,
    predicted,
)
from busbw.stats.curves import Curve, fit
from busbw.stats.distributions import median

# Neighbours are of the same machines; W1 and W2 are the write-ups on Azure and Isambard.
NEIGHBOURS = (
    ("T02", "T03", "T04"),
    ("T05", "T06", "T07"),
    ("T09", "T10", "W2"),
    ("T11", "T12"),
)
# A sweep of so many sizes tells a curve.
_LEAST_SIZES = 8
# Sizes from here on tell a share; and of a sweep without them those within a factor of this of its largest.
_TELLING_BYTES = 2**30
_STEEPEST = 1.0
_FLATTEST = 0.05
# The logarithm of a knee, in seconds, that nothing passes.
_NO_KNEE = math.log(1e-9)
# No sweep tells a bandwidth that is further than this above its largest cell.
_FARTHEST = 1.05
_QUANTILES = 10
_TREES = ("tree", "nvlstree")


@dataclass(frozen=True, kw_only=True)
class CellGroup:
    """The cells of one sweep: one document, machine, collective, algorithm and number of nodes."""

    document: str
    machine: MachineClass
    nodes: int
    collective: str
    # As the document says it; None: it does not say.
    stated: str | None
    # What it can only have been; None: nobody knows.
    algorithm: str | None
    # Size in bytes, bus bandwidth in bytes a second; ascending.
    cells: tuple[tuple[int, float], ...]
    # Whether constants may be fitted to it, cell by cell: others are only predicted.
    is_fitted: bool = True


@dataclass(frozen=True, kw_only=True)
class _Sweep:
    """A curve of one group: the bandwidth of very large messages and how it rises."""

    group: CellGroup
    large_Bps: float
    latency_s: float
    knee_s: float
    steepness: float


def fitted_constants(groups: Sequence[CellGroup]) -> PredictorConstants:
    """Return constants fitted to `groups`, without intervals."""
    used = [group for group in groups if group.is_fitted and group.algorithm is not None]
    sweeps = [sweep for group in used if (sweep := _sweep(group)) is not None]
    curves = tuple(_curves(sweeps))
    shares = tuple(_shares(used, sweeps, curves))
    most: dict[str, int] = {}
    for group in used:
        fabric = group.machine.fabric
        if groups_of(group.machine, group.nodes) > 1 and fabric is not None:
            most[fabric] = max(most.get(fabric, 1), group.nodes)
    return PredictorConstants(most_nodes=dict(sorted(most.items())), share=shares, curve=curves, left_out=())


def _sweep(group: CellGroup) -> _Sweep | None:
    """Return the curve of a group with enough sizes; None where they do not determine it."""
    if len(group.cells) < _LEAST_SIZES or group.cells[-1][0] < 2**24:
        return None
    factor = COLLECTIVES[group.collective].factor(group.machine.rates.gpus * group.nodes)
    most_Bps = max(rate for _, rate in group.cells)
    smallest_s = factor * group.cells[0][0] / group.cells[0][1]
    start = (math.log(1.1 * most_Bps), math.log(max(smallest_s, 1e-6)), math.log(1e-4), math.log(0.6))
    points = [(float(size), rate) for size, rate in group.cells]
    found = fit(_rise(factor), points, start)
    # Steeper, and a smaller size would take longer than a larger one; so high, and the sweep does not tell it.
    if found is None or found.parameters[3] > math.log(_STEEPEST) or math.exp(found.parameters[0]) > 2 * most_Bps:
        found = fit(_straight(factor), points, start[:2])
    if found is None:
        return None
    rate, latency, knee, steepness = (math.exp(value) for value in _four(found.parameters))
    if rate > 2 * most_Bps or steepness < _FLATTEST:
        return None
    return _Sweep(group=group, large_Bps=rate, latency_s=latency, knee_s=knee, steepness=steepness)


def _four(parameters: Sequence[float]) -> tuple[float, float, float, float]:
    rate, latency, *rest = parameters
    knee, steepness = rest or (_NO_KNEE, 0.0)
    return rate, latency, knee, steepness


def _straight(factor: float) -> Curve:
    """Return the same without a pipeline that fills, by the logarithms of B and latency."""
    whole = _rise(factor)

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        height, slopes = whole(size_bytes, _four(values))
        return height, slopes[:2]

    return curve


def _rise(factor: float) -> Curve:
    """Return log busbw and its derivatives by the logarithms of B, latency, knee and steepness."""

    def curve(size_bytes: float, values: Sequence[float]) -> tuple[float, tuple[float, ...]]:
        rate, latency, knee, steepness = (math.exp(min(max(value, -60.0), 60.0)) for value in values)
        wire = factor * size_bytes / rate
        power = min(max(steepness * math.log(max(knee * rate / size_bytes, 1e-300)), -200.0), 200.0)
        filling = wire * math.exp(power)
        total = latency + wire + filling
        by_steepness = filling * power / total
        return math.log(factor * size_bytes / total), (
            (wire + filling * (1 - steepness)) / total,
            -latency / total,
            -filling * steepness / total,
            -by_steepness,
        )

    return curve


def _curves(sweeps: Sequence[_Sweep]) -> Iterable[RiseCurve]:
    """Yield a curve for each class of machines that has one, the narrowest classes first."""
    classes: dict[tuple[str, str | None, str | None, str | None], list[_Sweep]] = defaultdict(list)
    for sweep in sweeps:
        group = sweep.group
        within = groups_of(group.machine, group.nodes) == 1
        scope, fabric = ("one node", None) if within else ("several nodes", group.machine.fabric)
        alike = "tree" if group.algorithm in _TREES else group.algorithm
        generation = group.machine.generation
        for key in dict.fromkeys(
            (
                (scope, alike, generation, fabric),
                (scope, alike, None, fabric),
                (scope, None, generation, fabric),
                (scope, None, None, fabric),
                (scope, alike, None, None),
                (scope, None, None, None),
            )
        ):
            classes[key].append(sweep)
    for (scope, algorithm, wanted, network), members in sorted(classes.items(), key=lambda each: str(each[0])):
        yield RiseCurve(
            scope="one node" if scope == "one node" else "several nodes",
            algorithm=algorithm,
            generation=wanted,
            fabric=network,
            nodes=round(median(sorted(member.group.nodes for member in members))),
            latency_s=_significant(_middle([member.latency_s for member in members])),
            knee_s=_significant(_middle([member.knee_s for member in members])),
            steepness=_significant(_middle([member.steepness for member in members])),
            documents=_documents(member.group for member in members),
        )


def _middle(values: Sequence[float]) -> float:
    return math.exp(median(sorted(math.log(max(value, 1e-9)) for value in values)))


def _significant(value: float) -> float:
    """Return a value with four digits, as it is written to the file."""
    return float(f"{value:.4g}")


def _documents(groups: Iterable[CellGroup]) -> tuple[str, ...]:
    return tuple(sorted({group.document for group in groups}))


def _shares(
    groups: Sequence[CellGroup], sweeps: Sequence[_Sweep], curves: tuple[RiseCurve, ...]
) -> Iterable[LinkShare]:
    of_group = {id(sweep.group): sweep for sweep in sweeps}
    bare = PredictorConstants(most_nodes={}, share=(), curve=curves, left_out=())
    classes: dict[tuple[str, str, str | None, str | None], dict[str, list[tuple[bool, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for group in groups:
        bound = _bound(group)
        line = next((line for line in bound.lines if line.limits), None) if bound is not None else None
        if bound is None or line is None or line.busbw_Bps is None or group.algorithm is None or line.part == "slot":
            continue
        large = _large_Bps(group, of_group.get(id(group)), bare)
        if large is None:
            continue
        share = min(large / line.busbw_Bps, 1.0)
        part = "nic" if line.part in ("nic", "nic_slot") else "nvlink"
        generation, fabric = group.machine.generation, group.machine.fabric
        if part == "nvlink":
            keys: list[tuple[str, str, str | None, str | None]] = [
                (part, group.algorithm, generation, None),
                (part, group.algorithm, None, None),
            ]
        else:
            alike = "tree" if group.algorithm in _TREES else group.algorithm
            keys = [(part, alike, generation, fabric), (part, alike, None, fabric), (part, "any", None, fabric)]
            if fabric in RDMA:
                keys += [(part, alike, None, None), (part, "any", None, None)]
        for key in keys:
            classes[key][group.document].append((group.cells[-1][0] >= _TELLING_BYTES, share))
    for (part, algorithm, generation, fabric), members in sorted(classes.items(), key=lambda each: str(each[0])):
        # Sweeps that end early tell a share only where no other does. A document counts once, whatever number it has.
        tell = any(reaches for shares in members.values() for reaches, _ in shares)
        of_documents = {
            document: [share for reaches, share in shares if reaches or not tell]
            for document, shares in members.items()
        }
        told = {document: median(sorted(shares)) for document, shares in of_documents.items() if shares}
        values = sorted(told.values())
        middle = median(values)
        spread = None
        if len(values) > 1:
            spread = _significant(math.sqrt(sum(math.log(value / middle) ** 2 for value in values) / (len(values) - 1)))
        yield LinkShare(
            part=part,
            algorithm=algorithm,
            generation=generation,
            fabric=fabric,
            share=_significant(middle),
            spread=spread,
            documents=tuple(sorted(told)),
        )


def _bound(group: CellGroup) -> Bound | None:
    found = ceiling(
        group.machine.rates, nodes=group.nodes, collective=group.collective, algorithm=group.algorithm
    ).bounds
    return found[0] if found and found[0].busbw_Bps is not None else None


def _large_Bps(group: CellGroup, sweep: _Sweep | None, bare: PredictorConstants) -> float | None:
    """Return the bandwidth of a group at 16 GiB: by its own curve, or through that of its class."""
    try:
        curve = (
            _own_curve(sweep)
            if sweep is not None
            else curve_of(group.machine, group.nodes, group.algorithm or "", bare)
        )
    except CannotTellError:
        curve = None
    factor = COLLECTIVES[group.collective].factor(group.machine.rates.gpus * group.nodes)
    most_Bps = _FARTHEST * max(rate for _, rate in group.cells)
    if sweep is not None and curve is not None:
        return min(_busbw_Bps(curve, factor, sweep.large_Bps, LARGEST_BYTES), most_Bps)
    telling = [cell for cell in group.cells if cell[0] >= _TELLING_BYTES] or list(group.cells[-1:])
    return min(median(sorted(_solved(factor, size, rate, curve) for size, rate in telling)), most_Bps)


def _own_curve(sweep: _Sweep) -> RiseCurve:
    return RiseCurve(
        scope="one node",
        nodes=sweep.group.nodes,
        latency_s=sweep.latency_s,
        knee_s=sweep.knee_s,
        steepness=sweep.steepness,
        documents=(sweep.group.document,),
    )


def _busbw_Bps(curve: RiseCurve, factor: float, whole_Bps: float, size_bytes: float) -> float:
    wire_s = factor * size_bytes / whole_Bps
    return factor * size_bytes / (curve.latency_s + wire_s + filling_of(curve, wire_s, whole_Bps, size_bytes))


def _solved(factor: float, size_bytes: int, busbw_Bps: float, curve: RiseCurve | None) -> float:
    """Return the bandwidth at 16 GiB with which a curve goes through one cell; at most a half more than the cell."""
    if curve is None:
        return busbw_Bps
    low, high = busbw_Bps, 1.5 * busbw_Bps
    for _ in range(40):
        middle = (low + high) / 2
        if _busbw_Bps(curve, factor, endless_Bps(curve, factor, middle), size_bytes) < busbw_Bps:
            low = middle
        else:
            high = middle
    return (low + high) / 2


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
    documents = sorted({group.document for group in groups})
    found: list[Residual] = []
    for document in documents:
        block = next((block for block in NEIGHBOURS if document in block), (document,))
        constants = fitted_constants([group for group in groups if group.document not in block])
        # Any interval serves to have the central value: none is looked at here.
        constants = _with_any_interval(constants)
        for group in groups:
            if group.document == document:
                found += _residuals(group, constants)
    return tuple(found)


def _with_any_interval(constants: PredictorConstants) -> PredictorConstants:
    bands: tuple[Band, ...] = ("large", "middle", "small")
    rows = tuple(HeldOut(band=band, kinship="across", document="none", residuals=(0.0,)) for band in bands)
    return PredictorConstants(
        most_nodes=constants.most_nodes, share=constants.share, curve=constants.curve, left_out=rows
    )


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


def with_intervals(constants: PredictorConstants, residuals: Sequence[Residual]) -> PredictorConstants:
    """Return the constants with what was left of documents, by band and kinship."""
    by: dict[tuple[Band, Kinship, str], list[float]] = defaultdict(list)
    for residual in residuals:
        call, ratio = residual.call, residual.log_ratio
        if call is not None and ratio is not None and residual.group.is_fitted:
            by[band_of(residual.size_bytes), call.kinship, residual.group.document].append(abs(ratio) / call.widened)
    for band, document, values in _calibrated(residuals):
        by[band, "calibrated", document] += values
    rows = tuple(
        HeldOut(
            band=band,
            kinship=kinship,
            document=document,
            residuals=_quantiles(sorted(values)),
        )
        for (band, kinship, document), values in sorted(by.items())
    )
    return PredictorConstants(
        most_nodes=constants.most_nodes, share=constants.share, curve=constants.curve, left_out=rows
    )


def _calibrated(residuals: Sequence[Residual]) -> Iterable[tuple[Band, str, list[float]]]:
    """Yield what is left of a sweep in a band once it is shifted through its middle cell: of the others."""
    sweeps: dict[tuple[int, str, Band], list[float]] = defaultdict(list)
    documents = {}
    for residual in residuals:
        if residual.call is not None and residual.log_ratio is not None and residual.group.is_fitted:
            key = id(residual.group), residual.call.algorithm, band_of(residual.size_bytes)
            sweeps[key].append(residual.log_ratio)
            documents[key] = residual.group.document
    for key, ratios in sweeps.items():
        if len(ratios) > 1:
            middle = len(ratios) // 2
            others = [ratio for place, ratio in enumerate(ratios) if place != middle]
            yield key[2], documents[key], [abs(ratio - ratios[middle]) for ratio in others]


def _quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Return at most ten values that stand for all, the largest among them."""
    if len(values) <= _QUANTILES:
        return tuple(_significant(value) for value in values)
    return tuple(
        _significant(values[math.ceil((step + 1) * len(values) / _QUANTILES) - 1]) for step in range(_QUANTILES)
    )


def algorithm_of(group: CellGroup) -> str | None:
    """Return what a group's algorithm can only have been; None where it cannot be told.

    Above what a ring's links carry it was a tree; where a switch adds within one node, it did so from five GPUs on.
    """
    if group.stated is not None:
        return group.stated
    if group.collective != "all_reduce":
        return "ring"
    ring = next(iter(ceiling(group.machine.rates, nodes=group.nodes, collective="all_reduce", algorithm="ring").bounds))
    most_Bps = max(rate for _, rate in group.cells)
    adds = group.machine.rates.nvls is True
    if groups_of(group.machine, group.nodes) == 1:
        return "nvls" if adds and group.machine.rates.gpus * group.nodes > 4 else "ring"
    if ring.busbw_Bps is not None and most_Bps > ring.busbw_Bps:
        return "nvlstree" if adds else "tree"
    return "ring"

"""The closed form: T = latency + f S/B (1 + (knee B/S)^steepness), with B from exact loads of links.

B is such that 16 GiB come out at the least, over the parts that data passes, of a part's line rate times what the
algorithm's loads let it carry (`limits`) times the share of it that collectives have reached (fitted). Nothing is
predicted above that. Constants are looked up from the nearest class
of machines to wider ones; the interval is of documents that had no part in the constants.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants, nccl_model_facts, newest_release
from busbw.facts.predictor import predictor_constants
from busbw.limits.algorithms import algorithm_name, shape_of
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_platform
from busbw.model.limit import Bound, NodeRates
from busbw.model.platform import Platform
from busbw.model.predict.prediction import (
    Band,
    HeldOut,
    Kinship,
    LinkShare,
    PredictedCall,
    PredictorConstants,
    RiseCurve,
)
from busbw.predict.nccl import empty_call

_LARGE_BYTES = 2**30
_MIDDLE_BYTES = 2**20
# Shares of line rates are those of messages of this size.
LARGEST_BYTES = 2**34
# Fewer documents say nothing of a 90 % interval: the 90th part of them cannot be told.
LEAST_DOCUMENTS = 9
_COVERED = 0.9
_SHARP = "SHARP: what of its bound is reached takes a measured constant for each regime, and none is published"
_BANDS = {"large": "from 1 GiB on", "middle": "from 1 MiB on", "small": "below 1 MiB"}
# Beyond this many times the nodes seen, the interval grows by half of itself with each doubling.
_SEEN_TIMES = 2
_GROWTH = 0.5
# Up to five GPUs NCCL keeps to the ring within a node; the tree of one node is a chain that nobody measured.
_NOT_IN_ONE_NODE = frozenset({"tree"})
_TREES = frozenset({"tree", "nvlstree"})
# Networks that read and write memory of GPUs. Of one of them that nobody measured the others say something, with an
# interval this many times as wide.
RDMA = frozenset({"InfiniBand", "RoCE", "EFA", "Slingshot"})
_OTHER_TIMES = 1.5
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


@dataclass(frozen=True, kw_only=True)
class MachineClass:
    """Nodes of one kind as the constants see them."""

    name: str
    rates: NodeRates
    # ampere, hopper, blackwell, blackwell rack (a switch joins GPUs of several nodes), or AMD's processor; None: of no
    # kind that was measured.
    generation: str | None
    # The kind of network; None: not known.
    fabric: str | None
    # Compute capability times ten.
    sm: int | None = None

    def __hash__(self) -> int:
        """Return a hash by name and GPUs, of which everything else follows."""
        return hash((self.name, self.rates.gpus))


def machine_of(platform: Platform, *, gpus: int | None = None, name: str | None = None) -> MachineClass:
    """Return a platform as the constants see it. Raises InputError as `rates_of_platform`."""
    generations = {80: "ampere", 90: "hopper", 100: "blackwell"}
    generation = generations.get(platform.gpu.sm or 0)
    if generation is not None and platform.nvlink.domain_gpus is not None:
        generation = f"{generation} rack"
    if platform.gpu.gcn is not None:
        generation = platform.gpu.gcn.partition(":")[0]
    return MachineClass(
        name=platform.id,
        rates=rates_of_platform(platform, gpus=gpus, name=name),
        generation=generation,
        fabric=platform.fabric.kind,
        sm=platform.gpu.sm,
    )


def groups_of(machine: MachineClass, nodes: int) -> int:
    """Return how many groups of ranks only NICs join: nodes, or NVLink domains of several."""
    return shape_of(machine.rates, nodes).groups


def band_of(size_bytes: int) -> Band:
    """Return the band of a size."""
    return "large" if size_bytes >= _LARGE_BYTES else "middle" if size_bytes >= _MIDDLE_BYTES else "small"


def bands_words(band: Band) -> str:
    """Return which sizes a band has."""
    return _BANDS[band]


class CannotTellError(Exception):
    """No data applies; the text says to what."""


@lru_cache(maxsize=4096)
def bounds_of(machine: MachineClass, nodes: int, collective: str, algorithm: str | None) -> tuple[Bound, ...]:
    """Return the bounds of the ways to do a collective, or of the one asked for.

    Raises InputError for what cannot be, CannotTellError for a collective without a closed form.
    """
    limit = ceiling(machine.rates, nodes=nodes, collective=collective, algorithm=algorithm)
    if not machine.rates.gpus:
        raise CannotTellError("the constants are of GPUs, and these nodes have none")
    if collective not in _COLLECTIVES:
        raise CannotTellError(f"nobody has published {collective} in a table that the constants could be fitted to")
    groups = groups_of(machine, nodes)
    if groups > 1 and groups < nodes:
        raise CannotTellError("between racks nothing is settled: two racks of GB200 reached 810 GB/s, and twenty 406")
    found = tuple(
        bound
        for bound in limit.bounds
        if bound.busbw_Bps is not None and not (groups == 1 and bound.algorithm in _NOT_IN_ONE_NODE)
    )
    if not found:
        raise CannotTellError("the rate of a part is not known: busbw limit says which")
    return found


def predicted(
    machine: MachineClass,
    *,
    nodes: int,
    collective: str,
    size_bytes: int,
    algorithm: str | None = None,
    constants: PredictorConstants | None = None,
) -> tuple[PredictedCall, ...]:
    """Return what a call takes by each way that can be predicted: those in family first, of each the fastest.

    Raises InputError for sizes and algorithms that cannot be, CannotTellError where no data applies.
    """
    if size_bytes < 1:
        raise InputError(f"a size of {size_bytes} bytes", hint="from 8 bytes on: --size 1M")
    asked = algorithm_name(algorithm) if algorithm is not None else None
    known = constants or predictor_constants()
    calls, reasons = [], []
    for bound in bounds_of(machine, nodes, collective, asked):
        try:
            calls.append(_call(machine, nodes, collective, size_bytes, bound, known))
        except CannotTellError as error:
            reasons.append(str(error))
    if not calls:
        raise CannotTellError("; ".join(dict.fromkeys(reasons)))
    return tuple(sorted(calls, key=lambda call: (call.kinship != "in family", call.time_s)))


def _call(
    machine: MachineClass, nodes: int, collective: str, size_bytes: int, bound: Bound, constants: PredictorConstants
) -> PredictedCall:
    if bound.algorithm == "collnet":
        raise CannotTellError(_SHARP)
    ranks = machine.rates.gpus * nodes
    most_Bps, limited_by, share = large_Bps(machine, bound, constants, within=groups_of(machine, nodes) == 1)
    curve = curve_of(machine, nodes, bound.algorithm, constants)
    factor = COLLECTIVES[collective].factor(ranks)
    whole_Bps = endless_Bps(curve, factor, most_Bps)
    wire_s = factor * size_bytes / whole_Bps
    latency_s, latency_words = _latency(machine, nodes, collective, bound.algorithm, curve)
    filling_s = filling_of(curve, wire_s, whole_Bps, size_bytes)
    # Beyond 16 GiB nobody measured that it still rises.
    wire_s += max(0.0, factor * size_bytes / most_Bps - (latency_s + wire_s + filling_s))
    time_s = latency_s + wire_s + filling_s
    busbw_Bps = factor * size_bytes / time_s
    bound_Bps = bound.busbw_Bps or busbw_Bps
    kinship = kinship_of(machine, share)
    band = band_of(size_bytes)
    reach, words = reach_of(constants.left_out, band, kinship)
    times, extrapolated = _extrapolated(machine, nodes, share, constants)
    return PredictedCall(
        nodes=nodes,
        ranks=ranks,
        size_bytes=size_bytes,
        algorithm=bound.algorithm,
        time_s=time_s,
        busbw_Bps=busbw_Bps,
        algbw_Bps=size_bytes / time_s,
        low_Bps=busbw_Bps * math.exp(-reach * times),
        high_Bps=min(busbw_Bps * math.exp(reach * times), bound_Bps),
        bound_Bps=bound_Bps,
        latency_s=latency_s,
        filling_s=filling_s,
        wire_s=wire_s,
        limited_by=limited_by,
        kinship=kinship,
        interval_words=f"{bands_words(band)}: {words}",
        extrapolated=extrapolated,
        share_spread=share.spread,
        widened=times,
        basis=(_share_words(share, limited_by), _curve_words(curve), *latency_words),
        documents=tuple(dict.fromkeys((*share.documents, *curve.documents))),
    )


def _latency(
    machine: MachineClass, nodes: int, collective: str, algorithm: str, curve: RiseCurve
) -> tuple[float, tuple[str, ...]]:
    """Return the time of a few bytes: of NCCL's own model where calls were seen to take as long, else of the curve."""
    facts = nccl_model_facts()
    if nodes > 1 or algorithm != "ring" or machine.sm not in facts.confirmed_sm:
        return curve.latency_s, ()
    found = empty_call(nccl_constants(newest_release()), collective, machine.rates.gpus)
    if found is None:
        return curve.latency_s, ()
    hops = f"{found.base_us:g} us + {found.hops} hops of {found.hop_us:g} us"
    return found.time_us * 1e-6, (f"a few bytes: {hops}, NCCL's cost model ({', '.join(facts.confirmed)})",)


def filling_of(curve: RiseCurve, wire_s: float, whole_Bps: float, size_bytes: float) -> float:
    """Return the time in which the pipeline is not full."""
    filling: float = wire_s * (curve.knee_s * whole_Bps / size_bytes) ** curve.steepness
    return filling


def endless_Bps(curve: RiseCurve, factor: float, large_Bps: float) -> float:
    """Return the B with which a curve reaches `large_Bps` at 16 GiB."""
    moved = factor * LARGEST_BYTES
    left_s = moved / large_Bps - curve.latency_s
    # Without the part that does not depend on the size nothing would be left: 16 GiB take longer than any latency.
    whole_Bps = moved / max(left_s, 0.5 * moved / large_Bps)
    start_Bps = whole_Bps
    for _ in range(8):
        whole_Bps = start_Bps * (1 + (curve.knee_s * whole_Bps / LARGEST_BYTES) ** curve.steepness)
        if whole_Bps > 2 * start_Bps:
            return 2 * start_Bps
    return whole_Bps


_TITLES = {
    "nic": "NICs of a node",
    "nvlink": "links of a GPU",
    "pair": "links of two GPUs",
    "slot": "slot of a GPU",
    "nic_slot": "NIC slots of a node",
}


def large_Bps(
    machine: MachineClass, bound: Bound, constants: PredictorConstants, *, within: bool
) -> tuple[float, str, LinkShare]:
    """Return the bus bandwidth of messages of 16 GiB, the part that limits it, and the share it was counted with.

    Raises CannotTellError where no document has such a part.
    """
    least: tuple[float, str, LinkShare] | None = None
    for line in bound.lines:
        if line.busbw_Bps is None:
            continue
        # Between nodes the slot of a GPU carries what its NICs carry.
        part = "nic" if line.part == "slot" and not within else line.part
        share = share_of(machine, part, bound.algorithm, constants)
        if share is None:
            if line.limits:
                raise CannotTellError(_no_share_words(machine, line.part, bound.algorithm))
            continue
        rate_Bps = line.busbw_Bps * share.share
        if least is None or rate_Bps < least[0]:
            least = rate_Bps, _TITLES.get(line.part, line.part), share
    if least is None:
        raise CannotTellError("no part that data passes has been measured")
    # A part without a share still bounds.
    return min(least[0], bound.busbw_Bps or least[0]), least[1], least[2]


def _no_share_words(machine: MachineClass, part: str, algorithm: str) -> str:
    where = {
        "nic": machine.fabric or "a network of unknown kind",
        "nic_slot": f"{machine.fabric or 'a network'} whose NICs are faster than their slots",
        "slot": "nodes whose GPUs' slots limit",
    }
    return f"nobody has published {algorithm} over {where.get(part, 'such GPUs')}"


def share_of(machine: MachineClass, part: str, algorithm: str, constants: PredictorConstants) -> LinkShare | None:
    """Return how much of a part is reached, of the nearest class that has documents; None: no class has."""
    kind = "nic" if part in ("nic", "nic_slot") else "nvlink"
    if part == "slot":
        return None
    alike = "tree" if kind == "nic" and algorithm in _TREES else algorithm
    ladder: list[tuple[str, str | None, str | None]] = [(alike, machine.generation, None)]
    if algorithm == "nvlstree":
        # Within a node its switch adds as it does in one alone.
        ladder.append(("nvls", machine.generation, None))
    ladder.append((alike, None, None))
    if kind == "nic":
        if machine.fabric is None:
            return None
        ladder = [
            (alike, machine.generation, machine.fabric),
            (alike, None, machine.fabric),
            ("any", None, machine.fabric),
        ]
        if machine.fabric in RDMA:
            ladder += [(alike, None, None), ("any", None, None)]
    found = (_share(constants, kind, *wanted) for wanted in ladder)
    return next((share for share in found if share is not None), None)


def _share(
    constants: PredictorConstants, part: str, algorithm: str, generation: str | None, fabric: str | None
) -> LinkShare | None:
    return next(
        (
            row
            for row in constants.share
            if (row.part, row.algorithm, row.generation, row.fabric) == (part, algorithm, generation, fabric)
        ),
        None,
    )


def curve_of(machine: MachineClass, nodes: int, algorithm: str, constants: PredictorConstants) -> RiseCurve:
    """Return how the time rises with the size, of the nearest class. Raises CannotTellError where nothing is near."""
    within = groups_of(machine, nodes) == 1
    scope, fabric = ("one node", None) if within else ("several nodes", machine.fabric)
    alike = "tree" if algorithm in _TREES else algorithm
    ladder = (
        (alike, machine.generation, fabric),
        (alike, None, fabric),
        (None, machine.generation, fabric),
        (None, None, fabric),
        (alike, None, None),
        (None, None, None),
    )
    for wanted in ladder:
        for row in constants.curve:
            if row.scope == scope and (row.algorithm, row.generation, row.fabric) == wanted:
                return row if within else _over(row, nodes, algorithm)
    raise CannotTellError(f"nobody has published a sweep over {scope}")


def _over(curve: RiseCurve, nodes: int, algorithm: str) -> RiseCurve:
    """Return the curve for another number of nodes: a tree grows with its depth, a ring with its length."""
    if nodes == curve.nodes:
        return curve
    if algorithm in _TREES:
        times = max(1.0, math.log2(nodes)) / max(1.0, math.log2(curve.nodes))
    else:
        times = nodes / curve.nodes
    return RiseCurve(
        scope=curve.scope,
        algorithm=curve.algorithm,
        generation=curve.generation,
        fabric=curve.fabric,
        nodes=nodes,
        latency_s=curve.latency_s * times,
        knee_s=curve.knee_s * times,
        steepness=curve.steepness,
        documents=curve.documents,
    )


def kinship_of(machine: MachineClass, share: LinkShare) -> Kinship:
    """Return whether the constant that counts most is of such machines."""
    own = share.generation == machine.generation and share.generation is not None
    return "in family" if own and (share.part == "nvlink" or share.fabric == machine.fabric) else "across"


def reach_of(left_out: Sequence[HeldOut], band: Band, kinship: Kinship) -> tuple[float, str]:
    """Return how far the 90 % interval reaches on the logarithm, and where that is from.

    Documents count alike, whatever number of cells they have. Raises CannotTellError where too few were left out.
    """
    wider = [row for row in left_out if row.band == band and (row.kinship == "calibrated") is (kinship == "calibrated")]
    own = [row for row in wider if row.kinship == kinship]
    rows = own if len(own) >= LEAST_DOCUMENTS or kinship == "calibrated" else wider
    if not rows:
        raise CannotTellError("no document of such sizes was left out of the fit: an interval cannot be told")
    cells = sorted((residual, 1 / len(row.residuals)) for row in rows for residual in row.residuals)
    level = min(1.0, _COVERED * (len(rows) + 1) / len(rows)) * len(rows)
    passed, reach = 0.0, cells[-1][0]
    for residual, weight in cells:
        passed += weight
        if passed >= level - 1e-9:
            reach = residual
            break
    less = "" if len(rows) >= LEAST_DOCUMENTS else "; fewer than nine tell no 90 %: take it as a hint"
    if rows is own:
        return reach, f"{len(rows)} documents {kinship}, each left out of the fit{less}"
    few = f", as only {len(own)} of them are {kinship}" if own else f", as none of them is {kinship}"
    return reach, f"{len(rows)} documents of any machine, each left out of the fit{few}{less}"


def _extrapolated(
    machine: MachineClass, nodes: int, share: LinkShare, constants: PredictorConstants
) -> tuple[float, tuple[str, ...]]:
    """Return by how much the interval grows, and why."""
    if groups_of(machine, nodes) == 1:
        if share.generation is None:
            return _OTHER_TIMES, (f"nobody has published such GPUs: those of others, interval x {_OTHER_TIMES:g}",)
        return 1.0, ()
    times, words = 1.0, []
    if share.part == "nic" and share.fabric is None:
        times *= _OTHER_TIMES
        words.append(f"nobody has published {machine.fabric}: by other networks, interval x {_OTHER_TIMES:g}")
    own = constants.most_nodes.get(machine.fabric or "")
    seen = own or max(constants.most_nodes.values(), default=1)
    if nodes > _SEEN_TIMES * seen:
        grown = 1 + _GROWTH * math.log2(nodes / (_SEEN_TIMES * seen))
        times *= grown
        measured = f"the {seen} that were measured over {machine.fabric if own else 'any network'}"
        words.append(f"{nodes} nodes are beyond twice {measured}: interval x {grown:.2f}")
    return times, tuple(words)


def _share_words(share: LinkShare, limited_by: str) -> str:
    of = " ".join(each for each in (share.algorithm, share.generation, share.fabric) if each is not None)
    spread = f" +- {100 * share.spread:.0f} %" if share.spread is not None else ""
    return f"{limited_by}: {share.share:.3f} of line rate{spread}, fitted ({of}; {', '.join(share.documents)})"


def _curve_words(curve: RiseCurve) -> str:
    of = " ".join(each for each in (curve.algorithm, curve.generation, curve.fabric) if each is not None) or curve.scope
    return (
        f"rise with size: {curve.latency_s * 1e6:.0f} us, knee {curve.knee_s * 1e6:.0f} us, steepness "
        f"{curve.steepness:.2f}, fitted ({of}; {', '.join(curve.documents)})"
    )

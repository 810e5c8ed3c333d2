"""The closed form: the bus bandwidth of very large messages from exact loads of links, and below it how a call rises.

16 GiB come out at the least, over the parts that data passes, of a part's line rate times what the algorithm's loads
let it carry (`limits`) times the share of it that collectives have reached (fitted); `rising` has the way to there.
Nothing is predicted above that. Constants are looked up from the nearest class of machines to wider ones; the
interval is of documents that had no part in the constants.
"""

import math
from dataclasses import replace
from functools import lru_cache

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.facts.predictor import predictor_constants
from busbw.limits.algorithms import algorithm_name
from busbw.limits.ceiling import ceiling
from busbw.model.limit import Bound
from busbw.model.predict.nccl_choice import Protocol
from busbw.model.predict.prediction import (
    Exchange,
    HeldKinship,
    Kinship,
    LinkShare,
    OwnPart,
    PredictedCall,
    PredictorConstants,
    Scope,
)
from busbw.predict.intervals import band_of, bands_words, reach_of, stretch_of
from busbw.predict.machines import CannotTellError, MachineClass, groups_of
from busbw.predict.rising import LARGEST_BYTES, ROOTED, CallTime, Rise, rise_of
from busbw.predict.sends import SENDS, send_time
from busbw.predict.shares import CHANNELS, kinship_of, large_Bps, share_words

SHARP_UNTOLD = "SHARP: how much of its bound it reaches can only be measured, and nobody has published enough of it"
# Rings over eight NICs of 400 Gb/s were seen at this share of line rate or from 0.92 on, and nobody has said why:
# NDv5's 330 GB/s and A3 Ultra's 329 (W1, T07). Both modes stay in the interval.
_SLOW_RING = 0.82
# Beyond this many times the nodes seen, the interval grows by half of itself with each doubling.
_SEEN_TIMES = 2
_GROWTH = 0.5
# Up to four GPUs NCCL keeps to the ring within a node; the tree of one node is a chain that nobody measured.
_MOST_IN_RING = 4
_NOT_IN_ONE_NODE = frozenset({"tree"})
# Of networks and GPUs that nobody measured others say something, with an interval this many times as wide.
_OTHER_TIMES = 1.5
_COLLECTIVES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}) | SENDS
# Patterns whose constants are of others until some document has them.
_OWN_PATTERNS = SENDS | {"chain", "pat"}
_UNSENT = "no document has sends on such GPUs"
# Whose scatter what is carried has: the wider of the two.
CARRIED: tuple[HeldKinship, ...] = ("across", "carried")
# In these each NIC sends to all nodes at once, in rings and trees to one or a few: what was measured of those on many
# nodes says nothing of how a network carries it.
_TO_ALL = frozenset({"alltoall", "gather", "scatter"})
# How many times as far off as usual a part may be of which no document says anything.
_PRESUMED_DOUBT = 10.0
# How far hops are usually off, on the logarithm: what is open of a call's order counts against it.
_USUAL_HOPS = 0.2
_TWO_LEVEL = "the two-level alltoall is no part of NCCL, and no document has its copies and its two exchanges by size"


@lru_cache(maxsize=4096)
def bounds_of(machine: MachineClass, nodes: int, collective: str, algorithm: str | None) -> tuple[Bound, ...]:
    """Return the bounds of the ways to do a collective, or of the one asked for.

    Raises InputError for what cannot be, CannotTellError for a collective without a closed form.
    """
    if machine.rates.gpus and collective in COLLECTIVES and collective not in _COLLECTIVES:
        is_two_level = collective == "alltoall_2dh"
        raise CannotTellError(_TWO_LEVEL if is_two_level else f"no published table of {collective} gives constants")
    limit = ceiling(machine.rates, nodes=nodes, collective=collective, algorithm=algorithm)
    if not machine.rates.gpus:
        raise CannotTellError("the constants are of GPUs, and these nodes have none")
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
    protocol: Protocol | None = None,
    constants: PredictorConstants | None = None,
) -> tuple[PredictedCall, ...]:
    """Return what a call takes by each way that can be predicted, the one that is expected first.

    That is the fastest in family, unless another takes less though it reached no more of what limits it than that one
    does. None: each way has the protocol that takes least.

    Raises InputError for sizes and algorithms that cannot be, CannotTellError where no data applies.
    """
    if size_bytes < 1:
        raise InputError(f"a size of {size_bytes} bytes", hint="from 8 bytes on: --size 1M")
    asked = algorithm_name(algorithm) if algorithm is not None else None
    known = constants or predictor_constants()
    calls, reasons = [], []
    for bound in bounds_of(machine, nodes, collective, asked):
        try:
            call = _call(machine, nodes, collective, size_bytes, bound, known)
            if protocol is not None:
                fastest, call = call, _call(machine, nodes, collective, size_bytes, bound, known, protocol)
                _check_protocol(call, fastest, protocol)
            calls.append(call)
        except CannotTellError as error:
            reasons.append(str(error))
    if not calls:
        raise CannotTellError("; ".join(dict.fromkeys(reasons)))
    taken = [call for call in calls if not _is_passed_over(machine, nodes, collective, call)]
    familiar = min((call for call in taken if call.kinship == "in family"), key=lambda call: call.time_s, default=None)
    return tuple(
        sorted(
            calls,
            key=lambda call: (
                call not in taken,
                familiar is not None and _is_doubted(call, familiar, network=groups_of(machine, nodes) > 1),
                # Equal but for rounding: with a switch that adds, the tree that uses it.
                float(f"{call.time_s:.6g}"),
                call.algorithm != "nvlstree",
            ),
        )
    )


def _check_protocol(call: PredictedCall, fastest: PredictedCall, protocol: Protocol) -> None:
    """Raise CannotTellError where a protocol takes far longer than another: no document has one that NCCL avoids."""
    if call.busbw_Bps < fastest.low_Bps:
        raise CannotTellError(f"nobody has published {protocol} at sizes where another protocol takes less time")


def _is_doubted(call: PredictedCall, familiar: PredictedCall, *, network: bool) -> bool:
    """Return whether a way is not in family, and takes less than one that is only by what it reaches of a link.

    Kinship is of that share: of hops, and of how many bytes a way sends, it says nothing. So it does not count where
    hops are most of the one in family, nor where the other takes less with no larger share than that one has: over a
    network by more than its hops are usually off.
    """
    if call.kinship == "in family" or 2 * familiar.latency_s > familiar.time_s:
        return False
    if call.share is None or familiar.share is None:
        return True
    bytes_s = call.wire_s + call.flags_s
    alike_s = call.time_s + bytes_s * max(0.0, call.share / familiar.share - 1)
    return alike_s * math.exp(_USUAL_HOPS if network else 0.0) >= familiar.time_s


def _is_passed_over(machine: MachineClass, nodes: int, collective: str, call: PredictedCall) -> bool:
    """Return whether NCCL passes a way over: within a node whose switch adds, the ring of more than four GPUs."""
    return (
        groups_of(machine, nodes) == 1
        and collective == "all_reduce"
        and call.ranks > _MOST_IN_RING
        and machine.rates.nvls is True
        and call.algorithm != "nvls"
    )


def _check_way(machine: MachineClass, algorithm: str) -> None:
    """Raise CannotTellError for a way that no document has, or that the machine does not have."""
    if algorithm == "collnet":
        raise CannotTellError(SHARP_UNTOLD)
    if algorithm == "two-level":
        raise CannotTellError(_TWO_LEVEL)
    if algorithm in ("nvls", "nvlstree") and machine.rates.nvls is False:
        raise CannotTellError(f"{algorithm} takes NVSwitches that add, which such nodes do not have")


def _call(
    machine: MachineClass,
    nodes: int,
    collective: str,
    size_bytes: int,
    bound: Bound,
    constants: PredictorConstants,
    protocol: Protocol | None = None,
) -> PredictedCall:
    _check_way(machine, bound.algorithm)
    ranks = machine.rates.gpus * nodes
    most_Bps, limited_by, share = large_Bps(machine, bound, constants, nodes=nodes, collective=collective)
    factor = COLLECTIVES[collective].factor(ranks)
    timed = _timed(machine, nodes, collective, size_bytes, bound.algorithm, most_Bps, constants, protocol)
    parts = timed.parts
    time_s = parts.time_s + timed.own_s
    busbw_Bps = factor * size_bytes / time_s
    bound_Bps = bound.busbw_Bps or busbw_Bps
    unmeasured = _unmeasured(machine, nodes, collective, bound.algorithm, constants)
    kinship = kinship_of(machine, share, bound.algorithm) if unmeasured is None else "across"
    scatter, words = _scatter(constants, machine, nodes, collective, size_bytes, kinship, unmeasured)
    if unmeasured is None and kinship == "across" and collective in SENDS and share.part == "nvlink":
        unmeasured = _UNSENT
    scatter *= stretch_of(timed.loose_s / time_s)
    down = up = scatter
    if bound.algorithm == "ring" and share.part == "nic" and share.share > _SLOW_RING:
        down = up = max(scatter, math.log(share.share / _SLOW_RING))
        words += "; it includes 0.82 of line rate, which is all that some rings reach"
    times, extrapolated = _extrapolated(machine, nodes, share, constants, collective, unmeasured)
    down = math.hypot(down * times, math.log(timed.most_s / time_s))
    up = math.hypot(up * times, math.log(time_s / timed.least_s))
    return PredictedCall(
        nodes=nodes,
        ranks=ranks,
        size_bytes=size_bytes,
        algorithm=bound.algorithm,
        time_s=time_s,
        busbw_Bps=busbw_Bps,
        algbw_Bps=size_bytes / time_s,
        low_Bps=busbw_Bps * math.exp(-down),
        high_Bps=min(busbw_Bps * math.exp(up), bound_Bps),
        bound_Bps=bound_Bps,
        latency_s=parts.latency_s,
        filling_s=parts.filling_s,
        flags_s=parts.flags_s,
        wire_s=parts.wire_s + timed.own_s,
        limited_by=limited_by,
        kinship=kinship,
        unmeasured=unmeasured,
        presumed=not share.documents,
        doubt=_doubt(share, times, unmeasured, timed),
        interval_words=f"{bands_words(band_of(size_bytes))}, {words}",
        widest=_widest(scatter, down, times, timed),
        extrapolated=extrapolated,
        share=share.share if limited_by != CHANNELS else None,
        share_spread=share.spread,
        widened=times,
        basis=(share_words(share, limited_by), *timed.words),
        documents=tuple(dict.fromkeys((*share.documents, *timed.documents))),
    )


def _timed(
    machine: MachineClass,
    nodes: int,
    collective: str,
    size_bytes: int,
    algorithm: str,
    most_Bps: float,
    constants: PredictorConstants,
    protocol: Protocol | None,
) -> CallTime:
    """Return how long a call takes; `most_Bps`: the bus bandwidth of 16 GiB, of sends that of endless messages."""
    if collective in SENDS:
        if protocol is not None:
            raise CannotTellError(f"--protocol is of other collectives than {collective}: leave it out")
        return send_time(machine, nodes, collective, size_bytes, most_Bps, constants)
    ranks = machine.rates.gpus * nodes
    factor = COLLECTIVES[collective].factor(ranks)
    own = own_part_of(machine, collective, algorithm, constants) if groups_of(machine, nodes) == 1 else None
    rise = rise_of(machine, nodes, collective, algorithm, constants)
    # What a chain reaches is of rings, which do not fill: of a large one it is not the whole.
    is_chain = collective in ROOTED and rise.stages is not None
    endless_Bps = most_Bps if is_chain else rise.endless_Bps(factor, most_Bps)
    parts = (rise if protocol is None else _with_protocol(rise, protocol, algorithm)).parts(
        factor, size_bytes, endless_Bps
    )
    # Beyond 16 GiB nobody measured that it still rises.
    parts = replace(parts, wire_s=parts.wire_s + max(0.0, factor * size_bytes / most_Bps - parts.time_s))
    written_s = own_s(own, size_bytes, ranks)
    return CallTime(
        parts=parts,
        own_s=written_s,
        loose_s=parts.latency_s + parts.filling_s,
        least_s=parts.time_s + written_s,
        most_s=parts.time_s + written_s,
        words=(*rise.words, *([own_words(own)] if own is not None else [])),
        documents=rise.documents,
    )


def _with_protocol(rise: Rise, protocol: Protocol, algorithm: str) -> Rise:
    """Return how a call rises with one protocol alone. Raises CannotTellError where NCCL does not have it."""
    ways = tuple(way for way in rise.ways if (way.protocol or "Simple") == protocol)
    if not ways or (algorithm == "nvlstree" and protocol != "Simple"):
        raise CannotTellError(f"NCCL has no {protocol} for {algorithm}")
    return replace(rise, ways=ways)


def _doubt(share: LinkShare, widened: float, unmeasured: str | None, timed: CallTime) -> float:
    """Return how many times as far off as usual a call may be: it says how much measured cells of it count."""
    if not share.documents:
        return _PRESUMED_DOUBT
    return max(widened if unmeasured is not None else 1.0, timed.open_order / _USUAL_HOPS)


def pattern_of(collective: str, algorithm: str) -> str:
    """Return by what documents have a way: sends by their collective, one root as a chain, else its algorithm."""
    if collective in SENDS:
        return collective
    return "chain" if collective in ROOTED else algorithm


def _unmeasured(
    machine: MachineClass, nodes: int, collective: str, algorithm: str, constants: PredictorConstants
) -> str | None:
    """Return which pattern no document has, in words; None: some document has it, or it is like others."""
    pattern, scope = pattern_of(collective, algorithm), scope_of(machine, nodes)
    if pattern not in _OWN_PATTERNS or any((row.pattern, row.scope) == (pattern, scope) for row in constants.measured):
        return None
    what = {"chain": f"a chain ({collective})", "pat": f"PAT ({collective})"}.get(pattern, pattern)
    return f"no document has {what} {'within a node' if scope == 'one node' else 'between nodes'}"


def _scatter(
    constants: PredictorConstants,
    machine: MachineClass,
    nodes: int,
    collective: str,
    size_bytes: int,
    kinship: Kinship,
    unmeasured: str | None,
) -> tuple[float, str]:
    """Return how far documents lie off that were left out, and in words which."""
    band, scope = band_of(size_bytes), scope_of(machine, nodes)
    if unmeasured is None:
        return reach_of(constants.left_out, band, kinship, scope, exchange_of(collective))
    # Few documents tell what is carried: no less than what is across.
    return max(reach_of(constants.left_out, band, held, scope) for held in CARRIED)


def exchange_of(collective: str) -> Exchange:
    """Return whether a collective is sends and receives, whose documents are held by themselves."""
    return "sends" if collective in SENDS else "collective"


def scope_of(machine: MachineClass, nodes: int) -> Scope:
    """Return whether a job is within one node (or one rack that a switch joins), or over several."""
    return "one node" if groups_of(machine, nodes) == 1 else "several nodes"


def own_part_of(
    machine: MachineClass, collective: str, algorithm: str, constants: PredictorConstants
) -> OwnPart | None:
    """Return what a rank's own part costs it in a ring within a node; None: nothing that is known."""
    if algorithm != "ring" or machine.sm is None:
        return None
    return next((row for row in constants.own if row.collective == collective), None)


def own_s(part: OwnPart | None, size_bytes: int, ranks: int) -> float:
    """Return how long a rank writes its own part."""
    if part is None:
        return 0.0
    counted_bytes = min(size_bytes, LARGEST_BYTES)
    return part.s_per_byte * math.exp(-part.growth * math.log(counted_bytes / 2**30)) * size_bytes / ranks


def own_words(part: OwnPart) -> str:
    """Return that in words."""
    rate = f"{1e-9 / part.s_per_byte:.0f} GB/s at 1 GiB, with the power {part.growth:.2f} of the size"
    return f"each rank's own part at {rate}, fitted ({part.collective}; {', '.join(part.documents)})"


def _extrapolated(
    machine: MachineClass,
    nodes: int,
    share: LinkShare,
    constants: PredictorConstants,
    collective: str,
    unmeasured: str | None,
) -> tuple[float, tuple[str, ...]]:
    """Return by how much the interval grows, and why."""
    if groups_of(machine, nodes) == 1:
        if unmeasured == _UNSENT:
            return _OTHER_TIMES, (
                f"{unmeasured}: from rings and from sends of other GPUs, interval x {_OTHER_TIMES:g}",
            )
        if share.generation is None or share.generation != machine.generation:
            return _OTHER_TIMES, (
                f"no measurement of such GPUs is published: from other GPUs, interval x {_OTHER_TIMES:g}",
            )
        return 1.0, ()
    times, words = 1.0, []
    if share.part == "nic" and share.fabric is None:
        times *= _OTHER_TIMES
        words.append(
            f"no measurement over {machine.fabric} is published: from other networks, interval x {_OTHER_TIMES:g}"
        )
    if unmeasured is not None:
        times *= _OTHER_TIMES
        words.append(f"{unmeasured}: from other collectives, interval x {_OTHER_TIMES:g}")
    own = constants.most_nodes.get(machine.fabric or "")
    seen = own or max(constants.most_nodes.values(), default=1)
    measured = f"more than twice the most that were measured over {machine.fabric if own else 'any network'}, {seen}"
    known = _SEEN_TIMES * seen
    if unmeasured is not None and collective in _TO_ALL:
        # One node has no network at all.
        known, measured = 1, "more than the one on which sends to every rank were measured"
    if nodes > known:
        grown = 1 + _GROWTH * math.log2(nodes / known)
        times *= grown
        words.append(f"{nodes} nodes are {measured}: interval x {grown:.2f}")
    return times, tuple(words)


def _widest(scatter: float, down: float, factor: float, timed: CallTime) -> str:
    """Return what makes most of the interval's width: scatter of documents, a slower mode, order, or distance."""
    waits = timed.open_order
    parts = {
        f"how far documents lay off, {_percent(scatter)}": scatter,
        "some rings reach only 0.82 of line rate, nobody says why": down / factor - scatter if waits == 0 else 0.0,
        f"extrapolation, x {factor:.2f}": scatter * (factor - 1),
        "how far messages to many ranks wait for each other is not published": waits,
    }
    return max(parts, key=lambda words: parts[words])


def _percent(reach: float) -> str:
    return f"-{100 * (1 - math.exp(-reach)):.0f} to +{100 * (math.exp(reach) - 1):.0f} %"

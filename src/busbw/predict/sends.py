"""What sends and receives take: alltoall, sendrecv, gather and scatter, of which NCCL's cost model says nothing.

A rank's part for each peer goes through channels of its own, by NCCL's rule (src/enqueue.cc, src/graph/paths.cc): of 32
channels as many as leave one for every rank, and twice as many while a channel's part exceeds 16 MiB. Within a node a
channel carries no more than a fitted rate, less with LL, which parts of up to 16 KiB a channel take; a call takes the
longer of its bytes over the links and over its channels. Between nodes there is Simple only (buffers for LL are made
with NCCL_ALLOC_P2P_NET_LL_BUFFERS=1 alone, src/transport/net.cc), and how far messages to many peers wait for each
other nobody has published: both ends are counted, all peers at once and one after the other, and the middle of their
logarithms is what is predicted.
"""

import math
from itertools import chain

from busbw.base.collectives import COLLECTIVES
from busbw.facts.nccl_model import nccl_constants, newest_release
from busbw.limits.algorithms import Shape, shape_of
from busbw.model.predict.prediction import OwnPart, PredictorConstants, SendCost
from busbw.predict.machines import MachineClass
from busbw.predict.rising import CallTime, Parts, hop_of, hop_words

SENDS = frozenset({"alltoall", "sendrecv", "gather", "scatter"})
# By which the share of a link that they reach is looked up.
SENT = "sends"
# What a communicator of GPUs on NVLink has for sends: its channels, rounded up to a power of two.
_CHANNELS = 32
# Of one channel: until a part exceeds it, and to which LL serves (32 slots of 512 KiB; NCCL_P2P_LL_THRESHOLD).
_MOST_PART_BYTES = 16 * 2**20
_LL_PART_BYTES = 16 * 2**10
# Of the protocols LL, LL128, Simple in NCCL's tables.
_LL, _SIMPLE = 0, 2
_LL_DATA = 0.5
_US = 1e-6
# Within a node messages to so many others were measured, and took no longer than to one (four H200).
_MOST_PEERS = 3


def peers_of(collective: str, shape: Shape) -> int:
    """Return to how many others the busiest rank sends, or from how many it receives."""
    return 1 if collective == "sendrecv" else shape.ranks - 1


def channels_of(part_bytes: float, ranks: int) -> int:
    """Return how many channels a peer's part takes within a node."""
    count = _CHANNELS
    while count * ranks > _CHANNELS and count > 1:
        count //= 2
    while part_bytes / count > _MOST_PART_BYTES and count <= _CHANNELS // 2:
        count *= 2
    return count


def send_time(
    machine: MachineClass, nodes: int, collective: str, size_bytes: int, whole_Bps: float, constants: PredictorConstants
) -> CallTime:
    """Return what a call takes, `whole_Bps` being the bus bandwidth of its bytes over the links and NICs.

    Raises CannotTellError where no document is near to what a hop over the network takes.
    """
    shape = shape_of(machine.rates, nodes)
    wire_s = COLLECTIVES[collective].factor(shape.ranks) * size_bytes / whole_Bps
    if shape.groups > 1:
        return _between(machine, shape, collective, wire_s, constants)
    cost = cost_of(machine, constants)
    parts = parts_within(machine, shape, collective, size_bytes, wire_s, cost)
    own = own_part_of(collective, constants)
    own_s = own.s_per_byte * size_bytes / shape.ranks if own is not None else 0.0
    words = [_cost_words(cost)] if cost is not None else []
    if own is not None:
        rate = f"{1e-9 / own.s_per_byte:.0f} GB/s"
        words.append(f"each rank's own part at {rate}, fitted ({collective}; {', '.join(own.documents)})")
    told = [each.documents for each in (cost, own) if each is not None]
    time_s = parts.time_s + own_s
    peers = peers_of(collective, shape)
    waits_s = 0.0
    if peers > _MOST_PEERS:
        waits_s = (peers - 1) * _hops_s(machine)[1][_LL if parts.flags_s else _SIMPLE]
        words.append(
            f"messages to the {peers} others do not wait for each other, as to {_MOST_PEERS} of four GPUs; in the "
            "interval they may"
        )
    return CallTime(
        parts=parts,
        own_s=own_s,
        loose_s=parts.latency_s + parts.filling_s,
        least_s=time_s,
        most_s=time_s + waits_s,
        words=tuple(words),
        documents=tuple(chain(*told)),
    )


def own_part_of(collective: str, constants: PredictorConstants) -> OwnPart | None:
    """Return what a rank's own part of an alltoall costs; None: it has none, or nothing is known."""
    return next((row for row in constants.own if row.collective == collective and collective in SENDS), None)


def cost_of(machine: MachineClass, constants: PredictorConstants) -> SendCost | None:
    """Return what channels carry, of such GPUs or else of others; None: no document tells it."""
    for generation in (*machine.generations, None):
        for row in constants.send:
            if row.generation == generation:
                return row
    return None


def _cost_words(cost: SendCost) -> str:
    of = f"{cost.generation}; " if cost.generation is not None else ""
    return (
        f"a channel of sends carries {cost.simple_Bps / 1e9:.1f} GB/s, with LL {cost.ll_Bps / 1e9:.1f}; "
        f"{cost.full_s * 1e6:.0f} us until the pipeline is full, fitted ({of}{', '.join(cost.documents)})"
    )


def parts_within(
    machine: MachineClass, shape: Shape, collective: str, size_bytes: float, wire_s: float, cost: SendCost | None
) -> Parts:
    """Return the parts of a call within a node, whose bytes take `wire_s` over the links; no cost: none of channels."""
    peers = peers_of(collective, shape)
    part_bytes = size_bytes / (shape.ranks if COLLECTIVES[collective].splits else 1)
    channels = channels_of(part_bytes, shape.ranks)
    each_bytes = part_bytes * peers / min(_CHANNELS, channels * peers)
    base, hop = _hops_s(machine)
    # All channels together fill the links, also of GPUs whose links are faster than those that were measured.
    least_Bps = part_bytes * peers / wire_s / _CHANNELS
    slowest_s = each_bytes / max(cost.simple_Bps, least_Bps) if cost is not None else 0.0
    bytes_s = max(wire_s, slowest_s)
    filling_s = 1 / (1 / cost.full_s + 1 / bytes_s) if cost is not None else 0.0
    simple = Parts(latency_s=base[_SIMPLE] + hop[_SIMPLE], wire_s=bytes_s, flags_s=0.0, filling_s=filling_s)
    if part_bytes > _LL_PART_BYTES * _CHANNELS:
        return simple
    flagged_s = max(wire_s / _LL_DATA, each_bytes / cost.ll_Bps if cost is not None else 0.0)
    flagged = Parts(latency_s=base[_LL] + hop[_LL], wire_s=wire_s, flags_s=flagged_s - wire_s, filling_s=0.0)
    return min(simple, flagged, key=lambda parts: parts.time_s)


def _hops_s(machine: MachineClass) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what NCCL counts for a call's start and for a hop within a node, by protocol, in seconds."""
    constants = nccl_constants(newest_release())
    inside = constants.nvlink if machine.rates.nvlink is not None else constants.pci
    return tuple(_US * each for each in constants.base.ring), tuple(_US * each for each in inside.ring)


def _between(
    machine: MachineClass, shape: Shape, collective: str, wire_s: float, constants: PredictorConstants
) -> CallTime:
    hop = hop_of(machine, constants)
    model = nccl_constants(newest_release())
    start_s = _US * model.base.ring[_SIMPLE]
    hop_s = _US * model.net.ring[_SIMPLE] + hop.extra_s
    most = 1 if collective == "sendrecv" else shape.ranks - shape.group
    middle = math.sqrt(most)
    parts = Parts(latency_s=start_s + middle * hop_s, wire_s=wire_s, flags_s=0.0, filling_s=0.0)
    words = [hop_words(hop, machine)]
    if most > 1:
        words.append(
            f"how far messages to the {most} ranks of other nodes wait for each other is not published: as if "
            f"{middle:.1f} did, 1 to {most} in the interval"
        )
    return CallTime(
        parts=parts,
        own_s=0.0,
        # Of messages to many the ends hold what is not known of hops.
        loose_s=0.0 if most > 1 else parts.latency_s,
        least_s=start_s + hop_s + wire_s,
        most_s=start_s + most * hop_s + wire_s,
        words=tuple(words),
        documents=hop.documents,
    )

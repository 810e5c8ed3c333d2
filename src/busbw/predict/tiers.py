"""What a call takes step by step or event by event, on a machine as the closed form sees it.

Rates are those of the closed form: line rates times the shares that were fitted; so is the time of a few bytes, which
is spread over the hops of the schedule. What is added is structure: how a pipeline fills, who waits for a slow NIC, and
which flows meet at the uplinks of leaves. No document was left out of that, so it has no interval of its own: it serves
for ratios, and is shown beside the closed form.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import counted
from busbw.facts.predictor import predictor_constants
from busbw.limits.algorithms import algorithm_name
from busbw.model.predict.prediction import SimulatedCall
from busbw.predict.closed import SHARP_UNTOLD, bounds_of, own_part_of, own_s
from busbw.predict.machines import CannotTellError, MachineClass, groups_of
from busbw.predict.nccl_work import chain_chunk_bytes, direct_chunk_bytes
from busbw.predict.rising import LARGEST_BYTES, rise_of
from busbw.predict.schedules.collnet import MOST_DIRECT, collnet_chain, collnet_direct
from busbw.predict.schedules.description import Schedule
from busbw.predict.schedules.leaves import Leaves
from busbw.predict.schedules.rings import SLICE_BYTES, lanes_of, ring
from busbw.predict.schedules.timing import LaneRates, SlowNic, Timed, time_events, time_steps
from busbw.predict.schedules.trees import double_tree, nvls_tree
from busbw.predict.shares import large_Bps, share_of

ScheduleTier = Literal["steps", "events"]
# NCCL's two ways to have the network's switches add; `limits` has one bound of both, called collnet.
COLLNET_WAYS = ("collnetdirect", "collnetchain")
MOST_NODES = 2048
_KIB = 2**10
# Channels of a lane.
_CHANNELS = 2
_SLOT_BYTES = 512 * _KIB
_FEW_NODES = 4
_MOST_CHUNKS = 2**20
# A hop between GPUs takes as much of a hop between nodes as in NCCL's own model: 3.4 of 14 us.
_NVLINK_HOP = 3.4 / 14
# Large messages of the schedule and of the closed form may differ by so much; more, and another part limits.
_SAME = 0.02
_NO_PATH = 1e-9
# Of the latency of a hop, what each chunk may meet; the rest is met once.
_PER_CHUNK = (1.0, 0.5, 0.25, 0.125, 0.0)


@dataclass(frozen=True, kw_only=True)
class Hindrances:
    """What is not as usual: slow NICs, and a network between leaves that counts. None: nothing crosses leaves."""

    slow: tuple[SlowNic, ...] = ()
    leaves: Leaves | None = None


USUAL = Hindrances()


def collnet_ways(asked: str | None) -> tuple[str, ...]:
    """Return which ways of CollNet a name stands for: one, both for its other names, none for other algorithms."""
    if asked is None or algorithm_name(asked) != "collnet":
        return ()
    own = asked.strip().lower()
    return (own,) if own in COLLNET_WAYS else COLLNET_WAYS


def schedule_of(machine: MachineClass, nodes: int, collective: str, algorithm: str, size_bytes: int) -> Schedule:
    """Return the schedule of a call. Raises CannotTellError for what has none, or more nodes than are counted."""
    if nodes > MOST_NODES:
        raise CannotTellError(f"steps and events are counted for at most {MOST_NODES} nodes")
    groups = groups_of(machine, nodes)
    gpus, ports = machine.rates.gpus * nodes // groups, (machine.rates.ports or 0) * nodes // groups
    if algorithm == "ring" and collective in ("broadcast", "reduce"):
        raise CannotTellError(f"the size of the chunks in which NCCL passes on a {collective} is not modelled")
    if algorithm == "ring":
        once = ring(collective, nodes=groups, gpus=gpus, ports=ports, size_bytes=size_bytes)
        part_bytes = size_bytes // (once.lanes * once.ranks)
        slices = min(64, _chunks(part_bytes, SLICE_BYTES * _CHANNELS))
        return ring(collective, nodes=groups, gpus=gpus, ports=ports, size_bytes=size_bytes, slices=slices)
    if algorithm == "nvlstree":
        chunk_bytes = _nvls_tree_chunk_bytes(groups, gpus, size_bytes)
        chunks = _chunks(size_bytes, 2 * gpus * _CHANNELS * chunk_bytes)
        return nvls_tree(nodes=groups, gpus=gpus, size_bytes=size_bytes, chunks=chunks)
    if algorithm == "tree":
        channels = _CHANNELS * max(1, min(ports, gpus))
        chunks = _chunks(size_bytes, 2 * channels * _tree_chunk_bytes(groups, gpus, channels, size_bytes))
        return double_tree(nodes=groups, gpus=gpus, ports=ports, size_bytes=size_bytes, chunks=chunks)
    if algorithm in COLLNET_WAYS and collective == "all_reduce" and nodes > 1:
        return _collnet(machine, nodes, algorithm, size_bytes)
    if algorithm == "collnet":
        raise CannotTellError(SHARP_UNTOLD)
    if algorithm == "pat":
        raise CannotTellError("the schedule of PAT has one chunk after the other, and NCCL's chunks overlap")
    raise CannotTellError(f"steps and events have no schedule of {algorithm} for {collective} on such nodes")


def _collnet(machine: MachineClass, nodes: int, algorithm: str, size_bytes: int) -> Schedule:
    """Return CollNet's schedule, in chunks as NCCL cuts them. Raises CannotTellError where there is none."""
    gpus, ports = machine.rates.gpus, machine.rates.ports or 0
    if machine.rates.sharp is False:
        raise CannotTellError("the network of these nodes is said not to offer SHARP")
    if groups_of(machine, nodes) < nodes:
        raise CannotTellError("which GPUs send for CollNet, where NVLink joins several nodes, is not known")
    lanes = lanes_of(nodes, gpus, ports)
    channels = _CHANNELS * lanes
    if algorithm == "collnetchain":
        chunk_bytes = chain_chunk_bytes(gpus, channels, size_bytes, _SLOT_BYTES)
        chunks = _chunks(size_bytes, channels * chunk_bytes)
        return collnet_chain(nodes=nodes, gpus=gpus, ports=ports, size_bytes=size_bytes, chunks=chunks)
    pair, all_links = machine.rates.pair, machine.rates.nvlink
    is_meshed = pair is not None and all_links is not None and pair.rate_Bps < all_links.rate_Bps
    if gpus > MOST_DIRECT or (is_meshed and gpus > 1):
        raise CannotTellError(f"CollNet direct takes nodes of at most {MOST_DIRECT} GPUs, joined by a switch")
    # Each channel serves all heads.
    chunk_bytes = direct_chunk_bytes(gpus, lanes, channels, size_bytes, _SLOT_BYTES)
    chunks = _chunks(size_bytes, channels * lanes * chunk_bytes)
    return collnet_direct(nodes=nodes, gpus=gpus, ports=ports, size_bytes=size_bytes, chunks=chunks)


def _nvls_tree_chunk_bytes(nodes: int, gpus: int, size_bytes: int) -> int:
    """Return what NVLSTree sends at once on a channel (`calcCollChunking` of NCCL 2.28.9's enqueue.cc)."""
    chunk_bytes = (64 if nodes >= _FEW_NODES else 128) * _KIB
    each_bytes = _CHANNELS * gpus * gpus
    if size_bytes < 4 * each_bytes * chunk_bytes:
        chunk_bytes = min(chunk_bytes, 64 * _KIB)
    return min(chunk_bytes, 32 * _KIB) if size_bytes < each_bytes * chunk_bytes else chunk_bytes


def _tree_chunk_bytes(nodes: int, gpus: int, channels: int, size_bytes: int) -> int:
    """Return what a tree sends at once on a channel: a slot, and less by the rule of LL128, which smaller sizes take.

    Source as above.
    """
    depth = (1 + math.log2(nodes) + gpus / 10) / gpus
    chunk_bytes = _SLOT_BYTES
    for times, least_bytes in ((64, 128 * _KIB), (16, 32 * _KIB)):
        while chunk_bytes > least_bytes and size_bytes / (channels * chunk_bytes) < times * depth:
            chunk_bytes //= 2
    return chunk_bytes


def _chunks(size_bytes: int, chunk_bytes: int) -> int:
    return max(1, min(_MOST_CHUNKS, -(-size_bytes // chunk_bytes)))


def line_rates(machine: MachineClass, nodes: int, schedule: Schedule) -> LaneRates:
    """Return what one lane has at line rate. Raises CannotTellError where a rate is not known."""
    rates = machine.rates
    if nodes > 1 and (rates.nic is None or not rates.ports):
        raise CannotTellError("the rate of the NICs is not known: busbw limit says which")
    if rates.gpus > 1 and rates.nvlink is None:
        raise CannotTellError("the rate of the links between GPUs is not known: busbw limit says which")
    nic_Bps = rates.nic.rate_Bps if rates.nic is not None else 1.0
    if rates.nic_slot is not None:
        nic_Bps = min(nic_Bps, rates.nic_slot.rate_Bps)
    groups = groups_of(machine, nodes)
    return LaneRates(
        nic_Bps=nic_Bps * max(1, rates.ports or 1) * nodes / groups / schedule.lanes,
        nvlink_Bps=rates.nvlink.rate_Bps if rates.nvlink is not None else 1e15,
    )


def simulated(
    machine: MachineClass,
    *,
    nodes: int,
    collective: str,
    algorithm: str,
    size_bytes: int,
    tier: ScheduleTier,
    conditions: Hindrances = USUAL,
) -> SimulatedCall:
    """Return what a call takes by a schedule. Raises CannotTellError where the schedule lacks what limits."""
    schedule = schedule_of(machine, nodes, collective, algorithm, size_bytes)
    lane = lane_of(machine, nodes, collective, algorithm, size_bytes)
    timed = time_steps if tier == "steps" else time_events
    found = timed(schedule, lane.rates, slow=conditions.slow, leaves=conditions.leaves)
    return _call(machine, nodes, schedule, tier, found, size_bytes, once_s=lane.once_s)


def _call(
    machine: MachineClass,
    nodes: int,
    schedule: Schedule,
    tier: ScheduleTier,
    found: Timed,
    size_bytes: int,
    once_s: float = 0.0,
) -> SimulatedCall:
    time_s = found.time_s + once_s
    return SimulatedCall(
        tier=tier,
        algorithm=schedule.algorithm,
        time_s=time_s,
        busbw_Bps=COLLECTIVES[schedule.collective].factor(machine.rates.gpus * nodes) * size_bytes / time_s,
        words=words_of(schedule, found, tier),
    )


def at_line_rate(
    machine: MachineClass, *, nodes: int, collective: str, algorithm: str, size_bytes: int, tier: ScheduleTier
) -> SimulatedCall:
    """Return what a schedule takes at line rate, without latency and software: no prediction, as nothing is fitted.

    Raises CannotTellError as `schedule_of` and `line_rates`.
    """
    schedule = schedule_of(machine, nodes, collective, algorithm, size_bytes)
    timed = time_steps if tier == "steps" else time_events
    return _call(machine, nodes, schedule, tier, timed(schedule, line_rates(machine, nodes, schedule)), size_bytes)


@dataclass(frozen=True, kw_only=True)
class Lane:
    """What a lane has at one size, with latencies, and what a call takes once beside its schedule."""

    rates: LaneRates
    once_s: float


def lane_of(machine: MachineClass, nodes: int, collective: str, algorithm: str, size_bytes: int) -> Lane:
    """Return a lane with the fitted constants of an algorithm. Raises CannotTellError as `simulated`."""
    reached = _reached(machine, nodes, collective, algorithm)
    constants, ranks = predictor_constants(), machine.rates.gpus * nodes
    rise = rise_of(machine, nodes, collective, algorithm, constants)
    latency_s = rise.parts(COLLECTIVES[collective].factor(ranks), size_bytes, reached.most_Bps).latency_s
    own = own_part_of(machine, collective, algorithm, constants) if groups_of(machine, nodes) == 1 else None
    return Lane(
        rates=_with_latency(reached, latency_s * reached.per_chunk),
        once_s=latency_s * (1 - reached.per_chunk) + own_s(own, size_bytes, ranks),
    )


def words_of(schedule: Schedule, found: Timed, tier: ScheduleTier) -> str:
    """Return how much of a schedule was computed."""
    lanes = f"one of {schedule.lanes} identical lanes" if schedule.lanes > 1 else "one lane"
    works = (
        f"{found.operations} of {found.whole} operations"
        if found.operations < found.whole
        else f"{found.whole} operations"
    )
    told = "" if found.rounds >= schedule.rounds else f", {found.rounds} of them computed"
    events = f", {found.events} events" if tier == "events" else ""
    return f"{lanes}, {works} a round, {counted(schedule.rounds, 'round')}{told}{events}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reached:
    """What collectives reach on a lane, on the whole for large messages, and the hops of a schedule one after another.

    `path` counts hops between nodes, one within a node as `_NVLINK_HOP` of one.
    """

    lane: LaneRates
    most_Bps: float
    path: float
    # Of the fitted latency, what each chunk meets: so much that eight slots still let large messages reach `most_Bps`.
    per_chunk: float = 0.0


@lru_cache(maxsize=1024)
def _reached(machine: MachineClass, nodes: int, collective: str, algorithm: str) -> _Reached:
    """Return that. Raises CannotTellError where a part limits the closed form that the schedule does not pass."""
    if algorithm in COLLNET_WAYS:
        raise CannotTellError(SHARP_UNTOLD)
    constants = predictor_constants()
    large = schedule_of(machine, nodes, collective, algorithm, LARGEST_BYTES)
    line = line_rates(machine, nodes, large)
    shares = [share_of(machine, part, algorithm, constants) for part in ("nic", "nvlink")]
    nic, nvlink = (share.share if share is not None else 1.0 for share in shares)
    lane = replace(line, nic_Bps=line.nic_Bps * nic, nvlink_Bps=line.nvlink_Bps * nvlink)
    bound = next(
        (each for each in bounds_of(machine, nodes, collective, algorithm) if each.algorithm == algorithm), None
    )
    if bound is None:
        raise CannotTellError(f"no bound is known for {algorithm}")
    most_Bps, limited_by, _ = large_Bps(machine, bound, constants, nodes=nodes, collective=collective)
    factor = COLLECTIVES[collective].factor(machine.rates.gpus * nodes)
    if factor * LARGEST_BYTES / time_steps(large, lane).time_s > most_Bps * (1 + _SAME):
        raise CannotTellError(f"{limited_by} limit, which the schedule of {algorithm} does not pass")
    hops = replace(lane, nic_Bps=1e30, nvlink_Bps=1e30, nic_latency_s=1.0, nvlink_latency_s=_NVLINK_HOP)
    path = time_steps(schedule_of(machine, nodes, collective, algorithm, 1), hops).time_s
    found = _Reached(lane=lane, most_Bps=most_Bps, path=path)
    latency_s = (
        rise_of(machine, nodes, collective, algorithm, constants).parts(factor, LARGEST_BYTES, most_Bps).latency_s
    )
    longest_s = factor * LARGEST_BYTES / most_Bps * (1 + _SAME)
    for share in _PER_CHUNK:
        if time_steps(large, _with_latency(found, latency_s * share)).time_s <= longest_s:
            return replace(found, per_chunk=share)
    raise CannotTellError(f"the schedule of {algorithm} is slower than what was measured of large messages")


def _with_latency(reached: _Reached, latency_s: float) -> LaneRates:
    """Return a lane whose hops together take a latency."""
    each_s = latency_s / reached.path if reached.path > _NO_PATH else 0.0
    return replace(reached.lane, nic_latency_s=each_s, nvlink_latency_s=each_s * _NVLINK_HOP)

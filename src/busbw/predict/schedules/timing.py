"""When a schedule ends on given links: step by step, where nothing shares anything, or event by event.

Both tiers are in the core. Steps count each work with its fixed share of its link; events let works queue at NICs, at
the links of GPUs and at the uplinks of leaves. What is alike is counted once: over one period where a schedule has one,
else the core puts together what cannot differ.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from busbw import _core
from busbw.base.errors import InputError
from busbw.predict.schedules.description import Affine, After, Ranks, RankWork, Schedule, Via, folded, runs
from busbw.predict.schedules.leaves import Crossing, Leaves, crossings, share_of_uplinks


@dataclass(frozen=True, kw_only=True)
class LaneRates:
    """What one lane has: the rate of its NICs on each node, of all links of one GPU, and what lies between."""

    nic_Bps: float
    nvlink_Bps: float
    nic_latency_s: float = 0.0
    nvlink_latency_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SlowNic:
    """A node whose NIC in this lane reaches only a share of its rate, both ways."""

    node: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Timed:
    """When a lane ends, and what was counted for it."""

    time_s: float
    # Operations of one round that were gone through, of how many; and rounds gone through.
    operations: int
    whole: int
    rounds: int
    # Events only: how many, the time of one more chunk at the end (0: none was skipped), and the share of a round in
    # which the busiest link is in use.
    events: int = 0
    period_s: float = 0.0
    busiest: float = 0.0


def time_steps(
    schedule: Schedule,
    rates: LaneRates,
    *,
    slow: tuple[SlowNic, ...] = (),
    leaves: Leaves | None = None,
    folds: bool = True,
) -> Timed:
    """Return when a lane ends where each work has its own share of its link.

    Raises InputError for rates that are none and nodes that are not there.
    """
    whole = sum(work.ranks.count for work in schedule.works)
    alike = folds and not slow and leaves is None
    used = folded(schedule) if alike else schedule
    core = _compiled(used, rates)
    for block, rank, times in _exceptions(used, slow, leaves):
        core.slow(block, rank, times)
    if folds and schedule.repeats_after is None:
        core = core.folded()
    found = _core.time_steps(core, used.rounds, folds)
    return Timed(time_s=found.seconds, operations=found.operations, whole=whole, rounds=found.rounds)


def time_events(
    schedule: Schedule,
    rates: LaneRates,
    *,
    slow: tuple[SlowNic, ...] = (),
    leaves: Leaves | None = None,
    in_turns: bool = True,
    skips: bool = True,
) -> Timed:
    """Return when a lane ends where works queue at the links that they share.

    `in_turns`: connections at a link take turns (fair, by chunks); else what came first goes first. `skips`: rounds of
    a steady state are told from their period. Raises InputError as `time_steps`.
    """
    alike = not slow and leaves is None
    used = folded(schedule) if alike else schedule
    core = _compiled(used, rates)
    for block, work in enumerate(used.works):
        _pass_links(core, block, work, used, rates, slow)
    if leaves is not None:
        _pass_leaves(core, used, rates, leaves)
    found = _core.time_events(core, used.rounds, in_turns, skips)
    return Timed(
        time_s=found.seconds,
        operations=core.operations,
        whole=sum(work.ranks.count for work in schedule.works),
        rounds=found.rounds,
        events=found.events,
        period_s=found.period_s,
        busiest=found.busiest,
    )


def busiest_s(schedule: Schedule, rates: LaneRates) -> float:
    """Return how long the busiest link of a lane is in use: no order of works ends sooner."""
    used_s: dict[tuple[str, str, int], float] = defaultdict(float)
    for work in schedule.works:
        for rank in work.ranks if work.part_bytes else ():
            via = work.via_of(rank)
            each = schedule.ranks_of_nic if via.link == "nic" else 1
            for end, place, share in (("out", rank, via.out), ("into", work.peer.of(rank), via.into)):
                if share is not None:
                    used_s[via.link, end, place // each] += schedule.rounds * work_seconds(work, via, rates, share)
    return max(used_s.values(), default=0.0)


def _compiled(schedule: Schedule, rates: LaneRates) -> _core.Schedule:
    if not (rates.nic_Bps > 0 and rates.nvlink_Bps > 0):
        raise InputError(f"links of {min(rates.nic_Bps, rates.nvlink_Bps):g} bytes a second")
    core = _core.Schedule()
    try:
        for work in schedule.works:
            core.add(_range(work.ranks), [work_seconds(work, via, rates) for via in work.via])
        for block, work in enumerate(schedule.works):
            for after in work.after:
                latencies_s = _latencies(schedule, work, after, rates)
                core.wait(
                    block, _range(after.ranks or work.ranks), after.work, _map(after.rank), after.lag, latencies_s
                )
    except ValueError as error:
        raise InputError(f"{schedule.algorithm} over {schedule.ranks} ranks: {error}") from error
    return core


def _range(ranks: Ranks) -> tuple[int, int, int]:
    return ranks.first, ranks.stride, ranks.count


def _map(rank: Affine) -> tuple[int, int, int]:
    return rank.multiple, rank.plus, rank.modulo


def work_seconds(work: RankWork, via: Via, rates: LaneRates, share: Fraction | None = None) -> float:
    """Return what a work takes at a share of its link's rate; None: at the share that it has of it."""
    rate_Bps = rates.nic_Bps if via.link == "nic" else rates.nvlink_Bps
    return work.seconds + float(work.part_bytes) / (rate_Bps * float(via.share if share is None else share))


def _latencies(schedule: Schedule, work: RankWork, after: After, rates: LaneRates) -> list[float]:
    """Return the latencies before the first ranks that wait; they repeat."""
    if not after.travels:
        return [0.0]
    source = schedule.works[after.work]
    first = (after.ranks or work.ranks).first
    stride = (after.ranks or work.ranks).stride
    ranks = (first + stride * each for each in range(len(source.via)))
    links = (source.via_of(after.rank.of(rank)).link for rank in ranks)
    return [rates.nic_latency_s if link == "nic" else rates.nvlink_latency_s for link in links]


def _nic_works(schedule: Schedule) -> Iterator[tuple[int, RankWork, int]]:
    """Return each work and rank that sends through a NIC."""
    for block, work in enumerate(schedule.works):
        if work.part_bytes and any(via.link == "nic" for via in work.via):
            for rank in work.ranks:
                if work.via_of(rank).link == "nic":
                    yield block, work, rank


def _slowness(slow: tuple[SlowNic, ...], schedule: Schedule) -> dict[int, float]:
    nodes = schedule.ranks // schedule.group
    for each in slow:
        if not 0 <= each.node < nodes:
            raise InputError(f"there is no node {each.node} of {nodes}", hint=f"node0 to node{nodes - 1}")
        if not 0 < each.share <= 1:
            raise InputError(f"a NIC at {each.share:g} of its rate", hint="slow-nic=node7:0.5: above 0, at most 1")
    return {each.node: each.share for each in slow}


def _exceptions(
    schedule: Schedule, slow: tuple[SlowNic, ...], leaves: Leaves | None
) -> Iterator[tuple[int, int, float]]:
    """Return what takes longer than its links alone would let it: work, rank, how many times as long."""
    shares = _slowness(slow, schedule)
    crossing = _crossing(schedule, leaves)
    if not shares and crossing is None:
        return
    for block, work, rank in _nic_works(schedule):
        one, other = rank // schedule.group, work.peer.of(rank) // schedule.group
        own = work.via_of(rank).share
        least = float(own) * min(shares.get(one, 1.0), shares.get(other, 1.0))
        if leaves is not None and crossing is not None:
            through = share_of_uplinks(leaves, crossing, one, other)
            least = least if through is None else min(least, through)
        if least < own:
            yield block, rank, float(own) / least


def _crossing(schedule: Schedule, leaves: Leaves | None) -> Crossing | None:
    """Return which leaves are crossed by what is under way at the same time."""
    if leaves is None:
        return None
    by_step: dict[int, list[tuple[int, int]]] = {}
    for _, work, rank in _nic_works(schedule):
        flow = rank // schedule.group, work.peer.of(rank) // schedule.group
        by_step.setdefault(work.step, []).append(flow)
    # Steps of an exchange follow each other: the one that crosses most counts.
    found = [crossings(leaves, schedule.ranks // schedule.group, flows) for flows in by_step.values()]
    return max(found, key=lambda each: max(each.up.values(), default=0), default=None)


def _pass_links(
    core: _core.Schedule, block: int, work: RankWork, schedule: Schedule, rates: LaneRates, slow: tuple[SlowNic, ...]
) -> None:
    """Let a work pass its sender's end of a link, then its receiver's; what moves nothing passes none."""
    if not work.part_bytes:
        return
    shares = _slowness(slow, schedule)
    size = schedule.ranks
    for which, via in enumerate(work.via):
        ranks = list(work.ranks)[which :: len(work.via)]
        first = 0 if via.link == "nic" else 2 * size
        own = first, Affine(), via.out
        peer = first + size, work.peer, via.into
        for server, map_, share in (own, peer):
            if share is None:
                continue
            seconds = work_seconds(work, via, rates, share)
            if via.link == "nic" and schedule.ranks_of_nic > 1:
                for rank in ranks:
                    core.pass_by(block, (rank, 1, 1), server, (0, map_.of(rank) // schedule.ranks_of_nic, 0), seconds)
                continue
            slower = {rank: shares.get(map_.of(rank) // schedule.group) for rank in ranks} if via.link == "nic" else {}
            for run in runs(rank for rank in ranks if slower.get(rank) is None):
                core.pass_by(block, _range(run), server, _map(map_), seconds)
            for rank, times in slower.items():
                if times is not None:
                    core.pass_by(block, (rank, 1, 1), server, _map(map_), seconds / times)


def _pass_leaves(core: _core.Schedule, schedule: Schedule, rates: LaneRates, leaves: Leaves) -> None:
    """Let what crosses leaves pass an uplink of the sender's and one down to the receiver's.

    With adaptive routing a leaf's uplinks are one server of their rate; with static routing flows take them in turn.
    """
    crossing = _crossing(schedule, leaves)
    if crossing is None:
        return
    first = 4 * schedule.ranks
    count = max(crossing.leaf) + 1
    links = leaves.uplinks if leaves.routing == "static" else 1
    number = 0
    for block, work, rank in _nic_works(schedule):
        one, other = crossing.leaf[rank // schedule.group], crossing.leaf[work.peer.of(rank) // schedule.group]
        if one == other:
            continue
        rate_Bps = rates.nic_Bps * (1 if leaves.routing == "static" else leaves.nodes / leaves.oversubscription)
        seconds = float(work.part_bytes) / rate_Bps
        number += 1
        # A multiplier without a pattern stands for the hash of a flow.
        which = (number * 2654435761 >> 7) % links
        for server in (one * links + which, (count + other) * links + which):
            core.pass_by(block, (rank, 1, 1), first + server, (0, 0, 0), seconds)

"""What NCCL plans within a node: how many channels a ring, a tree and NVLS get, and how fast each is.

NCCL lays channels of one speed along the ways between GPUs until no link has that much left. It begins with the highest
speed over the best ways alone, and gives in step by step: other orders of GPUs, worse ways, lower speeds. Each try may
take so many steps, and ends where it stands. The same is done here with the same limits, so that a plan is NCCL's
where its search ends early, too. No network takes part: a job of several nodes has other plans.

Read in src/graph of NCCL 2.25.1 to 2.30.7, and held against what it prints (tests/topo/nccl_plans.json).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from busbw.model.limit import ChannelPlan, PlannedAlgorithm
from busbw.model.topology import LinkType, Path, Topology
from busbw.topo.paths.graph import DEFAULT_NCCL, NVSWITCHES, Graph, Nccl, graph_of
from busbw.topo.paths.paths import NO_PATH, RANK, TYPES, is_on_amd, shared_paths

# The first release whose search is known.
OLDEST_PLANNED = (2, 25, 1)
# What all tries for one node may take together here: about a second.
MOST_STEPS = 500_000

# Rates are whole MB/s: NCCL rounds what is left of a link so.
_MBps = 1_000_000
# Steps of one try, where every channel is to be like the first and where not; and of all for one algorithm.
_ALIKE_STEPS = 1 << 8
_STEPS = 1 << 14
_ALL_STEPS = 1 << 19
_MOST_CHANNELS = 32
_MOST_HEADS = 32
# GB/s of one channel within a node, the highest first: by compute capability, the newest first.
_SPEEDS = (
    (100, (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18)),
    (90, (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3)),
    (0, (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)),
)
# Of those of 10.0, speeds that came later.
_LATER = {18: (2, 27, 3), 45: (2, 29, 2)}
# A lower speed is tried while it is above this part of what was found.
_WORTH = 0.49
# Channels from this speed on become two each; above 8.0, where there are more than four, only from the second on.
_HALVED_MBps = 25_000
_HALVED_LATE_MBps = 50_000
_FEW_CHANNELS = 4
# What is laid where no channel can be: one, in the order of the GPUs.
_FALLBACK_MBps = 100
# From here on ports stay in the topology of one node, and everything is tried again with leave to change ports.
_PORTS_STAY_SINCE = (2, 28, 7)
# Up to then two GPUs alone do without NVLS.
_PAIR_ADDS_SINCE = (2, 28, 7)
# From here on a GPU is two more links away: the GPU as a device, and its parts.
_PARTS_SINCE = (2, 30, 3)
_P2C_SINCE = (2, 27, 3)
_HOPPER = 90
_AMPERE = 80


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What NCCL plans for a node; or why that is not known, in words."""

    plans: tuple[ChannelPlan, ...] = ()
    gap: str | None = None


class _TooLongError(Exception):
    """The tries take more steps than they may."""


def planned(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> Planned:
    """Return what NCCL plans for all GPUs of a node: ring and tree, and NVLS where the GPUs' switches can add.

    For under two GPUs there is neither a plan nor a gap.
    """
    graph = graph_of(topology, nccl)
    if len(graph.gpus) < 2:
        return Planned()
    gap = _gap(topology, graph, nccl)
    if gap is not None:
        return Planned(gap=gap)
    node = _node_of(topology, graph, nccl)
    try:
        ring = _Planner(node, "ring", 1, _MOST_CHANNELS).found()
        tree = _Planner(node, "tree", ring.channels, ring.channels).found()
        heads = min(_MOST_HEADS, len(graph.gpus))
        nvls = _Planner(node, "nvls", heads, heads).found() if node.adds else _BestFound()
    except _TooLongError:
        return Planned(gap="the search for it takes longer than it may here")
    count = len(graph.gpus)
    plans = [
        _plan("ring", ring, 1.0),
        # NCCL takes a tree's algorithm bandwidth for half of what its channels carry.
        _plan("tree", tree, (count - 1) / count),
        *([_plan("nvls", nvls, None)] if nvls.channels else []),
    ]
    return Planned(plans=tuple(plans))


def _gap(topology: Topology, graph: Graph, nccl: Nccl) -> str | None:
    """Return why no plan can be told."""
    if any(gpu.gcn is not None for gpu in topology.gpus) or any(link.kind == "xgmi" for link in topology.nvlinks):
        return "RCCL has a search of its own"
    if nccl < OLDEST_PLANNED:
        return f"the search of releases before {'.'.join(map(str, OLDEST_PLANNED))} is not known"
    if len(topology.gpus) > len(graph.gpus):
        return "several ranks or parts share a GPU, or a GPU is on no bus"
    if any(gpu.sm is None for gpu in topology.gpus):
        return "the GPUs' compute capability (sm) is not given"
    return None


def _plan(algorithm: PlannedAlgorithm, found: "_BestFound", factor: float | None) -> ChannelPlan:
    rate_Bps = found.rate_MBps * _MBps
    return ChannelPlan(
        algorithm=algorithm,
        channels=found.channels,
        channel_Bps=found.speed_MBps * _MBps,
        type=TYPES[found.rank],
        alike=found.alike,
        plain=found.is_chain,
        busbw_Bps=rate_Bps * factor if factor is not None else None,
    )


def nvls_between_Bps(plan: ChannelPlan, sm: int, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL counts between nodes for a channel of NVLS, of a plan for one node alone.

    With no network to hold against, it goes up from the speed within the node while it is below twice that.
    """
    found = plan.channel_Bps
    for speed_MBps in reversed(_speeds_MBps(sm, nccl)):
        if found < speed_MBps * _MBps and found < 2 * plan.channel_Bps:
            found = float(speed_MBps * _MBps)
    return found


def _speeds_MBps(sm: int, nccl: Nccl) -> tuple[int, ...]:
    """Return the speeds of a channel within a node that a release tries, the highest first."""
    all_of = next(speeds for first, speeds in _SPEEDS if sm >= first)
    return tuple(1000 * speed for speed in all_of if sm < _SPEEDS[0][0] or nccl >= _LATER.get(speed, nccl))


@dataclass(frozen=True, kw_only=True)
class _Way:
    """The way from one GPU to another, and what a channel takes of each link, in fifths of its speed."""

    rank: int
    rate_MBps: int
    hops: int
    fifths: tuple[tuple[int, int], ...]


@dataclass(kw_only=True)
class _SearchedNode:
    """The GPUs of a node in the order of NCCL's file, the ways between them, and what the links carry."""

    # By the place of the GPU it begins at, then of the one it ends at.
    ways: tuple[tuple[_Way, ...], ...]
    # To each GPU from the switches, and back, where there are switches.
    switched: tuple[tuple[_Way, _Way], ...]
    # In MB/s, by the numbers of the links.
    capacities: tuple[int, ...]
    sm: int
    nccl: Nccl
    # The most that the NVLinks, or the PCIe link, of one GPU carry; and that one way does.
    total_MBps: int
    widest_MBps: int
    # Whether there are ports to change; nothing comes of it within a node.
    changes_ports: bool
    is_amd: bool
    # What tries may still take.
    steps_left: int

    @property
    def adds(self) -> bool:
        """Return whether switches join all GPUs and can add."""
        joined = bool(self.switched) and all(way.hops for both in self.switched for way in both)
        least = 2 if self.nccl >= _PAIR_ADDS_SINCE else 3
        return joined and self.sm >= _HOPPER and len(self.switched) >= least

    def types(self) -> tuple[int, int]:
        """Return the ranks of the best and the worst way between two GPUs."""
        ranks = [way.rank for start, row in enumerate(self.ways) for end, way in enumerate(row) if start != end]
        return min(*ranks, RANK["SYS"]), max(ranks)

    def is_split(self) -> bool:
        """Return whether NVLinks join the GPUs to two groups."""
        group = list(range(len(self.ways)))
        for start, row in enumerate(self.ways):
            for end in range(start + 1, len(row)):
                if row[end].rank == RANK["NVL"]:
                    group[end] = group[start]
        return sum(group.count(number) > 1 for number in set(group)) == 2


def _node_of(topology: Topology, graph: Graph, nccl: Nccl) -> _SearchedNode:
    paths, links = shared_paths(topology, graph, nccl), _NumberedLinks(topology, graph)
    more = 2 if nccl >= _PARTS_SINCE else 0
    ways = tuple(
        tuple(links.way(paths[start].get(end, NO_PATH), start, more) for end in graph.gpus) for start in graph.gpus
    )
    switched = tuple(
        (
            links.way(paths[NVSWITCHES].get(gpu, NO_PATH), NVSWITCHES),
            links.way(paths[gpu].get(NVSWITCHES, NO_PATH), gpu),
        )
        for gpu in (graph.gpus if NVSWITCHES in paths else ())
    )
    return _SearchedNode(
        ways=ways,
        switched=switched,
        capacities=tuple(links.capacities),
        sm=min(gpu.sm for gpu in topology.gpus if gpu.sm is not None),
        nccl=nccl,
        total_MBps=max(_own_MBps(graph, gpu) for gpu in graph.gpus),
        widest_MBps=max((way.rate_MBps for row in ways for way in row if way.hops), default=0),
        changes_ports=len(topology.nets) > 1 and nccl >= _PORTS_STAY_SINCE,
        is_amd=is_on_amd(topology),
        steps_left=MOST_STEPS,
    )


def _own_MBps(graph: Graph, gpu: str) -> int:
    nvlinks_Bps = sum(hop.bandwidth_Bps for hop in graph.links[gpu] if hop.kind == "NVL")
    return round(max([nvlinks_Bps, *(hop.bandwidth_Bps for hop in graph.links[gpu] if hop.kind == "PCI")]) / _MBps)


class _NumberedLinks:
    """The links that ways use, by number."""

    def __init__(self, topology: Topology, graph: Graph) -> None:
        self.capacities: list[int] = []
        self._numbers: dict[tuple[str, str, LinkType], int] = {}
        self._rates = {
            (hop.source, hop.target, hop.kind): hop.bandwidth_Bps for hops in graph.links.values() for hop in hops
        }
        x86 = [numa for numa in topology.numa if numa.architecture == "x86_64"]
        self._intel = {f"CPU/{numa.id}" for numa in x86 if numa.vendor == "GenuineIntel"}
        self._power = {f"CPU/{numa.id}" for numa in topology.numa if numa.architecture == "ppc64"}

    def way(self, path: Path, start: str, more: int = 0) -> _Way:
        """Return a path as a way; `more` are links that NCCL counts beside those of the path."""
        # An Intel CPU passes on what GPUs send each other in small packets: they take 6/5 of PCIe links.
        is_costly = path.type == "PHB" and start != NVSWITCHES and any(hop.target in self._intel for hop in path.hops)
        takes: dict[int, int] = {}
        for hop in path.hops:
            fifths = 6 if is_costly and hop.kind == "PCI" else 5
            number = self._number(hop.source, hop.target, hop.kind)
            takes[number] = takes.get(number, 0) + fifths
            if hop.kind == "NVL" and hop.target in self._power:
                back = self._number(hop.target, hop.source, hop.kind)
                takes[back] = takes.get(back, 0) + fifths
        return _Way(
            rank=RANK[path.type],
            rate_MBps=round(path.bandwidth_Bps / _MBps),
            hops=len(path.hops) + more if path.hops else 0,
            fifths=tuple(takes.items()),
        )

    def _number(self, source: str, target: str, kind: LinkType) -> int:
        key = (source, target, kind)
        if key not in self._numbers:
            self._numbers[key] = len(self.capacities)
            self.capacities.append(round(self._rates[key] / _MBps))
        return self._numbers[key]


@dataclass(frozen=True, kw_only=True)
class _Try:
    """What one try is to lay: from `least` to `most` channels of one speed, over ways of a rank or better."""

    speed_MBps: int
    rank: int
    # Every channel like the first.
    alike: bool
    # Of trees over switches: each GPU beside the following one only; otherwise the one before is as good.
    is_chain: bool
    least: int
    most: int


@dataclass(frozen=True, kw_only=True)
class _BestFound:
    """The best that tries have found."""

    channels: int = 0
    speed_MBps: int = 0
    rank: int = 0
    hops: int = 0
    alike: bool = True
    is_chain: bool = False

    @property
    def rate_MBps(self) -> int:
        """Return what all channels carry."""
        return self.channels * self.speed_MBps


# What a try leaves of its steps where it has all that it may have.
_PERFECT = -1


class _Planner:
    """The tries for one algorithm, and the best of them."""

    def __init__(self, node: _SearchedNode, algorithm: PlannedAlgorithm, least: int, most: int) -> None:
        self._node = node
        self._algorithm = algorithm
        # Two groups want a tree, which needs two channels and gets as many as the ring.
        self._least = 2 if algorithm == "ring" and node.is_split() else least
        self._most = most
        self._best = _BestFound()
        self._speeds = _speeds_MBps(node.sm, node.nccl)
        # Tries that were made, by all that counts of them, and what they left of their steps.
        self._left: dict[tuple[int, int, bool, bool, int], int] = {}

    def found(self) -> _BestFound:
        """Return the channels that NCCL lays."""
        self._give_in()
        if self._algorithm == "nvls":
            return self._best
        if not self._best.channels:
            return _BestFound(channels=1, speed_MBps=_FALLBACK_MBps, rank=RANK["SYS"])
        self._halve()
        self._raise()
        return self._best

    def _give_in(self) -> None:
        """Try until nothing better can come, or all steps are taken."""
        budget = _ALL_STEPS
        for group in self._groups():
            left = 0
            for what in group:
                budget -= _ALIKE_STEPS if what.alike else _STEPS
                left = self._attempt(what)
                if left == _PERFECT or self._best.rate_MBps >= self._node.total_MBps:
                    return
            budget += left
            if budget < 0 and self._best.channels:
                return

    def _groups(self) -> Iterator[tuple[_Try, ...]]:
        """Yield what to try: for each speed each type of way, and for both alike channels and others."""
        chains = (False, True) if self._algorithm == "tree" and self._node.sm >= _HOPPER else (False,)
        rounds = 2 if self._node.changes_ports and self._algorithm != "nvls" else 1
        for speed_MBps in self._speeds[self._first() :]:
            if self._best.channels and speed_MBps / self._best.speed_MBps <= _WORTH:
                return
            for _ports in range(rounds):
                for rank in self._ranks():
                    for is_chain in chains:
                        yield tuple(
                            _Try(
                                speed_MBps=speed_MBps,
                                rank=rank,
                                alike=alike,
                                is_chain=is_chain,
                                least=self._least,
                                most=self._most,
                            )
                            for alike in self._likeness(rank)
                        )

    def _first(self) -> int:
        """Return the place of the highest speed that some way, and the links of one GPU, have."""
        count, least = len(self._node.ways), self._least
        # The ends of a tree send in one direction only: NCCL counts so much more.
        more, of = (1, 1) if self._algorithm == "ring" else (count, count - 1)
        fits = (
            place
            for place, speed_MBps in enumerate(self._speeds)
            if speed_MBps <= self._node.widest_MBps and speed_MBps * least * of <= self._node.total_MBps * more
        )
        return next(fits, len(self._speeds) - 1)

    def _ranks(self) -> Iterator[int]:
        """Yield the ranks of ways to allow, until there are channels over better ones."""
        best, worst = self._node.types()
        for rank in range(best, min(worst, RANK["NET"]) + 1):
            if self._best.channels and best < rank > self._best.rank:
                return
            if rank != RANK["P2C"] or self._node.nccl >= _P2C_SINCE:
                yield rank

    def _likeness(self, rank: int) -> tuple[bool, ...]:
        if self._algorithm == "nvls":
            return (False,)
        # Across AMD's CPUs all channels are alike.
        return (True,) if self._node.is_amd and rank == RANK["SYS"] else (True, False)

    def _halve(self) -> None:
        """Make two channels of each where they are fast, as far as there may be so many."""
        best = self._best
        late = self._node.sm > _AMPERE and best.channels > _FEW_CHANNELS
        if best.speed_MBps >= (_HALVED_LATE_MBps if late else _HALVED_MBps):
            channels = min(2 * best.channels, self._most)
            self._best = replace(best, channels=channels, speed_MBps=best.speed_MBps // -(-channels // best.channels))

    def _raise(self) -> None:
        """Try as many channels at higher speeds: of a ring at all, of a tree while each of them is had."""
        best = self._best
        lower = [place for place, speed_MBps in enumerate(self._speeds) if speed_MBps <= best.speed_MBps]
        place = min(lower, default=len(self._speeds) - 1)
        lowest_MBps = speed_MBps = self._speeds[place]
        for following_MBps in reversed(self._speeds[:place]):
            if self._algorithm == "tree" and not speed_MBps == self._best.speed_MBps < 2 * lowest_MBps:
                return
            speed_MBps = following_MBps
            what = _Try(
                speed_MBps=speed_MBps,
                rank=best.rank,
                alike=best.alike,
                is_chain=best.is_chain,
                least=best.channels,
                most=self._most,
            )
            if self._attempt(what) == 0:
                return

    def _attempt(self, what: _Try) -> int:
        """Lay channels, keep them where they are better than the best; return what is left of the steps."""
        ranks = [way.rank for row in self._node.ways for way in row if way.rank <= what.rank]
        is_chain = what.is_chain and bool(self._node.switched)
        key = (what.speed_MBps, max(ranks), what.alike, is_chain, what.least)
        # The same once more finds nothing better.
        if key not in self._left:
            laying = _Laying(self._node, self._algorithm, what, self._best)
            self._left[key] = laying.left
            self._best = laying.best
        return self._left[key]


_Order = tuple[int, ...]
_Takes = tuple[tuple[int, int], ...]


class _NoStepsError(Exception):
    """A try has taken its steps, or has all that it may have."""


class _Laying:
    """One try: channel after channel, GPU after GPU, and back to the last choice where it does not go on."""

    def __init__(self, node: _SearchedNode, algorithm: PlannedAlgorithm, what: _Try, best: _BestFound) -> None:
        self._node = node
        self._algorithm = algorithm
        self._what = what
        self.best = best
        self._room = list(node.capacities)
        self._laid: list[_Order] = []
        self._hops = 0
        # What is left to use after channels whose last is of this order: the steps and hops when it was searched.
        self._searched: dict[tuple[int, _Order, tuple[int, ...]], tuple[int, int]] = {}
        every = range(len(node.ways))
        self._takes = tuple(tuple(self._between(start, end) for end in every) for start in every)
        self._next = tuple(self._following(start) for start in every)
        allowed = _ALIKE_STEPS if what.alike else _STEPS
        self.left = allowed
        with suppress(_NoStepsError):
            self._channel()
        node.steps_left -= allowed - max(0, self.left)
        if node.steps_left < 0:
            raise _TooLongError

    def _between(self, start: int, end: int) -> _Takes | None:
        """Return what a channel takes of each link from one GPU to another; None where it may not go there."""
        way, back = self._node.ways[start][end], self._node.ways[end][start]
        if way.rank > self._what.rank or (self._algorithm == "tree" and back.rank > self._what.rank):
            return None
        return self._amounts(way)

    def _amounts(self, way: _Way) -> _Takes:
        return tuple((link, self._what.speed_MBps * fifths // 5) for link, fifths in way.fifths)

    def _following(self, start: int) -> _Order:
        """Return the GPUs to go on to, the best first: wide ways, then short ones; over switches the neighbours."""
        row, count = self._node.ways[start], len(self._node.ways)
        ends = [end for step in range(1, count) if row[end := (start + step) % count].hops]
        if not self._node.switched:
            # NCCL compares whole GB/s.
            return tuple(sorted(ends, key=lambda end: (-(row[end].rate_MBps // 1000), row[end].hops)))
        after, before = (start + 1) % count, (start - 1) % count
        order = (before, after) if self._algorithm == "ring" else (after, before)
        return tuple(end for end in dict.fromkeys(order[: 1 if self._what.is_chain else 2]) if end in ends)

    def _step(self) -> None:
        if self.left <= 0:
            raise _NoStepsError
        self.left -= 1

    def _channel(self) -> None:
        """Begin a channel: in the order of the GPUs, others like the last one; then from every GPU."""
        if self._algorithm == "nvls":
            self._step()
            self._head(len(self._laid))
            return
        forced = self._laid[-1] if self._laid else tuple(range(len(self._node.ways)))
        self._walk(forced[0], forced)
        if not (self._what.alike and self._laid):
            for gpu in range(len(self._node.ways)):
                self._walk(gpu, None)

    def _walk(self, first: int, forced: _Order | None) -> None:
        """Go from a GPU to each that may follow, and back, from the last of a ring to the first; a loop for speed."""
        self._step()
        room, order, used = self._room, [first], 1 << first
        taken: list[_Takes] = []
        choices = [self._choices(order, forced)]
        while choices:
            takes, is_last = self._takes[order[-1]], len(order) == len(self._takes)
            for end in choices[-1]:
                needed = takes[end]
                if needed is None or (used >> end & 1 and not is_last):
                    continue
                for link, amount in needed:
                    if room[link] < amount:
                        break
                else:
                    self._step()
                    self._change_room(needed, -1)
                    if not is_last:
                        order.append(end)
                        used |= 1 << end
                        taken.append(needed)
                        choices.append(self._choices(order, forced))
                        break
                    self._complete(tuple(order))
                    self._change_room(needed, 1)
            else:
                choices.pop()
                used ^= 1 << order.pop()
                if taken:
                    self._change_room(taken.pop(), 1)

    def _choices(self, order: list[int], forced: _Order | None) -> Iterator[int]:
        """Return which GPUs may follow; a tree is complete with its last one."""
        if len(order) < len(self._takes):
            return iter(self._next[order[-1]] if forced is None else forced[len(order) : len(order) + 1])
        if self._algorithm == "ring":
            return iter(order[:1])
        self._step()
        self._complete(tuple(order))
        return iter(())

    def _change_room(self, needed: _Takes, sign: int) -> None:
        """Take what a step needs from the links, -1, or give it back, 1."""
        for link, amount in needed:
            self._room[link] += sign * amount

    def _head(self, head: int) -> None:
        """Lay a channel of NVLS: each GPU sends to the switches and takes in, the head twice as much."""
        needed: dict[int, int] = {}
        for gpu, both in enumerate(self._node.switched):
            for link, amount in (*self._amounts(both[0]), *self._amounts(both[1])):
                needed[link] = needed.get(link, 0) + amount * (2 if gpu == head else 1)
        if all(self._room[link] >= amount for link, amount in needed.items()):
            self._change_room(tuple(needed.items()), -1)
            self._step()
            self._complete((head,))
            self._change_room(tuple(needed.items()), 1)

    def _complete(self, order: _Order) -> None:
        """Count a channel, and begin the next one."""
        ends = (*order[1:], order[0]) if self._algorithm == "ring" else order[1:]
        hops = sum(self._node.ways[start][end].hops for start, end in zip(order, ends, strict=False))
        self._laid.append(order)
        self._hops += hops
        if self._is_better():
            self.best = _BestFound(
                channels=len(self._laid),
                speed_MBps=self._what.speed_MBps,
                rank=self._what.rank,
                hops=self._hops,
                alike=self._what.alike,
                is_chain=self._what.is_chain,
            )
            if len(self._laid) == self._what.most:
                self.left = _PERFECT
        if len(self._laid) < self._what.most:
            state = (len(self._laid), order, tuple(self._room))
            steps, fewest = self._searched.get(state, (0, 0))
            if steps and fewest <= self._hops:
                # The same choices as before, after no fewer hops: they take their steps and find nothing better.
                self.left = max(0, self.left - steps)
            else:
                left = self.left
                self._channel()
                self._searched[state] = (left - self.left, self._hops)
        self._hops -= hops
        self._laid.pop()

    def _is_better(self) -> bool:
        if len(self._laid) < self._what.least:
            return False
        rate_MBps = len(self._laid) * self._what.speed_MBps
        if rate_MBps != self.best.rate_MBps:
            return rate_MBps > self.best.rate_MBps
        return self._what.is_chain == self.best.is_chain and self._hops < self.best.hops

"""The channels of one try for several nodes: from a port through all GPUs of the node, and out again.

A ring leaves after its last GPU, a tree after its first; a tree that is no chain does so in halves, by its first two
GPUs. Of NVLS only the GPUs that channels begin at are found, each with its port. As ncclTopoSearchRecNet and
ncclTopoSearchRecGpu of src/graph/search.cc have it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from busbw.topo.search.node import SearchedNode
from busbw.topo.search.ports import PortGroup
from busbw.topo.search.tries import PERFECT, ChannelDraft, NoStepsError, StepBudget
from busbw.topo.search.ways import MBps, SearchedWay

# The order of the GPUs themselves is tried before all others where no switches join them, in so many steps of its own.
_ORDER_STEPS = 1 << 10
# From here on channels that may differ from the one before are not first laid like it, and begin at a port's own GPU.
_OWN_FIRST_SINCE = (2, 27, 5)
# Up to then they began at the nearest GPUs in turns.
_NO_TURNS_SINCE = (2, 27, 3)
# NCCL holds what ports carry, and what GPUs are near to, against whole GB/s.
_GBps = 1000
_NEVER = -1
_NO_PORT = -1

_Order = tuple[int, ...]
_Takes = tuple[tuple[int, MBps], ...]


def lay_between(
    node: SearchedNode, budget: StepBudget, what: ChannelDraft, best: ChannelDraft
) -> tuple[int, ChannelDraft]:
    """Lay channels from ports through a node; return what is left of the steps, and the best so far."""
    if node.ports is None:
        raise ValueError("a node without ports has no channels to others")
    laying = _BetweenNodes(node, node.ports, budget, what, best)
    laying.lay()
    return laying.left, laying.best


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where a channel has got to: the GPUs so far, the step to leave at, the port that it left by."""

    order: _Order
    back: int
    exit: int


# What a move takes, its hops, and where it leads.
_Move = tuple[_Takes, int, _Stage]


class _BetweenNodes:
    """One try: channel after channel, step after step, and back to the last choice where it does not go on."""

    def __init__(
        self, node: SearchedNode, ports: PortGroup, budget: StepBudget, what: ChannelDraft, best: ChannelDraft
    ) -> None:
        self._node, self._ports, self._budget, self._what = node, ports, budget, what
        self.best, self.left = best, what.steps
        self._room = list(node.capacities)
        self._port_room = list(ports.rates_MBps)
        self._port_MBps = what.between_MBps // _GBps * _GBps
        self._laid: list[_Order] = []
        # The port that each channel began at, and the one that it left by.
        self._ends: list[tuple[int, int]] = []
        self._hops = 0
        self._latency_us = 0.0
        # Steps that were counted and not gone once more.
        self._skipped = 0
        # What was searched after channels whose last is of this order: the steps and hops then.
        self._searched: dict[tuple[object, ...], tuple[int, int]] = {}
        gpus, every = range(len(node.ways)), range(len(ports.names))
        self._starts = ports.chosen(what.between_rank, gpus)
        self._returns = tuple(ports.chosen(what.between_rank, (gpu,)) for gpu in gpus)
        ways, into, out, worst = node.ways, ports.into, ports.out, what.between_rank
        self._across = tuple(
            tuple(self._takes(ways[one][other], ways[other][one], what.within_rank, what.within_MBps) for other in gpus)
            for one in gpus
        )
        out_MBps = what.between_MBps // 2 if what.pattern == "tree" else what.between_MBps
        self._in = tuple(
            tuple(self._takes(into[port][gpu], out[gpu][port], worst, what.between_MBps) for gpu in gpus)
            for port in every
        )
        self._out = tuple(
            tuple(self._takes(out[gpu][port], into[port][gpu], worst, out_MBps) for port in every) for gpu in gpus
        )
        self._next = tuple(self._static_order(gpu) for gpu in gpus)
        self._first = tuple(self._own_first(port) for port in every)

    def _own_first(self, port: int) -> Sequence[int]:
        own, near = self._ports.own[port], self._ports.near[port]
        if own is None or self._node.nccl < _OWN_FIRST_SINCE:
            return near
        return (own, *(gpu for gpu in near if gpu != own))

    def _static_order(self, gpu: int) -> _Order:
        """Return the GPUs to go on to, the best first: wide ways, then short ones; over switches the neighbours."""
        count, row = len(self._node.ways), self._node.ways[gpu]
        ends = [end for turn in range(1, count) if row[end := (gpu + turn) % count].hops]
        if not self._node.switched:
            return tuple(sorted(ends, key=lambda end: (-(row[end].rate_MBps // _GBps), row[end].hops)))
        after, before = (gpu + 1) % count, (gpu - 1) % count
        order = (before, after) if self._what.pattern == "ring" else (after, before)
        return tuple(end for end in dict.fromkeys(order[: 1 if self._what.pattern == "chain" else 2]) if end in ends)

    def _takes(self, way: SearchedWay, back: SearchedWay, worst: int, speed_MBps: MBps) -> _Takes | None:
        """Return what a channel takes of each link of a way; None where it may not go there or, of a tree, back."""
        if way.rank > worst or (self._what.pattern in ("tree", "chain") and back.rank > worst):
            return None
        return way.takes(speed_MBps)

    def lay(self) -> None:
        """Lay channels from every port, until the steps are taken."""
        by_order = not self._node.switched and self._what.pattern != "nvls"
        order = tuple(range(len(self._node.ways)))
        for start in self._open_ports():
            self._take_port(start, -1)
            self._latency_us = self._ports.latencies_us[start]
            if by_order:
                kept, self.left = self.left, _ORDER_STEPS
                self._apart(partial(self._walk, start, 0, order))
                if self.left != PERFECT:
                    self.left = kept
            is_last = self.left > 0 and self._apart(partial(self._begin, start))
            self._take_port(start, 1)
            if is_last or (self.left <= 0 and not by_order):
                return

    def _apart(self, action: Callable[[], bool | None]) -> bool:
        """Do something that may end in the middle, and then undo what it took."""
        room, port_room, hops = list(self._room), list(self._port_room), self._hops
        left, skipped = self.left, self._skipped
        try:
            return bool(action())
        except NoStepsError:
            self._room, self._port_room, self._hops = room, port_room, hops
            self._laid.clear()
            self._ends.clear()
            return False
        finally:
            self._budget.take(left - max(0, self.left) - (self._skipped - skipped))

    def _step(self) -> None:
        if self.left <= 0:
            raise NoStepsError
        self.left -= 1

    def _open_ports(self) -> Sequence[int]:
        """Return the ports that the next channel may begin at, the best first."""
        number, what = len(self._laid), self._what
        count = len(self._starts)
        ports = [self._starts[(number + turn) % count] for turn in range(count)]
        if what.pattern == "ring" and what.crosses and number % 2:
            ports = [port for port in ports if port == self._ends[-1][1]]
        return [port for port in ports if self._port_room[port] >= self._port_MBps]

    def _take_port(self, port: int, sign: int) -> None:
        """Take what a channel needs of the adapter of a port, -1, or give it back, 1."""
        for same in self._ports.same[port]:
            self._port_room[same] += sign * self._port_MBps

    def _channels(self) -> None:
        """Lay the channels that are still to come."""
        for start in self._open_ports():
            self._take_port(start, -1)
            is_last = self._begin(start)
            self._take_port(start, 1)
            if is_last:
                return

    def _begin(self, start: int) -> bool:
        """Begin a channel at a port; return whether no other port is to be tried."""
        number = len(self._laid)
        self._latency_us = self._ports.latencies_us[start]
        if self._what.pattern == "nvls":
            return self._begin_head(start)
        own_first = self._node.nccl >= _OWN_FIRST_SINCE
        if number and (self._what.alike or not own_first):
            self._walk(start, self._laid[-1][0], self._laid[-1])
        if not number or not self._what.alike:
            for gpu in self._gpus_at(start, number):
                self._walk(start, gpu, None)
        return False

    def _begin_head(self, start: int) -> bool:
        gpu = self._ports.own[start]
        is_new = gpu is not None and all(order[0] != gpu for order in self._laid)
        if gpu is None or not is_new or len(self._laid) >= len(self._starts):
            return False
        self._walk(start, gpu, None)
        return True

    def _gpus_at(self, start: int, number: int) -> Sequence[int]:
        """Return the GPUs that a channel may begin at from a port."""
        near = self._first[start]
        if self._node.nccl >= _NO_TURNS_SINCE or not near:
            return near
        if self._ports.into[start][near[0]].rate_MBps < self._port_MBps:
            return ()
        count = len(self._node.ways)
        return [gpu for turn in range(count) if (gpu := (number + turn) % count) in near]

    def _walk(self, start: int, first: int, forced: _Order | None) -> None:
        """Go from a port to a GPU, from there to each place that may follow, and back; a loop for speed."""
        room, needed = self._room, self._in[start][first]
        if needed is None or any(room[link] < amount for link, amount in needed):
            return
        back = len(self._node.ways) - 1 if self._what.pattern == "ring" else 0
        begin = _Stage((first,), back, _NO_PORT)
        pending: list[Iterator[_Move]] = [iter(((needed, self._ports.into[start][first].hops, begin),))]
        trail: list[tuple[_Takes, int]] = []
        while pending:
            for needed, hops, place in pending[-1]:
                for link, amount in needed:
                    if room[link] < amount:
                        break
                else:
                    for link, amount in needed:
                        room[link] -= amount
                    self._hops += hops
                    trail.append((needed, hops))
                    pending.append(iter(self._moves(start, place, forced)))
                    break
            else:
                pending.pop()
                if trail:
                    undone, hops = trail.pop()
                    for link, amount in undone:
                        room[link] += amount
                    self._hops -= hops

    def _moves(self, start: int, place: _Stage, forced: _Order | None) -> Sequence[_Move]:
        """Return where a channel may go from a place, the best first; count it where it is complete."""
        self._step()
        gpu, step, count = place.order[-1], len(place.order) - 1, len(self._node.ways)
        if step == place.back:
            return self._leaving(start, place, step)
        if self._what.pattern == "nvls":
            self._head(start, gpu, place.exit)
            return ()
        if step == count - 1:
            self._step()
            self._complete(place.order, (start, place.exit))
            return ()
        if forced is not None:
            following: Sequence[int] = (forced[step + 1],)
        else:
            following = self._following(start, place, step)
        ways = self._node.ways[gpu]
        return [
            (needed, ways[end].hops, _Stage((*place.order, end), place.back, place.exit))
            for end in following
            if (needed := self._across[gpu][end]) is not None
        ]

    def _leaving(self, start: int, place: _Stage, step: int) -> Sequence[_Move]:
        gpu = place.order[-1]
        back = 1 if self._what.pattern == "tree" and step == 0 else _NEVER
        return [
            (needed, self._ports.out[gpu][port].hops, _Stage(place.order, back, port))
            for port in self._returns[gpu]
            if self._may_leave(start, port, place.exit) and (needed := self._out[gpu][port]) is not None
        ]

    def _may_leave(self, start: int, port: int, before: int) -> bool:
        what = self._what
        if port in self._ports.apart[start] or (what.pattern == "chain" and port != start):
            return False
        if what.pattern == "ring" and what.crosses:
            return len(self._laid) % 2 == 0 or port == self._ends[-1][0]
        if not what.crosses and port not in self._ports.partners[start]:
            return False
        return before in (_NO_PORT, port)

    def _following(self, start: int, place: _Stage, step: int) -> Sequence[int]:
        """Return the GPUs to go on to, the best first; on the way out those near the port before all."""
        gpu = place.order[-1]
        ends = [end for end in self._next[gpu] if end not in place.order]
        if self._node.switched or place.back == _NEVER or len(ends) < 2:
            return ends
        into, ways = self._ports.into[start], self._node.ways[gpu]
        places = {end: number for number, end in enumerate(ends)}
        found = sorted(
            ends,
            key=lambda end: (
                -(into[end].rate_MBps // _GBps),
                -self._left_on_pci(end),
                into[end].hops,
                places[end],
            ),
        )
        is_even = len({(ways[end].rate_MBps // _GBps, ways[end].hops) for end in ends}) == 1
        return found[::-1] if is_even and place.back != step + 1 else found

    def _left_on_pci(self, gpu: int) -> int:
        links = self._node.pci_links[gpu]
        return _NEVER if links is None else min(self._room[link] for link in links) // _GBps

    def _head(self, start: int, head: int, leaves: int) -> None:
        """Lay a channel of NVLS: each GPU sends to the switches and takes in, the head twice as much."""
        what, needed = self._what, dict[int, int]()
        for gpu, both in enumerate(self._node.switched):
            for way in both:
                if gpu != head and way.rank > what.within_rank:
                    return
                for link, amount in way.takes(what.within_MBps):
                    needed[link] = needed.get(link, 0) + amount * (2 if gpu == head else 1)
        if any(self._room[link] < amount for link, amount in needed.items()):
            return
        for link, amount in needed.items():
            self._room[link] -= amount
        self._step()
        self._complete((head,), (start, leaves))
        for link, amount in needed.items():
            self._room[link] += amount

    def _complete(self, order: _Order, ends: tuple[int, int]) -> None:
        """Count a channel, and begin the next one."""
        self._laid.append(order)
        self._ends.append(ends)
        if self.best.is_beaten(self._what, len(self._laid), self._hops, len(self._node.ways)):
            self.best = replace(self._what, channels=len(self._laid), hops=self._hops, latency_us=self._latency_us)
            if len(self._laid) == self._what.most:
                self.left = PERFECT
        if len(self._laid) < self._what.most:
            heads = tuple(laid[0] for laid in self._laid) if self._what.pattern == "nvls" else ()
            state = (len(self._laid), heads, order, ends, tuple(self._room), tuple(self._port_room))
            steps, fewest = self._searched.get(state, (0, 0))
            if steps and fewest <= self._hops:
                # The same choices as before, after no fewer hops: they take their steps and find nothing better.
                skipped = min(self.left, steps)
                self.left -= skipped
                self._skipped += skipped
            else:
                left = self.left
                self._channels()
                self._searched[state] = (left - self.left, self._hops)
        self._ends.pop()
        self._laid.pop()

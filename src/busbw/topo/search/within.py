"""The channels of one try within a node: GPU after GPU, and back to the last choice where it does not go on."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from busbw.topo.search.node import SearchedNode
from busbw.topo.search.tries import PERFECT, ChannelDraft, NoStepsError, StepBudget
from busbw.topo.search.ways import MBps

_Order = tuple[int, ...]
_Takes = tuple[tuple[int, MBps], ...]


def lay_within(
    node: SearchedNode, budget: StepBudget, what: ChannelDraft, best: ChannelDraft
) -> tuple[int, ChannelDraft]:
    """Lay channels through a node that is alone; return what is left of the steps, and the best so far."""
    laying = _WithinNode(node, budget, what, best)
    return laying.left, laying.best


class _WithinNode:
    """One try: channel after channel."""

    def __init__(self, node: SearchedNode, budget: StepBudget, what: ChannelDraft, best: ChannelDraft) -> None:
        self._node = node
        self._what = what
        self.best = best
        self._room = list(node.capacities)
        self._is_tree = what.pattern in ("tree", "chain")
        self._laid: list[_Order] = []
        self._hops = 0
        # What is left to use after channels whose last is of this order: the steps and hops when it was searched.
        self._searched: dict[tuple[int, _Order, tuple[int, ...]], tuple[int, int]] = {}
        every = range(len(node.ways))
        self._takes = tuple(tuple(self._between(start, end) for end in every) for start in every)
        self._next = tuple(self._following(start) for start in every)
        self.left = what.steps
        with suppress(NoStepsError):
            self._channel()
        budget.take(what.steps - max(0, self.left))

    def _between(self, start: int, end: int) -> _Takes | None:
        """Return what a channel takes of each link from one GPU to another; None where it may not go there."""
        way, back = self._node.ways[start][end], self._node.ways[end][start]
        if way.rank > self._what.within_rank or (self._is_tree and back.rank > self._what.within_rank):
            return None
        return way.takes(self._what.within_MBps)

    def _following(self, start: int) -> _Order:
        """Return the GPUs to go on to, the best first: wide ways, then short ones; over switches the neighbours."""
        row, count = self._node.ways[start], len(self._node.ways)
        ends = [end for step in range(1, count) if row[end := (start + step) % count].hops]
        if not self._node.switched:
            # NCCL compares whole GB/s.
            return tuple(sorted(ends, key=lambda end: (-(row[end].rate_MBps // 1000), row[end].hops)))
        after, before = (start + 1) % count, (start - 1) % count
        order = (before, after) if self._what.pattern == "ring" else (after, before)
        return tuple(end for end in dict.fromkeys(order[: 1 if self._what.pattern == "chain" else 2]) if end in ends)

    def _step(self) -> None:
        if self.left <= 0:
            raise NoStepsError
        self.left -= 1

    def _channel(self) -> None:
        """Begin a channel: in the order of the GPUs, others like the last one; then from every GPU."""
        if self._what.pattern == "nvls":
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
        if self._what.pattern == "ring":
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
        speed_MBps = self._what.within_MBps
        needed: dict[int, int] = {}
        for gpu, both in enumerate(self._node.switched):
            for link, amount in (*both[0].takes(speed_MBps), *both[1].takes(speed_MBps)):
                needed[link] = needed.get(link, 0) + amount * (2 if gpu == head else 1)
        if all(self._room[link] >= amount for link, amount in needed.items()):
            self._change_room(tuple(needed.items()), -1)
            self._step()
            self._complete((head,))
            self._change_room(tuple(needed.items()), 1)

    def _complete(self, order: _Order) -> None:
        """Count a channel, and begin the next one."""
        ends = (*order[1:], order[0]) if self._what.pattern == "ring" else order[1:]
        hops = sum(self._node.ways[start][end].hops for start, end in zip(order, ends, strict=False))
        self._laid.append(order)
        self._hops += hops
        if self.best.is_beaten(self._what, len(self._laid), self._hops, len(self._takes)):
            self.best = replace(self._what, channels=len(self._laid), hops=self._hops)
            if len(self._laid) == self._what.most:
                self.left = PERFECT
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

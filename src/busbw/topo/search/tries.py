"""The order of NCCL's tries for one pattern, and the best that they find.

NCCL begins with the highest speed over the best ways alone, and gives in step by step: channels that differ, simpler
trees, worse ways, other ports, lower speeds. Each try may take so many steps, and ends where it stands. What was found
is then tried at higher speeds. As ncclTopoCompute of src/graph/search.cc has it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from busbw.topo.search.node import SearchedNode
from busbw.topo.search.speeds import HOPPER, speeds_between_MBps, speeds_within_MBps
from busbw.topo.search.ways import MBps

# `chain`: a tree whose traffic with other nodes goes through one GPU, and which visits its neighbours in one direction.
Pattern = Literal["ring", "tree", "chain", "nvls"]

# Steps of one try, where every channel is to be like the first and where not; and of all for one pattern.
ALIKE_STEPS = 1 << 8
STEPS = 1 << 14
_ALL_STEPS = 1 << 19
# What a try leaves of its steps where it has all that it may have.
PERFECT = -1
# A lower speed is tried while it is above this part of what was found.
_WORTH = 0.49
# Channels from this speed on become two each; above 8.0, where there are more than four, only from the second on.
_HALVED_MBps = 25_000
_HALVED_LATE_MBps = 50_000
_FEW_CHANNELS = 4
_AMPERE = 80
# What is laid where no channel can be: one, in the order of the GPUs.
_FALLBACK_MBps = 100


class NoStepsError(Exception):
    """A try has taken its steps, or has all that it may have."""


class TooLongError(Exception):
    """The tries take more steps than they may."""


@dataclass(frozen=True, kw_only=True)
class ChannelDraft:
    """What a try is to lay, or the best that tries have laid: channels of one speed over ways of a rank or better."""

    pattern: Pattern
    # From so many channels to so many.
    least: int
    most: int
    # Of one channel within the node, and to other nodes.
    within_MBps: MBps = 0
    between_MBps: MBps = 0
    within_rank: int = 0
    between_rank: int = 0
    # Every channel like the first.
    alike: bool = True
    # Whether every second channel of a ring returns by the port that the one before it began at.
    crosses: bool = False
    channels: int = 0
    hops: int = 0
    latency_us: float = 0.0

    @property
    def steps(self) -> int:
        """Return the steps that a try may take."""
        return ALIKE_STEPS if self.alike else STEPS

    def is_beaten(self, what: "ChannelDraft", channels: int, hops: int, heads: int) -> bool:
        """Return whether NCCL keeps channels of a draft instead of this; `heads`: GPUs that NVLS may begin at."""
        if channels < what.least:
            return False
        if what.pattern == "nvls":
            is_more = self.channels < channels <= heads
            return is_more or channels * what.between_MBps > self.channels * self.between_MBps
        rate_MBps, own_MBps = channels * what.within_MBps, self.channels * self.within_MBps
        if rate_MBps != own_MBps:
            return rate_MBps > own_MBps
        return what.pattern == self.pattern and what.crosses == self.crosses and hops < self.hops


# Lays channels for one draft; returns what is left of its steps, and the better of its best and the best so far.
Lay = Callable[[ChannelDraft, ChannelDraft], tuple[int, ChannelDraft]]


class StepBudget:
    """The steps that are left for all tries of a node."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def take(self, steps: int) -> None:
        """Take steps. Raises TooLongError where fewer are left."""
        self._left -= steps
        if self._left < 0:
            raise TooLongError


class Tries:
    """The tries for one pattern, and the best of them."""

    def __init__(self, node: SearchedNode, first: ChannelDraft, lay: Lay) -> None:
        self._node = node
        self._lay = lay
        self._is_alone = node.ports is None
        of = speeds_within_MBps if self._is_alone else speeds_between_MBps
        self._speeds = of(node.sm, node.nccl)
        self._within = node.ranks_within()
        self._between = node.ranks_between()
        may_cross = first.pattern in ("ring", "tree") and node.port_count > 1
        self._crossings = (False, True) if may_cross else (False,)
        self._best = replace(
            first, within_rank=self._within[0], between_rank=self._between[0], alike=first.pattern != "nvls"
        )
        # Tries that were made, by all that counts of them, and what they left of their steps.
        self._left: dict[tuple[object, ...], int] = {}

    def found(self) -> ChannelDraft:
        """Return the channels that NCCL lays."""
        self._give_in()
        self._halve()
        self._raise()
        best = self._best
        if best.channels or best.pattern == "nvls":
            return best
        worst = self._node.rank("SYS")
        return replace(
            best,
            channels=1,
            within_MBps=_FALLBACK_MBps,
            between_MBps=_FALLBACK_MBps,
            within_rank=worst,
            between_rank=worst,
        )

    def _is_enough(self, left: int) -> bool:
        return left == PERFECT or self._best.channels * self._best.between_MBps >= self._node.total_MBps

    def _give_in(self) -> None:
        """Try until nothing better can come, or all steps are taken."""
        budget, place = _ALL_STEPS, self._first_place()
        # Tries since the first that cannot find anything better, each with what it left. Of those that cannot that is
        # None: they take steps all the same, and are made when these decide.
        owed: list[tuple[ChannelDraft, int | None]] = []
        what: ChannelDraft | None = self._at(self._best, place)
        while what is not None:
            left = None
            if not self._is_hopeless(what):
                if owed and budget < 0:
                    settled = self._settled(budget, owed)
                    if settled is None:
                        return
                    budget, owed = settled, []
                left = self._attempt(what)
                if self._is_enough(left):
                    return
            budget -= what.steps
            if left is None or owed:
                owed.append((what, left))
            if self._is_next_different(what):
                what = replace(what, alike=False)
                continue
            what = replace(what, alike=what.pattern != "nvls")
            budget += left or 0
            if not owed and budget < 0 and self._best.channels:
                return
            looser = self._looser(what)
            if looser is None and self._is_worth_lowering(place):
                place += 1
                looser = self._at(self._tightest(what), place)
            what = looser

    def _is_next_different(self, what: ChannelDraft) -> bool:
        """Return whether channels that differ are tried next: across AMD's CPUs all are alike."""
        return what.alike and not (self._node.is_amd and what.within_rank == self._node.rank("SYS"))

    def _settled(self, budget: int, owed: list[tuple[ChannelDraft, int | None]]) -> int | None:
        """Return a budget with what tries left of their steps; None where it ran out after one of them.

        NCCL asks for that after the last try of a kind, and not between channels that are alike and others.
        """
        ends = [not self._is_next_different(what) for what, _ in owed]
        lefts = [
            (self._attempt(what) if left is None else left) if is_end else 0
            for (what, left), is_end in zip(owed, ends, strict=True)
        ]
        at_end = budget + sum(new for (_, left), new in zip(owed, lefts, strict=True) if left is None)
        after = at_end
        for (what, _), left, is_end in zip(reversed(owed), reversed(lefts), reversed(ends), strict=True):
            if after < 0 and is_end:
                return None
            after += what.steps - left
        return at_end

    def _first_place(self) -> int:
        """Return the place of the highest speed that some way, and the links of one GPU, have."""
        count, least = len(self._node.ways), self._best.least
        # The ends of a tree send in one direction only: NCCL counts so much more.
        more, of = (1, 1) if self._best.pattern == "ring" or count < 2 else (count, count - 1)
        fits = (
            place
            for place, speed_MBps in enumerate(self._speeds)
            if speed_MBps <= self._node.widest_MBps and speed_MBps * least * of <= self._node.total_MBps * more
        )
        return next(fits, len(self._speeds) - 1)

    def _at(self, what: ChannelDraft, place: int) -> ChannelDraft:
        return replace(what, within_MBps=self._speeds[place], between_MBps=self._speeds[place])

    def _tightest(self, what: ChannelDraft) -> ChannelDraft:
        return replace(
            what,
            pattern=self._best.pattern,
            within_rank=self._within[0],
            between_rank=self._between[0],
            crosses=False,
        )

    def _looser(self, what: ChannelDraft) -> ChannelDraft | None:
        """Return what to try next at the same speed; None where there is nothing left."""
        best, node = self._best, self._node
        if node.sm >= HOPPER and what.pattern == "tree":
            return replace(what, pattern="chain")
        what = replace(what, pattern=best.pattern)
        worst = self._within[1] if self._is_alone else what.between_rank
        none = node.rank("DIS")
        if what.within_rank < worst and (not best.channels or what.within_rank < best.within_rank):
            what = replace(what, within_rank=what.within_rank + 1)
            if what.within_rank < none:
                return what
        what = replace(what, within_rank=self._within[0])
        if not self._is_alone and what.between_rank < self._between[1]:
            is_relayed = what.between_rank >= node.rank("PXN")
            if not best.channels or what.between_rank < best.between_rank or not is_relayed:
                what = replace(what, between_rank=what.between_rank + 1)
                if what.between_rank < none:
                    return what
        what = replace(what, between_rank=self._between[0])
        if True in self._crossings and not what.crosses and best.pattern in ("ring", "tree"):
            return replace(what, crosses=True)
        return None

    def _is_worth_lowering(self, place: int) -> bool:
        if place == len(self._speeds) - 1:
            return False
        return not self._best.channels or self._speeds[place + 1] / self._best.between_MBps > _WORTH

    def _halve(self) -> None:
        """Make two channels of each where they are fast, as far as there may be so many."""
        best = self._best
        if not best.channels or best.pattern == "nvls":
            return
        late = self._node.sm > _AMPERE and best.channels > _FEW_CHANNELS
        if best.within_MBps < (_HALVED_LATE_MBps if late else _HALVED_MBps):
            return
        channels = min(2 * best.channels, best.most)
        parts = -(-channels // best.channels)
        self._best = replace(
            best,
            channels=channels,
            within_MBps=best.within_MBps // parts,
            between_MBps=best.between_MBps // parts,
        )

    def _raise(self) -> None:
        """Try as many channels at higher speeds: of a ring at all, of others while each of them is had."""
        best = self._best
        lower = (place for place, speed_MBps in enumerate(self._speeds) if speed_MBps <= best.between_MBps)
        place = next(lower, len(self._speeds) - 1)
        what = replace(self._at(best, place), least=best.channels)
        left = PERFECT
        while left != 0 and place > 0:
            following_MBps, best = self._speeds[place - 1], self._best
            if best.pattern == "ring":
                what = replace(what, within_MBps=following_MBps, between_MBps=following_MBps)
            elif best.pattern == "nvls" and best.between_MBps == what.between_MBps < 2 * what.within_MBps:
                what = replace(what, least=best.channels, most=best.channels, between_MBps=following_MBps)
            elif best.within_MBps == what.within_MBps < 2 * what.between_MBps:
                what = replace(what, within_MBps=following_MBps)
            else:
                return
            place -= 1
            if self._is_hopeless(what):
                # So are all higher speeds.
                return
            left = self._attempt(what)

    def _is_hopeless(self, what: ChannelDraft) -> bool:
        """Return whether the ports carry too few channels of a speed for anything better."""
        ports, best = self._node.ports, self._best
        if ports is None or not best.channels:
            return False
        most = min(what.most, sum(rate_MBps // what.between_MBps for rate_MBps in ports.rates_MBps))
        if what.pattern == "nvls":
            return most <= best.channels and most * what.between_MBps <= best.channels * best.between_MBps
        rate_MBps, best_MBps = most * what.within_MBps, best.channels * best.within_MBps
        if rate_MBps != best_MBps or most < what.least:
            return rate_MBps < best_MBps or most < what.least
        is_like = what.pattern == best.pattern and what.crosses == best.crosses
        return not is_like or most * self._fewest_hops(what.pattern) >= best.hops

    def _fewest_hops(self, pattern: Pattern) -> int:
        """Return the fewest links that a channel of several nodes goes over."""
        ways, ports = self._node.ways, self._node.ports
        if ports is None:
            return 0
        within = min((way.hops for row in ways for way in row if way.hops), default=0)
        into = min(way.hops for row in ports.into for way in row)
        out = min(way.hops for row in ports.out for way in row)
        return into + (len(ways) - 1) * within + (2 if pattern == "tree" else 1) * out

    def _attempt(self, what: ChannelDraft) -> int:
        """Lay channels, keep them where they are better than the best; return what is left of the steps."""
        node = self._node
        within = [way.rank for row in node.ways for way in row if way.rank <= what.within_rank]
        between: list[int] = []
        if node.ports is not None:
            rows = (*node.ports.out, *node.ports.into)
            between = [way.rank for row in rows for way in row if way.rank <= what.between_rank]
        # Over direct links of a node alone a chain is a tree.
        is_same = what.pattern == "chain" and self._is_alone and not node.switched
        key = (
            "tree" if is_same else what.pattern,
            what.within_MBps,
            what.between_MBps,
            max(within, default=-1),
            max(between, default=-1),
            what.alike,
            what.crosses and not self._is_alone,
            what.least,
            what.most,
        )
        # The same once more finds nothing better.
        if key not in self._left:
            self._left[key], self._best = self._lay(what, self._best)
        return self._left[key]

"""A schedule of a collective: which rank does what, with how many bytes, towards whom, and after what.

A schedule is of one lane: the part of the data that leaves each node through the same NIC (or GPU). Lanes are alike
and do not wait for each other. Everything is done once in each round; a round is a chunk of a pipeline, or a slice of a
step of a ring. Who a rank talks to, and which of another's works it waits for, is an affine map of its rank: what is
alike can then be counted once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

# NICs of a lane; the links of a GPU; the switch between the GPUs of a node that adds and copies.
Link = Literal["nic", "nvlink", "switch"]
Operation = Literal[
    "send", "add and send", "copy and send", "add in the switch", "copy by the switch", "receive", "calculate"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Ranks first, first + stride, ...: `count` of them."""

    first: int
    count: int
    stride: int = 1

    def __iter__(self) -> Iterator[int]:
        """Return the ranks in their order."""
        return iter(range(self.first, self.first + self.count * self.stride, self.stride))

    def __contains__(self, rank: int) -> bool:
        """Return whether a rank is one of them."""
        return rank in range(self.first, self.first + self.count * self.stride, self.stride)


@dataclass(frozen=True, kw_only=True, slots=True)
class Affine:
    """The map r -> (multiple r + plus) mod modulo; a modulo of 0 takes none."""

    multiple: int = 1
    plus: int = 0
    modulo: int = 0

    def of(self, rank: int) -> int:
        """Return what a rank is mapped to."""
        value = self.multiple * rank + self.plus
        return value % self.modulo if self.modulo else value


SELF = Affine()


@dataclass(frozen=True, kw_only=True, slots=True)
class Via:
    """The link that a work takes, and how much of its rate it has where all that shares it is under way."""

    link: Link
    # Of the rate of the link in one direction, as the steps count.
    share: Fraction = Fraction(1)
    # Of the same rate, while this work alone is under way: for the sender's end and the receiver's, as events count.
    # None: that end is a switch between nodes, which is no rank and fills no link of one.
    out: Fraction | None = Fraction(1)
    into: Fraction | None = Fraction(1)

    def __hash__(self) -> int:
        """Return a hash of the fractions' parts: that of a fraction itself takes a modular inverse."""
        ends = [None if end is None else end.as_integer_ratio() for end in (self.out, self.into)]
        return hash((self.link, self.share.as_integer_ratio(), *ends))


@dataclass(frozen=True, kw_only=True, slots=True)
class After:
    """What works of some ranks wait for: another work (by its place in the schedule), of a mapped rank."""

    work: int
    rank: Affine = SELF
    # The ranks that wait; None: all of the work.
    ranks: Ranks | None = None
    # It is that of so many rounds before.
    lag: int = 0
    # Whether it takes the latency of the other's link: data arrives, or a slot is given back.
    travels: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RankWork:
    """What ranks do once in each round."""

    ranks: Ranks
    # Which of several alike ones: a tree, a round of an exchange.
    channel: int = 0
    step: int = 0
    operation: Operation
    # Of each rank and round.
    part_bytes: Fraction
    peer: Affine
    # Of the first ranks; they repeat.
    via: tuple[Via, ...]
    after: tuple[After, ...] = ()
    # What it takes beside its link.
    seconds: float = 0.0

    def via_of(self, rank: int) -> Via:
        """Return the link that a rank of these takes."""
        return self.via[(rank - self.ranks.first) // self.ranks.stride % len(self.via)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """One lane of a collective. `ranks` are those that take part in a lane: GPUs, or one for each node."""

    algorithm: str
    collective: str
    ranks: int
    # Ranks of this lane on one node.
    group: int
    # Lanes that are alike; of each is what is said here.
    lanes: int
    # Ranks of a node that have one NIC together.
    ranks_of_nic: int = 1
    rounds: int
    works: tuple[RankWork, ...]
    # It maps to itself where each rank is moved by so many; None: it does not.
    repeats_after: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Loads:
    """Bytes of one lane by rank and link, over all rounds: exact."""

    sent: dict[tuple[int, Link], Fraction]
    received: dict[tuple[int, Link], Fraction]


def loads_of(schedule: Schedule) -> Loads:
    """Return what each rank sends and receives over each link."""
    sent: dict[tuple[int, Link], Fraction] = defaultdict(Fraction)
    received: dict[tuple[int, Link], Fraction] = defaultdict(Fraction)
    for work in schedule.works:
        moved = work.part_bytes * schedule.rounds
        for rank in work.ranks:
            via = work.via_of(rank)
            if via.out is not None:
                sent[rank, via.link] += moved
            if via.into is not None:
                received[work.peer.of(rank), via.link] += moved
    return Loads(sent=dict(sent), received=dict(received))


def folded(schedule: Schedule) -> Schedule:
    """Return a schedule over the ranks that repeat, which ends when the whole one does if all nodes are alike."""
    period = schedule.repeats_after
    if period is None or period == schedule.ranks:
        return schedule

    def ranks_of(ranks: Ranks) -> Ranks:
        # A work is of all ranks, of one place in each period, or of one rank.
        if ranks.count == 1 or ranks.stride % period == 0:
            return Ranks(first=ranks.first % period, count=1)
        return Ranks(first=0, count=period)

    def map_of(map_: Affine) -> Affine:
        return Affine(multiple=map_.multiple, plus=map_.plus % period, modulo=period) if map_.modulo else map_

    works = tuple(
        replace(
            work,
            ranks=ranks_of(work.ranks),
            peer=map_of(work.peer),
            # What waits for the same work of every period waits for one.
            after=tuple(dict.fromkeys(replace(after, rank=map_of(after.rank)) for after in work.after)),
        )
        for work in schedule.works
    )
    return replace(schedule, ranks=period, works=works)


class _Act(NamedTuple):
    """What ranks do that are put together, as far as it tells them from others."""

    kind: tuple[int | str, ...]
    channel: int
    operation: Operation
    # Numerator and denominator.
    part_bytes: tuple[int, int]
    via: Via
    # How many ranks on the peer is.
    ahead: int
    seconds: float


class Drafting:
    """A schedule that is written rank by rank; `works` puts what is alike together, as ranges and affine maps."""

    def __init__(self) -> None:
        """Begin without anything to do."""
        self._ranks: dict[_Act, list[int]] = defaultdict(list)
        # What waits, for what, over how many rounds, and whether it travels. Of plain values and in one list: there
        # are hundreds of thousands in a large tree.
        self._waits: list[tuple[str, int, str, int, int, bool]] = []

    def do(
        self,
        name: str,
        rank: int,
        *,
        kind: tuple[int | str, ...] = (),
        channel: int = 0,
        operation: Operation,
        part_bytes: Fraction,
        via: Via,
        peer: int,
        seconds: float = 0.0,
    ) -> None:
        """Let a rank do something, once, towards a peer; `kind` tells apart what shall not be put together."""
        act = _Act((name, *kind), channel, operation, part_bytes.as_integer_ratio(), via, peer - rank, seconds)
        self._ranks[act].append(rank)

    def after(self, name: str, rank: int, source: str, other: int, *, lag: int = 0, travels: bool = False) -> None:
        """Let what a rank does wait for what another does."""
        self._waits.append((name, rank, source, other, lag, travels))

    def works(self) -> tuple[RankWork, ...]:
        """Return all of it as ranges of alike ranks."""
        places: dict[str, dict[int, int]] = defaultdict(dict)
        found: list[tuple[Ranks, _Act]] = []
        for act, ranks in self._ranks.items():
            own = places[str(act.kind[0])]
            for run in runs(ranks):
                own.update(dict.fromkeys(run, len(found)))
                found.append((run, act))
        afters = self._afters(places)
        return tuple(
            RankWork(
                ranks=run,
                channel=act.channel,
                operation=act.operation,
                part_bytes=Fraction(*act.part_bytes),
                peer=Affine(plus=act.ahead),
                via=(act.via,),
                seconds=act.seconds,
                after=tuple(afters[place]),
            )
            for place, (run, act) in enumerate(found)
        )

    def _afters(self, places: dict[str, dict[int, int]]) -> dict[int, list[After]]:
        """Return what each work waits for, by its place."""
        alike: dict[tuple[int, int, int, int, bool], list[int]] = defaultdict(list)
        for name, rank, source, other, lag, travels in self._waits:
            alike[places[name][rank], places[source][other], other - rank, lag, travels].append(rank)
        found: dict[int, list[After]] = defaultdict(list)
        for (place, work, plus, lag, travels), ranks in alike.items():
            found[place] += [
                After(work=work, rank=Affine(plus=plus), ranks=part, lag=lag, travels=travels) for part in runs(ranks)
            ]
        return found


def runs(ranks: Iterable[int]) -> Iterator[Ranks]:
    """Return ascending ranges that together have exactly these ranks, each as long as it can be from its first."""
    left = sorted(ranks)
    at = 0
    while at < len(left):
        end = at + 1
        stride = left[end] - left[at] if end < len(left) else 1
        while end < len(left) and left[end] - left[end - 1] == stride:
            end += 1
        yield Ranks(first=left[at], count=end - at, stride=stride)
        at = end

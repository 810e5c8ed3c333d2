"""A schedule written out: what each GPU sends, receives and waits for, one act after another.

This is the form in which schedules are exchanged with other programs. `written_out` makes it of our own schedules, all
lanes together; `described` makes a schedule of it, which is timed as ours are. The k-th message from one rank to
another with one tag is received by the k-th receive of it.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from busbw.base.errors import InputError
from busbw.predict.schedules.description import Drafting, Link, RankWork, Schedule, Via
from busbw.predict.schedules.timing import LaneRates, work_seconds

MOST_ACTS = 2**17
MOST_RANKS = 2**16
# What only says that a slot is free, or that something has ended.
_SIGNAL = 1
_SIGNAL_TAGS = 2**16


@dataclass(slots=True)
class Act:
    """What a rank does once in each round: it sends, receives, or calculates for some nanoseconds."""

    what: Literal["send", "recv", "calc"]
    # Units of the program, or nanoseconds.
    amount: int
    peer: int = 0
    tag: int = 0
    # Acts of the same rank by their number, and how many rounds before.
    after: list[tuple[int, int]] = field(default_factory=list)
    # Where it stands in a file; 0: nowhere.
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class WrittenSchedule:
    """Acts of each rank, done once in each round."""

    acts: tuple[list[Act], ...]
    unit_bytes: Fraction = Fraction(1)
    rounds: int = 1
    where: str = "the schedule"

    @property
    def count(self) -> int:
        """Return the number of acts of all ranks."""
        return sum(len(acts) for acts in self.acts)


def written_out(schedule: Schedule, rates: LaneRates) -> WrittenSchedule:
    """Return all lanes and rounds of a schedule, act by act; what a switch or a GPU does alone takes time at `rates`.

    Bytes are rounded up to whole ones. Raises InputError for more acts than are written, and for CollNet.
    """
    if any(via.out is None or via.into is None for work in schedule.works for via in work.via):
        raise no_form_of(schedule.algorithm)
    works = sum(work.ranks.count for work in schedule.works)
    most = 2 * works * schedule.rounds * schedule.lanes
    if most > MOST_ACTS:
        raise InputError(
            f"the schedule has {most} sends and receives; {MOST_ACTS} are written at most",
            where="--schedule-out",
            hint="fewer nodes, or a smaller size, which takes fewer chunks: --nodes 4 --size 1M",
        )
    writing = _LaneWriting(schedule, rates)
    for lane in range(schedule.lanes):
        writing.lane(lane)
    return WrittenSchedule(acts=tuple(writing.acts))


def no_form_of(algorithm: str) -> InputError:
    """Return the error for a schedule in which switches between nodes add: they are no ranks that send and receive."""
    return InputError(
        f"no schedule of {algorithm} is written: the switches of the network add, and a switch is no rank",
        where="--schedule-out",
        hint="--algorithm ring or tree",
    )


class _LaneWriting:
    """Acts of all ranks, lane after lane."""

    def __init__(self, schedule: Schedule, rates: LaneRates) -> None:
        self.schedule = schedule
        self.rates = rates
        # A lane that has one rank for each node is one GPU of each.
        self.gpus = schedule.lanes if schedule.group == 1 and schedule.lanes > 1 else schedule.group
        self.channels = 1 + max(work.channel for work in schedule.works)
        self.order = _in_order(schedule)
        self.acts: list[list[Act]] = [[] for _ in range(schedule.ranks // schedule.group * self.gpus)]

    def gpu(self, lane: int, rank: int) -> int:
        """Return the GPU that a rank of a lane is: lanes leave a node by different GPUs."""
        group = self.schedule.group
        node, place = divmod(rank, group)
        shift = lane if group == 1 else lane * group // self.schedule.lanes
        return node * self.gpus + (place + shift) % self.gpus

    def peer(self, lane: int, work: RankWork, rank: int) -> int:
        """Return the GPU that a work is for; in an exchange within a node those of other lanes in turn."""
        other = work.peer.of(rank)
        if work.operation == "send" and work.part_bytes and other == rank:
            return self.gpu((lane + work.step) % self.schedule.lanes, rank)
        return self.gpu(lane, other)

    def lane(self, lane: int) -> None:
        """Write one lane, round after round."""
        # The number of the act of a work, rank and round, and of its receipt, at its own GPU.
        own: dict[tuple[int, int, int], int] = {}
        arrived: dict[tuple[int, int, int], int] = {}
        for round_ in range(self.schedule.rounds):
            for block, rank in self.order:
                self._work(lane, block, rank, round_, own, arrived)

    def _work(
        self,
        lane: int,
        block: int,
        rank: int,
        round_: int,
        own: dict[tuple[int, int, int], int],
        arrived: dict[tuple[int, int, int], int],
    ) -> None:
        work = self.schedule.works[block]
        here, there = self.gpu(lane, rank), self.peer(lane, work, rank)
        waits = [own[block, rank, round_ - 1]] if round_ else []
        for after in work.after:
            if after.lag > round_ or (after.ranks is not None and rank not in after.ranks):
                continue
            source = after.work, after.rank.of(rank), round_ - after.lag
            waits.append(self._wait(lane, here, source, own, arrived))
        tag = lane * self.channels + work.channel
        what: Literal["send", "calc"] = "calc" if here == there else "send"
        amount = _up(work.part_bytes)
        if what == "calc":
            amount = round(work_seconds(work, work.via_of(rank), self.rates) * 1e9)
        own[block, rank, round_] = self._add(here, Act(what, amount, there, tag, [(at, 0) for at in waits]))
        if what == "send":
            arrived[block, rank, round_] = self._add(there, Act("recv", amount, here, tag))

    def _wait(
        self,
        lane: int,
        here: int,
        source: tuple[int, int, int],
        own: dict[tuple[int, int, int], int],
        arrived: dict[tuple[int, int, int], int],
    ) -> int:
        """Return the act at a GPU after which another's work has ended: its receipt, or that of a signal."""
        block, rank, _ = source
        works = self.schedule.works
        other = self.gpu(lane, rank)
        if other == here:
            return own[source]
        if source in arrived and self.peer(lane, works[block], rank) == here:
            return arrived[source]
        tag = _SIGNAL_TAGS + lane * len(works) + block
        self._add(other, Act("send", _SIGNAL, here, tag, [(own[source], 0)]))
        return self._add(here, Act("recv", _SIGNAL, other, tag))

    def _add(self, gpu: int, act: Act) -> int:
        self.acts[gpu].append(act)
        return len(self.acts[gpu]) - 1


def _up(part_bytes: Fraction) -> int:
    return -(-part_bytes.numerator // part_bytes.denominator)


def _in_order(schedule: Schedule) -> list[tuple[int, int]]:
    """Return each work's ranks in an order in which all stand after what they wait for within a round."""
    open_: dict[tuple[int, int], int] = {
        (block, rank): 0 for block, work in enumerate(schedule.works) for rank in work.ranks
    }
    followers: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for block, rank in open_:
        for after in schedule.works[block].after:
            if not after.lag and (after.ranks is None or rank in after.ranks):
                open_[block, rank] += 1
                followers[after.work, after.rank.of(rank)].append((block, rank))
    order = [each for each, count in open_.items() if not count]
    for each in order:
        for follower in followers[each]:
            open_[follower] -= 1
            if not open_[follower]:
                order.append(follower)
    return order


def described(
    program: WrittenSchedule,
    *,
    gpus: int,
    ranks_of_nic: int,
    algorithm: str,
    collective: str,
    wire: Fraction = Fraction(1),
) -> Schedule:
    """Return a schedule of a program on nodes of so many GPUs; of a byte `wire` bytes pass links.

    Of a link's rate a send has an even share among all that leave, or arrive, at the same depth: after as many sends
    one after another. Raises InputError for ranks that do not fill nodes, messages that nobody receives, or of two
    sizes, and for acts that wait for each other.
    """
    ranks = len(program.acts)
    if ranks % gpus or ranks < 2:
        raise InputError(
            f"{program.where} has {ranks} ranks, which do not fill nodes of {gpus} GPUs", hint="--gpus N, --nodes N"
        )
    senders = _matched(program)
    depths = _depths(program, senders)
    shares = _LinkShares(program, depths, gpus, ranks_of_nic)
    awaited = {
        (rank, at)
        for rank, acts in enumerate(program.acts)
        for act in acts
        for at, lag in act.after
        if lag < program.rounds
    }
    draft = Drafting()
    # Many acts move the same: it is multiplied once.
    unit = program.unit_bytes * wire
    bytes_of = {amount: amount * unit for amount in {act.amount for _, _, act in _each(program)}}
    for rank, at, act in _each(program):
        if act.what == "send":
            moved = bytes_of[act.amount]
            draft.do(
                str(at), rank, kind=("send",), operation="send", part_bytes=moved, via=shares.via(rank, at, act),
                peer=act.peer,
            )  # fmt: skip
        elif act.what == "calc":
            draft.do(
                str(at), rank, kind=("calc",), operation="calculate", part_bytes=Fraction(0), via=_NOTHING, peer=rank,
                seconds=act.amount * 1e-9,
            )  # fmt: skip
        elif (rank, at) in awaited:
            draft.do(
                str(at), rank, kind=("recv",), operation="receive", part_bytes=Fraction(0), via=_NOTHING, peer=rank
            )
            sender, sent = senders[rank, at]
            draft.after(str(at), rank, str(sent), sender, travels=True)
    for rank, at, act in _each(program):
        waits = act.after if act.what != "recv" or (rank, at) in awaited else ()
        for other, lag in waits:
            if lag < program.rounds:
                draft.after(str(at), rank, str(other), rank, lag=lag)
    return Schedule(
        algorithm=algorithm, collective=collective, ranks=ranks, group=gpus, lanes=1, ranks_of_nic=ranks_of_nic,
        rounds=program.rounds, works=draft.works(),
    )  # fmt: skip


_NOTHING = Via(link="nvlink")


def _each(program: WrittenSchedule) -> Iterator[tuple[int, int, Act]]:
    for rank, acts in enumerate(program.acts):
        for at, act in enumerate(acts):
            yield rank, at, act


def place_of(program: WrittenSchedule, rank: int, act: Act) -> str:
    """Return where an act stands, for an error."""
    return f"{program.where}:{act.line}" if act.line else f"{program.where}, rank {rank}"


def _matched(program: WrittenSchedule) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the send of each receive, both by rank and number."""
    waiting: dict[tuple[int, int, int], list[tuple[int, int, Act]]] = defaultdict(list)
    for rank, at, act in _each(program):
        if act.what != "calc" and not 0 <= act.peer < len(program.acts):
            raise InputError(
                f"rank {rank} has a partner {act.peer}, and there are {len(program.acts)} ranks",
                where=place_of(program, rank, act),
            )
        if act.what == "send":
            waiting[rank, act.peer, act.tag].append((rank, at, act))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    taken: dict[tuple[int, int, int], int] = defaultdict(int)
    for rank, at, act in _each(program):
        if act.what != "recv":
            continue
        key = act.peer, rank, act.tag
        number = taken[key]
        if number >= len(waiting.get(key, ())):
            raise InputError(
                f"rank {rank} receives a message that rank {act.peer} does not send (tag {act.tag}, number "
                f"{number + 1})",
                where=place_of(program, rank, act),
            )
        taken[key] += 1
        sender, sent, other = waiting[key][number]
        if other.amount != act.amount:
            raise InputError(
                f"rank {rank} receives {act.amount} of what rank {sender} sends as {other.amount}",
                where=place_of(program, rank, act),
                hint="what is sent is received whole: the same size at both ends",
            )
        found[rank, at] = sender, sent
    for (sender, receiver, tag), sends in waiting.items():
        if taken[sender, receiver, tag] < len(sends):
            _, _, act = sends[taken[sender, receiver, tag]]
            raise InputError(
                f"rank {sender} sends rank {receiver} a message that it does not receive (tag {tag}, number "
                f"{taken[sender, receiver, tag] + 1})",
                where=place_of(program, sender, act),
            )
    return found


def _depths(program: WrittenSchedule, senders: dict[tuple[int, int], tuple[int, int]]) -> list[list[int]]:
    """Return how many sends stand one after another up to each act. Raises InputError where acts wait for themselves.

    Waits for an earlier round count nothing.
    """
    followers: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    open_ = [[0] * len(acts) for acts in program.acts]
    for rank, at, act in _each(program):
        sources = [(rank, other) for other, lag in act.after if not lag]
        if act.what == "recv":
            sources.append(senders[rank, at])
        open_[rank][at] = len(sources)
        for source in sources:
            followers[source].append((rank, at))
    depths = [[int(act.what == "send") for act in acts] for acts in program.acts]
    order = [(rank, at) for rank, at, _ in _each(program) if not open_[rank][at]]
    for rank, at in order:
        for other, place in followers[rank, at]:
            step = int(program.acts[other][place].what == "send")
            depths[other][place] = max(depths[other][place], depths[rank][at] + step)
            open_[other][place] -= 1
            if not open_[other][place]:
                order.append((other, place))
    if len(order) < program.count:
        left = [(rank, at, act) for rank, at, act in _each(program) if open_[rank][at]]
        rank, at, act = left[0]
        raise InputError(
            f"{len(left)} acts wait for each other for ever, among them one of rank {rank}: a deadlock",
            where=place_of(program, rank, act),
            hint="what is received must be sent by an act that does not wait for it",
        )
    return depths


class _LinkShares:
    """What share of its link each send has: of all at one end of it, at the same depth."""

    def __init__(self, program: WrittenSchedule, depths: list[list[int]], gpus: int, ranks_of_nic: int) -> None:
        self.depths = depths
        self.gpus = gpus
        self.ranks_of_nic = ranks_of_nic
        self.vias: dict[tuple[Link, int], Via] = {}
        self.flows: dict[tuple[Link, str, int, int], int] = defaultdict(int)
        for rank, at, act in _each(program):
            if act.what == "send":
                for end in self._ends(rank, act):
                    self.flows[(*end, depths[rank][at])] += 1

    def _ends(self, rank: int, act: Act) -> tuple[tuple[Link, str, int], tuple[Link, str, int]]:
        if rank // self.gpus == act.peer // self.gpus:
            return ("nvlink", "out", rank), ("nvlink", "into", act.peer)
        return ("nic", "out", rank // self.ranks_of_nic), ("nic", "into", act.peer // self.ranks_of_nic)

    def via(self, rank: int, at: int, act: Act) -> Via:
        """Return the link of a send, with its share."""
        ends = self._ends(rank, act)
        link, most = ends[0][0], max(self.flows[(*end, self.depths[rank][at])] for end in ends)
        if (link, most) not in self.vias:
            self.vias[link, most] = Via(link=link, share=Fraction(1, most))
        return self.vias[link, most]

"""A sweep over a fabric as its ranks carry it out: rank 0 decides the rounds and tells each pair, the pairs measure.

Messages between ranks that measure go through MPI; what rank 0 and the others tell each other goes beside it
(`rank.sweeping.star`): a rank that stands still keeps nobody but its partner waiting, and that one not for ever.
"""

import contextlib
import random
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from busbw import _core
from busbw.base import layout
from busbw.base.value import Value
from busbw.fabric.places import Pairing
from busbw.fabric.recorded import carried_out, replayed, rounds_before_retests, rounds_of
from busbw.model import codec
from busbw.model.fabric import FabricMetric, FabricPlan, PairProbe, PairSeen
from busbw.model.plan import Plan
from busbw.model.record import AnyRecord, Event, RoundEnded, RoundMeasured, Unanswered
from busbw.rank.heart import Heart
from busbw.rank.journal import Journal
from busbw.rank.mpi_world import MpiWorld
from busbw.rank.sweeping.counting import CounterKeeper, CountOrder
from busbw.rank.sweeping.star import Hub, Spoke, open_star
from busbw.rank.world import World
from busbw.stats.distributions import median

_KINDS: dict[FabricMetric, str] = {
    "latency": "ping_pong",
    "bandwidth": "one_way",
    "bibandwidth": "both_ways",
    "message-rate": "one_way",
}
# A partner that gave up says so this much later at most: then its rank is lost.
_ANSWER_S = 2.0
# Tags of MPI go up to 32767 at least; a message that comes late must not be taken for one of another test.
_TAGS = 30_000
# The lost end with the job, a while after the others have been looked at.
_IDLE_S = 600.0


class PairOrder(Value, kw_only=True, frozen=True, tag="pair"):
    """What rank 0 tells one rank of a pair; `step` is the number of tests it has told of before, of all ranks."""

    step: int
    # None: there is no further test.
    probe: int | None
    peer: int = 0
    leads: bool = False
    # Whether pairs were given up: MPI is not taken leave of, and the launching side ends the ranks.
    stays: bool = False


class PairAnswer(Value, kw_only=True, frozen=True):
    """What one rank of a pair tells rank 0; values of the rank that leads."""

    step: int
    gave_up: bool
    samples: int = 0
    value: float | None = None
    best: float | None = None
    worst: float | None = None
    # How often other work had the core of this rank meanwhile, and how long it took.
    taken_off: int = 0
    wall_s: float = 0.0


Order = PairOrder | CountOrder
_ORDERS = msgspec.json.Decoder(Order)
_ANSWERS = msgspec.json.Decoder(PairAnswer)


class PairRank:
    """What a rank measures its share of pairs with."""

    def __init__(self, plan: FabricPlan, world: MpiWorld, heart: Heart, keeper: CounterKeeper) -> None:
        self._plan = plan
        self._world = world
        self._heart = heart
        self._keeper = keeper
        # MPI may still write into what belongs to a test that was given up.
        self._given_up: list[_core.PairTester] = []
        self._tester = self._made()

    def carry_out(self, order: Order) -> PairAnswer:
        """Do what rank 0 has said."""
        if isinstance(order, CountOrder):
            self._keeper.count(order)
            return PairAnswer(step=order.step, gave_up=False)
        return self._measure(order)

    def _measure(self, order: PairOrder) -> PairAnswer:
        assert order.probe is not None
        probe = self._plan.probes[order.probe]
        self._heart.enter("sampling", order.probe)
        task = _core.PairTask(
            peer=order.peer,
            tag=1 + order.step % _TAGS,
            leads=order.leads,
            size=probe.size_bytes,
            calls=probe.calls,
            budget_ns=round(probe.budget_s * 1e9),
            least=probe.least_samples,
            most=probe.most_samples,
            limit_ns=round(probe.limit_s * 1e9),
        )
        taken_off, began_s = _switches(), time.monotonic()
        samples = _core.test_pair(self._tester, self._heart.memory, _KINDS[probe.metric], task)
        taken_off, wall_s = _switches() - taken_off, time.monotonic() - began_s
        if samples.gave_up:
            self._given_up.append(self._tester)
            self._tester = self._made()
            return PairAnswer(step=order.step, gave_up=True)
        made = answer_of(order, probe, samples.duration_ns)
        return msgspec.structs.replace(made, taken_off=taken_off, wall_s=wall_s)

    def _made(self) -> _core.PairTester:
        size_bytes = max(each.size_bytes for each in self._plan.probes)
        send, receive = _core.Buffer(size_bytes), _core.Buffer(size_bytes)
        for buffer in (send, receive):
            buffer.touch(size_bytes)
        return _core.make_pair_tester(
            self._world.core,
            communicator=self._world.handle(self._world.communicator),
            byte=self._world.byte,
            send=send,
            receive=receive,
            window=max(each.calls for each in self._plan.probes),
        )


def _switches() -> int:
    """Return how often the kernel has given the core of this thread to other work."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def answer_of(order: PairOrder, probe: PairProbe, duration_ns: Sequence[int]) -> PairAnswer:
    """Return what samples come to: of latencies the median, of rates what was moved in all the time together."""
    if not order.leads:
        return PairAnswer(step=order.step, gave_up=False)
    if not duration_ns or min(duration_ns) <= 0:
        return PairAnswer(step=order.step, gave_up=True)
    if probe.metric == "latency":
        trips = sorted(each * 1e-9 / (2 * probe.calls) for each in duration_ns)
        value, best, worst = median(trips), trips[0], trips[-1]
    else:
        each = {"message-rate": 1, "bibandwidth": 2 * probe.size_bytes}.get(probe.metric, probe.size_bytes)
        moved = each * probe.calls
        value = moved * len(duration_ns) / (sum(duration_ns) * 1e-9)
        best, worst = moved / (min(duration_ns) * 1e-9), moved / (max(duration_ns) * 1e-9)
    return PairAnswer(
        step=order.step, gave_up=False, samples=len(duration_ns), value=value, best=best, worst=worst
    )  # fmt: skip


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for the end
    """The sweep ends before its end."""


class Conductor:
    """Rank 0 of a sweep: has rounds measured, writes each down, and knows who is lost."""

    def __init__(
        self, plan: FabricPlan, hub: Hub, mine: PairRank, journal: Journal, heart: Heart, say: Callable[[Event], None]
    ) -> None:
        self._plan = plan
        self._hub = hub
        self._mine = mine
        self._journal = journal
        self._heart = heart
        self._say = say
        self._ranks = {seat: rank for rank, seat in enumerate(plan.of_rank)}
        # The rank of each host that reads its counters.
        self._keepers: dict[str, int] = {}
        for rank, seat in enumerate(plan.of_rank):
            self._keepers.setdefault(plan.seats[seat].node, rank)
        self._first = tuple(rounds_before_retests(plan, each.metric) for each in plan.probes)
        self._step = 0
        # Whether any pair was given up.
        self.gave_up = False

    @property
    def lost(self) -> tuple[int, ...]:
        """The ranks that do not answer any more."""
        return tuple(sorted(self._hub.lost))

    def round(self, number: int, probe: int, pairs: Sequence[Pairing]) -> tuple[float | None, ...]:
        """Measure one round and write it down. Raises Stopped where somebody has asked for the end."""
        if self._heart.stop_asked:
            raise Stopped
        started_unix_s = time.time()
        seen: dict[int, PairSeen] = {}
        is_retest = number >= self._first[probe]
        if is_retest:
            self._count(number, probe, pairs, ())
        for together in phases(pairs):
            seen.update(self._at_once(probe, pairs, together))
            if is_retest:
                self._count(number, probe, pairs, together)
        tests = tuple(seen[at] for at in range(len(pairs)))
        metric = self._plan.probes[probe].metric
        self._heart.enter("writing")
        self._journal.write(
            RoundMeasured(
                metric=metric,
                round=number,
                tests=tests,
                lost=tuple(self._plan.of_rank[rank] for rank in self.lost),
                started_unix_s=started_unix_s,
                ended_unix_s=time.time(),
            )
        )
        unanswered = sum(each.value is None for each in tests)
        self._say(RoundEnded(point=probe, round=number, tests=len(tests), unanswered=unanswered))
        return tuple(each.value for each in tests)

    def leave(self, *, stays: bool) -> None:
        """Tell the others that there is nothing more to measure."""
        last = codec.encode(PairOrder(step=self._step, probe=None, stays=stays))
        for rank in range(1, len(self._plan.of_rank)):
            self._hub.tell(rank, last)

    def _count(self, number: int, probe: int, pairs: Sequence[Pairing], together: Sequence[int]) -> None:
        """Have the counters of all hosts of a round read; `together`: the tests since the reading before."""
        node_of = [each.node for each in self._plan.seats]
        tested: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in pairs:
            for seat in (each.sender, each.receiver):
                tested[node_of[seat]] += ()
        for at in together:
            pair = (pairs[at].sender, pairs[at].receiver)
            for node in {node_of[seat] for seat in pair}:
                tested[node].append(pair)
        orders: dict[int, Order] = {}
        for node, tests in tested.items():
            rank = self._keepers.get(node)
            if rank is not None and rank not in self._hub.lost:
                self._step += 1
                metric = self._plan.probes[probe].metric
                orders[rank] = CountOrder(step=self._step, metric=metric, round=number, tests=tuple(tests))
        self._answers(orders, self._plan.probes[probe].limit_s)

    def _at_once(self, probe: int, pairs: Sequence[Pairing], together: Sequence[int]) -> dict[int, PairSeen]:
        """Measure pairs that share no rank, given by their places in the round."""
        orders: dict[int, Order] = {}
        of_pair: dict[int, tuple[int, int]] = {}
        for at in together:
            one, other = (self._ranks.get(seat) for seat in (pairs[at].sender, pairs[at].receiver))
            if one is None or other is None or self._hub.lost & {one, other}:
                continue
            self._step += 1
            orders[one] = PairOrder(step=self._step, probe=probe, peer=other, leads=True)
            orders[other] = PairOrder(step=self._step, probe=probe, peer=one)
            of_pair[at] = (one, other)
        answers = self._answers(orders, self._plan.probes[probe].limit_s)
        both = {at: (answers.get(one), answers.get(other)) for at, (one, other) in of_pair.items()}
        return {at: self._seen(pairs[at], *both.get(at, (None, None))) for at in together}

    def _answers(self, orders: dict[int, Order], limit_s: float) -> dict[int, PairAnswer]:
        """Tell ranks what to do, and return what they answer in time; who does not is lost."""
        # A rank whose partner turns out to be gone gives up by itself.
        for rank, order in orders.items():
            if rank != 0:
                self._hub.tell(rank, codec.encode(order))
        ends_s = time.monotonic() + limit_s + _ANSWER_S
        answers: dict[int, PairAnswer] = {}
        if 0 in orders:
            answers[0] = self._mine.carry_out(orders[0])
        waiting = {rank for rank in orders if rank != 0}
        if waiting:
            for rank, message in self._hub.hear(waiting, ends_s):
                answer = _ANSWERS.decode(message)
                # What comes later than its test was waited for belongs to none.
                if rank in waiting and answer.step == orders[rank].step:
                    answers[rank] = answer
                    waiting.discard(rank)
                if not waiting - self._hub.lost:
                    break
        self._hub.lose(waiting)
        self.gave_up |= bool(waiting) or any(each.gave_up for each in answers.values())
        return answers

    def _seen(self, pair: Pairing, answer: PairAnswer | None, other: PairAnswer | None) -> PairSeen:
        if answer is None or answer.gave_up:
            return PairSeen(sender=pair.sender, receiver=pair.receiver, value=None)
        return PairSeen(
            sender=pair.sender,
            receiver=pair.receiver,
            value=answer.value,
            samples=answer.samples,
            best=answer.best,
            worst=answer.worst,
            taken_off=(answer.taken_off, other.taken_off) if other is not None else None,
            wall_s=answer.wall_s,
        )


def phases(pairs: Sequence[Pairing]) -> Iterator[tuple[int, ...]]:
    """Yield the places of pairs that can be measured at once, in as few lots as taking each into the first gives."""
    lots: list[list[int]] = []
    busy: list[set[int]] = []
    for place, pair in enumerate(pairs):
        ends = {pair.sender, pair.receiver}
        at = next((at for at, taken in enumerate(busy) if taken.isdisjoint(ends)), len(lots))
        if at == len(lots):
            lots.append([])
            busy.append(set())
        lots[at].append(place)
        busy[at] |= ends
    yield from map(tuple, lots)


Reason = Literal["complete", "time", "stopped"]


def carry_out(
    plan: Plan, world: World, heart: Heart, journal: Journal, say: Callable[[Event], None], attempt: int,
    keeper: CounterKeeper,
) -> Reason:  # fmt: skip
    """Carry out a planned sweep, but for the rounds that earlier attempts wrote down. Every rank calls this.

    Where a rank does not answer any more, or a pair gave each other up, this does not return: the launching side is
    told, looks at the hosts and ends the job.
    """
    fabric = plan.fabric
    assert fabric is not None
    assert isinstance(world, MpiWorld)
    star = open_star(world, plan.placement.hosts[0])
    mine = PairRank(fabric, world, heart, keeper)
    if isinstance(star, Spoke):
        _serve(star, mine, heart, keeper)
        return "complete"
    conductor = Conductor(fabric, star, mine, journal, heart, say)
    reason: Literal["complete", "stopped"] = "complete"
    rounds = rounds_of((*fabric.earlier, *_known(journal.path.parent, attempt)))
    try:
        for number, probe in enumerate(fabric.probes):
            measure = _measure_of(conductor, number)
            carried_out(fabric, probe.metric, random.Random, replayed(rounds, probe.metric, measure))
    except Stopped:
        reason = "stopped"
    keeper.keep("after")
    conductor.leave(stays=conductor.gave_up)
    if conductor.gave_up:
        heart.enter("done")
        hosts = tuple(fabric.seats[fabric.of_rank[rank]].node for rank in conductor.lost)
        say(Unanswered(reason=reason, ranks=conductor.lost, hosts=hosts))
        time.sleep(_IDLE_S)
    return reason


def _known(raw: Path, attempt: int) -> Iterator[RoundMeasured]:
    """Yield the rounds that rank 0 wrote down in earlier attempts of this run; torn lines are left out."""
    decoder = msgspec.json.Decoder(AnyRecord)
    for earlier in range(attempt):
        with contextlib.suppress(FileNotFoundError), (raw / layout.records_name(0, earlier)).open("rb") as file:
            for line in file:
                with contextlib.suppress(msgspec.MsgspecError):
                    record = decoder.decode(line)
                    if isinstance(record, RoundMeasured):
                        yield record


def _measure_of(conductor: Conductor, probe: int) -> Callable[[Sequence[Pairing], int], Sequence[float | None]]:
    return lambda pairs, number: conductor.round(number, probe, pairs)


def _serve(spoke: Spoke, mine: PairRank, heart: Heart, keeper: CounterKeeper) -> None:
    """Measure what rank 0 says until it says that nothing follows. Raises RuntimeError where it is gone."""
    while (message := spoke.hear()) is not None:
        order = _ORDERS.decode(message)
        if isinstance(order, PairOrder) and order.probe is None:
            keeper.keep("after")
            heart.enter("done")
            if order.stays:
                time.sleep(_IDLE_S)
            return
        spoke.tell(codec.encode(mine.carry_out(order)))
    raise RuntimeError("rank 0 is gone: its connection was closed")

"""Schedules of CollNet: the switches of the network add (SHARP), so that a node sends S and takes in S.

A lane is a NIC with the GPU that heads it. What the GPUs of a node add up to leaves through the NIC; when it has
arrived from every node, the sum comes back through the same NIC, and is passed on in the node. *Direct*: every GPU
sends its part to each head, and each head sends the sum to all. *Chain*: a row of GPUs towards the head and back. A
chunk leaves when the one eight before it has been passed on. Source: src/graph/connect.cc, src/device/all_reduce.h and
src/transport/coll_net.cc of NCCL.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from busbw.base.errors import InputError
from busbw.predict.schedules.description import SELF, Affine, After, Operation, Ranks, RankWork, Schedule, Via
from busbw.predict.schedules.rings import SLOTS, lanes_of

CollNet = Literal["collnetdirect", "collnetchain"]
# NCCL_MAX_DIRECT_ARITY and the head itself; since 2.28.3 chains are not longer either.
MOST_DIRECT = 8
# What a switch takes in or sends out does not fill a link of another rank.
_TO_SWITCH = Via(link="nic", into=None)
_FROM_SWITCH = Via(link="nic", out=None)
_NOTHING = Via(link="nvlink")


class _Nodes:
    """The works of one lane while they are written, each by one GPU of every node; their places are known before."""

    def __init__(self, nodes: int, gpus: int, part_bytes: Fraction) -> None:
        self.nodes = nodes
        self.gpus = gpus
        self.part_bytes = part_bytes
        self.works: list[RankWork] = []

    # Towards the head, from the GPU at each place; out through the NIC; all have arrived; in through the NIC; and on.
    def towards(self, place: int) -> int:
        """Return which work it is that the GPU at a place, from 1 on, does towards the head."""
        return place - 1

    @property
    def up(self) -> int:
        """Return which work leaves the node; the two after it are the sum in the switches, and what comes back."""
        return self.gpus - 1

    @property
    def down(self) -> int:
        """Return which work brings the sum back."""
        return self.gpus + 1

    def onward(self, place: int) -> int:
        """Return which work it is that brings the sum to the GPU at a place, from 1 on."""
        return self.gpus + 1 + place

    def do(self, place: int, operation: Operation, via: Via, after: list[After], ahead: int = 0) -> None:
        """Let the GPU at a place of each node do something towards the one so many places on."""
        self.works.append(
            RankWork(
                ranks=Ranks(first=place, count=self.nodes, stride=self.gpus),
                operation=operation,
                part_bytes=self.part_bytes,
                peer=Affine(plus=ahead) if ahead else SELF,
                via=(via,),
                after=tuple(after),
            )
        )

    def between(self, arrived: list[After], passed_on: list[After]) -> None:
        """Let each head send what it has once a slot is free, the switches add it all, and the sum come back."""
        self.do(0, "add and send", _TO_SWITCH, arrived + passed_on)
        every = (Affine(plus=node * self.gpus, modulo=self.nodes * self.gpus) for node in range(self.nodes))
        self.works.append(
            RankWork(
                ranks=Ranks(first=0, count=1),
                operation="calculate",
                part_bytes=Fraction(0),
                peer=SELF,
                via=(_NOTHING,),
                after=tuple(After(work=self.up, rank=rank, travels=True) for rank in every),
            )
        )
        self.do(0, "receive", _FROM_SWITCH, [After(work=self.up + 1, rank=Affine(multiple=0))])

    def schedule(self, algorithm: CollNet, lanes: int, chunks: int) -> Schedule:
        """Return the works as the schedule of a lane."""
        return Schedule(
            algorithm=algorithm,
            collective="all_reduce",
            ranks=self.nodes * self.gpus,
            group=self.gpus,
            lanes=lanes,
            rounds=chunks,
            works=tuple(self.works),
            repeats_after=self.gpus,
        )


def collnet_direct(*, nodes: int, gpus: int, ports: int, size_bytes: int, chunks: int) -> Schedule:
    """Return CollNet direct; its ranks are counted from each node's head on.

    Raises InputError for less than two nodes, and for more GPUs than a head has connections for.
    """
    _check(nodes, gpus, chunks)
    if gpus > MOST_DIRECT:
        raise InputError(f"CollNet direct with {gpus} GPUs a node", hint=f"NCCL does it with {MOST_DIRECT} at most")
    lanes = lanes_of(nodes, gpus, ports)
    written = _Nodes(nodes, gpus, Fraction(size_bytes, lanes * chunks))
    # A GPU that is a head sends its parts to the other heads, and the sum of its own lane to the other GPUs.
    flows = max(1, lanes - 1 + gpus - 1)
    each, all_of_head = Fraction(1, flows), Fraction(max(1, gpus - 1), flows)
    for place in range(1, gpus):
        slot = After(work=written.up, rank=Affine(plus=-place), lag=SLOTS, travels=True)
        written.do(place, "send", Via(link="nvlink", share=each, out=each, into=all_of_head), [slot], -place)
    others = range(1, gpus)
    written.between(
        [After(work=written.towards(place), rank=Affine(plus=place), travels=True) for place in others],
        [After(work=work, lag=SLOTS) for work in map(written.onward, others)] or [After(work=written.down, lag=SLOTS)],
    )
    for place in others:
        via = Via(link="nvlink", share=each, out=all_of_head, into=each)
        written.do(0, "copy and send", via, [After(work=written.down)], place)
    return written.schedule("collnetdirect", lanes, chunks)


def collnet_chain(*, nodes: int, gpus: int, ports: int, size_bytes: int, chunks: int) -> Schedule:
    """Return CollNet chain; its ranks are counted along each chain, from the head on.

    Raises InputError for less than two nodes.
    """
    _check(nodes, gpus, chunks)
    lanes = lanes_of(nodes, gpus, ports)
    written = _Nodes(nodes, gpus, Fraction(size_bytes, lanes * chunks))
    # Of a lane a GPU within the chain sends to both sides. Where each GPU heads a lane, each is at two ends as well.
    own = min(2, max(1, gpus - 1))
    flows = max(1, 2 * (gpus - 1) if lanes == gpus else own * lanes)
    part = Fraction(own, max(own, flows))
    via = Via(link="nvlink", share=Fraction(1, flows), out=part, into=part)
    for place in range(1, gpus):
        written.do(place, "add and send", via, list(_in_chain(written, place)), -1)
    first = written.onward(1) if gpus > 1 else written.down
    arrived = [After(work=written.towards(1), rank=Affine(plus=1), travels=True)] if gpus > 1 else []
    written.between(arrived, [After(work=first, lag=SLOTS)])
    for place in range(1, gpus):
        before = After(work=written.down) if place == 1 else _neighbour(written.onward(place - 1), -1)
        after = [_neighbour(written.onward(place + 1), 1, SLOTS)] if place + 1 < gpus else []
        written.do(place - 1, "copy and send", via, [before, *after], 1)
    return written.schedule("collnetchain", lanes, chunks)


def _in_chain(written: _Nodes, place: int) -> Iterator[After]:
    """Yield what the GPU at a place waits for: what the one behind it sends, and a slot at the one before it."""
    if place + 1 < written.gpus:
        yield _neighbour(written.towards(place + 1), 1)
    yield _neighbour(written.towards(place - 1) if place > 1 else written.up, -1, SLOTS)


def _neighbour(work: int, ahead: int, lag: int = 0) -> After:
    return After(work=work, rank=Affine(plus=ahead), lag=lag, travels=True)


def _check(nodes: int, gpus: int, chunks: int) -> None:
    if nodes < 2 or gpus < 1 or chunks < 1:
        raise InputError(f"no CollNet of {nodes} nodes", hint="the network adds between nodes: two of them at least")

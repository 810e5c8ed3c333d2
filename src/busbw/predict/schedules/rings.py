"""Schedules along a row of all ranks: rings, chains and neighbour exchange.

A ring of n ranks does n - 1 steps, twice for all_reduce; in each every rank passes a part of S/n on to the next one.
A step is sent in slices: a slice waits for the same slice of the rank before, one step ago. Each channel's ring leaves
a node by one NIC, so a lane is a NIC with its channels. Source: docs/method-predicting.md.
"""

from fractions import Fraction

from busbw.base.errors import InputError
from busbw.predict.schedules.description import SELF, Affine, After, Operation, Ranks, RankWork, Schedule, Via

_STEPS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
# Two slots of Simple: what NCCL sends at once of a ring's chunk.
SLICE_BYTES = 2**20
# Of one connection, on each side.
SLOTS = 8


def lanes_of(nodes: int, gpus: int, ports: int) -> int:
    """Return how many lanes a collective is split into: one for each NIC, at most one a GPU."""
    return max(1, min(ports, gpus)) if nodes > 1 else 1


def row_vias(nodes: int, gpus: int, lanes: int) -> tuple[Via, ...]:
    """Return the links along a row of ranks: those between GPUs, and the last of a node to the next node."""
    if nodes == 1:
        return (Via(link="nvlink"),)
    # A GPU's links carry the lanes that do not leave the node there.
    over = Fraction(1, max(1, lanes - 1 if lanes == gpus else lanes))
    return (*(Via(link="nvlink", share=over, out=over, into=over) for _ in range(gpus - 1)), Via(link="nic"))


def ring(collective: str, *, nodes: int, gpus: int, ports: int, size_bytes: int, slices: int = 1) -> Schedule:
    """Return the ring of all ranks. Raises InputError for a collective that rings do otherwise, or one rank."""
    ranks = nodes * gpus
    if collective not in _STEPS:
        raise InputError(f"a ring does no {collective}", hint=f"one of {', '.join(_STEPS)}")
    if ranks < 2 or slices < 1:
        raise InputError(f"a ring of {ranks} ranks in {slices} slices", hint="two ranks at least")
    lanes = lanes_of(nodes, gpus, ports)
    operation: Operation = "copy and send" if collective == "all_gather" else "add and send"
    before = Affine(plus=-1, modulo=ranks)
    work = RankWork(
        ranks=Ranks(first=0, count=ranks),
        operation=operation,
        part_bytes=Fraction(size_bytes, lanes * ranks * slices),
        peer=Affine(plus=1, modulo=ranks),
        via=row_vias(nodes, gpus, lanes),
        after=(After(work=0, rank=before, lag=slices, travels=True),),
    )
    return Schedule(
        algorithm="ring",
        collective=collective,
        ranks=ranks,
        group=gpus,
        lanes=lanes,
        rounds=_STEPS[collective] * (ranks - 1) * slices,
        works=(work,),
        repeats_after=gpus if nodes > 1 else 1,
    )


def chain(collective: str, *, nodes: int, gpus: int, ports: int, size_bytes: int, chunks: int) -> Schedule:
    """Return broadcast or reduce along a row: rank 0 to the last, in chunks.

    A reduce goes the other way; its ranks are counted from the far end. Raises InputError as `ring`.
    """
    ranks = nodes * gpus
    if collective not in ("broadcast", "reduce") or ranks < 2 or chunks < 1:
        raise InputError(f"a chain of {ranks} ranks does no {collective}", hint="broadcast or reduce, of two ranks on")
    lanes = lanes_of(nodes, gpus, ports)
    operation: Operation = "copy and send" if collective == "broadcast" else "add and send"
    after = [After(work=0, rank=Affine(plus=-1), ranks=Ranks(first=1, count=ranks - 2), travels=True)]
    # The next rank has passed on what was in the slot.
    after.append(After(work=0, rank=Affine(plus=1), ranks=Ranks(first=0, count=ranks - 2), lag=SLOTS, travels=True))
    work = RankWork(
        ranks=Ranks(first=0, count=ranks - 1),
        operation=operation,
        part_bytes=Fraction(size_bytes, lanes * chunks),
        peer=Affine(plus=1),
        via=row_vias(nodes, gpus, lanes),
        after=tuple(after) if ranks > 2 else (),
    )
    return Schedule(
        algorithm="ring",
        collective=collective,
        ranks=ranks,
        group=gpus,
        lanes=lanes,
        rounds=chunks,
        works=(work,),
    )


def neighbours(*, nodes: int, gpus: int, ports: int, size_bytes: int, chunks: int = 1) -> Schedule:
    """Return the exchange in which every rank sends S to the next one. Raises InputError for one rank."""
    ranks = nodes * gpus
    if ranks < 2 or chunks < 1:
        raise InputError(f"{ranks} ranks have no neighbours", hint="two ranks at least")
    # One lane; its NICs are those nearest to one GPU.
    nearest = Fraction(1, max(1, min(ports, gpus)))
    vias = tuple(
        Via(link="nic", share=nearest, out=nearest, into=nearest) if via.link == "nic" else Via(link="nvlink")
        for via in row_vias(nodes, gpus, 1)
    )
    work = RankWork(
        ranks=Ranks(first=0, count=ranks),
        operation="send",
        part_bytes=Fraction(size_bytes, chunks),
        peer=Affine(plus=1, modulo=ranks),
        via=vias,
        after=(After(work=0, rank=SELF, lag=1),),
    )
    return Schedule(
        algorithm="neighbour",
        collective="sendrecv",
        ranks=ranks,
        group=gpus,
        lanes=1,
        rounds=chunks,
        works=(work,),
        repeats_after=gpus if nodes > 1 else 1,
    )

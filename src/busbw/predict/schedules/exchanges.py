"""Schedules in which every rank has something for every other one: alltoall, linear and in two levels, and PAT.

Alltoall sends S/n from each of n ranks to each other one, node after node. In two levels the GPUs of a node first bring
together what is for one other node and rank. PAT gathers, or scatters sums, in about log2 n steps of growing parts.
"""

from dataclasses import replace
from fractions import Fraction

from busbw.base.errors import InputError
from busbw.predict.schedules.description import SELF, Affine, After, Operation, Ranks, RankWork, Schedule, Via

# A lane is a GPU with its part of the NICs.
_NIC, _LINKS = Via(link="nic"), Via(link="nvlink")


def _round(number: int, nodes: int, via: Via, part_bytes: Fraction, plus: int, after: tuple[After, ...]) -> RankWork:
    return RankWork(
        ranks=Ranks(first=0, count=nodes),
        step=number,
        operation="send",
        part_bytes=part_bytes,
        peer=Affine(plus=plus, modulo=nodes),
        via=(via,),
        after=after,
    )


def _arrival(source: int, nodes: int, plus: int) -> RankWork:
    """Return a rank's wait for what comes last."""
    rank = Affine(plus=-plus, modulo=nodes)
    return _round(0, nodes, _LINKS, Fraction(0), 0, (After(work=source, rank=rank, travels=True),))


def alltoall(*, nodes: int, gpus: int, size_bytes: int, in_levels: bool = False) -> Schedule:
    """Return alltoall; a lane is a GPU of each node. Raises InputError for one rank, or two levels that there are not.

    Between nodes a GPU sends to all GPUs of the next node, then of the one after it; meanwhile, or in two levels
    before that, to those of its own.
    """
    ranks = nodes * gpus
    if ranks < 2 or (in_levels and (nodes < 2 or gpus < 2)):
        raise InputError(f"no such alltoall of {nodes} nodes of {gpus} GPUs", hint="two nodes of two GPUs at least")
    part = Fraction(size_bytes, ranks)
    works: list[RankWork] = []
    for other in range(1, gpus):
        before: tuple[After, ...] = (After(work=len(works) - 1),) if works else ()
        works.append(_round(other, nodes, _LINKS, part * (nodes if in_levels else 1), 0, before))
    within = len(works)
    for other in range(1, nodes):
        last = len(works) - 1
        if other > 1:
            # The rank that it sends to has taken in what came before.
            before = (After(work=last), After(work=last, rank=Affine(plus=1, modulo=nodes)))
        else:
            before = (After(work=last, travels=True),) if in_levels else ()
        works.append(_round(other, nodes, _NIC, part * gpus, other, before))
    if gpus > 1:
        works.append(_arrival(within - 1, nodes, 0))
    if nodes > 1:
        works.append(_arrival(within + nodes - 2, nodes, nodes - 1))
    return Schedule(
        algorithm="two-level" if in_levels else "linear",
        collective="alltoall",
        ranks=nodes,
        group=1,
        lanes=gpus,
        rounds=1,
        works=tuple(works),
        repeats_after=1,
    )


def pat(collective: str, *, nodes: int, size_bytes: int, chunks: int = 1) -> Schedule:
    """Return PAT of nodes with one GPU each. Raises InputError for other collectives and one node."""
    if collective not in ("all_gather", "reduce_scatter") or nodes < 2 or chunks < 1:
        raise InputError(f"PAT does no {collective} on {nodes} nodes", hint="all_gather or reduce_scatter, of two on")
    operation: Operation = "copy and send" if collective == "all_gather" else "add and send"
    part = Fraction(size_bytes, nodes * chunks)
    distances = [2**power for power in range((nodes - 1).bit_length())]
    # A gather doubles what it has; what is scattered is halved.
    if collective == "reduce_scatter":
        distances.reverse()
    works: list[RankWork] = []
    for step, distance in enumerate(distances):
        after: tuple[After, ...] = ()
        if works:
            before = Affine(plus=-distances[step - 1], modulo=nodes)
            after = (After(work=step - 1, rank=SELF), After(work=step - 1, rank=before, travels=True))
        work = _round(step, nodes, _NIC, part * min(distance, nodes - distance), distance, after)
        works.append(replace(work, operation=operation))
    # The next chunk begins when the last step of this one has left.
    works[0] = replace(works[0], after=(After(work=len(works) - 1, lag=1),))
    return Schedule(
        algorithm="pat",
        collective=collective,
        ranks=nodes,
        group=1,
        lanes=1,
        rounds=chunks,
        works=tuple(works),
        repeats_after=1,
    )

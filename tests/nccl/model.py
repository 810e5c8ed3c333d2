"""Each collective carried out on named elements: what its definition says, and nothing of how NCCL does it."""

from collections.abc import Callable
from itertools import chain

from .together import Shape

ALL_RANKS = -1
# An element is known by whose input it is of and where in it; a reduced one, of all inputs, by where alone.
Element = tuple[int, int]
Lists = list[list[Element]]


def given_elements(shape: Shape, rank: int) -> int:
    """Return how many elements a rank has to give."""
    whole = shape.count * shape.ranks
    at_root = rank == shape.root
    return {
        "reduce_scatter": whole,
        "alltoall": whole,
        "alltoall_2dh": whole,
        "scatter": whole if at_root else 0,
        "broadcast": shape.count if at_root else 0,
        "alltoallv": sum(shape.matrix[rank * shape.ranks : (rank + 1) * shape.ranks]),
        "sendrecv_pair": shape.count if rank in shape.pair else 0,
    }.get(shape.kind, shape.count)


def received_elements(shape: Shape) -> Lists:
    """Return what each rank receives, in order."""
    inputs = [[(rank, place) for place in range(given_elements(shape, rank))] for rank in range(shape.ranks)]
    return _MODELS[shape.kind](shape, inputs)


def _parts(shape: Shape, whole: list[Element]) -> Lists:
    return [whole[rank * shape.count : (rank + 1) * shape.count] for rank in range(shape.ranks)]


def _reduced(inputs: Lists) -> list[Element]:
    return [(ALL_RANKS, place) for place in range(len(inputs[0]))]


def _together(_shape: Shape, inputs: Lists) -> list[Element]:
    return [*chain.from_iterable(inputs)]


def _for_all(shape: Shape, result: list[Element]) -> Lists:
    return [result] * shape.ranks


def _for_root(shape: Shape, result: list[Element]) -> Lists:
    return [result if rank == shape.root else [] for rank in range(shape.ranks)]


def _alltoall(shape: Shape, inputs: Lists) -> Lists:
    sent = [_parts(shape, whole) for whole in inputs]
    return [[*chain.from_iterable(parts[rank] for parts in sent)] for rank in range(shape.ranks)]


def _alltoallv(shape: Shape, inputs: Lists) -> Lists:
    left = [iter(whole) for whole in inputs]  # everyone hands out its elements in the order of the ranks
    received: Lists = [[] for _rank in inputs]
    for cell, count in enumerate(shape.matrix):
        source, target = divmod(cell, shape.ranks)
        received[target] += [next(left[source]) for _element in range(count)]
    return received


def _pair(shape: Shape, inputs: Lists) -> Lists:
    partner = dict([shape.pair, shape.pair[::-1]])
    return [inputs[partner[rank]] if rank in partner else [] for rank in range(shape.ranks)]


_MODELS: dict[str, Callable[[Shape, Lists], Lists]] = {
    "all_reduce": lambda shape, inputs: _for_all(shape, _reduced(inputs)),
    "all_gather": lambda shape, inputs: _for_all(shape, _together(shape, inputs)),
    "hypercube": lambda shape, inputs: _for_all(shape, _together(shape, inputs)),
    "reduce_scatter": lambda shape, inputs: _parts(shape, _reduced(inputs)),
    "broadcast": lambda shape, inputs: _for_all(shape, inputs[shape.root]),
    "reduce": lambda shape, inputs: _for_root(shape, _reduced(inputs)),
    "gather": lambda shape, inputs: _for_root(shape, _together(shape, inputs)),
    "scatter": lambda shape, inputs: _parts(shape, inputs[shape.root]),
    "alltoall": _alltoall,
    "alltoall_2dh": _alltoall,
    "alltoallv": _alltoallv,
    "sendrecv": lambda _shape, inputs: [inputs[-1], *inputs[:-1]],
    "sendrecv_pair": _pair,
}

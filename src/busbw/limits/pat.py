"""PAT: all_gather and reduce_scatter along trees that take turns, for one GPU a node."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms


def _terms(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1 or shape.group > 1:
        return None
    return Terms(
        out=Factor(multiple=1.0, formula="busbw <= k B"),
        slot=Factor(multiple=1.0, formula="busbw <= P"),
    )


PAT = Algorithm(
    name="pat",
    collectives=("all_gather", "reduce_scatter"),
    terms=_terms,
    why="the bytes of a ring in fewer, larger steps: every rank takes in what it lacks",
    source=(DEFINITION,),
    conditions=lambda _shape: ("NCCL 2.23 and later, with one GPU a node",),
)

"""CollNet, which is SHARP: the switches between the nodes add, so each node sends S once and takes in S once."""

from busbw.limits.nvls import inside
from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, half_ring, neighbours


def _terms(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1:
        return None
    out = Factor(multiple=2 * half_ring(shape), formula="algbw <= k B: busbw <= 2(n-1)/n x k B")
    slot = Factor(multiple=out.multiple * shape.island, formula="busbw <= 2(n-1)/n x m P")
    return Terms(links=_links(shape), out=out, slot=slot)


def _links(shape: Shape) -> Factor | None:
    """Return the better of two ways within a node: the switch adds, or the GPUs do, each a part."""
    if shape.group == 1:
        return None
    formula = "algbw <= V g / 2(g-1): busbw <= (n-1)/n x g/(g-1) x V"
    by_gpus = Factor(multiple=half_ring(shape) * neighbours(shape), formula=formula)
    by_switch = inside(shape)
    return by_switch if by_switch.multiple > by_gpus.multiple else by_gpus


COLLNET = Algorithm(
    name="collnet",
    collectives=("all_reduce",),
    terms=_terms,
    why="the switches between the nodes add: S leaves each node and S enters it",
    source=(DEFINITION,),
    conditions=lambda _shape: (
        "a bound only: what of it is reached takes a measured constant for each regime, and none is published",
    ),
    needs_sharp=True,
    attainable=False,
)

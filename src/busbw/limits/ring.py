"""The ring: every link between two neighbours carries f S, so busbw is the rate of the slowest cut."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, neighbours


def _terms(_collective: str, shape: Shape) -> Terms:
    # Of the links along the ring, one a group leaves it; the others are links between its GPUs.
    if shape.groups > 1:
        links = Factor(multiple=neighbours(shape), formula="busbw <= V g/(g-1)") if shape.group > 1 else None
        out = Factor(multiple=1.0, formula="busbw <= k B")
    else:
        links = Factor(multiple=1.0, formula="busbw <= V")
        out = None
    slot = Factor(multiple=shape.island, formula="busbw <= m P") if shape.islands > 1 else None
    return Terms(links=links, out=out, slot=slot)


RING = Algorithm(
    name="ring",
    collectives=("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"),
    terms=_terms,
    why="each link of the ring carries f S bytes, and so does whatever joins a node to the next one",
    source=(DEFINITION, "NVIDIA/nccl-tests issues 119, 319"),
)

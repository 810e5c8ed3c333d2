"""alltoall: every rank sends S/n to each rank, straight or through a neighbour on its node; and gather and scatter."""

from busbw.limits.pairs import nearest_ports, nearest_words
from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, half_ring, neighbours


def _out(shape: Shape) -> Factor | None:
    if shape.groups == 1:
        return None
    multiple = (shape.ranks - 1) / (shape.ranks - shape.group) / shape.group
    return Factor(multiple=multiple, formula="busbw <= k B / g x (n-1)/(n-g)")


def _slot(shape: Shape) -> Factor | None:
    if shape.islands == 1:
        return None
    multiple = (shape.ranks - 1) / (shape.ranks - shape.island)
    return Factor(multiple=multiple, formula="busbw <= P x (n-1)/(n-m)")


def _linear(_collective: str, shape: Shape) -> Terms:
    own = shape.island if shape.islands > shape.groups else shape.group
    links = None
    if own > 1:
        links = Factor(multiple=(shape.ranks - 1) / (own - 1), formula="busbw <= V x (n-1)/(g-1)")
    return Terms(links=links, out=_out(shape), slot=_slot(shape))


def _two_level(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1 or shape.group == 1:
        return None
    links = Factor(multiple=half_ring(shape) * neighbours(shape), formula="busbw <= (n-1)/n x g/(g-1) x V")
    return Terms(links=links, out=_out(shape), slot=_slot(shape))


def _rooted(_collective: str, shape: Shape) -> Terms:
    if shape.groups == 1:
        return Terms(links=Factor(multiple=1.0, formula="busbw <= V"), slot=_slot(shape))
    entering = (shape.ranks - 1) / (shape.ranks - shape.group)
    links = None
    if shape.group > 1 and shape.islands == shape.groups:
        links = Factor(multiple=(shape.ranks - 1) / (shape.group - 1), formula="busbw <= V x (n-1)/(g-1)")
    nearest, formula = nearest_ports(shape)
    return Terms(
        links=links,
        out=Factor(multiple=nearest * entering, formula=f"busbw <= {formula} x (n-1)/(n-g)"),
        slot=_slot(shape),
    )


LINEAR = Algorithm(
    name="linear",
    collectives=("alltoall",),
    terms=_linear,
    why="(n-g)/n of each rank's S leave its node, (g-1)/n stay on it",
    source=(DEFINITION,),
)
TWO_LEVEL = Algorithm(
    name="two-level",
    collectives=("alltoall", "alltoall_2dh"),
    terms=_two_level,
    why="as many bytes leave a node, in n/g - 1 messages of g S/n instead of n - g of S/n; before that (g-1)/g of S "
    "cross the links within it",
    source=(DEFINITION, "Tutel, MLSys 2023, appendix A"),
    usual=lambda _shape: False,
)
ROOTED = Algorithm(
    name="linear",
    collectives=("gather", "scatter"),
    terms=_rooted,
    why="all but the root's own part enter, or leave, the root",
    source=(DEFINITION,),
    conditions=nearest_words,
)

"""What no algorithm can do without: the bytes that a node lacks must enter it. No switch adds on the way."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, cut, half_ring


def _terms(collective: str, shape: Shape) -> Terms:
    once = collective in ("broadcast", "reduce")
    links = Factor(multiple=1.0, formula="busbw <= V") if shape.groups == 1 else None
    out = None
    if shape.groups > 1:
        multiple = 1.0 if once else half_ring(shape) * cut(shape.groups)
        out = Factor(multiple=multiple, formula="busbw <= k B" if once else "busbw <= (n-1)/n x N/(N-1) x k B")
    slot = None
    if shape.islands > 1:
        multiple = 1.0 if once else half_ring(shape) * cut(shape.islands)
        formula = "busbw <= m P" if once else "busbw <= (n-1)/n x I/(I-1) x m P, I islands"
        slot = Factor(multiple=multiple * shape.island, formula=formula)
    return Terms(links=links, out=out, slot=slot)


LEAST = Algorithm(
    name="any",
    collectives=("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"),
    terms=_terms,
    why="each node must take in (N-1)/N of what it ends with, twice where it is added too (once for one root)",
    source=(DEFINITION,),
    conditions=lambda _shape: ("where no switch adds",),
    usual=lambda _shape: False,
)

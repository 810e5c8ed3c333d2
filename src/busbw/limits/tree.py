"""The double binary tree: two trees, each for half of the data, up to be added and down again."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, cut, half_ring, neighbours

SOURCE = (DEFINITION, "NVIDIA/nccl-tests issues 22, 309")


def busiest_halves(groups: int) -> int:
    """Return L(N): how many halves of the data the busiest of N groups sends.

    Of two groups each is the root of one tree and the leaf of the other: one half up, one down. Of three one is a
    leaf in one tree and in the middle of the other. From four on some group has a parent and two children in one tree
    and sends up, down and down again, and is a leaf in the other.
    """
    return min(groups, 4)


def between(shape: Shape) -> Factor:
    """Return the factor on what leaves a group."""
    halves = busiest_halves(shape.groups)
    return Factor(
        multiple=4 * half_ring(shape) / halves,
        formula=f"algbw <= 2 k B / L, L({shape.groups}) = {halves}: busbw <= 2(n-1)/n x 2/L x k B",
    )


def _terms(_collective: str, shape: Shape) -> Terms:
    # Within a group the tree is a chain: g - 1 links, S up and S down, shared by g GPUs where chains begin in turn.
    if shape.groups > 1:
        formula = "algbw <= V g / 2(g-1): busbw <= (n-1)/n x g/(g-1) x V"
        links = Factor(multiple=half_ring(shape) * neighbours(shape), formula=formula) if shape.group > 1 else None
        out = between(shape)
    else:
        links = Factor(multiple=1.0, formula="busbw <= V")
        out = None
    return Terms(links=links, out=out, slot=_slot(shape, out))


def _slot(shape: Shape, out: Factor | None) -> Factor | None:
    if shape.islands == 1:
        return None
    if out is not None and shape.island == shape.group:
        # Slots carry what the NICs carry.
        return Factor(multiple=out.multiple * shape.group, formula=out.formula.replace("k B", "g P"))
    return Factor(
        multiple=shape.island * half_ring(shape) * cut(shape.islands),
        formula="busbw <= (n-1)/n x I/(I-1) x m P, I islands",
    )


TREE = Algorithm(
    name="tree",
    collectives=("all_reduce",),
    terms=_terms,
    why="two trees of S/2 each: the busiest node sends L(N) halves; over exactly two nodes that is S, half of what "
    "busbw counts, so busbw may exceed the rate of the NICs",
    source=SOURCE,
)

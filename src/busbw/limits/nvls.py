"""NVLink SHARP: the switch between the GPUs adds and distributes."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms, half_ring
from busbw.limits.tree import SOURCE as TREE_SOURCE
from busbw.limits.tree import between

# With fewer GPUs a ring is as fast, and NCCL keeps to it.
_FEWEST_GPUS = 5
_ADDS = "the switch adds: each GPU sends its S bytes and its S/g of the sum, and takes in as much"


def inside(shape: Shape) -> Factor:
    """Return the factor on a GPU's links where the switch adds within each of several groups."""
    return Factor(
        multiple=2 * half_ring(shape) * shape.group / (shape.group + 1),
        formula="algbw <= V g/(g+1): busbw <= 2(n-1)/n x g/(g+1) x V",
    )


def _one_group(collective: str, shape: Shape) -> Terms | None:
    if shape.groups > 1 or shape.island != shape.group or shape.group < 2:
        return None
    if collective == "all_reduce":
        multiple = 2 * (shape.ranks - 1) / (shape.ranks + 1)
        return Terms(links=Factor(multiple=multiple, formula="busbw <= 2(n-1)/(n+1) x V"))
    return Terms(links=Factor(multiple=1.0, formula="busbw <= V"))


def _several_groups(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1 or shape.island != shape.group or shape.group < 2:
        return None
    out = between(shape)
    slot = Factor(multiple=out.multiple * shape.group, formula=out.formula.replace("k B", "g P"))
    return Terms(links=inside(shape), out=out, slot=slot)


def _few(shape: Shape) -> tuple[str, ...]:
    return () if shape.group >= _FEWEST_GPUS else ("NCCL keeps to the ring with four GPUs or fewer",)


NVLS = Algorithm(
    name="nvls",
    collectives=("all_reduce", "all_gather", "reduce_scatter"),
    terms=_one_group,
    why=f"{_ADDS}, less than busbw counts",
    source=(DEFINITION,),
    conditions=_few,
    needs_nvls=True,
    usual=lambda shape: shape.group >= _FEWEST_GPUS,
)
NVLS_TREE = Algorithm(
    name="nvlstree",
    collectives=("all_reduce",),
    terms=_several_groups,
    why=f"within a node {_ADDS}; between nodes it is the double binary tree",
    source=TREE_SOURCE,
    conditions=_few,
    needs_nvls=True,
    usual=lambda shape: shape.group >= _FEWEST_GPUS,
)

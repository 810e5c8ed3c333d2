"""Point to point: sendrecv of nccl-tests, and the pairs of ranks of MPI tests."""

from busbw.limits.shape import Shape
from busbw.limits.terms import DEFINITION, Algorithm, Factor, Terms


def nearest_ports(shape: Shape) -> tuple[float, str]:
    """Return the NICs of one GPU as a share of its group's, at least one port, and the same in letters."""
    if shape.ports > shape.group:
        return 1 / shape.group, "k/g x B"
    return 1 / max(1, shape.ports), "B"


def nearest_words(shape: Shape) -> tuple[str, ...]:
    """Return the condition under which the NICs of one GPU are what counts."""
    return ("a GPU sends and receives through the NICs nearest to it",) if shape.groups > 1 else ()


def _neighbour(_collective: str, shape: Shape) -> Terms:
    """Return the factors of a ring of neighbours: one pair crosses each border between nodes."""
    pair = Factor(multiple=1.0, formula="busbw <= W") if shape.group > 1 and shape.island > 1 else None
    out = None
    if shape.groups > 1:
        nearest, formula = nearest_ports(shape)
        out = Factor(multiple=nearest, formula=f"busbw <= {formula}")
    slot = Factor(multiple=1.0, formula="busbw <= P") if shape.islands > 1 else None
    return Terms(pair=pair, out=out, slot=slot)


def _mpi_pairs(collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1:
        return None
    both = collective == "bibw"
    return Terms(
        out=Factor(multiple=2.0 if both else 1.0, formula="busbw <= 2 k B" if both else "busbw <= k B"),
        slot=Factor(multiple=2.0 if both else 1.0, formula="busbw <= 2 P" if both else "busbw <= P"),
    )


NEIGHBOUR = Algorithm(
    name="neighbour",
    collectives=("sendrecv",),
    terms=_neighbour,
    why="each rank sends S to the next one, so the slowest pair counts: the two at a border between nodes",
    source=(DEFINITION,),
    conditions=nearest_words,
)
MPI_PAIRS = Algorithm(
    name="pairs",
    collectives=("bandwidth", "bibw"),
    terms=_mpi_pairs,
    why="one pair of ranks on two nodes; bibw counts both directions",
    source=("OSU micro-benchmarks, osu_bw and osu_bibw",),
)

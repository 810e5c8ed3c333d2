"""What one algorithm asks of each part: factors on the part's rate, and the formulas they come from.

Letters, as everywhere in busbw: n ranks, in N groups (nodes, or NVLink domains) of g; islands of m GPUs with links of
their own; S bytes; T seconds. V is the rate of all links of one GPU, W that between two GPUs, P that of a GPU's slot,
k B that of a group's k NIC ports. busbw = f S / T with f as nccl-tests has it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.limits.shape import Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Factor:
    """busbw is at most this multiple of a part's rate; `formula` says so in letters."""

    multiple: float
    formula: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The factors of one algorithm on one shape; None: it does not use that part, or nothing is known."""

    # On the links of one GPU, and on those between two.
    links: Factor | None = None
    pair: Factor | None = None
    # On everything that leaves a group, NICs or slots.
    out: Factor | None = None
    # On the slot of one GPU, where slots are what joins islands.
    slot: Factor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Algorithm:
    """One way to do some collectives, and the reason for its factors."""

    name: str
    collectives: tuple[str, ...]
    # The factors; None: this algorithm is none for such a shape.
    terms: Callable[[str, Shape], Terms | None]
    why: str
    source: tuple[str, ...]
    conditions: Callable[[Shape], tuple[str, ...]] = lambda _shape: ()
    # A switch that adds: between the GPUs of a node, or between nodes.
    needs_nvls: bool = False
    needs_sharp: bool = False
    # Whether what was seen of the parts says what the algorithm reaches.
    attainable: bool = True
    # Whether a library chooses it for such a shape unless told otherwise; others are shown when asked for.
    usual: Callable[[Shape], bool] = lambda _shape: True


# The definition of bus bandwidth that every formula here rests on.
DEFINITION = "doc/PERFORMANCE.md of nccl-tests"


def half_ring(shape: Shape) -> float:
    """Return (n-1)/n."""
    return (shape.ranks - 1) / shape.ranks


def neighbours(shape: Shape) -> float:
    """Return g/(g-1): of g ranks in a row g - 1 send to the next one of their group."""
    return shape.group / (shape.group - 1)


def cut(parts: int) -> float:
    """Return N/(N-1): what one of N parts lacks is held by the others."""
    return parts / (parts - 1)

"""How many GPUs stand where: what the factors of a bound depend on."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.model.limit import NodeRates


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Ranks in groups: a group is a node, or the nodes of one NVLink domain.

    `ranks` n, `groups` N, `group` g ranks of one group, `island` m ranks that reach each other over links of their
    own, `ports` k NIC ports of one group.
    """

    ranks: int
    groups: int
    group: int
    island: int
    ports: int

    @property
    def islands(self) -> int:
        """Return the number of islands of all groups together."""
        return self.groups * -(-self.group // self.island)


def shape_of(rates: NodeRates, nodes: int) -> Shape:
    """Return how the ranks of `nodes` such nodes stand; a node without GPUs counts with its ranks on CPUs.

    Nodes of NVLink domains fill as few of them as they can, evenly; a group is then the smallest of them.
    """
    per_node = rates.gpus or rates.cpu_ranks or 1
    nodes_of_group = 1
    if rates.gpus and rates.domain_gpus is not None and rates.domain_gpus >= 2 * per_node:
        nodes_of_domain = rates.domain_gpus // per_node
        nodes_of_group = nodes // -(-nodes // nodes_of_domain)
    group = per_node * nodes_of_group
    # A domain that is not full leaves less than a group over; it is counted as one.
    groups = nodes // nodes_of_group
    island = group if nodes_of_group > 1 else min(rates.island_gpus or 1, group)
    return Shape(
        ranks=per_node * nodes,
        groups=groups,
        group=group,
        island=island if rates.gpus else group,
        ports=(rates.ports or 0) * nodes_of_group,
    )


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

"""The algorithms with a bound, and the names by which they are asked for."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES as MEASURED
from busbw.base.collectives import not_a_collective
from busbw.base.errors import InputError
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


def _out(shape: Shape) -> Factor | None:
    if shape.groups == 1:
        return None
    multiple = (shape.ranks - 1) / (shape.ranks - shape.group) / shape.group
    return Factor(multiple=multiple, formula="busbw <= k B / g x (n-1)/(n-g)")


def _alltoall_slot(shape: Shape) -> Factor | None:
    if shape.islands == 1:
        return None
    multiple = (shape.ranks - 1) / (shape.ranks - shape.island)
    return Factor(multiple=multiple, formula="busbw <= P x (n-1)/(n-m)")


def _linear(_collective: str, shape: Shape) -> Terms:
    own = shape.island if shape.islands > shape.groups else shape.group
    links = None
    if own > 1:
        links = Factor(multiple=(shape.ranks - 1) / (own - 1), formula="busbw <= V x (n-1)/(g-1)")
    return Terms(links=links, out=_out(shape), slot=_alltoall_slot(shape))


def _two_level(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1 or shape.group == 1:
        return None
    links = Factor(multiple=half_ring(shape) * neighbours(shape), formula="busbw <= (n-1)/n x g/(g-1) x V")
    return Terms(links=links, out=_out(shape), slot=_alltoall_slot(shape))


def _rooted(_collective: str, shape: Shape) -> Terms:
    if shape.groups == 1:
        return Terms(links=Factor(multiple=1.0, formula="busbw <= V"), slot=_alltoall_slot(shape))
    entering = (shape.ranks - 1) / (shape.ranks - shape.group)
    links = None
    if shape.group > 1 and shape.islands == shape.groups:
        links = Factor(multiple=(shape.ranks - 1) / (shape.group - 1), formula="busbw <= V x (n-1)/(g-1)")
    nearest, formula = nearest_ports(shape)
    return Terms(
        links=links,
        out=Factor(multiple=nearest * entering, formula=f"busbw <= {formula} x (n-1)/(n-g)"),
        slot=_alltoall_slot(shape),
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


def _tree_terms(_collective: str, shape: Shape) -> Terms:
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
    terms=_tree_terms,
    why="two trees of S/2 each: the busiest node sends L(N) halves; over exactly two nodes that is S, half of what "
    "busbw counts, so busbw may exceed the rate of the NICs",
    source=SOURCE,
)


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
    source=SOURCE,
    conditions=_few,
    needs_nvls=True,
    usual=lambda shape: shape.group >= _FEWEST_GPUS,
)


def _collnet_terms(_collective: str, shape: Shape) -> Terms | None:
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
    terms=_collnet_terms,
    why="the switches between the nodes add: S leaves each node and S enters it",
    source=(DEFINITION,),
    conditions=lambda _shape: (
        "a bound only: what of it is reached takes a measured constant for each regime, and none is published",
    ),
    needs_sharp=True,
    attainable=False,
)


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


def _pat_terms(_collective: str, shape: Shape) -> Terms | None:
    if shape.groups == 1 or shape.group > 1:
        return None
    return Terms(
        out=Factor(multiple=1.0, formula="busbw <= k B"),
        slot=Factor(multiple=1.0, formula="busbw <= P"),
    )


PAT = Algorithm(
    name="pat",
    collectives=("all_gather", "reduce_scatter"),
    terms=_pat_terms,
    why="the bytes of a ring in fewer, larger steps: every rank takes in what it lacks",
    source=(DEFINITION,),
    conditions=lambda _shape: ("NCCL 2.23 and later, with one GPU a node",),
)


def _ring_terms(_collective: str, shape: Shape) -> Terms:
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
    terms=_ring_terms,
    why="each link of the ring carries f S bytes, and so does whatever joins a node to the next one",
    source=(DEFINITION, "NVIDIA/nccl-tests issues 119, 319"),
)


ON_GPUS = (RING, TREE, NVLS, NVLS_TREE, COLLNET, PAT, LINEAR, TWO_LEVEL, ROOTED, NEIGHBOUR, LEAST)
# What MPI does between nodes is its own affair: only what cannot be avoided is a bound.
ON_CPUS = (LEAST, LINEAR, ROOTED, MPI_PAIRS)
_ALL = (*ON_GPUS, MPI_PAIRS)
# What other programs call them.
_ALIASES = {"collnetdirect": "collnet", "collnetchain": "collnet", "sharp": "collnet", "nvls_tree": "nvlstree"}
COLLECTIVES = tuple(dict.fromkeys(name for algorithm in _ALL for name in algorithm.collectives))
NAMES = tuple(dict.fromkeys(algorithm.name for algorithm in _ALL))


def algorithm_name(asked: str) -> str:
    """Return the name of an algorithm however it is written. Raises InputError for an unknown one."""
    name = asked.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in NAMES:
        raise InputError(f"no bound is known for the algorithm {asked!r}", hint=f"one of {', '.join(NAMES)}")
    return name


def check_collective(collective: str) -> None:
    """Raise InputError for a collective without a bound."""
    if collective not in MEASURED:
        raise not_a_collective(collective, COLLECTIVES)
    if collective not in COLLECTIVES:
        raise InputError(
            f"no bound is known for the collective {collective!r}", hint=f"one of {', '.join(COLLECTIVES)}"
        )

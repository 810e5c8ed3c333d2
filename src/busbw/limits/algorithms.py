"""The algorithms with a bound, and the names by which they are asked for."""

from busbw.base.errors import InputError
from busbw.limits.alltoall import LINEAR, ROOTED, TWO_LEVEL
from busbw.limits.collnet import COLLNET
from busbw.limits.least import LEAST
from busbw.limits.nvls import NVLS, NVLS_TREE
from busbw.limits.pairs import MPI_PAIRS, NEIGHBOUR
from busbw.limits.pat import PAT
from busbw.limits.ring import RING
from busbw.limits.tree import TREE

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
    if collective not in COLLECTIVES:
        raise InputError(
            f"no bound is known for the collective {collective!r}", hint=f"one of {', '.join(COLLECTIVES)}"
        )

"""The network between nodes: leaves of so many nodes each, and what their uplinks let through.

The NICs of one index meet in one leaf (rails), so a lane has leaves of its own. A leaf of L nodes has L/o uplinks of a
NIC's rate. Adaptive routing spreads what leaves evenly over them; static routing hashes each flow onto one, and then
the most loaded counts. Nodes stand in order (the first L in the first leaf) or are scattered.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from busbw.base.errors import InputError

Routing = Literal["adaptive", "static"]
Placement = Literal["in order", "scattered"]
# Nodes are scattered by the fractions of its multiples, the same way each time.
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True)
class Leaves:
    """What joins the NICs of one lane."""

    # Nodes of one leaf.
    nodes: int
    # What a leaf takes in from its nodes over what it sends up; 1: it does not block.
    oversubscription: float = 1.0
    routing: Routing = "adaptive"
    placement: Placement = "in order"

    @property
    def uplinks(self) -> int:
        """Return how many uplinks of a NIC's rate a leaf has."""
        return max(1, round(self.nodes / self.oversubscription))


def leaf_of(leaves: Leaves, nodes: int) -> tuple[int, ...]:
    """Return the leaf of each of so many nodes."""
    if leaves.nodes < 1 or not leaves.oversubscription >= 1:
        raise InputError(f"leaves of {leaves.nodes} nodes, {leaves.oversubscription:g}:1", hint="from 1 node, from 1:1")
    if leaves.placement == "in order":
        return tuple(node // leaves.nodes for node in range(nodes))
    found = [0] * nodes
    for place, node in enumerate(sorted(range(nodes), key=lambda node: (node * _GOLDEN) % 1)):
        found[node] = place // leaves.nodes
    return tuple(found)


@lru_cache(maxsize=4096)
def most_loaded(flows: int, links: int) -> float:
    """Return how many of some flows the most loaded of some links carries on average, each hashed onto one.

    Exact up to 256 of each: the chance that no link has more than m, link after link, for every m.
    """
    if flows < 1 or links <= 1:
        return float(max(flows, 0))
    if flows > 256 or links > 256:
        # Beyond what is counted: a mean with its largest of U deviations, as of a normal distribution.
        mean = flows / links
        return mean + math.sqrt(2 * mean * math.log(links))
    expected, below = 0.0, 0.0
    for most in range(1, flows + 1):
        within = _all_within(flows, links, most)
        expected += most * (within - below)
        below = within
        if within > 1 - 1e-12:
            break
    return expected


def _all_within(flows: int, links: int, most: int) -> float:
    """Return the probability that no link has more than `most` flows, one link after another."""
    # chances[left]: that the links so far took flows - left of them, each at most `most`.
    chances = {flows: 1.0}
    for further in range(links, 0, -1):
        after: dict[int, float] = defaultdict(float)
        for left, chance in chances.items():
            if further == 1:
                if left <= most:
                    after[0] += chance
                continue
            each = 1 / further
            likely = chance * (1 - each) ** left
            for taken in range(min(most, left) + 1):
                after[left - taken] += likely
                likely *= (left - taken) / (taken + 1) * each / (1 - each)
        chances = after
    return math.fsum(chances.values())


@dataclass(frozen=True)
class Crossing:
    """What leaves are passed by flows between nodes: how many go up from each leaf, and down to each."""

    leaf: tuple[int, ...]
    up: Counter[int]
    down: Counter[int]


def crossings(leaves: Leaves, nodes: int, flows: Iterable[tuple[int, int]]) -> Crossing:
    """Return what flows, each from a node to a node, make leaves carry."""
    leaf = leaf_of(leaves, nodes)
    crossing = [(leaf[one], leaf[other]) for one, other in flows if leaf[one] != leaf[other]]
    return Crossing(leaf=leaf, up=Counter(one for one, _ in crossing), down=Counter(other for _, other in crossing))


def share_of_uplinks(leaves: Leaves, crossing: Crossing, one: int, other: int) -> float | None:
    """Return what share of a NIC's rate a flow between two nodes has on the uplinks; None: it crosses none."""
    up, down = crossing.leaf[one], crossing.leaf[other]
    if up == down:
        return None
    return min(_share(leaves, crossing.up[up]), _share(leaves, crossing.down[down]))


def _share(leaves: Leaves, flows: int) -> float:
    if leaves.routing == "static":
        return 1 / max(1.0, most_loaded(flows, leaves.uplinks))
    return min(1.0, leaves.uplinks / max(1, flows))

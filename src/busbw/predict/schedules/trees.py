"""Schedules of the double binary tree: over nodes, with a chain of GPUs or a switch that adds within each.

Half of a lane's data goes up one tree and down again, half the other one; both are pipelined by chunks. Tree 1: a node
with lowest set bit b has the parent (r ^ b) | 2b, or r ^ b where that is no node; node 0 is the root, its child the
largest power of two. Tree 2 is its mirror image for an even number of nodes, else the same moved by one. Source:
src/graph/trees.cc of NCCL.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from busbw.base.errors import InputError
from busbw.predict.schedules.description import Drafting, Operation, Schedule, Via
from busbw.predict.schedules.rings import SLOTS, lanes_of


def first_parents(nodes: int) -> tuple[int | None, ...]:
    """Return the parent of each node in tree 1; None: the root."""
    found: list[int | None] = [None]
    for node in range(1, nodes):
        bit = node & -node
        parent = (node ^ bit) | (bit << 1)
        found.append(parent if parent < nodes else node ^ bit)
    return tuple(found)


def both_parents(nodes: int) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return the parents in both trees."""
    first = first_parents(nodes)

    def moved(node: int) -> int:
        return nodes - 1 - node if nodes % 2 == 0 else (node + 1) % nodes

    second: list[int | None] = [None] * nodes
    for node, parent in enumerate(first):
        second[moved(node)] = None if parent is None else moved(parent)
    return first, tuple(second)


def _children(parents: tuple[int | None, ...]) -> tuple[tuple[int, ...], ...]:
    found: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent is not None:
            found[parent].append(node)
    return tuple(tuple(each) for each in found)


# A work by its name and rank, and whether what it sends has to arrive first.
_Source = tuple[str, int, bool]


class _Tree:
    """One of the two trees while its works are written; `group` ranks a node, the first of which is its head."""

    def __init__(
        self, draft: Drafting, number: int, parents: tuple[int | None, ...], group: int, part_bytes: Fraction
    ) -> None:
        """Begin a tree that nothing is written of."""
        self.draft = draft
        self.number = number
        self.group = group
        self.part_bytes = part_bytes
        self.parents = parents
        self.children = _children(self.parents)

    def do(self, name: str, rank: int, operation: Operation, via: Via, peer: int, kind: int = 0) -> None:
        """Let a rank send a chunk of this tree."""
        self.draft.do(
            f"{name}{self.number}", rank, kind=(kind,), channel=self.number, operation=operation,
            part_bytes=self.part_bytes, via=via, peer=peer,
        )  # fmt: skip

    def after(self, name: str, rank: int, sources: list[_Source], *, lag: int = 0) -> None:
        """Let a work wait for others of this tree."""
        own, number = f"{name}{self.number}", self.number
        for source, other, travels in sources:
            self.draft.after(own, rank, f"{source}{number}", other, lag=lag, travels=travels)

    def onward(self, node: int, spread: list[_Source]) -> list[_Source]:
        """Return what takes the whole sum out of a node's slots: down to its children, and to its own GPUs."""
        head = node * self.group
        return [(f"down{which}.", head, True) for which in range(len(self.children[node]))] + [
            (name, rank, True) for name, rank, _ in spread
        ]

    def partial(self, node: int, own: list[_Source]) -> list[_Source]:
        """Return what a node's sum waits for: its own GPUs, and what its children send up."""
        return own + [("up", child * self.group, True) for child in self.children[node]]

    def whole(self, node: int, own: list[_Source]) -> list[_Source]:
        """Return what must be there before a node has the sum of all."""
        parent = self.parents[node]
        if parent is None:
            return self.partial(node, own)
        return [(f"down{self.children[parent].index(node)}.", parent * self.group, True)]

    def taken(self, node: int, spread: list[_Source]) -> list[_Source]:
        """Return what takes a node's partial sum out of its slots."""
        if self.parents[node] is None:
            return self.onward(node, spread)
        return [("up", node * self.group, True)]


@dataclass(frozen=True)
class _Inside:
    """How the GPUs of a node add towards its head and are told the sum; by works of the tree that are written."""

    # What must end before the node's own sum is at its head, and what tells its GPUs.
    own: list[_Source]
    spread: list[_Source]


def _double_tree(
    algorithm: str,
    nodes: int,
    group: int,
    lanes: int,
    size_bytes: int,
    chunks: int,
    inside: Callable[[_Tree, int], _Inside],
) -> Schedule:
    """Return both trees between nodes; `inside` writes what one node does in one of them."""
    draft = Drafting()
    part_bytes = Fraction(size_bytes, 2 * lanes * chunks)
    trees = tuple(
        _Tree(draft, number, parents, group, part_bytes) for number, parents in enumerate(both_parents(nodes))
    )
    # Up to the parent and down to each child, in both trees; each also the other way.
    degrees = [
        sum((tree.parents[node] is not None) + len(tree.children[node]) for tree in trees) for node in range(nodes)
    ]
    for tree in trees:
        written = [inside(tree, node) for node in range(nodes)]
        for node in range(nodes):
            _between(tree, node, written, degrees)
    return Schedule(
        algorithm=algorithm,
        collective="all_reduce",
        ranks=nodes * group,
        group=group,
        lanes=lanes,
        rounds=chunks,
        works=draft.works(),
    )


@cache
def _nic(flows: int) -> Via:
    """Return an even share of a NIC among so many flows."""
    return Via(link="nic", share=Fraction(1, flows))


def _between(tree: _Tree, node: int, inside: list[_Inside], degrees: list[int]) -> None:
    """Write what a node sends to others in one tree: with an even share of the NIC at the busier of both ends."""
    head, parent = node * tree.group, tree.parents[node]
    own, spread = inside[node].own, inside[node].spread

    def nic(other: int) -> Via:
        return _nic(max(degrees[node], degrees[other]))

    if parent is not None:
        tree.do("up", head, "add and send", nic(parent), parent * tree.group)
        tree.after("up", head, tree.partial(node, own))
        tree.after("up", head, tree.taken(parent, inside[parent].spread), lag=SLOTS)
    for which, child in enumerate(tree.children[node]):
        name = f"down{which}."
        tree.do(name, head, "copy and send", nic(child), child * tree.group)
        tree.after(name, head, tree.whole(node, own))
        tree.after(name, head, tree.onward(child, inside[child].spread), lag=SLOTS)
    for name, rank, _ in spread:
        tree.after(name, rank, tree.whole(node, own))


def nvls_tree(*, nodes: int, gpus: int, size_bytes: int, chunks: int) -> Schedule:
    """Return NVLSTree: a switch adds within each node, the double tree between them; a lane is a GPU with its NICs.

    Raises InputError for less than two nodes of two GPUs.
    """
    if nodes < 2 or gpus < 2 or chunks < 1:
        raise InputError(f"no NVLSTree of {nodes} nodes of {gpus} GPUs", hint="two nodes of two GPUs at least")
    # All lanes together take g/(g+1) of the links of a GPU for what is added, 1/(g+1) for the sum; a lane has its part
    # of both, half of it each tree.
    share = Fraction(1, 2 * (gpus + 1))
    add = Via(link="switch", share=share, out=Fraction(1, gpus), into=Fraction(1))
    copy = Via(link="switch", share=share, out=Fraction(1), into=Fraction(1, gpus))

    def inside(tree: _Tree, node: int) -> _Inside:
        tree.do("add", node, "add in the switch", add, node)
        tree.do("copy", node, "copy by the switch", copy, node)
        # What was added leaves its slot when it is sent on.
        onward = "up" if tree.parents[node] is not None else "copy"
        tree.after("add", node, [(onward, node, False)], lag=SLOTS)
        return _Inside(own=[("add", node, False)], spread=[("copy", node, False)])

    return _double_tree("nvlstree", nodes, 1, gpus, size_bytes, chunks, inside)


def double_tree(*, nodes: int, gpus: int, ports: int, size_bytes: int, chunks: int) -> Schedule:
    """Return the double tree over nodes with a chain of GPUs within each, begun by the GPU at the lane's NIC.

    Its ranks are counted along each chain. Raises InputError for less than two nodes.
    """
    if nodes < 2 or chunks < 1 or gpus < 1:
        raise InputError(f"no double tree of {nodes} nodes", hint="two nodes at least")
    lanes = lanes_of(nodes, gpus, ports)
    # Where each GPU heads a lane, g lanes pass 2(g-1) chunks each way over the links of a GPU; else two a lane.
    flows = max(1, 2 * (gpus - 1) if lanes == gpus else 2 * lanes)
    # A lane passes one of them where its chain begins or ends, two between: with two GPUs there is nothing between.
    own = Fraction(1 if lanes == gpus == 2 else 2, max(2, flows))
    via = Via(link="nvlink", share=Fraction(1, 2 * flows), out=own, into=own)

    def inside(tree: _Tree, node: int) -> _Inside:
        head = node * gpus
        for rank in range(head + 1, head + gpus):
            tree.do("in", rank, "add and send", via, rank - 1, kind=rank - head)
            tree.do("out", rank - 1, "copy and send", via, rank, kind=rank - head)
        for rank in range(head + 1, head + gpus - 1):
            tree.after("in", rank, [("in", rank + 1, True)])
            tree.after("in", rank + 1, [("in", rank, True)], lag=SLOTS)
            tree.after("out", rank, [("out", rank - 1, True)])
            tree.after("out", rank - 1, [("out", rank, True)], lag=SLOTS)
        if gpus == 1:
            return _Inside(own=[], spread=[])
        onward = "up" if tree.parents[node] is not None else "out"
        tree.after("in", head + 1, [(onward, head, True)], lag=SLOTS)
        return _Inside(own=[("in", head + 1, True)], spread=[("out", head, False)])

    return _double_tree("tree", nodes, gpus, lanes, size_bytes, chunks, inside)

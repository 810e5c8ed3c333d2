"""Endpoints as rows of a view: each by itself, by node, by leaf, or in runs of those, where they are many.

What is suspected has a row of its own. Rows stand in the order of groups, leaves and nodes.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from math import ceil

from busbw.fabric.named_parts import NamedParts
from busbw.fabric.places import Places

# Suspects with a row of their own.
_MOST_ALONE = 12
# Where no leaf is known.
_HOSTS_A_ROW = 16
_DIGITS = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ViewBlock:
    """A row: its name and its endpoints, in their order."""

    name: str
    members: tuple[int, ...]
    suspect: bool = False


@dataclass(frozen=True, kw_only=True)
class ViewBlocks:
    """All rows, and the row of each endpoint."""

    blocks: tuple[ViewBlock, ...]
    of: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Order:
    """Where each endpoint stands: its group, its leaf (of a node with several that of the first), its node."""

    places: Places
    groups: tuple[int, ...]
    leaves: tuple[int, ...]
    nodes: tuple[int, ...]
    order: tuple[int, ...]


def blocks_of(places: Places, named: NamedParts, most: int) -> ViewBlocks:
    """Return at most `most` rows of what is sound, and a row for each suspect."""
    order = _order(places)
    alone = _alone(places, named)
    taken = {each for block in alone for each in block.members}
    rest = [each for each in order.order if each not in taken]
    names = _names(order)
    if len(rest) + len(taken) <= most:
        # All of them by themselves: suspects are marked where they stand.
        single = [
            ViewBlock(name=names["endpoint"]([each]), members=(each,), suspect=each in taken) for each in order.order
        ]
        return _numbered(single, order)
    return _numbered([*alone, *_runs(rest, order, most, ("endpoint", "node", "leaf"))], order)


def node_blocks(places: Places, named: NamedParts, most: int) -> ViewBlocks:
    """Return at most `most` rows of nodes, and one for each node with a suspect."""
    order = _order(places)
    bad = list(dict.fromkeys(places.endpoints[each].node for each in named.endpoints))[:_MOST_ALONE]
    held: dict[str, list[int]] = {node: [] for node in bad}
    rest: list[int] = []
    for each in order.order:
        held.get(places.endpoints[each].node, rest).append(each)
    alone = [ViewBlock(name=node, members=tuple(members), suspect=True) for node, members in held.items()]
    return _numbered([*alone, *_runs(rest, order, most, ("node", "leaf"))], order)


def leaf_blocks(places: Places, named: NamedParts, most: int) -> ViewBlocks:
    """Return at most `most` rows of leaves, and one for each leaf that is suspected or holds a suspect.

    Where leaves are not known they are runs of nodes.
    """
    order = _order(places)
    if None in places.leaves or not places.leaf_names:
        rows = min(most, max(1, len(order.order) // _HOSTS_A_ROW))
        return _numbered(_runs(list(order.order), order, rows, ("endpoint", "node")), order)
    tier_of, _ = tiers(places)
    order = replace(order, groups=tier_of, order=tuple(sorted(order.order, key=tier_of.__getitem__)))
    special = {
        leaf: named.has_leaf(leaf)
        for leaf in [*named.switches, *named.uplinks, *(places.leaves[each] for each in named.endpoints)]
        if leaf is not None
    }
    linked = {end: region for link in named.links for region in link for end in places.region_members(region)}
    kept = dict(list(special.items())[:_MOST_ALONE])
    alone = [ViewBlock(name=places.leaf_names[leaf], members=places.members[leaf], suspect=suspect)
             for leaf, suspect in kept.items()]  # fmt: skip
    rest = [each for each in order.order if places.leaves[each] not in kept]
    apart: dict[int, list[int]] = defaultdict(list)
    for each in rest:
        if each in linked:
            apart[linked[each]].append(each)
    alone += [_run(members, order) for members in apart.values()]
    rest = [each for each in rest if each not in linked]
    rest.sort(key=lambda each: (tier_of[each], places.leaves[each] or 0))
    by_leaf = [tuple(held) for _, held in groupby(rest, key=lambda each: places.leaves[each] or 0)]
    return _numbered([*alone, *_merged(by_leaf, order, most, "leaf")], order)


def tiers(places: Places) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return what the leaf of each endpoint stands under, by number, and the names: rails where each leaf has one."""
    rails = list(places.rails)
    if len(rails) > 1 and all(len({places.endpoints[each].rail for each in held}) == 1
                              for held in places.members.values()):  # fmt: skip
        return tuple(rails.index(each.rail) for each in places.endpoints), tuple(str(rail) for rail in rails)
    groups = tuple(-1 if leaf is None else places.groups[leaf] for leaf in places.leaves)
    count = max(groups, default=0) + 1
    return groups, tuple(f"group {each}" for each in range(count)) if count > 1 else ("",) * count


def groups_above(blocks: Sequence[ViewBlock], places: Places) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return what each row stands under, by number, and the names: one for all where a row is of several."""
    tier_of, names = tiers(places)
    found = [{tier_of[each] for each in block.members} for block in blocks]
    if any(len(each) > 1 for each in found):
        return tuple(min(0, *each) for each in found), ("",)
    return tuple(each.pop() for each in found), names


def _order(places: Places) -> _Order:
    first: dict[str, int] = {}
    for at, each in enumerate(places.endpoints):
        first.setdefault(each.node, at)
    rank = {node: at for at, node in enumerate(sorted(first, key=_natural))}
    nodes = tuple(rank[each.node] for each in places.endpoints)
    own = tuple(-1 if (leaf := places.leaves[first[each.node]]) is None else leaf for each in places.endpoints)
    groups = tuple(places.groups[leaf] if leaf >= 0 else -1 for leaf in own)
    order = sorted(range(len(nodes)), key=lambda each: (groups[each], own[each], nodes[each], each))
    return _Order(places=places, groups=groups, leaves=own, nodes=nodes, order=tuple(order))


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return what names are sorted by, so that n9 stands before n10."""
    return tuple((int(part[:18]), part) if part.isdecimal() else (-1, part) for part in _DIGITS.split(name))


def _alone(places: Places, named: NamedParts) -> list[ViewBlock]:
    """Return a row for each suspect, those of the first answers where there are many."""
    by_answer: dict[int, list[int]] = defaultdict(list)
    for each, number in named.endpoints.items():
        by_answer[number].append(each)
    found: list[ViewBlock] = []
    for number in sorted(by_answer):
        members = tuple(sorted(by_answer[number]))
        names = {places.endpoints[each].node for each in members}
        name = str(places.endpoints[members[0]]) if len(members) == 1 else names.pop()
        found.append(ViewBlock(name=name, members=members, suspect=True))
    taken = {each for block in found for each in block.members}
    for leaf in [*named.switches, *named.uplinks]:
        members = tuple(each for each in places.members[leaf] if each not in taken)
        if members:
            found.append(ViewBlock(name=places.leaf_names[leaf], members=members, suspect=True))
            taken.update(members)
    order = _order(places) if named.links else None
    for region in sorted({each for link in named.links for each in link}):
        members = tuple(each for each in places.region_members(region) if each not in taken)
        if members and order is not None:
            run = _run(members, order)
            found.append(ViewBlock(name=run.name, members=members, suspect=True))
            taken.update(members)
    return found[:_MOST_ALONE]


def _names(order: _Order) -> dict[str, Callable[[Sequence[int]], str]]:
    """Return how a row of each level is called: `n0000 to n0127`, `leaf0 to leaf7`."""
    places = order.places

    def span(one: str, other: str) -> str:
        return one if one == other else f"{one} to {other}"

    return {
        "endpoint": lambda held: span(str(places.endpoints[held[0]]), str(places.endpoints[held[-1]])),
        "node": lambda held: span(places.endpoints[held[0]].node, places.endpoints[held[-1]].node),
        "leaf": lambda held: span(*(places.leaf_names[places.leaves[each] or 0] for each in (held[0], held[-1]))),
    }


def _run(members: Sequence[int], order: _Order) -> ViewBlock:
    return ViewBlock(name=_names(order)["leaf"](members), members=tuple(members))


def _runs(rest: Sequence[int], order: _Order, most: int, levels: Sequence[str]) -> list[ViewBlock]:
    """Return the finest rows of which there are few enough; runs of the coarsest else."""
    if not rest:
        return []
    # With several NICs a node its leaves are as many, and none is the node's.
    has_leaves = min(order.leaves) >= 0 and len(order.places.rails) < 2
    keys: dict[str, Sequence[int]] = {"endpoint": range(len(order.nodes)), "node": order.nodes, "leaf": order.leaves}
    held: list[tuple[int, ...]] = []
    level = levels[0]
    for level in levels if has_leaves else [each for each in levels if each != "leaf"]:
        held = [tuple(found) for _, found in groupby(rest, key=keys[level].__getitem__)]
        if len(held) <= most:
            break
    return _merged(held, order, most, level)


def _merged(held: Sequence[tuple[int, ...]], order: _Order, most: int, level: str) -> list[ViewBlock]:
    """Return rows of as many neighbours as needed: within groups of leaves where those are few.

    Nor does a row reach over what has a row of its own, as far as there are rows enough.
    """
    if not held:  # all of them have rows of their own
        return []
    name = _names(order)[level]
    place = {each: at for at, each in enumerate(order.order)}
    gaps = [place[each[0]] - place[before[-1]] > 1 for before, each in pairwise(held)]
    parts = dict(zip((each[0] for each in held), accumulate(gaps, initial=0), strict=True))
    by_group = [list(held)]
    for key in (lambda each: (order.groups[each[0]], parts[each[0]]), lambda each: order.groups[each[0]],
                lambda each: parts[each[0]]):  # fmt: skip
        found = [list(part) for _, part in groupby(held, key=key)]
        if 2 * len(found) <= most:
            by_group = found
            break
    width = max(1, ceil(len(held) / most))
    while sum(ceil(len(each) / width) for each in by_group) > most:
        width += 1
    rows = []
    for group in by_group:
        for at in range(0, len(group), width):
            members = tuple(end for each in group[at : at + width] for end in each)
            rows.append(ViewBlock(name=name(members), members=members))
    return rows


def _numbered(blocks: Sequence[ViewBlock], order: _Order) -> ViewBlocks:
    """Return rows in order, by their first endpoint."""
    place = {each: at for at, each in enumerate(order.order)}
    ordered = sorted(blocks, key=lambda block: min(place[each] for each in block.members))
    of = [0] * len(order.nodes)
    for row, block in enumerate(ordered):
        for each in block.members:
            of[each] = row
    return ViewBlocks(blocks=tuple(ordered), of=tuple(of))

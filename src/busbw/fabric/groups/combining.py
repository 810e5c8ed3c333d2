"""Groups that are bad though no part of them is: by others beside them, or by two sets of nodes together."""

from dataclasses import dataclass

from busbw.fabric.groups.judging import GroupTest
from busbw.fabric.groups.search import Group, Search


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Nodes of a bad group of which no part is bad by itself.

    `sides`: two sets that are bad together and sound apart; () where that could not be found out. `alone`: the group
    without others beside it.
    """

    group: GroupTest
    again: GroupTest
    alone: GroupTest | None = None
    sides: tuple[Group, ...] = ()


def combined(search: Search, group: GroupTest, again: GroupTest) -> Combination:
    """Return what of a group is bad together. Raises BudgetSpent.

    The group runs alone first: what is sound then has been disturbed by the other groups.
    """
    (alone,) = search.look([group.nodes], "alone", search.repeats)
    if not search.scale.is_bad(alone):
        return Combination(group=group, again=again, alone=alone)
    if len(group.nodes) == 2:
        known = search.in_sound()
        sides = ((group.nodes[0],), (group.nodes[1],)) if known.issuperset(group.nodes) else ()
        return Combination(group=group, again=again, alone=alone, sides=sides)
    sides = _halved(search, group.nodes)
    if sides is not None:
        sides = _narrowed(search, *sides)
        sides = _narrowed(search, sides[1], sides[0])
        if not _is_shown(search, *sides):
            sides = None
    return Combination(group=group, again=again, alone=alone, sides=tuple(sorted(sides)) if sides is not None else ())


def _is_bad(search: Search, *wanted: Group) -> list[bool]:
    """Return whether each of some sets of nodes, filled up with good nodes, is bad beside the others."""
    mine = {node for own in wanted for node in own}
    others = search.shuffled(search.good() - mine)
    groups = search.filled(wanted, others)
    tests = search.look(groups, "together", search.repeats)
    scale = search.scale
    return [any(scale.is_bad(each) for each in tests if set(own) <= set(each.nodes)) for own in wanted]


def _halved(search: Search, nodes: Group) -> tuple[Group, Group] | None:
    """Return two halves that are sound apart, halving the bad one again and again; None: one node, or both are bad."""
    while len(nodes) >= 2:
        one, other = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
        if len(nodes) == 2:
            return one, other
        is_bad = _is_bad(search, one, other)
        if not any(is_bad):
            return one, other
        if all(is_bad):
            return None
        nodes = one if is_bad[0] else other
    return None


def _narrowed(search: Search, fixed: Group, side: Group) -> tuple[Group, Group]:
    """Return the two sides with the second as small as still makes them bad together."""
    while len(side) >= 2:
        one, other = side[: len(side) // 2], side[len(side) // 2 :]
        (first,) = _is_bad(search, (*fixed, *one))
        (second,) = _is_bad(search, (*fixed, *other))
        if first == second:
            break
        side = one if first else other
    return fixed, side


def _is_shown(search: Search, one: Group, other: Group) -> bool:
    """Whether two sides are bad together once more, and sound apart."""
    (together,) = _is_bad(search, (*one, *other))
    return together and not any(_is_bad(search, one, other))

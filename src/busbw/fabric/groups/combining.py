"""Groups that are bad though no part of them is: by others beside them, or by two sets of nodes together."""

from dataclasses import dataclass

from busbw.fabric.groups.judging import GroupTest
from busbw.fabric.groups.search import Group, GroupSearch


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Nodes of a bad group of which no part is bad by itself.

    `sides`: two sets that are bad together and sound apart; () where that could not be found out. `alone`: the group
    without others beside it; None: not known, or it was sound beside others after that.
    """

    group: GroupTest
    again: GroupTest
    alone: GroupTest | None = None
    sides: tuple[Group, ...] = ()


def combined(search: GroupSearch, group: GroupTest, again: GroupTest) -> Combination:
    """Return what of a group is bad together. Raises BudgetSpent.

    The group runs alone first: what is sound then, and bad once more beside others, has been disturbed by them.
    """
    (alone,) = search.look([group.nodes], "alone", search.repeats)
    if not search.scale.is_bad(alone):
        (is_bad,) = _is_bad(search, group.nodes)
        return Combination(group=group, again=again, alone=alone if is_bad else None)
    return Combination(group=group, again=again, alone=alone, sides=_sides(search, group.nodes))


def _sides(search: GroupSearch, nodes: Group) -> tuple[Group, ...]:
    """Return two sets of nodes that are bad together and sound apart; () where there are no such."""
    if len(nodes) == 2:
        return ((nodes[0],), (nodes[1],)) if search.in_sound().issuperset(nodes) else ()
    halves = _halved(search, nodes)
    if halves is None:
        return ()
    one, other = _narrowed(search, *halves)
    other, one = _narrowed(search, other, one)
    return tuple(sorted((one, other))) if _is_shown(search, one, other) else ()


def _is_bad(search: GroupSearch, *wanted: Group) -> list[bool]:
    """Return whether each of some sets of nodes, filled up with good nodes, is bad beside the others."""
    mine = {node for own in wanted for node in own}
    others = search.shuffled(search.good() - mine)
    groups = search.filled(wanted, others)
    tests = search.look(groups, "together", search.repeats)
    scale = search.scale
    return [any(scale.is_bad(each) for each in tests if set(own) <= set(each.nodes)) for own in wanted]


def _halved(search: GroupSearch, nodes: Group) -> tuple[Group, Group] | None:
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


def _narrowed(search: GroupSearch, fixed: Group, side: Group) -> tuple[Group, Group]:
    """Return the two sides with the second as small as still makes them bad together."""
    while len(side) >= 2:
        one, other = side[: len(side) // 2], side[len(side) // 2 :]
        (first,) = _is_bad(search, (*fixed, *one))
        (second,) = _is_bad(search, (*fixed, *other))
        if first == second:
            break
        side = one if first else other
    return fixed, side


def _is_shown(search: GroupSearch, one: Group, other: Group) -> bool:
    """Whether two sides are bad together once more, and sound apart."""
    (together,) = _is_bad(search, (*one, *other))
    return together and not any(_is_bad(search, one, other))

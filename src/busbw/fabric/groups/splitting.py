"""The procedure: groups of one size side by side, the nodes of a bad group spread over sound ones, confirmations.

It runs groups through a function given from outside, which gets the groups of one round, all to be run at the same
time, and the number of the round. All groups have the same size, so that the effect of size is never taken for a
fault: what is suspicious is not run by itself but among nodes that a sound group has shown to be good.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from busbw.fabric.groups.combining import Combination, combined
from busbw.fabric.groups.judging import FIRST, GroupScale, GroupTerms, GroupTest
from busbw.fabric.groups.search import BudgetSpent, Group, GroupMeasure, GroupSearch
from busbw.fabric.groups.unsteady import UnsteadyNode, unsteady_nodes
from busbw.fabric.places import Draws

REPEATS = 3
MOST_ROUNDS = 60
# Tests of the first look at least, so that there is something to hold each against.
_LEAST_FIRST_TESTS = 6
_CONFIRMATIONS = 3
_MOST_SPLITS = 8
_MOST_COMBINATIONS = 3


@dataclass(frozen=True, kw_only=True)
class BadNode:
    """A node that slowed or failed its groups, and the runs that confirm it, each with other partners."""

    node: int
    confirmations: tuple[GroupTest, ...]
    confirmed: int


@dataclass(frozen=True, kw_only=True)
class Separated:
    """What a search came to."""

    nodes: int
    group_nodes: int
    tests: tuple[GroupTest, ...]
    rounds: int
    scale: GroupScale
    culprits: tuple[BadNode, ...]
    # Bad in tests of its own and not confirmed.
    unconfirmed: tuple[BadNode, ...]
    # Bad in some of their runs.
    unsteady: tuple[UnsteadyNode, ...]
    combinations: tuple[Combination, ...]
    # Bad groups that were sound when they ran again.
    passed: tuple[GroupTest, ...]
    # Nodes about which nothing could be found out.
    unknown: Group
    is_budget_spent: bool


def first_groups(nodes: int, group_nodes: int, leaves: Sequence[int] = ()) -> tuple[Group, ...]:
    """Return the groups that nodes form in their order, which is where neighbours stand together.

    With the leaf of each node the nodes of one leaf first stand together, and groups are within it as far as they can.
    """
    order = sorted(range(nodes), key=lambda node: leaves[node]) if leaves else range(nodes)
    if not leaves:
        return _chunks(order, group_nodes)
    made: list[Group] = []
    left: list[int] = []
    for leaf in dict.fromkeys(leaves[node] for node in order):
        own = [node for node in order if leaves[node] == leaf]
        whole = len(own) // group_nodes * group_nodes
        made += _chunks(own[:whole], group_nodes)
        left += own[whole:]
    return (*made, *_chunks(left, group_nodes))


def across_groups(nodes: int, group_nodes: int, leaves: Sequence[int]) -> tuple[Group, ...]:
    """Return groups with nodes of as many leaves each as there are."""
    places: dict[int, int] = {}
    within = [places.setdefault(leaf, 0) or 0 for leaf in leaves]
    for node, leaf in enumerate(leaves):
        within[node] = places[leaf]
        places[leaf] += 1
    return _chunks(sorted(range(nodes), key=lambda node: (within[node], leaves[node])), group_nodes)


def _chunks(order: Sequence[int], group_nodes: int) -> tuple[Group, ...]:
    return tuple(
        tuple(sorted(order[at : at + group_nodes])) for at in range(0, len(order) - group_nodes + 1, group_nodes)
    )


def separate(
    nodes: int, group_nodes: int, measure: GroupMeasure, terms: GroupTerms, draws: Draws, *, repeats: int = REPEATS,
    most_rounds: int = MOST_ROUNDS, whole: bool = True, leaves: Sequence[int] = (),
) -> Separated:  # fmt: skip
    """Return which of `nodes` nodes make groups of `size` bad. `whole`: all of them are run together once, too.

    `leaves`: the leaf switch of each node; (): they are not known.
    """
    search = GroupSearch(
        nodes=nodes,
        group_nodes=group_nodes,
        measure=measure,
        terms=terms,
        draws=draws,
        repeats=repeats,
        most_rounds=most_rounds,
    )
    found = _Known()
    try:
        if whole and nodes > group_nodes:
            _run_whole(search)
        _first_looks(search, leaves if len(set(leaves)) > 1 else ())
        if whole and nodes > group_nodes:
            _whole_again(search)
        found.isolated = _split(search)
        _confirm(search, found)
        found.unsteady = unsteady_nodes(search, {each.node for each in _judged(search, found)[0]})
        pairs = _unexplained(search, found)
        again = [each for each in pairs if search.scale.is_bad(each[1])]
        found.passed = [first for first, _second in pairs if (first, _second) not in again]
        for first, second in again[:_MOST_COMBINATIONS]:
            found.combinations.append(combined(search, first, second))
        is_spent = False
    except BudgetSpent:
        is_spent = True
    return _concluded(search, found, is_spent=is_spent)


@dataclass(slots=True)
class _Known:
    """What is known of single nodes and groups while the search goes on."""

    isolated: list[int] = field(default_factory=list)
    confirming: dict[int, list[GroupTest]] = field(default_factory=dict)
    unsteady: list[UnsteadyNode] = field(default_factory=list)
    combinations: list[Combination] = field(default_factory=list)
    passed: list[GroupTest] = field(default_factory=list)


def _run_whole(search: GroupSearch) -> None:
    search.look([tuple(range(search.nodes))], "whole", 1)


def _whole_again(search: GroupSearch) -> None:
    """Repeat the run of all nodes where it was bad and no group of them is."""
    scale = search.scale
    first = search.tests[0].results[0]
    bad = first.value is None or scale.misses(first.value)
    if bad and not scale.is_slow_everywhere and not any(scale.is_bad(each) for each in _firsts(search)):
        search.look([tuple(range(search.nodes))], "whole", _CONFIRMATIONS - 1)


def _firsts(search: GroupSearch) -> list[GroupTest]:
    return [each for each in search.tests if each.purpose in FIRST]


def _first_looks(search: GroupSearch, leaves: Sequence[int]) -> None:
    """Run nodes in their order in groups; where that makes few groups, or leaves nodes out, in further ones.

    Where leaves are known, groups of neighbours first, and then groups over all leaves.
    """
    order = first_groups(search.nodes, search.group_nodes)
    if leaves:
        search.look(first_groups(search.nodes, search.group_nodes, leaves), "within", search.repeats)
        order = across_groups(search.nodes, search.group_nodes, leaves)
    search.look(order, "first", search.repeats)
    tested = {node for group in order for node in group}
    while len(tested) < search.nodes or len(_firsts(search)) < _LEAST_FIRST_TESTS:
        # With three nodes there is one group at a time, and three in all.
        if search.nodes == 3 and len(_firsts(search)) >= 3:
            break
        groups = search.spread([node for node in range(search.nodes) if node not in tested])
        tested |= {node for group in groups for node in group}
        search.look(groups, "first", search.repeats)


def _split(search: GroupSearch) -> list[int]:
    """Spread the nodes of bad groups over sound ones until each is alone among good nodes, or cleared."""
    suspects: set[int] = {
        node for each in _firsts(search) if search.scale.is_bad(each) for node in each.nodes
    } - _in_sound(search)
    if len(suspects) == search.nodes:
        return []
    isolated = _isolated(search, suspects)
    for _ in range(_MOST_SPLITS):
        if suspects <= isolated:
            break
        before = set(suspects)
        # Those that are found out take part: their groups are bad, but nobody else's.
        search.look(search.spread(suspects, search.good()), "split", search.repeats)
        suspects -= _in_sound(search)
        isolated = _isolated(search, suspects)
        if suspects == before and not suspects <= isolated and len(suspects) * 2 > search.nodes:
            break
    return sorted(isolated)


def _in_sound(search: GroupSearch) -> set[int]:
    scale = search.scale
    return {node for each in search.tests if each.purpose in (*FIRST, "split") and scale.state(each) == "sound"
            for node in each.nodes}  # fmt: skip


def _isolated(search: GroupSearch, suspects: set[int]) -> set[int]:
    """Return the suspects that are the only one of a bad group, and were in two bad ones at least."""
    scale = search.scale
    _, bad = search.counts(scale)
    alone = [suspects.intersection(each.nodes) for each in search.tests
             if each.purpose in (*FIRST, "split") and scale.is_bad(each)]  # fmt: skip
    return {node for each in alone if len(each) == 1 for node in each if bad[node] > 1}


def _confirm(search: GroupSearch, found: _Known) -> None:
    """Run each isolated node with other good partners each time, and those partners with another node in its place."""
    waiting = list(found.isolated)
    while waiting:
        batch, waiting = waiting[: search.side_by_side], waiting[search.side_by_side :]
        before: list[Group] = []
        for _ in range(_CONFIRMATIONS):
            groups, partners = _confirming(search, batch, before, found.isolated)
            tests = search.look(groups, "confirm", 1)
            for node in batch:
                found.confirming.setdefault(node, []).extend(each for each in tests if node in each.nodes)
            before = partners


def _confirming(
    search: GroupSearch, batch: Sequence[int], before: Sequence[Group], isolated: Collection[int]
) -> tuple[list[Group], list[Group]]:
    """Return the groups of one round of confirmations, and the partners of each node of the batch."""
    good = search.shuffled(search.good() - set(isolated))
    begun: list[list[int]] = []
    held = {node for own in before for node in own}
    free = search.side_by_side - len(batch)
    # Partners of the round before stay together, with a good node in place of the suspicious one.
    controls: list[list[int]] = [list(own) for own in before[: max(free, 0)]]
    kept = {node for own in controls for node in own}
    for node in batch:
        choice = [each for each in good if each not in kept]
        choice = search.seldom_met(node, choice, held)
        own = choice[: search.group_nodes - 1]
        kept |= set(own)
        begun.append([node, *own])
    rest = [each for each in good if each not in kept]
    groups = search.filled([*begun, *controls], [*rest, *(set(range(search.nodes)) - set(isolated) - set(good))])
    return groups, [tuple(own[1:]) for own in begun]


def _unexplained(search: GroupSearch, found: _Known) -> list[tuple[GroupTest, GroupTest]]:
    """Run bad groups of the first looks again that no confirmed node explains; return each with its second test."""
    scale = search.scale
    explained = {*(each.node for each in _judged(search, found)[0]), *(each.node for each in found.unsteady)}
    bad = [each for each in _firsts(search) if scale.is_bad(each) and not explained.intersection(each.nodes)]
    if not bad or all(scale.is_bad(each) for each in _firsts(search)):
        return []
    pairs = []
    waiting = list(dict.fromkeys(each.nodes for each in bad))
    of = {each.nodes: each for each in bad}
    while waiting:
        chosen: list[Group] = []
        for group in waiting:
            if not {node for own in chosen for node in own}.intersection(group) and len(chosen) < search.side_by_side:
                chosen.append(group)
        waiting = [group for group in waiting if group not in chosen]
        others = search.shuffled(set(range(search.nodes)) - explained)
        tests = search.look(search.filled(chosen, others), "again", search.repeats)
        pairs += [(of[each.nodes], each) for each in tests if each.nodes in chosen]
    return pairs


def _judged(search: GroupSearch, found: _Known) -> tuple[list[BadNode], list[BadNode]]:
    """Return the nodes that are confirmed, and those that are not."""
    scale = search.scale
    named: list[BadNode] = []
    unconfirmed: list[BadNode] = []
    for node, tests in found.confirming.items():
        confirmed = sum(_confirms(scale, each, _first_effect(search, scale, node)) for each in tests)
        made = BadNode(node=node, confirmations=tuple(tests), confirmed=confirmed)
        is_named = len(tests) == _CONFIRMATIONS and confirmed * 3 >= 2 * len(tests) and _is_told_apart(search, node)
        (named if is_named else unconfirmed).append(made)
    return named, unconfirmed


def _is_told_apart(search: GroupSearch, node: int) -> bool:
    """Whether the tests of a node speak of it and of nothing else.

    It was in no sound group that ran as often as a judgement needs, in fewer sound ones than bad ones, and no other
    node was in all of its bad ones: else it may be what lies between them.
    """
    scale = search.scale
    sound, bad = search.counts(scale)
    own = [each for each in search.tests if node in each.nodes and each.purpose in (*FIRST, "split", "confirm")]
    judged = [each for each in own if len(each.results) >= search.repeats and each.purpose != "confirm"]
    partners = [set(each.nodes) - {node} for each in own if scale.is_bad(each)]
    return (
        not any(scale.state(each) == "sound" for each in judged)
        and bad[node] > sound[node]
        and bool(partners)
        and not set.intersection(*partners)
    )


def _concluded(search: GroupSearch, found: _Known, *, is_spent: bool) -> Separated:
    scale = search.scale
    sound, bad = search.counts(scale)
    named, unconfirmed = _judged(search, found)
    sometimes = {each.node for each in found.unsteady}
    unconfirmed = [each for each in unconfirmed if each.node not in sometimes]
    explained = {*sometimes, *(each.node for each in (*named, *unconfirmed))}
    return Separated(
        nodes=search.nodes,
        group_nodes=search.group_nodes,
        tests=tuple(search.tests),
        rounds=search.rounds,
        scale=scale,
        culprits=tuple(named),
        unconfirmed=tuple(unconfirmed),
        unsteady=tuple(found.unsteady),
        combinations=tuple(found.combinations),
        passed=tuple(found.passed),
        unknown=tuple(node for node in range(search.nodes) if bad[node] and not sound[node] and node not in explained),
        is_budget_spent=is_spent,
    )


def _first_effect(search: GroupSearch, scale: GroupScale, node: int) -> float:
    """Return the least effect that a node had in the bad tests that made it suspicious; 0: they failed."""
    effects = [scale.effect(each) for each in search.tests
               if node in each.nodes and each.purpose in (*FIRST, "split") and scale.is_bad(each)]  # fmt: skip
    return min((each for each in effects if each is not None), default=0.0)


def _confirms(scale: GroupScale, test: GroupTest, effect: float) -> bool:
    """Whether one run shows a fault again: it fails, or is slow by at least half of the effect and 4 %."""
    found = scale.effect(test)
    return test.has_failed or found is None or found >= max(effect / 2, 0.04)

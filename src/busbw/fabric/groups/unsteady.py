"""Nodes that are slow in some of their runs only: counted run by run, and named after more runs with other partners.

The median of three runs hides a node that is slow in one of them. Each run is held against the reference of its look;
a node with more bad runs than chance explains runs again, alone among good partners, until its own runs decide.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from busbw.fabric.groups.judging import GroupResult, GroupScale, GroupTest
from busbw.fabric.groups.search import GroupSearch
from busbw.stats.distributions import binomial_tail

# Bad runs that sound nodes have anyway: measured of the others, and never taken for less.
_LEAST_SHARE = 0.03
# Chance that a sound node is looked at again; and, all nodes together, that one is named.
_SUSPECTED = 0.02
_NAMED = 0.01
_LEAST_BAD_RUNS = 3
# Of a group that counts as bad again and again; how many of these there must be; and the share of their runs that may
# be bad: more is no coming and going.
_LEAST_BAD_RUNS_OF_A_TEST = 2
_LEAST_TOUCHED = 2
_MOST_SHARE = 0.8
# Looks with other partners each, of so many runs; a node without a bad run in two of them is cleared.
_MOST_LOOKS = 4
_RUNS_OF_A_LOOK = 4
_CLEARED_AFTER = 8


@dataclass(frozen=True, kw_only=True)
class UnsteadyNode:
    """A node that is bad in some runs: in those made to find out, and those of the others beside it."""

    node: int
    bad: int
    runs: int
    others_bad: int
    others_runs: int
    tests: tuple[GroupTest, ...]


def is_bad_run(scale: GroupScale, test: GroupTest, result: GroupResult) -> bool:
    """Whether one run of a group failed, or is slower than its look by more than one run may be."""
    if result.value is None:
        return True
    return scale.terms.level(result.value) - scale.centres.get(test.look, 0.0) > scale.bound(1)


def bad_runs(scale: GroupScale, tests: Sequence[GroupTest]) -> tuple[int, int]:
    """Return how many runs of some tests are bad, and how many there are."""
    bound = scale.bound(1)
    bad = 0
    for each in tests:
        level = scale.centres.get(each.look, 0.0) + bound
        bad += each.failures + sum(scale.terms.level(value) > level for value in each.values)
    return bad, sum(len(each.results) for each in tests)


def suspected(search: GroupSearch, explained: Collection[int]) -> list[int]:
    """Return nodes with more bad runs than the groups without them explain, the worst first.

    Their bad runs are of two groups at least: what is bad with the same partners alone lies between them.
    """
    scale, named = search.scale, set(explained)
    own: dict[int, list[tuple[int, int]]] = defaultdict(list)
    all_bad = all_runs = 0
    for each in search.tests:
        if each.purpose in ("whole", "alone") or not named.isdisjoint(each.nodes):
            continue
        counts = bad_runs(scale, (each,))
        all_bad, all_runs = all_bad + counts[0], all_runs + counts[1]
        for node in each.nodes:
            own[node].append(counts)
    found = []
    for node, counted_ in own.items():
        bad, runs = sum(each[0] for each in counted_), sum(each[1] for each in counted_)
        share = max((all_bad - bad) / max(all_runs - runs, 1), _LEAST_SHARE)
        if sum(each[0] > 0 for each in counted_) > 1 and share < 1:
            chance = binomial_tail(bad, runs, share)
            found += [(chance, node)] if chance < _SUSPECTED else []
    return [node for _chance, node in sorted(found)]


def unsteady_nodes(search: GroupSearch, explained: Collection[int]) -> list[UnsteadyNode]:
    """Return the nodes that are bad in some of their runs. Raises BudgetSpent.

    `explained`: nodes that are named already. What made a node suspicious does not count against it.
    """
    open_ = suspected(search, explained)[: search.side_by_side]
    tests: dict[int, list[GroupTest]] = {node: [] for node in open_}
    fresh: list[GroupTest] = []
    named: list[int] = []
    for _look in range(_MOST_LOOKS):
        if not open_:
            break
        groups = _groups(search, open_, {*explained, *named})
        made = search.look(groups, "unsteady", _RUNS_OF_A_LOOK)
        for node in open_:
            tests[node] += [each for each in made if node in each.nodes]
        fresh += made
        for node in list(open_):
            others = [each for each in fresh if {*named, node}.isdisjoint(each.nodes)]
            state = _decided(search.scale, tests[node], others, search.nodes)
            if state is not None:
                open_.remove(node)
                named += [node] if state else []
    scale = search.scale
    others_bad, others_runs = bad_runs(scale, [each for each in fresh if set(named).isdisjoint(each.nodes)])
    return [
        UnsteadyNode(
            node=node, bad=bad_runs(scale, tests[node])[0], runs=bad_runs(scale, tests[node])[1],
            others_bad=others_bad, others_runs=others_runs, tests=tuple(tests[node]),
        )
        for node in named
    ]  # fmt: skip


def _groups(search: GroupSearch, nodes: Sequence[int], known: Collection[int]) -> list[tuple[int, ...]]:
    """Return groups with one of some nodes each and partners that it has met least, and the rest among themselves."""
    free = search.shuffled(set(range(search.nodes)) - set(nodes) - set(known))
    begun: list[list[int]] = []
    for node in nodes:
        own = search.seldom_met(node, free, ())[: search.group_nodes - 1]
        free = [each for each in free if each not in own]
        begun.append([node, *own])
    return search.filled(begun, free)


def _comes_and_goes(scale: GroupScale, tests: Sequence[GroupTest]) -> bool:
    """Whether groups without another node in common have bad runs again and again, and sound ones among them.

    What is bad with certain partners, and then in every run, lies between them, or is congestion.
    """
    own = [(each, *bad_runs(scale, (each,))) for each in tests]
    touched = [(set(each.nodes), bad, runs) for each, bad, runs in own if bad >= _LEAST_BAD_RUNS_OF_A_TEST]
    if len(touched) < _LEAST_TOUCHED or len(set.intersection(*(nodes for nodes, _bad, _runs in touched))) > 1:
        return False
    return sum(bad for _nodes, bad, _runs in touched) <= _MOST_SHARE * sum(runs for _nodes, _bad, runs in touched)


def _decided(scale: GroupScale, tests: Sequence[GroupTest], others: Sequence[GroupTest], nodes: int) -> bool | None:
    """Whether the runs of a node name it or clear it; None: neither yet."""
    bad, runs = bad_runs(scale, tests)
    others_bad, others_runs = bad_runs(scale, others)
    share = max(others_bad / others_runs if others_runs else 0.0, _LEAST_SHARE)
    if share >= 1:
        return False
    if bad >= _LEAST_BAD_RUNS and binomial_tail(bad, runs, share) < _NAMED / nodes and _comes_and_goes(scale, tests):
        return True
    return False if runs >= _CLEARED_AFTER and bad == 0 else None

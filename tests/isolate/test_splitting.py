"""Groups split adaptively: who is named, who is never named, and what is answered where nothing can be told."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.fabric.groups.judging import GroupResult, GroupTerms
from busbw.fabric.groups.simulation import GroupFault, drawn_fault, simulated_groups
from busbw.fabric.groups.splitting import Separated, across_groups, first_groups, separate
from busbw.fabric.simulation import Noise

TERMS = GroupTerms(higher_is_better=False)
SOUND = ("none", "slow")


def searched(kind: str, nodes: int, group_nodes: int, seed: int, **more) -> tuple[GroupFault, Separated]:
    draws = random.Random(seed)
    fault = drawn_fault(kind, nodes, group_nodes, draws)
    machine = simulated_groups(fault, nodes, draws)
    return fault, separate(nodes, group_nodes, machine.measure, TERMS, draws, **more)


def named(found: Separated) -> set[int]:
    return {each.node for each in found.culprits}


@pytest.mark.parametrize(("nodes", "group_nodes"), [(3, 2), (4, 2), (7, 3), (16, 4), (64, 8)])
@pytest.mark.parametrize("kind", ["node", "failing"])
def test_one_bad_node_is_named_and_nobody_else(kind, nodes, group_nodes):
    results = [searched(kind, nodes, group_nodes, seed) for seed in range(15)]

    assert sum(named(found) == set(fault.nodes) for fault, found in results) >= 14
    assert max(found.rounds for _fault, found in results) <= 45


@pytest.mark.parametrize(("nodes", "group_nodes"), [(4, 2), (16, 4), (64, 8)])
@pytest.mark.parametrize("kind", SOUND)
def test_nobody_is_named_where_all_are_alike(kind, nodes, group_nodes):
    assert [named(searched(kind, nodes, group_nodes, seed)[1]) for seed in range(30)] == [set()] * 30


def test_two_bad_nodes_are_both_named():
    results = [searched("two-nodes", 16, 4, seed) for seed in range(15)]

    assert sum(named(found) == set(fault.nodes) for fault, found in results) >= 14


@pytest.mark.parametrize(("kind", "nodes", "group_nodes"), [("pair", 16, 4), ("pair", 6, 2), ("between-halves", 64, 8)])
def test_what_is_bad_between_nodes_is_no_node(kind, nodes, group_nodes):
    results = [searched(kind, nodes, group_nodes, seed) for seed in range(12)]

    assert all(named(found) == set() for _fault, found in results)
    right = [
        {frozenset(side) for each in found.combinations for side in each.sides}
        == {frozenset(fault.nodes), frozenset(fault.others)}
        for fault, found in results
    ]
    assert sum(right) >= 8


def test_a_group_that_others_disturb_is_sound_alone():
    results = [searched("congestion", 16, 4, seed)[1] for seed in range(12)]

    assert all(named(found) == set() for found in results)
    found = [[each.alone is not None and not each.sides for each in one.combinations] for one in results]
    assert sum(each == [True] for each in found) >= 11


def test_a_node_that_is_slow_in_half_of_its_runs_is_often_found_and_nobody_else_is():
    results = [searched("unsteady", 16, 4, seed) for seed in range(20)]

    told = [named(found) | {each.node for each in found.unsteady} for _fault, found in results]
    assert sum(each == set(fault.nodes) for each, (fault, _found) in zip(told, results, strict=True)) >= 8
    assert all(each <= set(fault.nodes) for each, (fault, _found) in zip(told, results, strict=True))
    for _fault, found in results:
        for each in found.unsteady:
            assert each.bad >= 3
            assert each.bad / each.runs > 3 * each.others_bad / max(each.others_runs, 1)


@pytest.mark.parametrize("kind", ["pair", "congestion", "none"])
def test_what_is_bad_with_certain_partners_is_no_node_that_comes_and_goes(kind):
    results = [searched(kind, nodes, 2 if nodes == 4 else 4, seed)[1] for nodes in (4, 16) for seed in range(8)]

    assert [each.unsteady for each in results] == [()] * 16


LEAVES = (0, 1, 0, 1, 0, 1, 0, 1, 2)


def test_groups_are_within_a_leaf_first_and_then_across():
    assert first_groups(9, 2, LEAVES) == ((0, 2), (4, 6), (1, 3), (5, 7))
    # What is left of a leaf is put together.
    assert first_groups(9, 3, LEAVES) == ((0, 2, 4), (1, 3, 5), (6, 7, 8))
    for group in across_groups(9, 2, LEAVES):
        assert len({LEAVES[node] for node in group}) == 2
    assert sorted(node for group in across_groups(8, 4, LEAVES[:8]) for node in group) == list(range(8))


def test_groups_across_leaves_that_are_slower_without_a_fault_accuse_nobody_and_a_slow_node_is_still_found():
    leaves = tuple(node // 4 for node in range(16))

    def searched_over(bad):
        draws = random.Random(5)

        def measure(groups, _number):
            return [
                GroupResult(
                    value=10.0
                    * (1.0 if len({leaves[node] for node in group}) == 1 else 1.3)
                    * (1.2 if bad in group else 1.0)
                    * draws.uniform(0.99, 1.01)
                )
                for group in groups
            ]

        return separate(16, 4, measure, TERMS, draws, leaves=leaves)

    assert named(searched_over(None)) == set()
    assert searched_over(None).combinations == ()
    assert named(searched_over(6)) == {6}


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(3, 20),
    group_nodes=st.integers(2, 10),
    seed=st.integers(0, 2**32),
    values=st.data(),
    repeats=st.integers(1, 3),
)
def test_whatever_groups_do_a_named_node_was_in_no_sound_group(nodes, group_nodes, seed, values, repeats):
    group_nodes = min(group_nodes, max(nodes // 2, 2))
    draws = random.Random(seed)

    def measure(groups, number):
        assert all(len(set(group)) == len(group) for group in groups)
        used = [node for group in groups for node in group]
        assert len(set(used)) == len(used), "a node is in two groups of one round"
        assert {len(group) for group in groups} <= {group_nodes, nodes}
        return [
            GroupResult(failure="it broke")
            if draws.random() < 0.1
            else GroupResult(value=draws.choice([1.0, 1.0, 1.3]))
            for _ in groups
        ]

    found = separate(nodes, group_nodes, measure, TERMS, draws, repeats=repeats, most_rounds=40)

    assert found.rounds <= 40
    for culprit in found.culprits:
        own = [each for each in found.tests if culprit.node in each.nodes and len(each.nodes) == group_nodes]
        judged = [each for each in own if each.purpose in ("first", "split")]
        bad = sum(found.scale.is_bad(each) for each in own)
        assert not any(found.scale.state(each) == "sound" for each in judged)
        assert bad > sum(found.scale.state(each) == "sound" for each in own)
        assert culprit.confirmed >= 2


def test_the_same_values_and_seed_ask_for_the_same_groups():
    asked: list[list[tuple[tuple[int, ...], ...]]] = [[], []]
    for own in asked:
        draws, noise = random.Random(5), random.Random(6)
        machine = simulated_groups(GroupFault(kind="node", nodes=(3,)), 12, noise)

        def measure(groups, number, own=own, machine=machine):
            own.append(tuple(groups))
            return machine.measure(groups, number)

        separate(12, 3, measure, TERMS, draws)

    assert asked[0] == asked[1]


def test_where_every_group_fails_nobody_is_named_and_the_search_ends_at_once():
    draws = random.Random(1)
    found = separate(16, 4, lambda groups, _number: [GroupResult(failure="no")] * len(groups), TERMS, draws)

    assert named(found) == set()
    assert found.rounds <= 8


def test_a_budget_is_kept_and_what_is_open_is_told():
    fault, found = searched("node", 64, 8, 3, most_rounds=7)

    assert found.rounds <= 7
    assert found.is_budget_spent
    assert named(found) == set()
    assert set(fault.nodes) <= {*found.unknown, *(each.node for each in found.unconfirmed)} or found.unknown == ()


def test_groups_that_all_miss_what_is_expected_are_slow_everywhere():
    draws = random.Random(1)
    machine = simulated_groups(GroupFault(kind="slow", effect=0.3), 16, draws, Noise())
    found = separate(16, 4, machine.measure, GroupTerms(higher_is_better=False, expected=0.0108), draws)

    assert found.scale.is_slow_everywhere
    assert named(found) == set()


def test_one_group_that_misses_what_is_expected_is_bad_even_if_peers_scatter():
    draws = random.Random(2)

    def measure(groups, _number):
        return [GroupResult(value=100.0 * draws.uniform(0.93, 1.0) / (1.4 if 5 in group else 1.0)) for group in groups]

    found = separate(8, 2, measure, GroupTerms(higher_is_better=True, expected=100.0), draws)

    assert named(found) == {5}

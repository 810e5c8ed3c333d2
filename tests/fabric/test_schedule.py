"""Rounds of disjoint pairs: nobody twice in a round, in a tournament each pair once."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.fabric.places import Endpoint, Places, flat
from busbw.fabric.schedule import check_rounds, full_rounds, most_rounds, retest_round, sparse_rounds, tournament
from busbw.fabric.simulation import TOPOLOGIES, made_places


def is_disjoint(pairs) -> bool:
    ends = [end for pair in pairs for end in pair]
    return len(ends) == len(set(ends))


@pytest.mark.parametrize("count", range(2, 41))
def test_in_a_tournament_every_two_meet_once_and_nobody_is_twice_in_a_round(count: int) -> None:
    rounds = list(tournament(count))
    assert len(rounds) == count - 1 + count % 2
    assert all(is_disjoint(each) for each in rounds)
    met = [tuple(sorted(pair)) for each in rounds for pair in each]
    assert sorted(met) == list(combinations(range(count), 2))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@given(nodes=st.integers(8, 90), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_sparse_rounds_are_disjoint_and_stay_on_their_rail(topology, nodes: int, seed: int) -> None:
    places = made_places(topology, nodes)
    rounds = list(sparse_rounds(places, random.Random(seed)))
    assert len(rounds) == 5
    for each in rounds:
        assert is_disjoint(each)
        assert all(places.endpoints[one].rail == places.endpoints[other].rail for one, other in each)
    assert not any(places.crossing(*pair) for each in rounds[:2] for pair in each)


def test_rounds_across_leaves_cross_where_no_leaf_holds_more_than_half() -> None:
    places = made_places("fat-tree-2", 64)
    rounds = list(sparse_rounds(places, random.Random(3)))
    assert all(places.crossing(*pair) for each in rounds[2:] for pair in each)
    assert all(len(each) == 32 for each in rounds)


def test_an_odd_host_rests_in_turn_and_all_are_tested() -> None:
    places = flat(Endpoint(node=f"n{number}") for number in range(7))
    rounds = list(full_rounds(places))
    assert len(rounds) == 7
    assert [len(each) for each in rounds] == [3] * 7


def test_a_retest_has_what_is_wanted_first_and_keeps_the_others_busy() -> None:
    places = made_places("fat-tree-2", 16)
    good = [each for each in range(16) if each != 5]
    pairs = retest_round([((5, 4), (5, 6)), ((4, 5), (9, 1))], places, good, random.Random(1))
    assert (4, 5) in pairs
    assert (1, 9) in pairs
    assert is_disjoint(pairs)
    assert len(pairs) == 8


def test_every_two_leaves_meet_in_the_first_rounds_of_a_thousand_nodes() -> None:
    places = made_places("fat-tree-2", 1024)
    rounds = list(sparse_rounds(places, random.Random(5)))
    met = {frozenset(places.leaves[end] for end in pair) for each in rounds[2:] for pair in each}
    assert len(rounds) == 6
    assert len(met) == 64 * 63 // 2


@pytest.mark.parametrize(("nodes", "most"), [(2, 8), (64, 8), (65, 10), (256, 12), (4096, 12)])
def test_a_sweep_of_more_nodes_may_have_more_rounds(nodes: int, most: int) -> None:
    assert most_rounds(nodes) == most


@pytest.mark.parametrize("most", [0, 7, 1001])
def test_rounds_that_cannot_be_had_are_refused(most: int) -> None:
    with pytest.raises(InputError, match="rounds at most"):
        check_rounds(most)


def test_rails_of_a_node_are_tested_at_once() -> None:
    places = Places(
        endpoints=tuple(Endpoint(node=f"n{node}", rail=f"r{rail}") for node in range(4) for rail in range(2)),
        leaves=(None,) * 8,
    )
    assert all(len(each) == 4 for each in full_rounds(places))

"""Tests by columns read as a sequence of tests, and a full matrix by columns gives the same answers as test by test."""

import math
import random
from array import array

import pytest

from busbw.fabric.pair_table import PairTable, group_column, leaf_column, table_of
from busbw.fabric.places import PairTest, flat
from busbw.fabric.procedure import analysed
from busbw.fabric.schedule import sparse_rounds
from busbw.fabric.simulation import Fault, Noise, Simulated, made_places

TESTS = (
    PairTest(sender=0, receiver=1, round=0, value=2.0),
    PairTest(sender=1, receiver=2, round=0, value=None),
    PairTest(sender=2, receiver=0, round=7, value=1.5, retest=True),
    PairTest(sender=2, receiver=1, round=8, value=1.0, retest=True, alone=True),
)


def test_a_table_reads_like_the_tests_that_it_was_made_of() -> None:
    table = PairTable(TESTS)
    assert tuple(table) == TESTS
    assert len(table) == 4
    assert table[-1] == TESTS[-1]
    assert table[1:3] == list(TESTS[1:3])
    assert table_of(table) is table


def test_retests_and_tests_without_an_answer_are_found() -> None:
    table = PairTable(TESTS)
    assert table.first_retest == 2
    assert PairTable(TESTS[:2]).first_retest == 2
    assert list(table.unanswered()) == [1]
    assert table.among(made_places("fat-tree-2", 8), (0,)) == [0, 2]


def test_logs_are_of_slowness() -> None:
    logs = PairTable(TESTS).logs("bandwidth")
    assert logs[0] == pytest.approx(-math.log(2.0))
    assert math.isnan(logs[1])
    assert PairTable(TESTS).logs("latency")[0] == pytest.approx(math.log(2.0))


def test_a_round_whose_columns_differ_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        PairTable().add_round((0, 1), (1,), 0, (1.0,))


def test_endpoints_beyond_those_of_the_places_are_refused() -> None:
    with pytest.raises(IndexError, match="endpoint 2 of 2"):
        PairTable(TESTS).hop_kinds(flat(made_places("fat-tree-2", 8).endpoints[:2]))


def test_regions_are_leaves_then_groups() -> None:
    dragonfly = made_places("dragonfly", 16)
    assert set(leaf_column(dragonfly)) == {0, 1, 2, 3}
    assert set(group_column(dragonfly)) == {4, 5}
    assert dragonfly.link(0, 1) is None
    assert dragonfly.link(0, 4) == {0, 1}
    assert dragonfly.link(0, 8) == {4, 5}
    assert dragonfly.region_members(1) == tuple(range(4, 8))
    assert dragonfly.region_members(4) == tuple(range(8))


def test_a_matrix_by_columns_names_the_same_as_test_by_test() -> None:
    places = made_places("fat-tree-2", 64)
    draws = random.Random(3)
    faults = (Fault(kind="node", element=9), Fault(kind="nic-send", element=50))
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
    )
    tests, table = [], PairTable()
    for sender in range(64):
        receivers = [each for each in range(64) if each != sender]
        made = [PairTest(sender=sender, receiver=each, round=0, value=None) for each in receivers]
        values = [each or math.nan for each in fabric.measure(made, 0)]
        tests += [PairTest(sender=sender, receiver=each, round=0, value=value)
                  for each, value in zip(receivers, values, strict=True)]  # fmt: skip
        table.add_round(array("i", (sender,)) * 63, receivers, 0, values)
    one, other = analysed(places, tests, "bandwidth"), analysed(places, table, "bandwidth")
    assert one.answers == other.answers
    assert sorted(each.place for each in one.answers) == ["NIC of n0050, sending", "node n0009"]


def test_rounds_across_leaves_meet_every_two_leaves() -> None:
    places = made_places("fat-tree-2", 256)
    met: dict[tuple[int, int], int] = {}
    for number, pairs in enumerate(sparse_rounds(places, random.Random(5))):
        assert len({end for pair in pairs for end in pair}) == 2 * len(pairs) == 256
        if number >= 2:
            for one, other in pairs:
                key = tuple(sorted((places.leaves[one] or 0, places.leaves[other] or 0)))
                met[key] = met.get(key, 0) + 1
    assert len(met) == 16 * 15 // 2
    assert min(met.values()) >= 3

"""Bounds from plain numbers: what the arithmetic gives, and what it must not give."""

from math import inf, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.limits.algorithms import COLLECTIVES, NAMES, busiest_halves
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import slot_rate
from busbw.model.limit import Bound, NodeRates, Rate


def rate(gigabytes: float) -> Rate:
    return Rate(rate_Bps=gigabytes * 1e9, figures=f"{gigabytes:g} GB/s")


def make_rates(**changes: object) -> NodeRates:
    """Return eight GPUs behind a switch that adds, with a 400 Gb/s port each."""
    fields: dict[str, object] = {
        "gpus": 8,
        "island_gpus": 8,
        "nvlink": rate(450),
        "pair": rate(450),
        "nvls": True,
        "slot": rate(63),
        "ports": 8,
        "nic": rate(50),
        "nic_slot": rate(63),
    }
    return NodeRates(**{**fields, **changes})  # type: ignore[arg-type]


GRACE = {"gpus": 4, "island_gpus": 4, "pair": rate(150), "nvls": False, "slot": rate(450), "ports": 4, "nic": rate(25)}


def bound(rates: NodeRates, nodes: int, collective: str, algorithm: str) -> Bound:
    (found,) = ceiling(rates, nodes=nodes, collective=collective, algorithm=algorithm).bounds
    return found


def gigabytes_of(rates: NodeRates, nodes: int, collective: str, algorithm: str) -> float:
    found = bound(rates, nodes, collective, algorithm).busbw_Bps
    assert found is not None
    return round(found / 1e9, 2)


@pytest.mark.parametrize(
    ("changes", "nodes", "collective", "algorithm", "expected"),
    [
        ({}, 1, "all_reduce", "ring", 450),
        ({}, 1, "all_reduce", "tree", 450),
        ({}, 1, "all_reduce", "nvls", 700),
        ({}, 2, "all_reduce", "ring", 400),
        # The NICs would let the tree reach 750; in the chain within a node the links do not.
        ({}, 2, "all_reduce", "tree", 482.14),
        ({}, 2, "all_reduce", "nvlstree", 750),
        ({}, 3, "all_reduce", "nvlstree", 511.11),
        ({}, 4, "all_reduce", "nvlstree", 387.5),
        ({}, 4, "all_reduce", "tree", 387.5),
        ({}, 128, "all_reduce", "tree", 399.61),
        ({}, 4, "all_reduce", "collnet", 775),
        ({"nvls": False, "nvlink": rate(300), "nic": rate(25)}, 2, "all_reduce", "tree", 321.43),
        (GRACE, 2, "all_reduce", "tree", 175),
        (GRACE, 2, "all_reduce", "ring", 100),
        (GRACE, 1, "sendrecv", "neighbour", 150),
        (GRACE, 2, "sendrecv", "neighbour", 25),
        ({}, 1, "sendrecv", "neighbour", 450),
        ({}, 2, "sendrecv", "neighbour", 50),
        ({"ports": 32, "nic": rate(12.5)}, 2, "sendrecv", "neighbour", 50),
        ({"ports": 4, "nic": rate(25)}, 2, "sendrecv", "neighbour", 25),
        ({}, 2, "all_gather", "ring", 400),
        ({}, 2, "reduce_scatter", "ring", 400),
        ({"gpus": 1, "island_gpus": 1, "ports": 1}, 16, "all_gather", "pat", 50),
        ({}, 2, "broadcast", "ring", 400),
        ({}, 1, "reduce", "ring", 450),
        ({}, 1, "alltoall", "linear", 450),
        ({}, 2, "alltoall", "linear", 93.75),
        ({}, 2, "alltoall", "two-level", 93.75),
        ({}, 2, "all_reduce", "any", 750),
        ({}, 3, "all_reduce", "any", 575),
        ({}, 2, "gather", "linear", 93.75),
    ],
)
def test_the_arithmetic_gives_the_known_bounds(
    changes: dict[str, object], nodes: int, collective: str, algorithm: str, expected: float
) -> None:
    assert gigabytes_of(make_rates(**changes), nodes, collective, algorithm) == expected


def test_a_tree_over_two_nodes_may_print_more_than_the_nics_carry() -> None:
    found = bound(make_rates(**GRACE), 2, "all_reduce", "tree")
    assert found.algbw_Bps == pytest.approx(100e9)
    assert found.busbw_Bps == pytest.approx(175e9)
    assert found.limited_by == "nic"
    # What two nodes of four GH200 printed: more than their 100 GB/s of NICs, and possible.
    assert 92.96e9 <= found.algbw_Bps < 162.69e9 <= found.busbw_Bps


def test_the_busiest_group_of_a_double_tree_sends_at_most_four_halves() -> None:
    assert [busiest_halves(groups) for groups in (2, 3, 4, 5, 100)] == [2, 3, 4, 4, 4]


@pytest.mark.parametrize("nodes", [1, 17, 18])
def test_within_an_nvlink_domain_no_nic_counts(nodes: int) -> None:
    rates = make_rates(gpus=4, island_gpus=4, domain_gpus=72, nvlink=rate(900), pair=rate(900), ports=4)
    limit = ceiling(rates, nodes=nodes, collective="all_reduce", algorithm="ring")
    assert limit.bounds[0].busbw_Bps == 900e9
    assert {part.name for part in limit.parts} == {"nvlink"}
    assert limit.domains == (1 if nodes > 1 else None)


@pytest.mark.parametrize(("nodes", "domains", "ports"), [(19, 2, 36), (36, 2, 72), (37, 3, 48), (360, 20, 72)])
def test_nodes_fill_as_few_domains_as_they_can(nodes: int, domains: int, ports: int) -> None:
    rates = make_rates(gpus=4, island_gpus=4, domain_gpus=72, nvlink=rate(900), ports=4)
    limit = ceiling(rates, nodes=nodes, collective="all_reduce")
    assert (limit.domains, limit.ranks) == (domains, 4 * nodes)
    (nics,) = (part for part in limit.parts if part.name == "nic")
    assert nics.rate_Bps == ports * 50e9


def test_pairs_of_gpus_meet_over_their_slots() -> None:
    rates = make_rates(gpus=4, island_gpus=2, nvls=False, slot=rate(31.5), nvlink=None, pair=None)
    found = bound(rates, 1, "all_reduce", "ring")
    assert (found.busbw_Bps, found.limited_by) == (63e9, "slot")
    assert [line.part for line in found.lines if line.busbw_Bps is None] == ["nvlink"]


def test_gpus_without_links_are_bound_by_one_slot() -> None:
    rates = make_rates(island_gpus=1, nvls=False, nvlink=None, pair=None)
    assert gigabytes_of(rates, 1, "all_reduce", "ring") == 63
    assert gigabytes_of(rates, 2, "all_reduce", "ring") == 63


def test_nodes_without_gpus_are_bound_by_their_nic() -> None:
    rates = NodeRates(gpus=0, cpu_ranks=176, ports=1, nic=rate(50))
    limit = ceiling(rates, nodes=2)
    best = {found.collective: found.busbw_Bps for found in limit.bounds}
    assert (best["bandwidth"], best["bibw"], best["broadcast"]) == (50e9, 100e9, 50e9)
    assert best["all_reduce"] == pytest.approx(2 * 351 / 352 * 50e9)


@pytest.mark.parametrize(
    ("changes", "nodes", "words"),
    [
        ({"nic": None}, 2, "NIC ports"),
        ({"ports": None}, 2, "NIC ports"),
        ({"nvlink": None}, 1, "links of one GPU"),
        ({"slot": None, "island_gpus": 1}, 1, "slot"),
        ({"gpus": 0, "cpu_ranks": 8}, 1, "memory"),
    ],
)
def test_what_is_missing_makes_no_ceiling(changes: dict[str, object], nodes: int, words: str) -> None:
    limit = ceiling(make_rates(**changes), nodes=nodes, collective="all_reduce")
    assert limit.bounds
    for found in limit.bounds:
        assert found.busbw_Bps is None
        assert any(words in missing for missing in found.missing)


def test_a_part_that_is_not_known_is_shown_and_the_others_still_bound() -> None:
    found = bound(make_rates(nic_slot=None, slot=None), 2, "all_reduce", "ring")
    assert found.busbw_Bps == 400e9
    assert {line.part for line in found.lines if line.busbw_Bps is None} == {"slot", "nic_slot"}


def test_switches_that_add_are_left_out_unless_they_do_or_are_asked_for() -> None:
    usual = {found.algorithm for found in ceiling(make_rates(nvls=False), nodes=2, collective="all_reduce").bounds}
    assert usual == {"ring", "tree"}
    asked = bound(make_rates(nvls=False, sharp=None), 2, "all_reduce", "sharp")
    assert asked.algorithm == "collnet"
    assert any("SHARP" in condition for condition in asked.conditions)
    few = ceiling(make_rates(gpus=4, island_gpus=4, ports=4), nodes=1, collective="all_reduce")
    assert "nvls" not in {found.algorithm for found in few.bounds}
    assert any(
        "four GPUs" in words for words in bound(make_rates(gpus=4, island_gpus=4), 1, "all_reduce", "nvls").conditions
    )


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({"nodes": 0}, "0 nodes"),
        ({"nodes": 10**9}, "1000000000 nodes"),
        ({"nodes": 2, "collective": "allreduce"}, "'allreduce' is not a collective"),
        ({"nodes": 2, "algorithm": "star"}, "algorithm 'star'"),
        ({"nodes": 1, "algorithm": "collnet"}, "collnet is not an algorithm"),
        ({"nodes": 2, "collective": "alltoall", "algorithm": "tree"}, "tree is not an algorithm for alltoall"),
    ],
)
def test_what_has_no_bound_is_refused(arguments: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        ceiling(make_rates(), **arguments)  # type: ignore[arg-type]


def test_one_rank_alone_has_no_ceiling() -> None:
    with pytest.raises(InputError, match="one rank alone"):
        ceiling(make_rates(gpus=1, island_gpus=1), nodes=1)


@given(
    gpus=st.integers(1, 16),
    nodes=st.integers(1, 40),
    ports=st.integers(1, 32),
    island=st.integers(1, 16),
    faster=st.sampled_from(["nvlink", "nic", "slot"]),
)
def test_a_faster_part_never_lowers_a_ceiling_and_no_line_is_below_it(
    gpus: int, nodes: int, ports: int, island: int, faster: str
) -> None:
    if gpus * nodes < 2:
        return
    rates = make_rates(gpus=gpus, ports=ports, island_gpus=min(island, gpus))
    before = ceiling(rates, nodes=nodes)
    more = {"nvlink": rate(900), "nic": rate(100), "slot": rate(126)}[faster]
    after = ceiling(make_rates(gpus=gpus, ports=ports, island_gpus=min(island, gpus), **{faster: more}), nodes=nodes)
    for one, other in zip(
        sorted(before.bounds, key=lambda each: (each.collective, each.algorithm)),
        sorted(after.bounds, key=lambda each: (each.collective, each.algorithm)),
        strict=True,
    ):
        assert (one.collective, one.algorithm) == (other.collective, other.algorithm)
        if one.busbw_Bps is not None:
            assert (other.busbw_Bps or 0) >= one.busbw_Bps
            assert isclose(min(line.busbw_Bps or inf for line in one.lines), one.busbw_Bps)
            assert [line.part for line in one.lines if line.limits] == [one.limited_by]


def test_every_name_that_is_offered_has_a_bound_somewhere() -> None:
    gpu = {(found.collective, found.algorithm) for n in (1, 2) for found in ceiling(make_rates(), nodes=n).bounds}
    assert {name for name, _algorithm in gpu} | {"bandwidth", "bibw", "alltoall_2dh"} == set(COLLECTIVES)
    assert set(NAMES) >= {algorithm for _name, algorithm in gpu}


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"), [(1, 16, 4), (3, 16, 15.75), (4, 16, 31.51), (5, 16, 63.02), (6, 16, 118)]
)
def test_a_slot_carries_its_transfers_without_the_encoding(generation: int, width: int, gigabytes: float) -> None:
    found = slot_rate(generation, width)
    assert found is not None
    assert round(found.rate_Bps / 1e9, 2) == gigabytes
    assert slot_rate(9, 16) is None
